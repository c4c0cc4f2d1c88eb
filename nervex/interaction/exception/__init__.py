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


class InteractionError(NervexError, RuntimeError):
    """
    Overview:
        Root of all errors between master and slave. ``code`` is a number that also survives the way to another process.
    """

    code: SlaveErrorCode | MasterErrorCode

    def __reduce__(self) -> tuple:
        return type(self), self.args


class SlaveError(InteractionError):
    """The slave said no."""


class MasterError(InteractionError):
    """The master cannot do that, or lost the slave."""


class SlaveSystemShuttingDown(SlaveError):
    """The slave is ending and takes nothing more."""

    code = SlaveErrorCode.SYSTEM_SHUTTING_DOWN


class SlaveAlreadyConnected(SlaveError):
    """A slave obeys one master at a time."""

    code = SlaveErrorCode.SLAVE_ALREADY_CONNECTED


class SlaveNotConnected(SlaveError):
    """The slave has no master, or lost it."""

    code = SlaveErrorCode.SLAVE_NOT_CONNECTED


class SlaveConnectionRefused(SlaveError):
    """The slave's own code refused the connection."""

    code = SlaveErrorCode.SLAVE_CONNECTION_REFUSED


class SlaveDisconnectionRefused(SlaveError):
    """The slave's own code refused to be released."""

    code = SlaveErrorCode.SLAVE_DISCONNECTION_REFUSED


class MasterUnknown(SlaveError):
    """Another master than the connected one spoke to the slave."""

    code = SlaveErrorCode.MASTER_UNKNOWN


class TaskAlreadyExist(SlaveError):
    """The slave is busy: one task at a time."""

    code = SlaveErrorCode.TASK_ALREADY_EXIST


class TaskRefused(SlaveError):
    """The slave's own code refused the task."""

    code = SlaveErrorCode.TASK_REFUSED


class TaskUnknown(SlaveError):
    """The slave never had this task, or has answered it already."""

    code = SlaveErrorCode.TASK_UNKNOWN


class MasterSystemShuttingDown(MasterError):
    """The master is ending and connects to nobody."""

    code = MasterErrorCode.SYSTEM_SHUTTING_DOWN


class ConnectionAlreadyExists(MasterError):
    """The master has a connection of this name."""

    code = MasterErrorCode.CONNECTION_ALREADY_EXISTS


class ConnectionNotOpen(MasterError):
    """Tasks go through open connections only."""

    code = MasterErrorCode.CONNECTION_NOT_OPEN


class ConnectionLost(MasterError):
    """The slave does not answer any more: its process ended, or it hangs."""

    code = MasterErrorCode.CONNECTION_LOST


class SlaveDied(ConnectionLost):
    """The slave's process ended: waiting longer is of no use."""


class SlaveUnreachable(SlaveDied):
    """The slave is gone, perhaps with its whole machine."""


class SlaveNotBuilt(SlaveDied):
    """The slave raised while it was built; the text holds its traceback."""


class DataLost(MasterError):
    """What a task should have got by reference is gone, with the machine that held it."""

    code = MasterErrorCode.DATA_LOST


class TaskDataInvalid(MasterError):
    """The data of a task is a dict."""

    code = MasterErrorCode.TASK_DATA_INVALID


class TaskAlreadyStarted(MasterError):
    """A task starts once; a new try is a new task."""

    code = MasterErrorCode.TASK_ALREADY_STARTED


def exception_class(code: SlaveErrorCode | MasterErrorCode) -> type[InteractionError]:
    """The class that stands for an error code."""
    root: type[InteractionError] = SlaveError if isinstance(code, SlaveErrorCode) else MasterError
    return next(cls for cls in root.__subclasses__() if cls.code is code)


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
