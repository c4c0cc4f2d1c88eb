"""Handing tasks from a master to its slaves, which are threads of this process or Ray actors."""

from nervex.interaction.exception import (
    ConnectionRefuse,
    DisconnectionRefuse,
    InteractionError,
    MasterErrorCode,
    SlaveErrorCode,
    TaskFail,
    TaskRefuse,
)
from nervex.interaction.master import Connection, Master, Task, TaskStatus
from nervex.interaction.slave import Slave, launch_slave

__all__ = [
    'Connection',
    'ConnectionRefuse',
    'DisconnectionRefuse',
    'InteractionError',
    'Master',
    'MasterErrorCode',
    'Slave',
    'SlaveErrorCode',
    'Task',
    'TaskFail',
    'TaskRefuse',
    'TaskStatus',
    'launch_slave',
]
