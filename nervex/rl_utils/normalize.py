"""Observations and rewards scaled by running statistics: the arithmetic, beside envs and policies alike."""

from typing import Any

import numpy as np
import torch

from nervex.utils import tree

EPSILON = 1e-8
_FLAGS = {'action_mask', 'agent_alive'}  # keys of observations


class RunningStatistics:
    """
    Overview:
        Mean and variance of rows seen so far, in float64, merged batch by batch (Chan, Golub and LeVeque 1979).
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.mean, self.var, self.count = np.zeros(shape), np.ones(shape), 0.0

    @classmethod
    def of(cls, state: dict[str, Any]) -> 'RunningStatistics':
        """Those whose ``state_dict`` this is."""
        made = cls(np.shape(state['mean']))
        made.load_state_dict(state)
        return made

    def update(self, rows: np.ndarray) -> None:
        """Take in rows of shape (n, ...), or (n, A, ...) where all agents count alike."""
        rows = rows.reshape(-1, *self.mean.shape).astype(np.float64)
        if len(rows):
            self.merge(rows.mean(0), rows.var(0), len(rows))

    def merge(self, mean: np.ndarray, var: np.ndarray, n: float) -> None:
        """Take in ``n`` rows of this mean and variance."""
        total = self.count + n
        delta = mean - self.mean
        self.var = (self.var * self.count + var * n + delta**2 * self.count * n / total) / total
        self.mean = self.mean + delta * n / total
        self.count = total

    def state_dict(self) -> dict[str, Any]:
        """Everything that is needed to go on."""
        return {'mean': self.mean.tolist(), 'var': self.var.tolist(), 'count': self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        mean = np.asarray(state['mean'])
        if mean.shape != self.mean.shape:
            raise ValueError(f'statistics of shape {mean.shape} do not fit observations of shape {self.mean.shape}')
        self.mean, self.var, self.count = mean, np.asarray(state['var']), float(state['count'])


class Normalizer:
    """
    Overview:
        Scales float observations to mean 0 and variance 1, and rewards by the spread of the discounted return (their
        sign and zero stay). Integer leaves such as pixels stay as they are, and so does what says which actions are
        legal and who is there. What each agent of a team sees is scaled alike for all of them.
    Arguments:
        - norm_obs, norm_reward (:obj:`bool`): what to scale
        - clip (:obj:`float`): scaled values are cut to [-clip, clip]
        - discount (:obj:`float`): of the return whose spread scales rewards
    Interfaces:
        observe, scales, reward, is_new, freeze, follow, state_dict, load_state_dict; where several scale alike: share,
        learn, adopt
    """

    def __init__(
        self, norm_obs: bool = True, norm_reward: bool = False, clip: float = 10.0, discount: float = 0.99
    ) -> None:
        self.norm_obs, self.norm_reward, self.frozen = norm_obs, norm_reward, False
        self.clip, self._discount = clip, discount
        self._stats: list[RunningStatistics | None] = []  # of each leaf; empty until one was seen
        self._spread = RunningStatistics(())
        self._fits = False  # what is known has been seen to fit the observations
        self._news: Normalizer | None = None
        self._source: Normalizer | None = None

    @property
    def is_new(self) -> bool:
        """Whether it knows nothing of observations yet."""
        return all(part is None or not part.count for part in self._stats)

    def freeze(self) -> None:
        """For evaluation: take nothing in any more, scale observations by what is known, leave rewards as they are."""
        self.frozen, self.norm_reward = True, False

    def follow(self, other: 'Normalizer') -> None:
        """Frozen, with another one's statistics, always the present ones."""
        self.freeze()
        self._source = other

    def observe(self, block: Any, count: bool = True) -> Any:
        """Scaled copies of observations; ``count`` says whether they have not been seen before."""
        if not self.norm_obs:
            return block
        stats = (self._source or self)._statistics(block)
        if count and not self.frozen:
            for known, leaf in zip(stats, tree.leaves(block)):
                if known is not None:
                    known.update(leaf)
            if self._news is not None:
                self._news.observe(block)
        places = iter(stats)
        return tree.map(lambda leaf: self._scaled(leaf, next(places)), block)

    def scales(self, block: Any) -> list[tuple[np.ndarray, np.ndarray] | None]:
        """Of each leaf of observations: what is subtracted, and what then divides; None: it stays as it is."""
        stats = (self._source or self)._statistics(block)
        return [None if known is None else (known.mean, np.sqrt(known.var + EPSILON)) for known in stats]

    def reward(self, block: Any, returns: np.ndarray) -> np.ndarray:
        """Scaled rewards of a step; ``returns``, the running discounted returns of all envs, are brought up to date."""
        if not self.norm_reward:
            return block.reward
        ids = block.env_id
        returns[ids] = returns[ids] * self._discount + block.reward.sum(tuple(range(1, block.reward.ndim)))
        if not self.frozen:
            self._spread.update(returns[ids])
            if self._news is not None:
                self._news._spread.update(returns[ids])
        returns[ids[block.done]] = 0.0
        scale = np.sqrt(self._spread.var + EPSILON)
        return np.clip(block.reward / scale, -self.clip, self.clip).astype(np.float32)

    def state_dict(self) -> dict[str, Any]:
        """Plain numbers and lists: goes into a checkpoint."""
        known = (self._source or self)._stats
        obs = [None if s is None else s.state_dict() for s in known] if known else None
        return {'norm_obs': self.norm_obs, 'clip': self.clip, 'obs': obs, 'spread': self._spread.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Also before the first observation was seen."""
        self._spread.load_state_dict(state['spread'])
        if state['obs'] is None:
            return
        loaded = [None if part is None else RunningStatistics.of(part) for part in state['obs']]
        if self._fits:
            _must_fit(loaded, self._stats)
        self._stats = loaded

    @classmethod
    def of_checkpoint(cls, checkpoint: dict[str, Any]) -> 'Normalizer | None':
        """What scaled the observations of a run when its checkpoint was saved, frozen; None if nothing did."""
        saved = checkpoint.get('attached', {}).get('normalizer')
        if saved is None or not saved['norm_obs']:
            return None
        made = cls(clip=saved.get('clip', 10.0))
        made.freeze()
        made.load_state_dict(saved)
        return made

    def model_input(self, obs: Any) -> Any:
        """Scaled copies of observations on their way into a model: arrays or tensors, an ``action_mask`` aside."""
        leaves = list(tree.leaves(obs))
        known = [part for part in self._stats or [] if part is not None or len(leaves) == len(self._stats or [])]
        if len(leaves) != len(known):
            raise ValueError(f'statistics of {len(known)} parts do not fit observations of {len(leaves)}')
        places = iter(known)

        def scaled(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return self._scaled(leaf, next(places))
            return torch.from_numpy(self._scaled(leaf.detach().cpu().numpy(), next(places))).to(leaf.device)

        return tree.map(scaled, obs)

    def _statistics(self, block: Any) -> list[RunningStatistics | None]:
        if not self._fits:
            seen = [
                RunningStatistics(leaf.shape[axes:]) if axes and leaf.dtype.kind == 'f' else None
                for leaf, axes in zip(tree.leaves(block), _counted_axes(block))
            ]
            if not self._stats:
                self._stats = seen
            else:
                _must_fit(self._stats, seen)
            self._fits = True
        return self._stats

    # ---- several normalizers that scale alike ----
    def share(self) -> dict[str, Any] | None:
        """What was taken in since this was asked last, as ``state_dict``; None at the first time, which begins it."""
        told, self._news = self._news, Normalizer(self.norm_obs, self.norm_reward, self.clip, self._discount)
        return None if told is None else told.state_dict()

    def learn(self, news: dict[str, Any]) -> None:
        """Take in what another one has."""
        _merge(self._spread, news['spread'])
        if news['obs'] is None:
            return
        if not self._stats:
            self._stats = [None if part is None else RunningStatistics(np.shape(part['mean'])) for part in news['obs']]
        for known, part in zip(self._stats, news['obs']):
            if known is not None:
                _merge(known, part)

    def adopt(self, state: dict[str, Any]) -> None:
        """Scale by another one's statistics from now on, if it has taken in more."""
        known = sum(part['count'] for part in state['obs'] or () if part is not None) + state['spread']['count']
        if known > sum(part.count for part in self._stats if part is not None) + self._spread.count:
            self.load_state_dict(state)

    def _scaled(self, leaf: np.ndarray, known: RunningStatistics | None) -> np.ndarray:
        if known is None:
            return leaf
        scaled = (leaf - known.mean) / np.sqrt(known.var + EPSILON)
        return np.clip(scaled, -self.clip, self.clip).astype(np.float32)


def _must_fit(known: list[RunningStatistics | None], seen: list[RunningStatistics | None]) -> None:
    if len(known) != len(seen):
        raise ValueError(f'statistics of {len(known)} parts do not fit observations of {len(seen)}')
    for one, other in zip(known, seen):
        if one is not None and other is not None and one.mean.shape != other.mean.shape:
            raise ValueError(
                f'statistics of shape {one.mean.shape} do not fit observations of shape {other.mean.shape}'
            )


def _merge(known: RunningStatistics, state: dict[str, Any]) -> None:
    if state['count']:
        known.merge(np.asarray(state['mean']), np.asarray(state['var']), state['count'])


def _counted_axes(block: Any) -> list[int]:
    """Of each leaf: how many axes in front count rows (envs, and agents of a team); 0 for what is not to be scaled."""
    paths = [path for path, _ in tree.zip(block)]
    team = any('agent_state' in path for path in paths)
    return [0 if _FLAGS.intersection(path) else 1 + (team and path[-1].startswith('agent_')) for path in paths]
