"""Who decides what happens next: the commander of serial mode, and that of parallel mode with its coordinator."""

from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.worker.coordinator.base_serial_commander': 'BaseSerialCommander',
    'nervex.parallel.coordinator': 'Coordinator',
    'nervex.worker.coordinator.naive_commander': 'NaiveCommander',
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, _HOMES)
