from nervex.utils.lazy import lazy_exports

_NAMES = 'BaseEnv BaseEnvInfo BaseEnvTimestep env_mapping get_env_cls get_vec_env_setting register_env'
__getattr__, __dir__, __all__ = lazy_exports(__name__, {'nervex.envs.env.base_env': _NAMES})
