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


Code = SlaveErrorCode | MasterErrorCode


class InteractionError(NervexError, RuntimeError):
    """
    Overview:
        Root of all errors between master and slave. ``code`` is a number that also survives the way to another process.
    """

    code: Code


class SlaveError(InteractionError):
    """The slave said no."""


class MasterError(InteractionError):
    """The master cannot do that, or lost the slave."""


class ConnectionLost(MasterError):
    """The slave does not answer any more: its process ended, or it hangs."""

    code = MasterErrorCode.CONNECTION_LOST


class SlaveDied(ConnectionLost):
    """The slave's process ended: waiting longer is of no use."""


class SlaveUnreachable(SlaveDied):
    """The slave is gone, perhaps with its whole machine."""


class SlaveNotBuilt(SlaveDied):
    """The slave raised while it was built; the text holds its traceback."""


def _of(code: Code, meaning: str) -> type[InteractionError]:
    """The exception class of a code; its name is that of the code, after the end that is shutting down."""
    root, end = (SlaveError, 'Slave') if isinstance(code, SlaveErrorCode) else (MasterError, 'Master')
    name = (end if code == 101 else '') + code.name.title().replace('_', '')
    return type(name, (root,), {'__doc__': meaning, '__module__': __name__, 'code': code})


_S, _M = SlaveErrorCode, MasterErrorCode
SlaveSystemShuttingDown = _of(_S.SYSTEM_SHUTTING_DOWN, 'The slave is ending and takes nothing more.')
SlaveAlreadyConnected = _of(_S.SLAVE_ALREADY_CONNECTED, 'A slave obeys one master at a time.')
SlaveNotConnected = _of(_S.SLAVE_NOT_CONNECTED, 'The slave has no master, or lost it.')
SlaveConnectionRefused = _of(_S.SLAVE_CONNECTION_REFUSED, "The slave's own code refused the connection.")
SlaveDisconnectionRefused = _of(_S.SLAVE_DISCONNECTION_REFUSED, "The slave's own code refused to be released.")
MasterUnknown = _of(_S.MASTER_UNKNOWN, 'Another master than the connected one spoke to the slave.')
TaskAlreadyExist = _of(_S.TASK_ALREADY_EXIST, 'The slave is busy: one task at a time.')
TaskRefused = _of(_S.TASK_REFUSED, "The slave's own code refused the task.")
TaskUnknown = _of(_S.TASK_UNKNOWN, 'The slave never had this task, or has answered it already.')
MasterSystemShuttingDown = _of(_M.SYSTEM_SHUTTING_DOWN, 'The master is ending and connects to nobody.')
ConnectionAlreadyExists = _of(_M.CONNECTION_ALREADY_EXISTS, 'The master has a connection of this name.')
ConnectionNotOpen = _of(_M.CONNECTION_NOT_OPEN, 'Tasks go through open connections only.')
DataLost = _of(_M.DATA_LOST, 'What a task should have got by reference is gone, with the machine that held it.')
TaskDataInvalid = _of(_M.TASK_DATA_INVALID, 'The data of a task is a dict.')
TaskAlreadyStarted = _of(_M.TASK_ALREADY_STARTED, 'A task starts once; a new try is a new task.')


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
