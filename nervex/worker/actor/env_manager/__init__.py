"""The env managers: N envs behind one interface."""

from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.rl_utils.normalize': 'Normalizer',
    'nervex.worker.actor.env_manager.backend': 'Backend WorkerLost',
    'nervex.worker.actor.env_manager.kinds': (
        'AsyncSubprocessEnvManager AsyncVectorEnvManager BaseEnvManager SubprocessEnvManager SyncSubprocessEnvManager '
        'ThreadEnvManager VectorEnvManager create_env_manager normalizer_for'
    ),
    'nervex.worker.actor.env_manager.manager': 'EnvManager',
    'nervex.worker.actor.env_manager.step_block': 'EnvState EnvStateError RowMap StepBlock TimestepMap',
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, _HOMES)
