"""All roles in this process, one call after the other in the order in which they were made: for tests and debugging."""

from __future__ import annotations

import copy
import traceback
from collections import deque
from collections.abc import Sequence
from typing import Any

from nervex.parallel.carrier import Carrier, Handle, Ref, RoleDiedError, RoleError, RoleHost
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
        self.host: RoleHost | None = None
        self.dead = False
        self.held = False  # True: its calls wait, as in a process that hangs

    def call(self, method: str, *args: Any, returns: int = 1) -> Any:
        refs = [InlineRef() for _ in range(returns)]
        if self.dead:
            for ref in refs:
                ref.answer(error=RoleDiedError(f'{self.name}: is not running'))
        else:
            self._carrier.calls.append((self, method, args, refs))
        return refs[0] if returns == 1 else refs

    def run(self, method: str, args: tuple, refs: list[InlineRef]) -> None:
        """Do what was asked."""
        try:
            if self.host is None:
                self.host = RoleHost(self._role, self._kwargs)
            answer = self.host.call(method, *(_value(arg) for arg in args))
        except RoleDiedError as e:
            self._carrier.kill(self)
            for ref in refs:
                ref.answer(error=e)
        except NervexError as e:
            for ref in refs:
                ref.answer(error=e)
        except Exception:  # whatever a role raises is its answer
            for ref in refs:
                ref.answer(error=RoleError(traceback.format_exc()))
        else:
            for ref, value in zip(refs, (answer,) if len(refs) == 1 else answer):
                ref.answer(copy.deepcopy(value))  # roles share no memory


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
        handle = InlineHandle(self, name, role, kwargs)
        self.handles.append(handle)
        return handle

    def wait(self, refs: Sequence[Ref], timeout_s: float) -> list[Ref]:
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

    def get(self, ref: Ref) -> Any:
        if ref.error is not None:
            raise ref.error
        return ref.value

    def kill(self, handle: Handle) -> None:
        handle.dead = True
        for call in [call for call in self.calls if call[0] is handle]:
            self.calls.remove(call)
            for ref in call[3]:
                ref.answer(error=RoleDiedError(f'{handle.name}: was ended'))
        if handle.host is not None:
            handle.host.close()
            handle.host = None

    def avoid(self, handle: Handle) -> None:
        """There is one machine only."""

    def now(self) -> float:
        return self._clock

    def close(self) -> None:
        for handle in self.handles:
            if not handle.dead:
                self.kill(handle)


def _value(arg: Any) -> Any:
    return arg.value if isinstance(arg, InlineRef) else arg
