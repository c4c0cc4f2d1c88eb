"""From what a user wrote to the complete, checked config of a run."""

from nervex.config.aliases import ALIASES
from nervex.config.builtin import builtin_configs
from nervex.config.compile import compile_config
from nervex.config.config import Config
from nervex.config.overrides import apply_overrides
from nervex.config.read import read_config
from nervex.config.save import save_config
from nervex.config.utils import parallel_transform, parallel_transform_k8s, parallel_transform_slurm
from nervex.utils.errors import ConfigError

__all__ = [
    'ALIASES',
    'Config',
    'ConfigError',
    'apply_overrides',
    'builtin_configs',
    'compile_config',
    'parallel_transform',
    'parallel_transform_k8s',
    'parallel_transform_slurm',
    'read_config',
    'save_config',
]
