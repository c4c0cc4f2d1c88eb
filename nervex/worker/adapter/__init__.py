"""What makes several learners look like one. Names are imported when they are first used."""

from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.parallel.learner_role': 'LearnerAggregator=LearnerGroup',
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, _HOMES)
