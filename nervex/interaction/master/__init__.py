"""The end that hands out the work."""

from nervex.interaction.master.connection import Connection
from nervex.interaction.master.master import Hold, Master
from nervex.interaction.master.task import Task, TaskStatus

__all__ = ['Connection', 'Hold', 'Master', 'Task', 'TaskStatus']
