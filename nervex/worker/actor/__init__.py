"""Actor and evaluator; env managers are in ``nervex.worker.actor.env_manager``."""

from nervex.utils.registry_factory import ACTOR_REGISTRY
from nervex.worker.actor.base_serial_actor import BaseSerialActor
from nervex.worker.actor.base_serial_evaluator import BaseSerialEvaluator

register_actor = ACTOR_REGISTRY.register
__all__ = ['BaseSerialActor', 'BaseSerialEvaluator', 'register_actor']
