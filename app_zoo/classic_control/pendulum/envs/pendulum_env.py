"""Pendulum with the rules of Pendulum-v1, in plain Python floats: no gym needed."""

import math
from typing import Any

import numpy as np

from nervex.envs import BaseEnv, BaseEnvInfo, BaseEnvTimestep, EnvElementInfo
from nervex.utils.declare import setting, settings

MAX_SPEED, MAX_TORQUE, DT = 8.0, 2.0, 0.05
GRAVITY, MASS, LENGTH = 10.0, 1.0, 1.0
NO_INFO: dict = {}  # shared by all steps that have nothing to say


class PendulumEnv(BaseEnv):
    """
    Overview:
        Swing a pendulum up and hold it upright: each step costs angle^2 + 0.1 velocity^2 + 0.001 torque^2. Episodes end
        by their time limit only. The equations are those of Gymnasium; solved at a mean return of about -250.
    Shapes:
        - observation: :math:`(3, )` float32: cosine and sine of the angle, angular velocity; action: :math:`(1, )`, a
          torque in [-2, 2], or in [-1, 1] with ``use_act_scale``
    """

    config = settings(
        max_episode_steps=setting(200, 'int >= 1', 'time limit'),
        use_act_scale=setting(False, 'bool', 'the policy speaks [-1, 1]'),
    )

    def __init__(self, cfg: dict | None = None) -> None:
        super().__init__(cfg)
        self._limit = int(self._cfg.max_episode_steps)
        self._scale = MAX_TORQUE if self._cfg.use_act_scale else 1.0
        self._state: tuple[float, float] | None = None
        self._steps, self._return, self._torque = 0, 0.0, 0.0

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> np.ndarray:
        angle, speed = self.episode_rng(seed).uniform(-1.0, 1.0, 2).tolist()
        self._state = (angle * math.pi, speed)
        self._steps, self._return, self._torque = 0, 0.0, 0.0
        obs = np.empty(3, np.float32)
        self._look(obs)
        return obs

    def step(self, action: Any) -> BaseEnvTimestep:
        obs = np.empty(3, np.float32)
        reward, _, truncated, info = self.step_into(action, obs)
        return BaseEnvTimestep(obs, np.array([reward], np.float32), truncated, dict(info))

    def step_into(self, action: Any, row: np.ndarray) -> tuple[float, bool, bool, dict]:
        """One step that writes the observation into ``row``; see BaseEnv."""
        if self._state is None or self._steps >= self._limit:
            raise RuntimeError('PendulumEnv: call reset() before step(), and after the end of an episode')
        angle, speed = self._state
        self._torque = torque = min(max(float(np.asarray(action).item()) * self._scale, -MAX_TORQUE), MAX_TORQUE)
        lean = (angle + math.pi) % (2 * math.pi) - math.pi
        reward = -(lean * lean + 0.1 * speed * speed + 0.001 * torque * torque)
        push = 3 * GRAVITY / (2 * LENGTH) * math.sin(angle) + 3.0 / (MASS * LENGTH**2) * torque
        speed = min(max(speed + push * DT, -MAX_SPEED), MAX_SPEED)
        self._state = (angle + speed * DT, speed)
        self._look(row)
        self._steps += 1
        self._return += reward
        if self._steps < self._limit:
            return reward, False, False, NO_INFO
        return reward, False, True, {'final_eval_reward': self._return, 'truncated': True}

    def info(self) -> BaseEnvInfo:
        high = np.array([1.0, 1.0, MAX_SPEED], np.float32)
        bound = 1.0 if self._cfg.use_act_scale else MAX_TORQUE
        worst = math.pi**2 + 0.1 * MAX_SPEED**2 + 0.001 * MAX_TORQUE**2
        obs = EnvElementInfo((3,), {'min': -high, 'max': high, 'dtype': np.float32, 'kind': 'continuous'})
        act = EnvElementInfo((1,), {'min': -bound, 'max': bound, 'dtype': np.float32, 'kind': 'continuous'})
        rew = EnvElementInfo((1,), {'min': -worst, 'max': 0.0, 'dtype': np.float32, 'kind': 'continuous'})
        return BaseEnvInfo(1, obs, act, rew)

    render_fps = round(1 / DT)

    def render(self) -> np.ndarray:
        """The picture of the present state: uint8, height x width x 3."""
        from app_zoo.classic_control.pendulum.envs.pendulum_picture import draw

        if self._state is None:
            raise RuntimeError('PendulumEnv: call reset() before render()')
        return draw(self._state[0], self._torque)

    def close(self) -> None:
        self._state = None

    def _look(self, row: np.ndarray) -> None:
        angle, speed = self._state
        row[0] = math.cos(angle)
        row[1] = math.sin(angle)
        row[2] = speed

    def __repr__(self) -> str:
        return f'PendulumEnv(max_episode_steps={self._limit}, use_act_scale={self._cfg.use_act_scale})'
