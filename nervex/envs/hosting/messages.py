"""What a group of envs is made from, and what it answers: the values that pass between a manager and its hosts."""

import os
import pickle
import traceback
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from nervex.envs.hosting.block import InvalidStepError


class EnvFault(NamedTuple):
    """What went wrong in one env: ``phase`` is build, reset or step; ``kind`` is error, invalid, abnormal, ..."""

    env_id: int
    phase: str
    kind: str
    text: str


@dataclass(slots=True)
class Events:
    """
    Overview:
        What a job of some envs brought besides numbers, by env id.
    Arguments:
        - finished (:obj:`list[int]`): whose episode has ended
        - infos (:obj:`dict`): where they say more than the usual two things about an end; or a function that makes it
        - faults (:obj:`list[EnvFault]`): what went wrong
        - stepped (:obj:`list[int] | None`): who has stepped; None: all that were asked
        - waiting (:obj:`Collection[int] | None`): who has no observation now, as its episode begins with a step of the
          others (vectorised envs); None: as before
    """

    finished: list[int] = field(default_factory=list)
    infos: Any = field(default_factory=dict)
    faults: list[EnvFault] = field(default_factory=list)
    stepped: list[int] | None = None
    waiting: Collection[int] | None = None


@dataclass
class HostSetup:
    """
    Overview:
        What a group of envs is made from: the envs ``first_id .. first_id + len(cfgs) - 1``. It travels to a process
        by cloudpickle, so that functions made on the spot reach it too.
    """

    first_id: int
    env_fn: Callable[[dict], Any]
    cfgs: list[dict]
    auto_reset: bool  # the host begins the next episode in the step that ends one
    episode_num: float
    seeds: list[tuple[int, bool | None] | None]  # (seed, dynamic_seed) of each env
    reset_kwargs: list[dict]
    renewed: list[int]  # how often each env was replaced
    describe: bool = False  # whether ``make`` of the host answers what the envs look like

    def part(self, ids: range, describe: bool) -> 'HostSetup':
        """That of some of these envs, as things stand."""
        names = ('cfgs', 'seeds', 'reset_kwargs', 'renewed')
        columns = {name: getattr(self, name)[ids.start : ids.stop] for name in names}
        return replace(self, first_id=ids.start, describe=describe, **columns)

    def host(self) -> Any:
        """The EnvHost, without envs yet."""
        from nervex.envs.hosting.host import EnvHost

        return EnvHost(self)

    def __getstate__(self) -> bytes:
        import cloudpickle

        return cloudpickle.dumps(self.__dict__)

    def __setstate__(self, state: bytes) -> None:
        self.__dict__.update(pickle.loads(state))


FORKS = [0]  # how many forks lie between the first process and this one: cheaper to read than the process id


def _count_fork() -> None:
    FORKS[0] += 1


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_count_fork)


def leave_copy() -> None:
    """End a copy of this process that an env has made: it forked in a step, and the child came back, too."""
    os.write(2, b'an env has forked in its step, and the copy came back from it: the copy is ended\n')
    os._exit(1)


def kind_of(error: BaseException) -> str:
    """What a fault is called: an env that ends the process (``sys.exit``) has crashed, wherever it lives."""
    if isinstance(error, InvalidStepError):
        return 'invalid'
    return 'crash' if isinstance(error, SystemExit) else 'error'


def describe_error(error: BaseException) -> str:
    """The error with its traceback."""
    return ''.join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip()
