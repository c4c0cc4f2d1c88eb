"""CartPole with the rules of CartPole-v0 (an episode ends after 200 steps), in plain Python floats: no gym needed."""

import math
from typing import Any

import numpy as np

from nervex.envs import BaseEnv, BaseEnvInfo, BaseEnvTimestep, EnvElementInfo
from nervex.utils.declare import setting, settings

GRAVITY, POLE_MASS, TOTAL_MASS, HALF_POLE = 9.8, 0.1, 1.1, 0.5
POLE_MASS_LENGTH = POLE_MASS * HALF_POLE
FORCE, TAU = 10.0, 0.02  # newton; seconds between two states (explicit Euler)
NO_INFO: dict = {}  # shared by all steps that have nothing to say
X_LIMIT, ANGLE_LIMIT = 2.4, 12 * 2 * math.pi / 360


class CartPoleEnv(BaseEnv):
    """
    Overview:
        Keep a pole upright on a cart: reward 1 a step until the pole or the cart leaves its bounds. The equations are
        those of Barto, Sutton and Anderson (1983) as Gymnasium computes them; solved at a mean return of 195.
    Shapes:
        - observation: :math:`(4, )` float32: position, velocity, angle, angular velocity; action: 0 (left) or 1 (right)
    """

    config = settings(
        max_episode_steps=setting(200, 'int >= 1', 'time limit; CartPole-v1 has 500'),
    )

    def __init__(self, cfg: dict | None = None) -> None:
        super().__init__(cfg)
        self._limit = int(self._cfg.max_episode_steps)
        self._state: tuple[float, float, float, float] | None = None
        self._steps = 0
        self._done = False

    def reset(self, *, seed: int | None = None, **kwargs: Any) -> np.ndarray:
        self._state = tuple(self.episode_rng(seed).uniform(-0.05, 0.05, 4).tolist())
        self._steps = 0
        self._done = False
        return np.array(self._state, np.float32)

    def step(self, action: Any) -> BaseEnvTimestep:
        obs = np.empty(4, np.float32)
        reward, terminated, truncated, info = self.step_into(np.asarray(action).item(), obs)
        return BaseEnvTimestep(obs, np.array([reward], np.float32), terminated or truncated, dict(info))

    def step_into(self, action: int, row: np.ndarray) -> tuple[float, bool, bool, dict]:
        """One step that writes the observation into ``row``; see BaseEnv."""
        if self._state is None or self._done:
            raise RuntimeError('CartPoleEnv: call reset() before step(), and after the end of an episode')
        if action == 1:
            force = FORCE
        elif action == 0:
            force = -FORCE
        else:
            raise ValueError(f'CartPoleEnv: an action is 0 (left) or 1 (right), got {action!r}')
        x, x_dot, angle, angle_dot = self._state
        cos, sin = math.cos(angle), math.sin(angle)
        temp = (force + POLE_MASS_LENGTH * angle_dot * angle_dot * sin) / TOTAL_MASS
        angle_acc = (GRAVITY * sin - cos * temp) / (HALF_POLE * (4.0 / 3.0 - POLE_MASS * cos * cos / TOTAL_MASS))
        x_acc = temp - POLE_MASS_LENGTH * angle_acc * cos / TOTAL_MASS
        x += TAU * x_dot
        x_dot += TAU * x_acc
        angle += TAU * angle_dot
        angle_dot += TAU * angle_acc
        self._state = (x, x_dot, angle, angle_dot)
        row[0] = x
        row[1] = x_dot
        row[2] = angle
        row[3] = angle_dot
        self._steps = steps = self._steps + 1
        if -X_LIMIT <= x <= X_LIMIT and -ANGLE_LIMIT <= angle <= ANGLE_LIMIT:
            if steps < self._limit:
                return 1.0, False, False, NO_INFO
            self._done = True
            return 1.0, False, True, {'final_eval_reward': float(steps), 'truncated': True}
        self._done = True
        return 1.0, True, False, {'final_eval_reward': float(steps), 'truncated': False}

    def info(self) -> BaseEnvInfo:
        bound = np.array([2 * X_LIMIT, np.inf, 2 * ANGLE_LIMIT, np.inf], np.float32)
        obs = EnvElementInfo((4,), {'min': -bound, 'max': bound, 'dtype': np.float32, 'kind': 'continuous'})
        act = EnvElementInfo((2,), {'min': 0, 'max': 1, 'dtype': np.int64, 'kind': 'discrete', 'n': 2})
        rew = EnvElementInfo((1,), {'min': 0.0, 'max': 1.0, 'dtype': np.float32, 'kind': 'continuous'})
        return BaseEnvInfo(1, obs, act, rew)

    render_fps = round(1 / TAU)

    def render(self) -> np.ndarray:
        """The picture of the present state: uint8, height x width x 3."""
        from app_zoo.classic_control.cartpole.envs.cartpole_picture import draw

        if self._state is None:
            raise RuntimeError('CartPoleEnv: call reset() before render()')
        return draw(self._state)

    def close(self) -> None:
        self._state = None

    def __repr__(self) -> str:
        return f'CartPoleEnv(max_episode_steps={self._limit})'
