"""Continuous problems whose best return is known, and ways to break an actor-critic on purpose."""

from __future__ import annotations

from typing import Any

import numpy as np

from nervex.policy.tests.toy_envs import ToyEnv, box


class DepositEnv(ToyEnv):
    """
    Overview:
        Two steps, two action dimensions. First: (a, b) pays in d = (a + 1) / 2 at a cost of 4 d^2 and is fined the
        squared distance of b from the number it was shown. Second: 4 d is paid out, whatever the action. Best return 1
        (d = 1/2); who looks at the next reward only pays in nothing and gets 0; random actions get 0.1.
    """

    obs_space = box((3,), -1.0, 1.0)
    act_space = box((2,), -1.0, 1.0)

    def _begin(self) -> np.ndarray:
        self._shown, self._deposit = float(self._rng.uniform(-0.8, 0.8)), None
        return np.array([0, 0, self._shown], np.float32)

    def _act(self, action: Any) -> tuple[np.ndarray, float, bool]:
        a, b = (float(x) for x in np.clip(np.asarray(action, np.float64).reshape(-1), -1, 1))
        if self._deposit is None:
            self._deposit = (a + 1) / 2
            return (
                np.array([1, self._deposit, 0], np.float32),
                -4 * self._deposit**2 - (b - self._shown) ** 2,
                False,
            )
        return np.zeros(3, np.float32), 4 * self._deposit, True


def uphill(cls: type, loss: str) -> type:
    """The same policy with the sign of one of its losses flipped."""

    def flipped(self: Any, data: dict) -> tuple:
        value, info = getattr(cls, loss)(self, data)
        return -value, info

    return type('Uphill', (cls,), {loss: flipped})
