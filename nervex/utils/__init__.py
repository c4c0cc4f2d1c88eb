"""Helpers without any knowledge of RL: registries, errors, logging, seeding, files."""
from nervex.utils.errors import (
    CheckpointError,
    ConfigError,
    DuplicateNameError,
    EnvError,
    ExtraMissingError,
    NervexError,
    TrainingError,
    UnknownNameError,
    nearest,
    unknown_name,
)
from nervex.utils.registry import Registry
from nervex.utils.registry_factory import (
    ACTOR_REGISTRY,
    ARMOR_PLUGIN_REGISTRY,
    COMM_ACTOR_REGISTRY,
    COMM_LEARNER_REGISTRY,
    COMMANDER_REGISTRY,
    ENV_MANAGER_REGISTRY,
    ENV_REGISTRY,
    LEAGUE_REGISTRY,
    LEARNER_HOOK_REGISTRY,
    LEARNER_REGISTRY,
    MODEL_REGISTRY,
    PLAYER_REGISTRY,
    POLICY_REGISTRY,
    registries,
)

__all__ = [
    'ACTOR_REGISTRY', 'ARMOR_PLUGIN_REGISTRY', 'COMMANDER_REGISTRY', 'COMM_ACTOR_REGISTRY', 'COMM_LEARNER_REGISTRY',
    'ENV_MANAGER_REGISTRY', 'ENV_REGISTRY', 'LEAGUE_REGISTRY', 'LEARNER_HOOK_REGISTRY', 'LEARNER_REGISTRY',
    'MODEL_REGISTRY', 'PLAYER_REGISTRY', 'POLICY_REGISTRY', 'CheckpointError', 'ConfigError', 'DuplicateNameError',
    'EnvError', 'ExtraMissingError', 'NervexError', 'Registry', 'TrainingError', 'UnknownNameError', 'nearest',
    'registries', 'unknown_name',
]
