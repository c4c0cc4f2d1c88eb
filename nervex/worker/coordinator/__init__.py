"""Who decides what happens next: the serial commander."""

from nervex.worker.coordinator.base_serial_commander import BaseSerialCommander

__all__ = ['BaseSerialCommander']
