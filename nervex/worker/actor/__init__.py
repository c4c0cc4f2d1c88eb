"""Actor and evaluator; env managers are in ``nervex.worker.actor.env_manager``."""

from nervex.worker.actor.base_serial_actor import BaseSerialActor
from nervex.worker.actor.base_serial_evaluator import BaseSerialEvaluator

__all__ = ['BaseSerialActor', 'BaseSerialEvaluator']
