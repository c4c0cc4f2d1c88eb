"""From what a user wrote to the complete, checked config of a run."""

from nervex.config.aliases import ALIASES
from nervex.config.compile import compile_config
from nervex.config.config import Config, builtin_configs, read_config
from nervex.config.save import save_config
from nervex.config.utils import parallel_transform, parallel_transform_k8s, parallel_transform_slurm
from nervex.utils.errors import ConfigError
from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.config.buffer_manager': 'buffer_manager_default_config',
    'nervex.config.parallel': 'coordinator_default_config parallel_local_default_config',
    'nervex.config.serial': (
        'base_learner_default_config base_serial_actor_default_config base_serial_commander_default_config '
        'base_serial_evaluator_default_config'
    ),
}
__getattr__, __dir__, _LAZY = lazy_exports(__name__, _HOMES)
__all__ = [
    'ALIASES',
    'Config',
    'ConfigError',
    'builtin_configs',
    'compile_config',
    'parallel_transform',
    'parallel_transform_k8s',
    'parallel_transform_slurm',
    'read_config',
    'save_config',
    *_LAZY,
]
