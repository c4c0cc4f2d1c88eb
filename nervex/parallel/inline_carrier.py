"""All roles in this process, one call after the other in the order in which they were made: for tests and debugging."""

from __future__ import annotations

import copy
import traceback
from collections import deque
from collections.abc import Sequence
from typing import Any

from nervex.interaction import TaskFail
from nervex.interaction.base import Carrier, Handle, Ref
from nervex.interaction.exception import SlaveDied
from nervex.interaction.slave import Host
from nervex.utils import NervexError

_CALL_S = 0.001


class InlineRef:
    """An answer, or the error in its place, once it is there."""

    def __init__(self) -> None:
        self.ready = False
        self.value: Any = None
        self.error: Exception | None = None

    def answer(self, value: Any = None, error: Exception | None = None) -> None:
        """Only the first answer counts."""
        if not self.ready:
            self.ready, self.value, self.error = True, value, error


class InlineHandle(Handle):
    """A role that is built when it is first called."""

    def __init__(self, carrier: InlineCarrier, name: str, role: Any, kwargs: dict[str, Any]) -> None:
        self.name, self._carrier, self._role, self._kwargs = name, carrier, role, kwargs
        self.host: Host | None = None
        self.dead = False
        self.held = False  # True: its calls wait, as in a process that hangs

    def call(self, method: str, *args: Any, returns: int = 1) -> Any:
        """Put the call behind those that wait."""
        refs = [InlineRef() for _ in range(returns)]
        if self.dead:
            for ref in refs:
                ref.answer(error=SlaveDied(f'{self.name}: is not running'))
        else:
            self._carrier.calls.append((self, method, args, refs))
        return refs[0] if returns == 1 else refs

    def run(self, method: str, args: tuple, refs: list[InlineRef]) -> None:
        """Do what was asked."""
        error: Exception
        try:
            if self.host is None:
                self.host = Host(self._role, self._kwargs)
            answer = self.host.call(method, *(arg.value if isinstance(arg, InlineRef) else arg for arg in args))
        except NervexError as e:
            error = e
            if isinstance(e, SlaveDied):
                self._carrier.kill(self)
        except Exception:  # whatever a role raises is its answer
            error = TaskFail(None, traceback.format_exc())
        else:
            for ref, value in zip(refs, (answer,) if len(refs) == 1 else answer):
                ref.answer(copy.deepcopy(value))  # roles share no memory
            return
        for ref in refs:
            ref.answer(error=error)


class InlineCarrier(Carrier):
    """
    Overview:
        A call takes a millisecond by its clock; waiting for nothing moves the clock by the timeout. Setting
        ``held`` of a handle makes a role hang, ``kill`` makes it die.
    """

    measures = False

    def __init__(self) -> None:
        self.calls: deque[tuple[InlineHandle, str, tuple, list[InlineRef]]] = deque()
        self.handles: list[InlineHandle] = []
        self._clock = 0.0

    def spawn(self, name: str, role: Any, kwargs: dict[str, Any], resources: dict[str, Any]) -> InlineHandle:
        """Note a role."""
        handle = InlineHandle(self, name, role, kwargs)
        self.handles.append(handle)
        return handle

    def wait(self, refs: Sequence[Ref], timeout_s: float) -> list[Ref]:
        """Do calls until one of these has an answer, or nothing more can be done."""
        while True:
            ready = [ref for ref in refs if ref.ready]
            if ready:
                return ready
            if not self._run_one():
                self._clock += timeout_s
                return []

    def _run_one(self) -> bool:
        for k, (handle, method, args, refs) in enumerate(self.calls):
            if not handle.held:
                del self.calls[k]
                self._clock += _CALL_S
                handle.run(method, args, refs)
                return True
        return False

    def get(self, ref: Ref, timeout_s: float | None = None) -> Any:
        """The answer or its error."""
        if ref.error is not None:
            raise ref.error
        return ref.value

    def kill(self, handle: InlineHandle) -> None:
        """End a role; it can close in order."""
        handle.dead = True
        for call in [call for call in self.calls if call[0] is handle]:
            self.calls.remove(call)
            for ref in call[3]:
                ref.answer(error=SlaveDied(f'{handle.name}: was ended'))
        if handle.host is not None:
            handle.host.close()
            handle.host = None

    def avoid(self, handle: InlineHandle) -> None:
        """There is one machine only."""

    def now(self) -> float:
        """The made-up clock."""
        return self._clock

    def close(self) -> None:
        """End all roles."""
        for handle in self.handles:
            if not handle.dead:
                self.kill(handle)
