"""Envs whose states lie in arrays, a row an env: one of them is a BaseEnv, many at once are one vectorised env."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from nervex.envs.env.base_env import BaseEnv, BaseEnvInfo, BaseEnvTimestep
from nervex.envs.env.plain_state import attributes, set_attributes
from nervex.envs.vector_engine import Answer
from nervex.utils import tree


class ArrayEnv(BaseEnv):
    """
    Overview:
        ``num`` envs of one config in arrays. A subclass writes ``begin``, ``act`` and ``seen`` for all rows (and
        ``info``, and ``last_info`` if there is something to say at the end of an episode); ``reset`` and ``step`` are
        then those of one env, and ``env_manager_type: vector`` runs many of them as one.

        An env of number i that is seeded with s plays the same episodes in every env manager: each of them draws from
        ``np.random.default_rng(s)``, which goes on from episode to episode.
    Arguments:
        - num (:obj:`int`): rows
    Attributes:
        - limit (:obj:`int`): steps after which an episode is cut; set it in ``__init__``
        - limit_ends (:obj:`bool`): the limit belongs to the task: nothing is to be gained behind it, so that the
          episode counts as terminated there
    """

    limit: int
    limit_ends = False

    def __init__(self, cfg: dict | None = None, num: int = 1) -> None:
        super().__init__(cfg)
        self.num, self._over = num, True

    @abstractmethod
    def begin(self, which: np.ndarray, generators: list[np.random.Generator]) -> None:
        """Begin the episodes of these rows; each draws from its own of the ``num`` generators."""

    @abstractmethod
    def act(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One step of all rows: rewards, float32 (num, ) or (num, A), and which episodes have terminated (num, )."""

    @abstractmethod
    def seen(self) -> Any:
        """The observations of all rows, in new arrays."""

    def last_info(self) -> dict[str, np.ndarray]:
        """What the last info of an episode has beside the usual: a column each."""
        return {}

    def of_row(self, row: int) -> str:
        """For messages: which env, where there are several."""
        return f' of env {row}' if self.num > 1 else ''

    # ------------------------------------------------------------------ one env
    def reset(self, *, seed: int | None = None, **kwargs: Any) -> Any:
        """Begin an episode; answers the first observation."""
        self.begin(np.arange(1), [self.episode_rng(seed)])
        self._steps, self._return, self._over = 0, 0.0, False
        return tree.index(self.seen(), 0)

    def step(self, action: Any) -> BaseEnvTimestep:
        """One step."""
        if self._over:
            raise RuntimeError(f'{self!r}: call reset() before step(), and after the end of an episode')
        reward, terminated = self.act(np.asarray(action)[None])
        self._steps += 1
        self._return += float(reward.sum(dtype=np.float64))
        at_limit = self._steps >= self.limit
        ended = bool(terminated[0]) or (at_limit and self.limit_ends)
        self._over = ended or at_limit
        info: dict[str, Any] = {}
        if self._over:
            info = {name: column[0].item() for name, column in self.last_info().items()}
            info.update(final_eval_reward=self._return, truncated=not ended)
        return BaseEnvTimestep(tree.index(self.seen(), 0), reward.reshape(-1), self._over, info)

    # ------------------------------------------------------------------ many
    @classmethod
    def create_vector_env(cls, cfgs: list[dict]) -> ArrayEngine:
        """One vectorised env for all of these (equal) configs."""
        return ArrayEngine(cls(cfgs[0], len(cfgs)))  # type: ignore[call-arg]


class ArrayEngine:
    """
    Overview:
        An ArrayEnv of many rows as ``nervex.envs.vector_engine`` has them. The step that ends an episode begins the
        next one of that row.
    """

    same_step = True

    def __init__(self, env: ArrayEnv) -> None:
        self.env, self.num = env, env.num
        self.generators: list[Any] = [None] * env.num
        self.steps = np.zeros(env.num, np.int64)

    def info(self) -> BaseEnvInfo:
        """The description of one env."""
        return self.env.info()

    def start(self, seeds: list[int | None]) -> Any:
        """Begin all episodes; an env without a seed goes on with its generator."""
        self.generators = [
            old if old is not None and seed is None else np.random.default_rng(seed)
            for old, seed in zip(self.generators, seeds)
        ]
        return self._begin(np.arange(self.num))

    def _begin(self, which: np.ndarray) -> Any:
        self.env.begin(which, self.generators)
        self.steps[which] = 0
        return self.env.seen()

    def exchange(self, actions: np.ndarray) -> Answer:
        """One action for each env."""
        reward, terminated = self.env.act(actions)
        self.steps += 1
        at_limit = self.steps >= self.env.limit
        if self.env.limit_ends:
            terminated = terminated | at_limit
        truncated = at_limit & ~terminated
        ended, obs = terminated | truncated, self.env.seen()
        which = ended.nonzero()[0]
        if not len(which):
            return Answer(obs, reward, terminated, truncated, {})
        infos = {name: np.array(column) for name, column in self.env.last_info().items()}  # the next begin writes to it
        infos.update({f'_{name}': ended for name in list(infos)})
        return Answer(self._begin(which), reward, terminated, truncated, infos, obs)

    def final_row(self, final_obs: Any, k: int) -> Any:
        """The last observation of row k."""
        return tree.index(final_obs, k)

    def ask(self, name: str, call: tuple[tuple, dict] | None) -> list[Any]:
        """An attribute of the envs, or the answers of a method; they have it together."""
        value = getattr(self.env, name)
        if call is not None:
            raise AttributeError(f'{self.env!r} has no single envs to ask for {name}()')
        return [value] * self.num

    def state_dict(self) -> dict[str, Any]:
        """All envs in the middle of their episodes, in the words of JSON."""
        return attributes(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        set_attributes(self, state)

    def close(self) -> None:
        """Free what is held; may be called twice."""
        self.env.close()
