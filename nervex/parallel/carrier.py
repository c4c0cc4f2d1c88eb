"""Where roles run; and all of them in this process, one call after the other, for tests and debugging."""

from __future__ import annotations

import copy
import traceback
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from nervex.interaction import TaskFail
from nervex.interaction.base import Answers, Handle
from nervex.interaction.exception import SlaveDied
from nervex.interaction.slave import Host
from nervex.utils import NervexError

_CALL_S = 0.001


class Carrier(Answers, ABC):
    """
    Overview:
        Starts roles in processes of their own, and ends them. A context manager that leaves nothing running.
    Interfaces:
        spawn, wait, get, kill, avoid, check, now, close
    """

    measures = True  # how long calls take says something about the run

    @abstractmethod
    def spawn(self, name: str, role: Any, kwargs: dict[str, Any], resources: dict[str, Any]) -> Handle:
        """Start ``role(**kwargs)``, whose calls run one after the other; does not wait until it is there."""

    @abstractmethod
    def kill(self, handle: Any) -> None:
        """End a role at once; its outstanding answers become SlaveDied. Killing twice is fine."""

    @abstractmethod
    def close(self) -> None:
        """End everything; closing twice is fine."""

    def avoid(self, handle: Any) -> None:
        """Start nothing on the machine of this one, which cannot be reached, while there are others."""

    def check(self) -> None:
        """Raise an error if what carries all roles is broken."""

    def __enter__(self) -> Carrier:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


class InlineHandle(Handle):
    """A role that is built when it is first called."""

    def __init__(self, carrier: InlineCarrier, name: str, role: Any, kwargs: dict[str, Any]) -> None:
        super().__init__(name)
        self._carrier, self._role, self._kwargs = carrier, role, kwargs
        self.host: Host | None = None
        self.dead = False
        self.held = False  # True: its calls wait, as in a process that hangs

    def call(self, method: str, *args: Any, returns: int = 1) -> Any:
        """Put the call behind those that wait."""
        answers: list[Future] = [Future() for _ in range(returns)]
        if self.dead:
            answers[0].set_exception(SlaveDied(f'{self.name}: is not running'))
        else:
            self._carrier.calls.append((self, method, args, answers))
        return answers[0] if returns == 1 else answers

    def run(self, method: str, args: tuple, answers: list[Future]) -> None:
        """Do what was asked."""
        try:
            if self.host is None:
                self.host = Host(self._role, self._kwargs)
            answer = self.host.call(method, *(arg.result() if isinstance(arg, Future) else arg for arg in args))
        except NervexError as e:
            if isinstance(e, SlaveDied):
                self._carrier.kill(self)
            answers[0].set_exception(e)
        except Exception:  # whatever a role raises is its answer
            answers[0].set_exception(TaskFail(None, traceback.format_exc()))
        else:
            for there, value in zip(answers, (answer,) if len(answers) == 1 else answer):
                there.set_result(copy.deepcopy(value))  # roles share no memory


class InlineCarrier(Carrier):
    """
    Overview:
        A call takes a millisecond by its clock; waiting for nothing moves the clock by the timeout. Setting
        ``held`` of a handle makes a role hang, ``kill`` makes it die.
    """

    measures = False

    def __init__(self) -> None:
        super().__init__(lambda: self._clock)
        self.calls: list[tuple[InlineHandle, str, tuple, list[Future]]] = []
        self.handles: list[InlineHandle] = []
        self._clock = 0.0

    def spawn(self, name: str, role: Any, kwargs: dict[str, Any], resources: dict[str, Any]) -> InlineHandle:
        """Note a role."""
        handle = InlineHandle(self, name, role, kwargs)
        self.handles.append(handle)
        return handle

    def wait(self, answers: Sequence[Future], timeout_s: float) -> list[Future]:
        """Do calls until one of these has an answer, or nothing more can be done."""
        while timeout_s > 0 and not any(answer.done() for answer in answers):
            k = next((k for k, call in enumerate(self.calls) if not call[0].held), None)
            if k is None:
                self._clock += timeout_s
                break
            self._clock += _CALL_S
            handle, method, args, promised = self.calls.pop(k)
            handle.run(method, args, promised)
        return [answer for answer in answers if answer.done()]

    def kill(self, handle: InlineHandle) -> None:
        """End a role; it can close in order."""
        handle.dead = True
        mine, self.calls = [c for c in self.calls if c[0] is handle], [c for c in self.calls if c[0] is not handle]
        for *_, answers in mine:
            answers[0].set_exception(SlaveDied(f'{handle.name}: was ended'))
        if handle.host is not None:
            handle.host.close()
            handle.host = None

    def close(self) -> None:
        """End all roles."""
        for handle in self.handles:
            self.kill(handle)
