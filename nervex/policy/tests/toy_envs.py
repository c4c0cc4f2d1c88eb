"""
Problems of a few states whose best return is known, for proofs that an algorithm learns.

Temptation: refuse a small reward (needs the value of the next state). Cue: remember the first observation.
Switches: several action heads. Forbidden: legal actions change. Endless: a time limit is no end. Pair, Aim and Recall:
teams.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nervex.envs import BaseEnv, BaseEnvInfo, BaseEnvTimestep, EnvElementInfo
from nervex.envs.common import agent_num


def box(shape: tuple[int, ...], low: float = -np.inf, high: float = np.inf, dtype: Any = np.float32) -> EnvElementInfo:
    """A continuous element."""
    return EnvElementInfo(shape, {'min': low, 'max': high, 'dtype': dtype, 'kind': 'continuous'})


def discrete(n: int) -> EnvElementInfo:
    """A discrete action."""
    return EnvElementInfo((n,), {'min': 0, 'max': n - 1, 'dtype': np.int64, 'kind': 'discrete', 'n': n})


def multi_discrete(*sizes: int) -> EnvElementInfo:
    """Several discrete actions at once."""
    high = np.asarray(sizes) - 1
    return EnvElementInfo(
        (len(sizes),), {'min': 0, 'max': high, 'dtype': np.int64, 'kind': 'multi_discrete', 'n': sizes}
    )


class ToyEnv(BaseEnv):
    """
    Overview:
        The frame of a toy problem: a subclass writes ``_begin() -> obs`` and ``_act(action) -> (obs, reward, ended)``
        and says what its spaces are. An episode that has not ended after ``limit`` steps is truncated.
    """

    config = dict(limit=20)  # steps after which the episode is cut
    obs_space: EnvElementInfo = box((1,))
    act_space: EnvElementInfo = discrete(2)

    def __init__(self, cfg: dict | None = None) -> None:
        super().__init__(cfg)
        self._rng = np.random.default_rng(0)
        self._steps, self._total = 0, 0.0

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        super().seed(seed, dynamic_seed)
        self._rng = np.random.default_rng(seed)

    def reset(self, **kwargs: Any) -> Any:
        self._steps, self._total = 0, 0.0
        return self._begin()

    def step(self, action: Any) -> BaseEnvTimestep:
        obs, reward, ended = self._act(action)
        self._steps += 1
        self._total += reward
        truncated = not ended and self._steps >= self._cfg.limit
        info = {'final_eval_reward': self._total, 'truncated': truncated} if ended or truncated else {}
        return BaseEnvTimestep(obs, np.array([reward], np.float32), bool(ended or truncated), info)

    def info(self) -> BaseEnvInfo:
        return BaseEnvInfo(agent_num(self.obs_space), self.obs_space, self.act_space, box((1,)))

    def _begin(self) -> Any:
        raise NotImplementedError

    def _act(self, action: Any) -> tuple[Any, float, bool]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f'{type(self).__name__}()'


def one_hot(index: int, size: int) -> np.ndarray:
    """The observation of one of ``size`` states."""
    return np.eye(size, dtype=np.float32)[index]


class TemptationEnv(ToyEnv):
    """
    Overview:
        Five states in a row, each with its own action that leads on for nothing, and in the last state earns 1 and
        ends. The other action takes 0.2 and ends. Best return 1; who looks only at the next reward gets 0.2, and who
        learns the wrong way round, or always does the same, does not get far either.
    """

    ONWARD = (1, 0, 0, 1, 0)
    obs_space = box((5,))

    def _begin(self) -> np.ndarray:
        self._state = 0
        return one_hot(0, 5)

    def _act(self, action: Any) -> tuple[np.ndarray, float, bool]:
        if int(action) != self.ONWARD[self._state]:
            return one_hot(self._state, 5), 0.2, True
        if self._state == 4:
            return one_hot(self._state, 5), 1.0, True
        self._state += 1
        return one_hot(self._state, 5), 0.0, False


class EndlessEnv(ToyEnv):
    """
    Overview:
        One state. Action 1 earns 1 and goes on, action 0 earns 5 and ends; the time limit is 4 steps. With a discount
        of 0.9 going on is worth 10 if the limit is no end, and 3.4 (so that 5 looks better) if it is taken for one.
    """

    config = dict(limit=4)

    def _begin(self) -> np.ndarray:
        return np.ones(1, np.float32)

    def _act(self, action: Any) -> tuple[np.ndarray, float, bool]:
        leave = int(action) == 0
        return np.ones(1, np.float32), 5.0 if leave else 1.0, leave


class CueEnv(ToyEnv):
    """
    Overview:
        The first observation shows a cue (+1 or -1), then come ``delay`` empty ones; in the last step the action must
        name the cue: +1 if it does, else -1. Best return 1; without a memory 0 on average.
    """

    config = dict(delay=3)  # empty observations between the cue and the question
    obs_space = box((2,))

    def _begin(self) -> np.ndarray:
        self._cue = int(self._rng.integers(2))
        return np.array([2 * self._cue - 1, 0], np.float32)

    def _act(self, action: Any) -> tuple[np.ndarray, float, bool]:
        if self._steps == self._cfg.delay:
            return np.zeros(2, np.float32), 1.0 if int(action) == self._cue else -1.0, True
        asked = self._steps + 1 == self._cfg.delay
        return np.array([0, float(asked)], np.float32), 0.0, False


class SwitchesEnv(ToyEnv):
    """
    Overview:
        Two action heads, of 2 and 3 actions. In each of two steps the observation names the right pair: it earns
        1 and leads on, a half-right one 0.3 and ends, a wrong one 0 and ends. Best return 2.
    """

    obs_space = box((6,))
    act_space = multi_discrete(2, 3)

    def _begin(self) -> np.ndarray:
        return self._next()

    def _next(self) -> np.ndarray:
        self._wanted = int(self._rng.integers(6))
        return one_hot(self._wanted, 6)

    def _act(self, action: Any) -> tuple[np.ndarray, float, bool]:
        right = (int(action[0]) == self._wanted // 3) + (int(action[1]) == self._wanted % 3)
        reward = (0.0, 0.3, 1.0)[right]
        return self._next(), reward, right < 2 or self._steps == 1


class ForbiddenEnv(ToyEnv):
    """
    Overview:
        Three actions, of which a random one is forbidden in each step (the observation carries ``action_mask``): taking
        it raises. The larger an action the better: it earns the difference to the largest legal one. Three steps, best
        return 0.
    """

    obs_space = EnvElementInfo(
        {'observation': (1,), 'action_mask': (3,)},
        {'observation': {'dtype': np.float32}, 'action_mask': {'dtype': np.float32}},
    )
    act_space = discrete(3)

    def _begin(self) -> dict[str, np.ndarray]:
        self._mask = np.ones(3, np.float32)
        self._mask[self._rng.integers(3)] = 0.0
        return {'observation': np.ones(1, np.float32), 'action_mask': self._mask.copy()}

    def _act(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool]:
        if not self._mask[int(action)]:
            raise ValueError(f'action {int(action)} is forbidden here')
        regret = float(np.flatnonzero(self._mask)[-1]) - float(action)
        return self._begin(), -regret, self._steps == 2


class ReachEnv(ToyEnv):
    """
    Overview:
        A point on a line is moved by a continuous action in [-1, 1] and earns minus its squared distance from 0; three
        steps from a random start in [-2, 2]. One unit a step at most: the best action is clip(-x, -1, 1).
    """

    config = dict(limit=3)
    obs_space = box((1,), -4.0, 4.0)
    act_space = box((1,), -1.0, 1.0)

    def _begin(self) -> np.ndarray:
        self._x = float(self._rng.uniform(-2, 2))
        return np.array([self._x], np.float32)

    def _act(self, action: Any) -> tuple[np.ndarray, float, bool]:
        self._x += float(np.clip(np.asarray(action).reshape(-1)[0], -1, 1))
        return np.array([self._x], np.float32), -(self._x**2), False


class BrightSideEnv(ToyEnv):
    """
    Overview:
        An image of bytes, 84 x 84, of which the left or the right half is bright; the action names it: +1, else -1. Two
        images an episode, best return 2.
    """

    config = dict(limit=2)
    obs_space = box((1, 84, 84), 0, 255, np.uint8)

    def _begin(self) -> np.ndarray:
        self._right = int(self._rng.integers(2))
        image = self._rng.integers(0, 60, (1, 84, 84)).astype(np.uint8)
        image[:, :, 42 * self._right : 42 * (self._right + 1)] += 180
        return image

    def _act(self, action: Any) -> tuple[np.ndarray, float, bool]:
        reward = 1.0 if int(action) == self._right else -1.0
        return self._begin(), reward, False


class PairEnv(ToyEnv):
    """
    Overview:
        Two agents with three actions each, of which one is forbidden at each step: taking it raises. Each sees which
        action is right for it; the team earns 1 if both take theirs, 0.2 if one does. Two steps, best return 2. Nobody
        sees the other, so alone everybody sees the same.
    """

    _shapes = {
        **dict.fromkeys(('agent_state', 'action_mask', 'agent_alone_state', 'agent_alone_padding_state'), (2, 3)),
        'global_state': (6,),
    }
    obs_space = EnvElementInfo(_shapes, {name: {'dtype': np.float32} for name in _shapes})
    act_space = multi_discrete(3, 3)

    def _begin(self) -> dict[str, np.ndarray]:
        return self._next()

    def _next(self) -> dict[str, np.ndarray]:
        self._wanted = self._rng.integers(3, size=2)
        self._forbidden = (self._wanted + 1 + self._rng.integers(2, size=2)) % 3
        seen = np.eye(3, dtype=np.float32)[self._wanted]
        return {
            'agent_state': seen,
            'global_state': seen.reshape(-1).copy(),
            'action_mask': 1 - np.eye(3, dtype=np.float32)[self._forbidden],
            **{name: seen.copy() for name in ('agent_alone_state', 'agent_alone_padding_state')},
        }

    def _act(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool]:
        if (np.asarray(action) == self._forbidden).any():
            raise RuntimeError(f'forbidden: {action!r}')
        right = int((np.asarray(action) == self._wanted).sum())
        return self._next(), (0.0, 0.2, 1.0)[right], self._steps == 1


class AimEnv(ToyEnv):
    """
    Overview:
        Two agents that each see a point of the plane and are to name it, by two numbers in [-1, 1]; the team loses the
        squared distances of both. Two steps, best return 0; who always names the middle loses 1.7 on average.
    """

    config = dict(limit=2)
    obs_space = EnvElementInfo(
        {'agent_state': (2, 2), 'global_state': (4,)},
        {name: {'dtype': np.float32} for name in ('agent_state', 'global_state')},
    )
    act_space = box((2, 2), -1.0, 1.0)

    def _begin(self) -> dict[str, np.ndarray]:
        self._wanted = self._rng.uniform(-0.8, 0.8, (2, 2)).astype(np.float32)
        return {'agent_state': self._wanted.copy(), 'global_state': self._wanted.reshape(-1).copy()}

    def _act(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool]:
        given = np.asarray(action)
        if given.shape != (2, 2) or np.abs(given).max() > 1:
            raise RuntimeError(f'not two pairs of numbers in [-1, 1]: {action!r}')
        loss = float(((given - self._wanted) ** 2).sum())
        return self._begin(), -loss, False


class RecallEnv(ToyEnv):
    """
    Overview:
        Two agents that each see a bit of their own at first, then ``delay`` empty observations; in the last step each
        is to name its bit, and the team earns 0.5 for each that does. Best return 1; without a memory 0.5. The mixer
        knows the bits at all times.
    """

    config = dict(delay=3)  # steps between the bits and the answer
    obs_space = EnvElementInfo(
        {'agent_state': (2, 3), 'global_state': (3,)},
        {name: {'dtype': np.float32} for name in ('agent_state', 'global_state')},
    )
    act_space = multi_discrete(2, 2)

    def _begin(self) -> dict[str, np.ndarray]:
        self._bits = self._rng.integers(2, size=2)
        return self._seen(0)

    def _seen(self, step: int) -> dict[str, np.ndarray]:
        each = np.zeros((2, 3), np.float32)
        each[:, 2] = step == self._cfg.delay
        if step == 0:
            each[[0, 1], self._bits] = 1
        return {'agent_state': each, 'global_state': np.array([*self._bits, step / self._cfg.delay], np.float32)}

    def _act(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool]:
        over = self._steps == self._cfg.delay
        return self._seen(self._steps + 1), over * float((np.asarray(action) == self._bits).mean()), over
