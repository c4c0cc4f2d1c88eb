"""Who decides what happens next: the commander of serial mode, and that of parallel mode."""

from nervex.worker.coordinator.base_serial_commander import BaseSerialCommander
from nervex.worker.coordinator.naive_commander import NaiveCommander

__all__ = ['BaseSerialCommander', 'NaiveCommander']
