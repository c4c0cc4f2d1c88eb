"""Changes to training samples on their way from the actor to the buffer: what one is, their chain, and hindsight."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from easydict import EasyDict

from nervex.data import Batch
from nervex.loader.errors import shown
from nervex.loader.problems import Problems
from nervex.loader.rules import registered
from nervex.loader.sections import Parts, check_value, complete, merge_section
from nervex.rl_utils.her import merge_halves, reached, split_halves, within
from nervex.utils import ConfigError, tree
from nervex.utils.declare import Setting, declared_by, setting, settings
from nervex.utils.part_state import HasState
from nervex.utils.registry_factory import TRANSFORM_REGISTRY


class SampleTransform(HasState):
    """
    Overview:
        Takes the samples of one round of collecting and answers what is stored instead: more, fewer, or changed ones.
        A subclass declares its settings in ``config`` and writes ``__call__`` for a Batch.
    Arguments:
        - cfg (:obj:`Mapping | None`): settings
        - seed (:obj:`Any`): of its own generator ``self._rng``
    """

    config: dict[str, Any] = {}
    resume_parts: tuple[str, ...] = ('_rng',)
    needs_whole_episodes = False  # whether the samples of a round must be the steps of whole episodes, in order

    def __init__(self, cfg: Mapping | None = None, seed: Any = None) -> None:
        self._cfg = EasyDict(complete(type(self), cfg, type(self).__name__))
        self._rng = np.random.default_rng(seed)

    def __call__(self, samples: Batch) -> Batch:
        raise NotImplementedError(f'{type(self).__name__} must say what becomes of samples')


def _kind(path: str, name: str, given: Any, problems: Problems) -> Any:
    """The class of one entry of ``actor.transform``, with its settings checked; None where there is none."""
    if not isinstance(given, Mapping) and given is not None:
        problems.add(path, f'got {shown(given)}, must be a dict: the settings of that transform')
        return None
    own = dict(given or {})
    kind, before = own.pop('type', name), len(problems)
    if not isinstance(kind, type):
        check_value(path, Setting(check=registered(TRANSFORM_REGISTRY)), kind, problems)
        if len(problems) > before:
            return None
        kind = TRANSFORM_REGISTRY.get(kind)
    merge_section(path, declared_by(kind), own, problems)
    return kind


#: The check of ``actor.transform``.
TRANSFORMS = Parts(_kind, 'transforms')


class SampleTransforms(HasState):
    """
    Overview:
        The chain of ``actor.transform``: a dict from registered names (or from any name, where the settings have a
        class as ``type``) to settings. Without any, samples pass as they are.
    Arguments:
        - cfg (:obj:`Mapping`): the actor's section
    """

    resume_parts = ('chain',)

    def __init__(self, cfg: Mapping, seed: int | None = None) -> None:
        chosen = cfg['transform'] or {}
        seeds = np.random.SeedSequence(seed).spawn(len(chosen))
        self.chain: dict[str, SampleTransform] = {}
        problems = Problems()
        kinds = [_kind(f'actor.transform.{name}', name, given, problems) for name, given in chosen.items()]
        problems.raise_if_any()
        for (name, given), kind, child in zip(chosen.items(), kinds, seeds):
            own = {key: value for key, value in (given or {}).items() if key != 'type'}
            transform = kind(own, child)
            if transform.needs_whole_episodes and cfg['n_episode'] is None:
                raise ConfigError(
                    [f'actor.n_sample: got {cfg["n_sample"]}, but transform {name!r} works on whole episodes; '
                     'give actor.n_episode instead']
                )  # fmt: skip
            self.chain[name] = transform

    def __call__(self, samples: Batch) -> Batch:
        """The samples after all changes."""
        for transform in self.chain.values():
            samples = transform(samples)
        return samples


# ---- hindsight
@TRANSFORM_REGISTRY.register('her')
class HindsightRelabel(SampleTransform):
    """
    Overview:
        Adds ``k`` copies of every sample, each with another goal that its episode reached, and the reward for it.
        Observations are ``concat(state, goal)`` where the state is what counts as achieved, dicts with
        ``achieved_goal`` and ``desired_goal``, or, with ``goal_dim``, ``concat(achieved goal, desired goal, rest)``, as
        ``env.flatten_obs`` makes them of Gymnasium's goal envs; other forms come with functions of their own.
        Paper: Andrychowicz et al. 2017 (arXiv:1707.01495).
    Arguments:
        - cfg (:obj:`Mapping`): the settings below; functions may be given as ``'module:function'`` and work on blocks:
          split: obs -> (state, desired goal, achieved goal); merge: (state, goal) -> obs; reward: (achieved, desired)
          -> rewards :math:`(B, 1)`
    """

    config = settings(
        strategy=setting('future', "'future' | 'final' | 'episode'", 'which steps of the episode the goals come from'),
        k=setting(4, 'int >= 1', 'new goals for each sample'),
        ends_at_goal=setting(True, 'bool', 'a step that reaches its goal is the last one of its episode'),
        split=setting(None, 'callable | None', 'obs -> (state, desired goal, achieved goal); None: see above'),
        merge=setting(None, 'callable | None', '(state, goal) -> obs; None: see above'),
        goal_dim=setting(None, 'int >= 1 | None', 'size of a goal, where observations are joined; None: see above'),
        tolerance=setting(0.0, 'number >= 0', 'largest distance from its goal at which a step has reached it'),
        reward=setting(None, 'callable | None', '(achieved, desired) -> rewards; None: 1 where it is reached, else 0'),
    )
    needs_whole_episodes = True

    def __init__(self, cfg: Mapping | None = None, seed: Any = None) -> None:
        super().__init__(cfg, seed)
        own = self._cfg
        if own.goal_dim is not None and (own.split or own.merge):
            raise ConfigError(f'actor.transform.her.goal_dim: got {own.goal_dim} beside split or merge; leave it out')
        joined = (None, None) if own.goal_dim is None else (partial(_split_joined, own.goal_dim), _merge_joined)
        self._split, self._merge = own.split or joined[0] or _split, own.merge or joined[1] or _merge
        self._reached = partial(within, own.tolerance) if own.tolerance else reached
        self._reward = own.reward or self._reached

    def __call__(self, samples: Batch) -> Batch:
        self._check(samples)
        done = np.asarray(samples['done']).astype(bool)
        k, rows = self._cfg.k, np.arange(len(done))
        source, again = self._sources(done, k).reshape(-1), np.repeat(rows, k)
        parts = (self._split(_tensors(samples[name])) for name in ('obs', 'next_obs'))
        (state, _, _), (next_state, _, achieved) = parts
        goal, reached_now = tree.index(achieved, source), tree.index(achieved, again)
        copies: dict[str, Any] = {key: tree.index(samples[key], again) for key in samples.keys()}
        copies['obs'] = self._merge(tree.index(state, again), goal)
        copies['next_obs'] = self._merge(tree.index(next_state, again), goal)
        copies['reward'] = torch.as_tensor(self._reward(reached_now, goal)).reshape(copies['reward'].shape)
        if self._cfg.ends_at_goal:
            copies['done'] = self._reached(reached_now, goal).reshape(-1) > 0
            if 'truncated' in copies:
                copies['truncated'] = torch.zeros_like(copies['done'])
        return Batch.cat([samples, tree.map(_like, samples, copies)])

    def _sources(self, done: np.ndarray, k: int) -> np.ndarray:
        """For each row the rows whose outcome becomes its goal, (rows, k)."""
        rows = np.arange(len(done))
        ends = np.flatnonzero(done)
        episode = np.searchsorted(ends, rows)
        last = ends[episode]
        if self._cfg.strategy == 'final':
            return np.repeat(last[:, None], k, axis=1)
        first = rows if self._cfg.strategy == 'future' else np.concatenate([[0], ends + 1])[episode]
        return self._rng.integers(first[:, None], last[:, None] + 1, size=(len(rows), k))

    @staticmethod
    def _check(samples: Batch) -> None:
        if not np.asarray(samples['done'])[-1]:
            raise ConfigError(
                'actor.transform.her: the samples must be whole episodes in order; set policy.collect.traj_len to "inf"'
            )
        size = np.asarray(samples['reward']).reshape(len(samples), -1).shape[1]
        if size != 1:
            raise ConfigError(
                f'actor.transform.her: samples have {size} rewards each, but goals change step by step; '
                'set policy.learn.algo.nstep to 1'
            )
        if 'priority' in samples:
            raise ConfigError(
                'actor.transform.her: first priorities are those of the old goals; set first_priority to False'
            )


def _split(obs: Any) -> tuple[Any, Any, Any]:
    if not isinstance(obs, dict):
        return split_halves(obs)
    return obs, obs['desired_goal'], obs['achieved_goal']


def _merge(state: Any, goal: Any) -> Any:
    return {**state, 'desired_goal': goal} if isinstance(state, dict) else merge_halves(state, goal)


def _split_joined(size: int, obs: Any) -> tuple[Any, Any, Any]:
    if isinstance(obs, dict) or obs.shape[-1] < 2 * size:
        got = f'a dict of {", ".join(obs)}' if isinstance(obs, dict) else f'{obs.shape[-1]} numbers'
        raise ConfigError(
            f'actor.transform.her.goal_dim: got {size}, so observations begin with two goals, but they are {got}; '
            'set env.flatten_obs=True, or leave goal_dim out'
        )
    return obs, obs[..., size : 2 * size], obs[..., :size]


def _merge_joined(state: Any, goal: Any) -> Any:
    size = goal.shape[-1]
    return torch.cat([state[..., :size], goal, state[..., 2 * size :]], -1)


def _tensors(column: Any) -> Any:
    return tree.map(torch.as_tensor, column.to_dict() if isinstance(column, Batch) else column)


def _like(old: Any, new: Any) -> Any:
    """A column of the kind and dtype of another."""
    if isinstance(old, torch.Tensor):
        return torch.as_tensor(new).to(old.dtype)
    return np.asarray(new).astype(old.dtype, copy=False)
