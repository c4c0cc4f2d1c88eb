"""What makes several learners look like one. Names are imported when they are first used."""

from nervex.utils.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__, {'LearnerAggregator': 'nervex.parallel.learner_role:LearnerGroup'}
)
