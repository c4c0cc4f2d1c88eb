"""The env subprocesses of a manager: starting, commanding, waiting for, replacing and ending them."""

import contextlib
import logging
import multiprocessing
import os
import select
import time
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.util import Finalize
from typing import Any

from nervex.envs.hosting.host import EnvFault
from nervex.envs.hosting.shared import ASK, Control, SharedBlock
from nervex.envs.hosting.store import BlockStore
from nervex.envs.hosting.waiting import RECHECK_S, core, may_spin, spin_while
from nervex.envs.hosting.worker import WorkerSetup, worker_main
from nervex.utils.errors import NervexError
from nervex.worker.actor.env_manager.start_methods import safe_context, starting

logger = logging.getLogger(__name__)

LONGEST_SLEEP_S = 1.0  # so that not more than this counts of the time for which the process was stopped
SUSPENDED_S = 0.5  # a sleep that takes so much longer than asked for was no sleep


class WorkerLost(NervexError):
    """A subprocess died or had to be ended; ``kind`` is 'crash' or 'timeout'."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class _Worker:
    """What the main process keeps of one subprocess."""

    __slots__ = ('ids', 'pipe', 'process', 'wake', 'wake_fd')

    def __init__(self, ids: range) -> None:
        self.ids = ids
        self.process = self.pipe = self.wake = self.wake_fd = None


class WorkerPool:
    """
    Overview:
        Worker w owns the envs ``slices[w]``. A command is a number in shared memory (and a byte in the worker's pipe if
        it sleeps); its end is a number in shared memory (and a byte in one pipe that all workers share).
    Arguments:
        - slices (:obj:`Sequence[range]`): the env ids of each worker
        - setup (:obj:`Callable`): (worker, ids, describe) -> WorkerSetup
        - context (:obj:`str | None`): start method
        - private (:obj:`bool`): observations travel by pipe
        - others (:obj:`int`): busy processes besides the workers; with too few cores nobody spins
    Interfaces:
        start, introduce, share, map, command, wake, send, wait, mail, ask, kill, close
    """

    def __init__(
        self,
        env_num: int,
        slices: Sequence[range],
        setup: Callable[[int, range, bool], WorkerSetup],
        context: str | None,
        private: bool = False,
        spin_allowed: bool = True,
    ) -> None:
        self._env_num = env_num
        self.workers = [_Worker(ids) for ids in slices]
        self.everybody = range(len(slices))
        self._setup, self._context_name, self._private = setup, context, private
        self.spin = spin_allowed and may_spin(len(slices) + 1)
        self._poll = select.poll()
        self._ready, self._ready_end = multiprocessing.Pipe(duplex=False)
        self._ready_fd = self._ready.fileno()
        self._poll.register(self._ready_fd, select.POLLIN)
        self._by_sentinel: dict[int, int] = {}
        self._ended: set[int] = set()  # workers that were seen to have ended by themselves
        self._mapped: set[int] = set()  # workers that have the shared memory
        self._block: SharedBlock | None = None
        self._plan: dict[str, Any] = {}
        Finalize(self, _end_all, (self.workers,), exitpriority=10)  # for a program that ends without close()

    # ------------------------------------------------------------------ beginning
    def start(self, w: int, describe: bool) -> None:
        """Start a worker; it begins to make its envs."""
        worker = self.workers[w]
        context = multiprocessing.get_context(self._context_name or safe_context())
        pipe, child_pipe = context.Pipe()
        wake_child, worker.wake = context.Pipe(duplex=False)
        worker.pipe, worker.wake_fd = pipe, worker.wake.fileno()
        foreign = self._own_fds() if context.get_start_method() == 'fork' else []
        args = (self._setup(w, worker.ids, describe), child_pipe, wake_child, self._ready_end, foreign)
        process = context.Process(
            target=worker_main, args=args, daemon=True, name=f'nervex-envs-{worker.ids.start}-{worker.ids.stop - 1}'
        )
        with starting():
            process.start()
            worker.process = process
        child_pipe.close()
        wake_child.close()
        self._by_sentinel[worker.process.sentinel] = w
        self._poll.register(worker.process.sentinel, select.POLLIN)

    def introduce(self, w: int, timeout: float) -> Any:
        """Wait until a worker has made its envs; answers (info, first observation) if it was asked to describe them."""
        answer = self._receive(w, timeout, 'making the envs')
        if isinstance(answer, EnvFault):
            self.kill(w)
        return answer

    def share(self, layout: Any, reward_size: int, action: Any, act_space: Any, by_pipe: bool) -> BlockStore:
        """Make the shared memory; answers the store over it. Then ``map`` each worker."""
        envs, workers = self._env_num, len(self.workers)
        control_bytes = Control.nbytes(workers, envs, action)
        self._block = SharedBlock(control_bytes + BlockStore.nbytes(layout, envs, reward_size))
        self.control = Control(workers, envs, action, self._block.buffer)
        self.control.main_waits[0] = 0 if self.spin else 1
        self._plan = dict(
            workers=workers,
            envs=envs,
            action=action,
            act_space=act_space,
            layout=layout,
            reward_size=reward_size,
            control_bytes=control_bytes,
            private=self._private,
            by_pipe=by_pipe,
        )
        return BlockStore(layout, envs, reward_size, memoryview(self._block.buffer)[control_bytes:], self._private)

    def map(self, w: int) -> None:
        """Hand the shared memory to a worker; it obeys commands from now on."""
        worker, control = self.workers[w], self.control
        control.asked[w] = control.done[w]
        control.asleep[w] = 0 if self.spin else 1
        control.resetting[w] = 0
        worker.pipe.send(self._plan)
        self._block.send(worker.pipe, worker.process.pid)
        self._mapped.add(w)

    # ------------------------------------------------------------------ commands
    def command(self, w: int, kind: int, slot: int = 0) -> None:
        """Give a command; does not wait."""
        control = self.control
        control.kind[w] = kind
        control.slot[w] = slot
        control.asked[w] += 1
        if control.asleep[w]:
            self.wake(w)

    def wake(self, w: int) -> None:
        """Wake a worker that sleeps."""
        try:
            os.write(self.workers[w].wake_fd, b'\0')
        except BrokenPipeError:  # it has died: found by whoever waits for it
            return

    def send(self, w: int, message: Any) -> None:
        """Send what belongs to the last command."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.workers[w].pipe.send(message)

    def wait(self, workers: Iterable[int], timeout: float, reset_timeout: float) -> dict[int, WorkerLost]:
        """
        Overview:
            Wait until the workers have done their commands.
        Arguments:
            - timeout, reset_timeout (:obj:`float`): seconds; the second counts while a worker says that an env resets
        Returns:
            - lost (:obj:`dict`): the workers that died or were too slow; they have been ended
        """
        control = self.control
        asked, done = control.asked, control.done
        if self.spin:
            for w in workers:
                number = asked[w]
                if done[w] != number and not spin_while(done, w, number - 1):
                    break
            else:
                return {}
        pending = {w for w in workers if done[w] != asked[w]}
        if not pending:
            return {}
        lost = {w: self.died(w) for w in pending & self._ended}
        begin = time.monotonic()
        control.main_waits[0] = 1
        control.main_core[0] = core() if self.spin else 0
        short = self.spin  # the flag may have been seen too late: look again soon, see Sleeper
        while True:
            pending = {w for w in pending if done[w] != asked[w] and w not in lost}
            if not pending:
                break
            limit = begin + (reset_timeout if any(control.resetting[w] for w in pending) else timeout)
            left = limit - time.monotonic()
            if left <= 0:
                for w in self._late(pending, begin, timeout, reset_timeout):
                    lost[w] = self.too_late(w)
                continue
            begin += self.arrivals(RECHECK_S if short else min(LONGEST_SLEEP_S, max(left / 2, 0.02)))
            for w in pending & self._ended:
                if done[w] != asked[w]:  # else it has finished its last command first
                    lost[w] = self.died(w)
            short = False
        if self.spin:
            control.main_waits[0] = 0
        return lost

    def arrivals(self, timeout: float) -> float:
        """
        Overview:
            Sleep until a worker has done something, or a starting one has something to say, or the time is over.
        Returns:
            - suspended (:obj:`float`): seconds for which this process must have been stopped (Ctrl-Z, a paused
              machine), and the workers probably too: they count for no timeout
        """
        timeout = max(0.0, timeout)
        begin = time.monotonic()
        for fd, _ in self._poll.poll(timeout * 1000):
            if fd == self._ready_fd:
                os.read(fd, 65536)
            elif fd in self._by_sentinel:
                self._poll.unregister(fd)
                self._ended.add(self._by_sentinel[fd])
        over = time.monotonic() - begin - timeout
        return over if over > SUSPENDED_S else 0.0

    def watch(self, w: int, yes: bool) -> None:
        """Let ``arrivals`` wake for a worker's pipe: while it makes its envs it cannot use the shared memory."""
        fd = self.workers[w].pipe.fileno()
        if yes:
            self._poll.register(fd, select.POLLIN | select.POLLHUP)
        else:
            self._poll.unregister(fd)

    def has_ended(self, w: int) -> bool:
        """Whether the worker was seen to have ended before it had done its command."""
        return w in self._ended and self.control.done[w] != self.control.asked[w]

    def has_spoken(self, w: int) -> bool:
        """Whether something waits in the worker's pipe."""
        return self.workers[w].pipe.poll(0)

    def mail(self, w: int, timeout: float) -> Any:
        """What the worker's last command answered by pipe, None if nothing; raises WorkerLost."""
        if not self.control.mail[w]:
            return None
        return self._receive(w, timeout, 'answering')

    def ask(self, workers: Sequence[int], requests: Sequence[tuple], timeout: float) -> list[Any]:
        """Have each worker run one of its ``_ask_...`` methods; a worker that is lost answers its WorkerLost."""
        for w, request in zip(workers, requests):
            self.command(w, ASK, request[1][0] if request[0] == 'begin' else 0)
            self.send(w, request)
        lost = self.wait(workers, timeout, timeout)
        answers = []
        for w in workers:
            try:
                answers.append(lost[w] if w in lost else self.mail(w, timeout))
            except WorkerLost as error:
                answers.append(error)
        return answers

    # ------------------------------------------------------------------ ending
    def died(self, w: int) -> WorkerLost:
        """Clear away a worker that has ended by itself; tells how."""
        process = self.workers[w].process
        process.join(1)
        code = process.exitcode
        self.kill(w)
        how = f'was ended by signal {-code}' if code is not None and code < 0 else f'ended with exit code {code}'
        return WorkerLost('crash', f'the subprocess of {self._whose(w)} {how}')

    def too_late(self, w: int) -> WorkerLost:
        """End a worker that has not answered in time."""
        resets = self.control.resetting[w]
        self.kill(w)
        return WorkerLost(
            'timeout', f'{self._whose(w)}: {"a reset" if resets else "a step"} took too long; the subprocess was ended'
        )

    def kill(self, w: int) -> None:
        """End a worker at once and free what belongs to it."""
        worker = self.workers[w]
        if worker.process is None:
            return
        for fd in (worker.process.sentinel, worker.pipe.fileno()):
            with contextlib.suppress(KeyError, ValueError):
                self._poll.unregister(fd)
        self._by_sentinel.pop(worker.process.sentinel, None)
        self._ended.discard(w)
        self._mapped.discard(w)
        worker.process.kill()
        worker.pipe.close()
        worker.wake.close()
        worker.process.join()
        worker.process.close()
        worker.process = worker.pipe = worker.wake = worker.wake_fd = None
        if self._block is not None:
            self.control.asked[w] = self.control.done[w]

    def close(self, timeout: float = 5.0) -> list[EnvFault]:
        """End all workers, kindly if they are idle, and free the memory. Answers what the envs' ``close`` raised."""
        faults = []
        idle = sorted(w for w in self._mapped if self.control.asked[w] == self.control.done[w])
        for w in set(range(len(self.workers))) - set(idle):
            self.kill(w)
        if idle:
            for answer in self.ask(idle, [('close', ())] * len(idle), timeout):
                faults += answer if isinstance(answer, list) else []
        for w in range(len(self.workers)):
            self.kill(w)
        self._ready.close()
        self._ready_end.close()
        if self._block is not None:
            self._block.close()
            self._block = self.control = None
        return faults

    # ------------------------------------------------------------------ inside
    def alive(self, w: int) -> bool:
        """Whether the worker has a process."""
        return self.workers[w].process is not None

    def _receive(self, w: int, timeout: float, what: str) -> Any:
        pipe = self.workers[w].pipe
        try:
            if pipe.poll(timeout):
                return pipe.recv()
        except (EOFError, OSError):
            raise self.died(w) from None
        self.kill(w)
        raise WorkerLost('timeout', f'{self._whose(w)}: {what} took longer than {timeout:g} s')

    def _late(self, pending: Iterable[int], begin: float, timeout: float, reset_timeout: float) -> list[int]:
        spent = time.monotonic() - begin
        return [w for w in pending if spent >= (reset_timeout if self.control.resetting[w] else timeout)]

    def _whose(self, w: int) -> str:
        ids = self.workers[w].ids
        return f'env {ids.start}' if len(ids) == 1 else f'envs {ids.start} to {ids.stop - 1} (they share one)'

    def _own_fds(self) -> list[int]:
        """The main process's ends, which a forked child must not keep open: it would hide that they were closed."""
        fds = [self._ready_fd]
        for worker in self.workers:
            fds += [c.fileno() for c in (worker.pipe, worker.wake) if c is not None]
        return fds


def _end_all(workers: list[_Worker]) -> None:
    for worker in workers:
        if worker.process is not None:
            worker.process.kill()
