"""Where ``check_batched`` was; it plays rollouts as an actor does and lives beside it."""

from nervex.utils.lazy import lazy_exports

_HOMES = {'nervex.worker.actor.equivalence': 'BatchedMismatch check_batched'}
__getattr__, __dir__, __all__ = lazy_exports(__name__, _HOMES)
