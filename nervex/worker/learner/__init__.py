"""The learner and its hooks."""

from nervex.utils.registry_factory import LEARNER_REGISTRY
from nervex.worker.learner.base_learner import BaseLearner, create_learner
from nervex.worker.learner.learner_hook import (
    LearnerHook,
    add_learner_hook,
    build_learner_hook_by_cfg,
    merge_hooks,
    register_learner_hook,
)

register_learner = LEARNER_REGISTRY.register
__all__ = [
    'BaseLearner',
    'LearnerHook',
    'add_learner_hook',
    'build_learner_hook_by_cfg',
    'create_learner',
    'merge_hooks',
    'register_learner',
    'register_learner_hook',
]
