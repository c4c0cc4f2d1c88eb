"""An env as a user registers it: one step an episode, the second action pays."""

import numpy as np

from nervex.envs import BaseEnv, BaseEnvInfo, BaseEnvTimestep, EnvElementInfo
from nervex.utils import ENV_REGISTRY


@ENV_REGISTRY.register('two_arm')
class TwoArmEnv(BaseEnv):
    def __init__(self, cfg: dict) -> None:
        self._cfg = cfg

    def reset(self) -> np.ndarray:
        return np.ones(1, dtype=np.float32)

    def step(self, action) -> BaseEnvTimestep:
        reward = float(np.asarray(action).item() == 1)
        return BaseEnvTimestep(
            np.ones(1, dtype=np.float32), np.array([reward], dtype=np.float32), True, {'final_eval_reward': reward}
        )

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        self._seed = seed

    def close(self) -> None:
        pass

    def info(self) -> BaseEnvInfo:
        return BaseEnvInfo(
            agent_num=1,
            obs_space=EnvElementInfo((1,), {'min': 1.0, 'max': 1.0, 'dtype': np.float32}),
            act_space=EnvElementInfo((2,), {'min': 0, 'max': 2, 'dtype': int}),
            rew_space=EnvElementInfo((1,), {'min': 0.0, 'max': 1.0, 'dtype': np.float32}),
        )

    def __repr__(self) -> str:
        return 'TwoArmEnv'
