"""Who decides what happens next: the commander of serial mode, and that of parallel mode with its coordinator."""

from nervex.utils.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        'BaseSerialCommander': 'nervex.worker.coordinator.base_serial_commander',
        'Coordinator': 'nervex.parallel.coordinator',
        'NaiveCommander': 'nervex.worker.coordinator.naive_commander',
    },
)
