"""What the code of a slave raises to say no, or that its task failed."""

from __future__ import annotations

from typing import Any

from nervex.utils.errors import NervexError


class Refusal(NervexError, RuntimeError):
    """Root of the three refusals; the text reaches the master."""


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
    Arguments:
        - result (:obj:`Any`): arrives as ``task.result`` on the master's side
        - message (:obj:`str`): arrives as the text of ``task.error``
    """

    def __init__(self, result: Any = None, message: str = '') -> None:
        super().__init__(message)
        self.result, self.message = result, message

    def __reduce__(self) -> tuple:
        return type(self), (self.result, self.message)
