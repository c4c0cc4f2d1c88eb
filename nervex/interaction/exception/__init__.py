"""What can go wrong between a master and a slave: codes of both ends, an exception class for each, and refusals."""

from __future__ import annotations

from enum import IntEnum, unique
from typing import Any

from nervex.utils.errors import NervexError


@unique
class SlaveErrorCode(IntEnum):
    """Answers of a slave to what it will not do."""

    SYSTEM_SHUTTING_DOWN = 101
    SLAVE_ALREADY_CONNECTED = 201
    SLAVE_NOT_CONNECTED = 202
    SLAVE_CONNECTION_REFUSED = 203
    SLAVE_DISCONNECTION_REFUSED = 204
    MASTER_UNKNOWN = 205
    TASK_ALREADY_EXIST = 301
    TASK_REFUSED = 302
    TASK_UNKNOWN = 303


@unique
class MasterErrorCode(IntEnum):
    """What a master finds out by itself."""

    SYSTEM_SHUTTING_DOWN = 101
    CONNECTION_ALREADY_EXISTS = 401
    CONNECTION_NOT_OPEN = 402
    CONNECTION_LOST = 403
    DATA_LOST = 404
    TASK_DATA_INVALID = 501
    TASK_ALREADY_STARTED = 502


_classes: dict[tuple[type, int], type[InteractionError]] = {}


class InteractionError(NervexError, RuntimeError):
    """
    Overview:
        Root of all errors between master and slave. ``code`` is a number that also survives the way to another process.
    """

    code: SlaveErrorCode | MasterErrorCode

    def __init_subclass__(cls, code: SlaveErrorCode | MasterErrorCode | None = None) -> None:
        if code is not None:
            cls.code = code
            _classes[type(code), code] = cls

    def __reduce__(self) -> tuple:
        return type(self), self.args


class SlaveError(InteractionError):
    """The slave said no."""


class MasterError(InteractionError):
    """The master cannot do that, or lost the slave."""


class SlaveSystemShuttingDown(SlaveError, code=SlaveErrorCode.SYSTEM_SHUTTING_DOWN):
    """The slave is ending and takes nothing more."""


class SlaveAlreadyConnected(SlaveError, code=SlaveErrorCode.SLAVE_ALREADY_CONNECTED):
    """A slave obeys one master at a time."""


class SlaveNotConnected(SlaveError, code=SlaveErrorCode.SLAVE_NOT_CONNECTED):
    """The slave has no master, or lost it."""


class SlaveConnectionRefused(SlaveError, code=SlaveErrorCode.SLAVE_CONNECTION_REFUSED):
    """The slave's own code refused the connection."""


class SlaveDisconnectionRefused(SlaveError, code=SlaveErrorCode.SLAVE_DISCONNECTION_REFUSED):
    """The slave's own code refused to be released."""


class MasterUnknown(SlaveError, code=SlaveErrorCode.MASTER_UNKNOWN):
    """Another master than the connected one spoke to the slave."""


class TaskAlreadyExist(SlaveError, code=SlaveErrorCode.TASK_ALREADY_EXIST):
    """The slave is busy: one task at a time."""


class TaskRefused(SlaveError, code=SlaveErrorCode.TASK_REFUSED):
    """The slave's own code refused the task."""


class TaskUnknown(SlaveError, code=SlaveErrorCode.TASK_UNKNOWN):
    """The slave never had this task, or has answered it already."""


class MasterSystemShuttingDown(MasterError, code=MasterErrorCode.SYSTEM_SHUTTING_DOWN):
    """The master is ending and connects to nobody."""


class ConnectionAlreadyExists(MasterError, code=MasterErrorCode.CONNECTION_ALREADY_EXISTS):
    """The master has a connection of this name."""


class ConnectionNotOpen(MasterError, code=MasterErrorCode.CONNECTION_NOT_OPEN):
    """Tasks go through open connections only."""


class ConnectionLost(MasterError, code=MasterErrorCode.CONNECTION_LOST):
    """The slave does not answer any more: its process ended, or it hangs."""


class SlaveDied(ConnectionLost):
    """The slave's process ended: waiting longer is of no use."""


class SlaveUnreachable(SlaveDied):
    """The slave is gone, perhaps with its whole machine."""


class SlaveNotBuilt(SlaveDied):
    """The slave raised while it was built; the text holds its traceback."""


class DataLost(MasterError, code=MasterErrorCode.DATA_LOST):
    """What a task should have got by reference is gone, with the machine that held it."""


class TaskDataInvalid(MasterError, code=MasterErrorCode.TASK_DATA_INVALID):
    """The data of a task is a dict."""


class TaskAlreadyStarted(MasterError, code=MasterErrorCode.TASK_ALREADY_STARTED):
    """A task starts once; a new try is a new task."""


def exception_class(code: SlaveErrorCode | MasterErrorCode) -> type[InteractionError]:
    """The class that stands for an error code."""
    return _classes[type(code), code]


class Refusal(NervexError, RuntimeError):
    """Root of the three refusals that the code of a slave raises; the text reaches the master."""


class ConnectionRefuse(Refusal):
    """Raised in ``Slave._before_connection``: not this master, or not now."""


class DisconnectionRefuse(Refusal):
    """Raised in ``Slave._before_disconnection``: something has to be finished first."""


class TaskRefuse(Refusal):
    """Raised in ``Slave._before_task``: not this task."""


class TaskFail(NervexError, RuntimeError):
    """
    Overview:
        Raised in ``Slave._process_task``: the task failed in a way that the slave knows, with what there is to tell.
        Whatever else a slave raises arrives as TaskFail with its traceback.
    Arguments:
        - result (:obj:`Any`): arrives as ``task.result`` on the master's side
        - message (:obj:`str`): arrives as the text of ``task.error``
    """

    def __init__(self, result: Any = None, message: str = '') -> None:
        super().__init__(message)
        self.result, self.message = result, message

    def __reduce__(self) -> tuple:
        return type(self), (self.result, self.message)
