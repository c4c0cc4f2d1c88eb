"""What runs: actors, evaluators, learners, commanders. Names are imported when they are first used."""

from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.worker.actor': 'BaseSerialActor BaseSerialEvaluator register_actor',
    'nervex.worker.actor.env_manager': (
        'AsyncSubprocessEnvManager BaseEnvManager SubprocessEnvManager SyncSubprocessEnvManager ThreadEnvManager '
        'VectorEnvManager create_env_manager'
    ),
    'nervex.worker.learner': 'BaseLearner LearnerHook create_learner register_learner register_learner_hook',
    'nervex.worker.coordinator': 'BaseSerialCommander Coordinator NaiveCommander',
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, _HOMES)
