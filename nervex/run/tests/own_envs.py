"""Gymnasium envs of the tests' own, with spaces that the toy ones have not."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Reach(gymnasium.Env):
    """A number walks to another one; observations are a dict of vectors, an action is a choice each of size and way."""

    def __init__(self) -> None:
        number = spaces.Box(-10.0, 10.0, (1,), np.float64)
        self.observation_space: Any = spaces.Dict({'at': number, 'goal': number, 'side': spaces.Discrete(2)})
        self.action_space: Any = spaces.MultiDiscrete([2, 3])

    def _obs(self) -> dict[str, Any]:
        return {'at': self.at.copy(), 'goal': self.goal.copy(), 'side': int(self.at[0] > self.goal[0])}

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        """Both numbers anew."""
        super().reset(seed=seed)
        self.at, self.goal = self.np_random.uniform(-5, 5, (2, 1))
        self.steps = 0
        return self._obs(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        """One step of size 0.5 or 1: back, not at all, or forth."""
        self.steps += 1
        self.at = np.clip(self.at + (0.5 + 0.5 * action[0]) * (int(action[1]) - 1), -10, 10)
        gap = float(abs(self.at - self.goal)[0])
        return self._obs(), -gap / 10, gap < 0.5, self.steps >= 30, {}


class ReachByNumber(Reach):
    """The same by one number in [-2, 6] of which 2 is standing still: its bounds lie beside 0."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(-2.0, 6.0, (1,), np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        """A step of (action - 2) / 4; an action outside of the bounds is an error."""
        assert self.action_space.contains(np.asarray(action)), action
        self.steps += 1
        self.at = np.clip(self.at + (np.asarray(action, np.float64) - 2.0) / 4.0, -10, 10)
        gap = float(abs(self.at - self.goal)[0])
        return self._obs(), -gap / 10, gap < 0.5, self.steps >= 30, {}


class Pictures(ReachByNumber):
    """Both numbers as columns of a small picture."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Box(0, 255, (8, 8, 3), np.uint8)

    def _obs(self) -> Any:
        picture = np.zeros((8, 8, 3), np.uint8)
        picture[:, int(self.at[0] / 3 + 4), 0] = picture[:, int(self.goal[0] / 3 + 4), 1] = 255
        return picture


class Unbounded(ReachByNumber):
    """Actions without bounds."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)


def reach() -> gymnasium.Env:
    """As users write it."""
    return Reach()
