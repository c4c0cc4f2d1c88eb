"""The learner and its hooks."""

from nervex.utils.lazy import lazy_exports
from nervex.utils.registry_factory import LEARNER_REGISTRY

_HOMES = {
    'nervex.worker.learner.base_learner': 'BaseLearner create_learner',
    'nervex.worker.learner.learner_hook': (
        'LearnerHook add_learner_hook build_learner_hook_by_cfg merge_hooks register_learner_hook'
    ),
}
__getattr__, __dir__, _LAZY = lazy_exports(__name__, _HOMES)
register_learner = LEARNER_REGISTRY.register
__all__ = ['register_learner', *_LAZY]
