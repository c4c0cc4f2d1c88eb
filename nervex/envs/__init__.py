from nervex.envs.common import EnvElement, EnvElementInfo, EnvElementRunner
from nervex.envs.env.base_env import (
    BaseEnv,
    BaseEnvInfo,
    BaseEnvTimestep,
    env_mapping,
    get_env_cls,
    get_vec_env_setting,
    register_env,
)
from nervex.envs.gym_env import GymEnv

__all__ = [
    'BaseEnv', 'BaseEnvInfo', 'BaseEnvTimestep', 'EnvElement', 'EnvElementInfo', 'EnvElementRunner', 'GymEnv',
    'env_mapping', 'get_env_cls', 'get_vec_env_setting', 'register_env',
]
