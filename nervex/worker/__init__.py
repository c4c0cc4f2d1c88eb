"""What runs: actors, evaluators, learners, commanders. Names are imported when they are first used."""

import importlib
from typing import Any

_HOMES = {
    'BaseSerialActor': 'nervex.worker.actor',
    'BaseSerialEvaluator': 'nervex.worker.actor',
    'BaseLearner': 'nervex.worker.learner',
    'create_learner': 'nervex.worker.learner',
    'LearnerHook': 'nervex.worker.learner',
    'register_learner_hook': 'nervex.worker.learner',
    'BaseSerialCommander': 'nervex.worker.coordinator',
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f'nervex.worker has no {name!r}; it has {", ".join(sorted(_HOMES))}')


__all__ = sorted(_HOMES)
