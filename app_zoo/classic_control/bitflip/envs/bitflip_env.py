"""BitFlip: turn random bits into a random goal, one bit a step. The example of hindsight experience replay."""

from typing import Any

import numpy as np

from nervex.envs import BaseEnv, BaseEnvInfo, BaseEnvTimestep, EnvElementInfo
from nervex.utils.declare import setting, settings


class BitFlipEnv(BaseEnv):
    """
    Overview:
        Action i flips bit i. The episode ends with reward 1 when the bits are the goal's; all other rewards are 0, and
        after ``n_bits`` steps the episode is cut. Whoever waits for the first reward waits 2^n_bits episodes or so
        (Andrychowicz et al. 2017, arXiv:1707.01495, section 3.1).
    Shapes:
        - observation: :math:`(2 n\\_bits, )` float32, ``concat(bits, goal)``; action: 0 ... n_bits - 1
    """

    config = settings(n_bits=setting(5, 'int >= 1', 'length of bits and goal'))

    def __init__(self, cfg: dict | None = None) -> None:
        super().__init__(cfg)
        self._n = int(self._cfg.n_bits)
        if self._n < 1:
            raise ValueError(f'env.n_bits: got {self._cfg.n_bits!r}, must be an int >= 1')
        self._obs: np.ndarray | None = None
        self._over = True

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> np.ndarray:
        rng = self.episode_rng(seed)
        obs = rng.integers(0, 2, 2 * self._n).astype(np.float32)
        while np.array_equal(obs[: self._n], obs[self._n :]):
            obs = rng.integers(0, 2, 2 * self._n).astype(np.float32)
        self._obs, self._over, self._steps = obs, False, 0
        return obs.copy()

    def step(self, action: Any) -> BaseEnvTimestep:
        if self._obs is None or self._over:
            raise RuntimeError('BitFlipEnv: call reset() before step(), and after the end of an episode')
        bit, obs = int(np.asarray(action).item()), self._obs
        if not 0 <= bit < self._n:
            raise ValueError(f'BitFlipEnv: an action is a bit, 0 ... {self._n - 1}, got {action!r}')
        obs[bit] = 1.0 - obs[bit]
        self._steps += 1
        success = np.array_equal(obs[: self._n], obs[self._n :])
        truncated = not success and self._steps >= self._n
        reward = float(success)
        info = {}
        if success or truncated:
            info, self._over = {'final_eval_reward': reward, 'truncated': truncated}, True
        return BaseEnvTimestep(obs.copy(), np.array([reward], np.float32), bool(success or truncated), info)

    def info(self) -> BaseEnvInfo:
        n = self._n
        obs = EnvElementInfo((2 * n,), {'min': 0.0, 'max': 1.0, 'dtype': np.float32, 'kind': 'continuous'})
        act = EnvElementInfo((n,), {'min': 0, 'max': n - 1, 'dtype': np.int64, 'kind': 'discrete', 'n': n})
        rew = EnvElementInfo((1,), {'min': 0.0, 'max': 1.0, 'dtype': np.float32, 'kind': 'continuous'})
        return BaseEnvInfo(1, obs, act, rew)

    render_fps = 2

    def render(self) -> np.ndarray:
        """The picture of bits and goal: uint8, height x width x 3."""
        from app_zoo.classic_control.bitflip.envs.bitflip_picture import draw

        if self._obs is None:
            raise RuntimeError('BitFlipEnv: call reset() before render()')
        return draw(self._obs[: self._n], self._obs[self._n :])

    def close(self) -> None:
        self._obs = None

    def __repr__(self) -> str:
        return f'BitFlipEnv(n_bits={self._n})'
