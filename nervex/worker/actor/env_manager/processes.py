"""Envs in subprocesses: commands and observations in shared memory, what does not fit there by pipe."""

import contextlib
import multiprocessing
import os
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from itertools import pairwise
from multiprocessing.util import Finalize
from typing import Any

import numpy as np

from nervex.envs.hosting.actions import ActionRows, rows_of
from nervex.envs.hosting.layout import copy_row
from nervex.envs.hosting.messages import EnvFault, Events, HostSetup
from nervex.envs.hosting.shared import ASK, STEP_ALL, STEP_SOME, Control, SharedBlock
from nervex.envs.hosting.store import BlockStore
from nervex.envs.hosting.waiting import RECHECK_S, core, cores, may_spin, spin_while
from nervex.envs.hosting.worker import STOPS, worker_main
from nervex.utils import tree
from nervex.worker.actor.env_manager.backend import PENDING, Backend, WorkerLost

FIRST_LOOKS = range(64)  # some 2 us, before anything is done about a worker that is not ready yet
NAP_S = 0.02  # of a step of all, before each worker is watched on its own
ANSWER_S = 60.0  # for an answer that is on its way through the pipe
CLOSE_S = 5.0  # for closing the envs kindly


class _Worker:
    """What the main process keeps of one subprocess."""

    def __init__(self, process: Any, pipe: Any, wake: Any) -> None:
        self.process, self.pipe, self.wake = process, pipe, wake
        self.wake_fd: int = wake.fileno()
        self.mapped = False  # whether it has the shared memory


class Processes(Backend):
    """
    Overview:
        Each group is a subprocess with ``envs_per_worker`` envs. A command is a number in shared memory (and a byte in
        the worker's pipe if it sleeps); its end is a number in shared memory (and a byte in one pipe that all workers
        share). With ``hybrid`` group 0 are envs that this process steps while its children step the others.
    """

    control: Any = None  # the Control, once there is shared memory
    _block: Any = None
    _store: Any = None
    _host: Any = None  # of group 0, if this process steps it

    def __init__(self, env_num: int, cfg: dict, together: bool) -> None:
        super().__init__(env_num, cfg, together)
        self._cfg, self._together, self._env_num = cfg, together, env_num
        self.groups = self._shares()
        self.workers: dict[int, _Worker] = {}
        self._everybody = range(len(self.groups))[1 if cfg['hybrid'] else 0 :]
        self.spin = together and may_spin(len(self._everybody) + 1)
        self._open: set[int] = set()  # groups that were given a job whose end was not told
        self._told: list[tuple[int, Any]] = []  # answers that ``wait`` has not handed out
        self._ended: set[int] = set()  # groups whose process was seen to have ended by itself
        self._by_sentinel: dict[int, int] = {}
        self._poll = select.poll()
        self._ready, self._ready_end = multiprocessing.Pipe(duplex=False)
        self._ready_fd = self._ready.fileno()
        self._poll.register(self._ready_fd, select.POLLIN)
        Finalize(self, _end_all, (self.workers,), exitpriority=10)  # for a program that ends without close()

    def _shares(self) -> list[range]:
        n, size = self._env_num, int(self._cfg['envs_per_worker'])
        if self._cfg['hybrid']:
            if not self._together:
                raise ValueError('env.manager.hybrid: only the sync manager steps envs in the main process')
            parts = max(1, min(cores(), n))
            return [range(a, b) for a, b in pairwise(n * p // parts for p in range(parts + 1))]
        if size < 1:
            raise ValueError(f'env.manager.envs_per_worker: must be >= 1, got {size}')
        return [range(a, min(a + size, n)) for a in range(0, n, size)]

    # ------------------------------------------------------------------ beginning
    def launch(self, g: int, setup: HostSetup) -> None:
        """Job: make the envs of a group."""
        if g not in self._everybody:
            self._host = setup.host()
            self._told.append((g, self._host.make()))
            return
        context: Any = multiprocessing.get_context(self._cfg['context'] or _safe_context())
        pipe, child_pipe = context.Pipe()
        wake_child, wake = context.Pipe(duplex=False)
        # The main process's ends, which a forked child must not keep open: it would hide that they were closed.
        others = [c for worker in self.workers.values() for c in (worker.pipe, worker.wake)]
        forks = context.get_start_method() == 'fork'
        foreign = [c.fileno() for c in (self._ready, pipe, wake, *others)] if forks else []
        args = (setup, g, child_pipe, wake_child, self._ready_end, foreign)
        ids = self.groups[g]
        name = f'nervex-envs-{ids.start}-{ids.stop - 1}'
        process = context.Process(target=worker_main, args=args, daemon=True, name=name)
        with _starting():
            process.start()
            self.workers[g] = _Worker(process, pipe, wake)
        child_pipe.close()
        wake_child.close()
        self._by_sentinel[process.sentinel] = g
        self._poll.register(process.sentinel, select.POLLIN)
        self._poll.register(pipe.fileno(), select.POLLIN | select.POLLHUP)  # it cannot use the shared memory yet
        self._open.add(g)

    def share(self, layout: Any, reward_size: int, action_rows: ActionRows) -> BlockStore:
        """Make the memory that steps write to."""
        workers, envs, action = len(self.groups), self._env_num, action_rows.memory()
        self._by_pipe = not self._cfg['shared_memory'] or any(leaf.is_object for leaf in tree.leaves(layout))
        control_bytes = Control.nbytes(workers, envs, action)
        self._block = SharedBlock(control_bytes + BlockStore.nbytes(layout, envs, reward_size))
        self.control = Control(workers, envs, action, self._block.buffer)
        self.control.main_waits[0] = 0 if self.spin else 1
        self._plan = dict(
            workers=workers,
            envs=envs,
            action=action,
            act_space=action_rows.act_space,
            layout=layout,
            reward_size=reward_size,
            control_bytes=control_bytes,
            by_pipe=self._by_pipe,
            spin=self.spin,
            together=self._together,
        )
        memory = memoryview(self._block.buffer)[control_bytes:]
        self._store, self._rows = BlockStore(layout, envs, reward_size, memory, self._by_pipe), action_rows
        self.step_all = self._lockstep(action_rows)
        return self._store

    def attach(self, g: int) -> None:
        """Have a group write to that memory from now on."""
        if g not in self._everybody:
            self._host.attach(self._store, 0)
            return
        worker, control = self.workers[g], self.control
        control.asked[g] = control.done[g]
        control.asleep[g] = 0 if self.spin else 1
        control.resetting[g] = control.mail[g] = 0
        worker.pipe.send(self._plan)
        self._block.send(worker.pipe, worker.process.pid)
        worker.mapped = True

    # ------------------------------------------------------------------ jobs
    def _lockstep(self, action_rows: ActionRows) -> Any:
        """``step_all`` as a closure: looking things up would be a good part of its few microseconds (hybrid rows)."""
        control, everybody, workers, spin = self.control, self._everybody, self.workers, self.spin
        kinds, slots, asked, done = control.kind, control.slot, control.asked, control.done
        asleep, news, memory = control.asleep, control.news, control.actions
        block, split, looks = action_rows.block, action_rows.split, FIRST_LOOKS if spin else ()
        own = 0 if 0 in everybody else len(self.groups[0])

        def step_all(slot: int, actions: Any, ids: Any) -> Any:
            actions = block(actions)
            if memory is not None:
                memory[...] = actions
            for g in everybody:
                kinds[g] = STEP_ALL
                slots[g] = slot
                asked[g] += 1
                if asleep[g]:
                    _wake(workers[g])
            if memory is None:
                for g in everybody:
                    self._send(g, rows_of(actions, slice(self.groups[g].start, self.groups[g].stop)))
            events = None
            if own:
                host = self._host
                rows = actions[:own] if type(actions) is np.ndarray else rows_of(actions, slice(0, own))
                events = host.step(slot, split(rows, host.action_form))
            for g in everybody:
                number = asked[g]
                for _ in looks:
                    if done[g] == number:
                        break
                else:
                    if spin and all(done[h] == asked[h] or spin_while(done, h, asked[h] - 1) for h in everybody):
                        break
                    if self._nap():
                        break
                    if own:
                        self._told.append((0, events))
                    self._open.update(everybody)
                    return PENDING
            if not any(news):
                return events
            answers = [(g, self._answer(g)) for g in everybody] + ([(0, events)] if own else [])
            if any(isinstance(answer, WorkerLost) for _, answer in answers):
                self._told = answers
                return PENDING
            return _joined([answer for _, answer in answers])

        return step_all

    def step(self, g: int, slot: int, ids: Sequence[int], actions: Any) -> None:
        """Job: step these envs of a group."""
        if g not in self._everybody:
            rows = self._rows.split(actions, self._host.action_form)
            self._told.append((g, self._host.step(slot, rows, ids)))
            return
        control = self.control
        chosen = list(ids)
        if control.actions is not None:
            control.actions[chosen] = actions
        if len(chosen) < len(self.groups[g]):
            control.chosen[self.groups[g].start : self.groups[g].stop] = 0
            control.chosen[chosen] = 1
        self._command(g, STEP_ALL if len(chosen) == len(self.groups[g]) else STEP_SOME, slot)
        if control.actions is None:
            self._send(g, actions)

    def ask(self, g: int, name: str, args: tuple) -> None:
        """Job: an attribute or a method of the envs of a group."""
        if g not in self._everybody:
            self._told.append((g, self._host.obey(name, args)))
            return
        self._command(g, ASK, args[0] if name == 'begin' else 0)
        self._send(g, (name, args))

    def _command(self, g: int, kind: int, slot: int) -> None:
        control = self.control
        control.kind[g] = kind
        control.slot[g] = slot
        control.asked[g] += 1
        if control.asleep[g]:
            _wake(self.workers[g])
        self._open.add(g)

    def _send(self, g: int, message: Any) -> None:
        """Send what belongs to the last command; a process that has died is found by ``wait``."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.workers[g].pipe.send(message)

    # ------------------------------------------------------------------ answers
    def wait(self, timeout: float) -> list[tuple[int, Any]]:
        """The jobs that have ended, with their answers."""
        found = self._arrived()
        if not found:
            if self.spin and self.control is not None and not self.control.main_waits[0]:
                self.control.main_core[0] = core()
                self.control.main_waits[0] = 1
                timeout = min(timeout, RECHECK_S)  # the flag may have been seen too late: look again soon
            self._sleep(timeout)
            found = self._arrived()
        if self.spin and self.control is not None and not self._open:
            self.control.main_waits[0] = 0
        return found

    def _nap(self) -> bool:
        """Sleep for a moment, in which most steps of all end (the last worker tells); whether this one has."""
        control = self.control
        if self.spin:
            control.main_core[0] = core()
            control.main_waits[0] = 1
        for _ in range(2):  # the first time may be cut short by what was told before
            if control.asked != control.done:
                self._sleep(RECHECK_S if self.spin else NAP_S)
        over = bool(control.asked == control.done)
        if self.spin and over:
            control.main_waits[0] = 0
        return over

    def _sleep(self, timeout: float) -> None:
        for fd, _ in self._poll.poll(timeout * 1000):
            if fd == self._ready_fd:
                os.read(fd, 65536)
            elif fd in self._by_sentinel:
                self._poll.unregister(fd)
                self._ended.add(self._by_sentinel[fd])

    def _arrived(self) -> list[tuple[int, Any]]:
        found, self._told = self._told, []
        for g in list(self._open):
            worker = self.workers[g]
            if not worker.mapped:
                if worker.pipe.poll(0):
                    found.append((g, self._introduced(g)))
                elif g in self._ended:
                    found.append((g, self._died(g)))
            elif self.control.done[g] == self.control.asked[g]:
                found.append((g, self._answer(g)))
            elif g in self._ended:
                found.append((g, self._died(g)))
        self._open.difference_update(g for g, _ in found)
        return found

    def _introduced(self, g: int) -> Any:
        """What a process says when it has made its envs, or could not."""
        self._poll.unregister(self.workers[g].pipe.fileno())
        try:
            answer = self._receive(g)
        except WorkerLost as lost:
            return lost
        if isinstance(answer, EnvFault):
            self._kill(g)
        return answer

    def _answer(self, g: int) -> Any:
        """What a job that is done has to say beside numbers."""
        control, answer = self.control, None
        if control.mail[g]:
            control.mail[g] = 0
            try:
                answer, objects = self._receive(g)
            except WorkerLost as lost:
                return lost
            for i, final, observation in objects or ():
                copy_row(self._store.final_rows[i] if final else self._store.rows[control.slot[g]][i], observation)
        elif control.kind[g] != ASK and control.news[g]:
            answer = Events()
            answer.finished = [i for i in self.groups[g] if self._store.done[i]]
        return answer

    def _receive(self, g: int) -> Any:
        pipe = self.workers[g].pipe
        try:
            if pipe.poll(ANSWER_S):
                return pipe.recv()
        except (EOFError, OSError):
            raise self._died(g) from None
        self._kill(g)
        raise WorkerLost('timeout', f'{self.whose(g)}: answering took longer than {ANSWER_S:g} s')

    def resets(self, g: int) -> bool:
        """Whether a group is beginning an episode within a step."""
        return self.control is not None and self.control.resetting[g] != 0

    def unanswered(self) -> list[int]:
        """After Ctrl-C: the groups that still have to answer."""
        control = self.control
        found = [g for g in self._everybody if control.asked[g] != control.done[g] or control.mail[g]]
        self._open.update(found)
        return found

    # ------------------------------------------------------------------ ending
    def _died(self, g: int) -> WorkerLost:
        """Clear away a process that has ended by itself; tells how."""
        process = self.workers[g].process
        process.join(1)
        code, ended = process.exitcode, self._well_ended(g)
        self._kill(g)
        how = f'was ended by signal {-code}' if code is not None and code < 0 else f'ended with exit code {code}'
        return WorkerLost('crash', f'the subprocess of {self.whose(g)} {how}', ended)

    def give_up(self, g: int, what: str) -> WorkerLost:
        """End a group whose job takes too long."""
        text, ended = f'{"a reset" if what in ("begin", "reset") else "a step"} took too long; the subprocess was', None
        if what == 'start':
            text = f'making the envs took longer than {self._cfg["connect_timeout"]:g} s; the subprocess was'
        else:
            ended = self._well_ended(g)
        self._kill(g)
        return WorkerLost('timeout', f'{self.whose(g)}: {text} ended', ended)

    def _well_ended(self, g: int) -> int | None:
        """The env whose next episode was about to begin in the step in which the process was lost."""
        if self.control is None or self.control.kind[g] == ASK or self._by_pipe or not self.control.resetting[g]:
            return None
        i = self.groups[g].start + self.control.resetting[g] - 1
        return i if self._store.done[i] else None

    def _kill(self, g: int) -> None:
        """End a process at once and free what belongs to it."""
        worker = self.workers.pop(g, None)
        if worker is None:
            return
        for fd in (worker.process.sentinel, worker.pipe.fileno()):
            with contextlib.suppress(KeyError, ValueError):
                self._poll.unregister(fd)
        self._by_sentinel.pop(worker.process.sentinel, None)
        self._ended.discard(g)
        self._open.discard(g)
        worker.process.kill()
        worker.pipe.close()
        worker.wake.close()
        worker.process.join()
        worker.process.close()
        if self.control is not None:
            self.control.asked[g] = self.control.done[g]
            self.control.resetting[g] = self.control.mail[g] = 0

    def close(self) -> list[EnvFault]:
        """End all groups and free everything; tells what the envs' ``close`` raised."""
        faults: list[EnvFault] = [] if self._host is None else self._host.close()
        idle = [g for g, worker in self.workers.items() if worker.mapped and g not in self._open]
        for g in set(self.workers).difference(idle):
            self._kill(g)
        for g in idle:
            self.ask(g, 'close', ())
        end = time.monotonic() + CLOSE_S
        while self._open and time.monotonic() < end:
            for _, answer in self.wait(end - time.monotonic()):
                faults += answer if isinstance(answer, list) else []
        for g in list(self.workers):
            self._kill(g)
        self._ready.close()
        self._ready_end.close()
        if self.control is not None:
            self._block.close()
            self._block = self.control = self.step_all = self._store = self._host = None
        return faults


def _wake(worker: _Worker) -> None:
    """Wake a process that sleeps; one that has died is found by ``wait``."""
    try:
        os.write(worker.wake_fd, b'\0')
    except BrokenPipeError:
        return


def _joined(answers: list[Events | None]) -> Events:
    """The events of several groups as one."""
    joined = Events()
    for events in answers:
        if events is not None:
            joined.finished += events.finished
            joined.infos.update(events.infos)
            joined.faults += events.faults
    return joined


def _end_all(workers: dict[int, _Worker]) -> None:
    for worker in workers.values():
        worker.process.kill()


def _safe_context() -> str:
    """fork, which is fast, unless this process has threads or a GPU, which a fork does not survive; then forkserver."""
    methods = multiprocessing.get_all_start_methods()
    torch = sys.modules.get('torch')
    if 'fork' not in methods:
        return 'spawn'
    if threading.active_count() > 1 or (torch is not None and torch.cuda.is_initialized()) or sys.platform == 'darwin':
        return 'forkserver'
    return 'fork'


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    """Around the start of a process. Python 3.12 warns of forks where threads exist; see ``_safe_context``."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)  # Python may lose what arrives while it forks
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', DeprecationWarning)
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
