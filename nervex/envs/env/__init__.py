from nervex.envs.env.base_env import (
    BaseEnv,
    BaseEnvInfo,
    BaseEnvTimestep,
    env_mapping,
    get_env_cls,
    get_vec_env_setting,
    register_env,
)

__all__ = [
    'BaseEnv',
    'BaseEnvInfo',
    'BaseEnvTimestep',
    'env_mapping',
    'get_env_cls',
    'get_vec_env_setting',
    'register_env',
]
