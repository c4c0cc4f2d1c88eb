"""The end that hands out the work."""

from nervex.interaction.master.connection import Connection
from nervex.interaction.master.master import Master
from nervex.interaction.master.task import Task, TaskStatus

__all__ = ['Connection', 'Master', 'Task', 'TaskStatus']
