"""What an environment is, and the adapters of others. Names are imported when they are first used."""

from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.envs.array_env': 'ArrayEnv',
    'nervex.envs.check_env': 'check_env',
    'nervex.envs.common': 'EnvElement EnvElementInfo EnvElementRunner',
    'nervex.envs.duel': 'Duel Duels Rivals',
    'nervex.envs.env.base_env': (
        'BaseEnv BaseEnvInfo BaseEnvTimestep env_mapping get_env_cls get_vec_env_setting register_env'
    ),
    'nervex.envs.gym_env': 'GymEnv',
    'nervex.envs.pettingzoo_env': 'PettingZooEnv',
    'nervex.envs.pettingzoo_game': 'PettingZooGame',
    'nervex.envs.two_sided': 'TwoSidedEnv',
    'nervex.worker.actor.env_manager': (
        'AsyncSubprocessEnvManager BaseEnvManager EnvManager SubprocessEnvManager SyncSubprocessEnvManager '
        'ThreadEnvManager VectorEnvManager create_env_manager'
    ),
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, _HOMES)
