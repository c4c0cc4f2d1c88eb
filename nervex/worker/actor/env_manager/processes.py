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

from nervex.envs.hosting.actions import ActionRows, rows_of
from nervex.envs.hosting.block import BlockStore, copy_row
from nervex.envs.hosting.messages import EnvFault, Events, HostSetup
from nervex.envs.hosting.shared import ASK, STEP_ALL, STEP_SOME, Control, Plan, SharedBlock
from nervex.envs.hosting.waiting import RECHECK_S, core, cores, keeps_order, spin_while
from nervex.envs.hosting.worker import STOPS, end_group, worker_main
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


class Processes(Backend):
    """
    Overview:
        Each group is a subprocess with ``envs_per_worker`` envs. A command is a number in shared memory (and a byte in
        the worker's pipe if it sleeps); its end is a number in shared memory (and a byte in one pipe that all workers
        share). With ``hybrid`` group 0 are envs that this process steps while its children step the others.
    """

    apart = True
    _host: Any = None  # of group 0, if this process steps it
    _plan: Any = None  # of the memory that steps write to
    _block: Any = None

    def __init__(self, env_num: int, cfg: dict, together: bool) -> None:
        super().__init__(env_num, cfg, together)
        self._cfg, self._together, self._env_num = cfg, together, env_num
        self.groups = self._shares()
        count = len(self.groups)
        self._everybody, self.interrupts = range(count)[1 if cfg['hybrid'] else 0 :], not cfg['hybrid']
        self.workers: dict[int, _Worker] = {}
        self.spin = together and keeps_order() and len(self._everybody) < cores()
        self._control_block: Any
        self.control: Any
        self._control_block, self.control = SharedBlock.holding(lambda memory: Control(count, env_num, memory))
        self.control.main_waits[0] = 0 if self.spin else 1
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
        if not self._cfg['hybrid']:
            return [range(a, min(a + size, n)) for a in range(0, n, size)]
        if not self._together:
            raise ValueError('env.manager.hybrid: only the sync manager steps envs in the main process')
        parts = max(1, min(cores(), n))
        return [range(a, b) for a, b in pairwise(n * p // parts for p in range(parts + 1))]

    # ------------------------------------------------------------------ beginning
    def launch(self, g: int, setup: HostSetup) -> None:
        """Job: make the envs of a group."""
        if g not in self._everybody:
            self._host = setup.host()
            self._told.append((g, self._host.make()))
            return
        self._kill(g)
        context: Any = multiprocessing.get_context(self._cfg['context'] or _safe_context())
        pipe, child_pipe = context.Pipe()
        wake_child, wake = context.Pipe(duplex=False)
        # The main process's ends, which a forked child must not keep open: it would hide that they were closed.
        others = [c for worker in self.workers.values() for c in (worker.pipe, worker.wake)]
        forks = context.get_start_method() == 'fork'
        foreign = [c.fileno() for c in (self._ready, pipe, wake, *others)] if forks else []
        control = (len(self.groups), self._env_num, g, self.spin, self._together)
        args = (setup, control, child_pipe, wake_child, self._ready_end, foreign)
        name = f'nervex-envs-{self.groups[g].start}-{self.groups[g].stop - 1}'
        process = context.Process(target=worker_main, args=args, daemon=True, name=name)
        with _starting():
            process.start()
            self.workers[g] = _Worker(process, pipe, wake)
        child_pipe.close()
        wake_child.close()
        self._by_sentinel[process.sentinel] = g
        self._poll.register(process.sentinel, select.POLLIN)
        self.control.asleep[g] = 0 if self.spin else 1
        with contextlib.suppress(OSError):  # it has ended already, which ``wait`` finds
            self._control_block.send(pipe, process.pid)
        self.ask(g, 'make', ())

    def share(self, layout: Any, reward_size: int, action_rows: ActionRows) -> BlockStore:
        """Make the memory that steps write to."""
        by_pipe = not self._cfg['shared_memory'] or any(leaf.is_object for leaf in tree.leaves(layout))
        self._plan = Plan(layout, self._env_num, reward_size, action_rows.act_space, by_pipe)
        self._block, (self._store, self._rows, self._actions) = SharedBlock.holding(self._plan.open)
        self.step_all = self._lockstep()
        return self._store

    def attach(self, g: int) -> None:
        """Have a group write to that memory from now on."""
        if g not in self._everybody:
            self._host.attach(self._store, 0, self._rows)
            return
        self._send(g, self._plan)  # it looks there at its next command
        with contextlib.suppress(OSError):
            self._block.send(self.workers[g].pipe, self.workers[g].process.pid)

    # ------------------------------------------------------------------ jobs
    def _lockstep(self) -> Any:
        """``step_all`` as a closure: looking things up would be a good part of its few microseconds (hybrid rows)."""
        control, everybody, workers = self.control, self._everybody, self.workers
        spin, memory = self.spin, self._actions
        kinds, slots, asked, done = control.kind, control.slot, control.asked, control.done
        asleep, news, waits, host = control.asleep, control.news, control.main_waits, self._host
        block, looks = self._rows.block, FIRST_LOOKS if spin else ()
        own = 0 if host is None else len(self.groups[0])

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
                events = host.step(slot, rows_of(actions, slice(0, own)))
            for g in everybody:
                number = asked[g]
                for _ in looks:
                    if done[g] == number:
                        break
                else:
                    if spin and all(done[h] == asked[h] or spin_while(done, h, asked[h] - 1) for h in everybody):
                        break
                    for _ in range(2):  # the first time may be cut short by what was told before
                        if asked != done:
                            self._sleep(NAP_S)
                    if asked != done:
                        self._told += [(0, events)] if own else []
                        self._open.update(everybody)
                        return PENDING
                    waits[0] = 0 if spin else 1
                    break
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
            self._told.append((g, self._host.step(slot, actions, ids)))
            return
        chosen, group = list(ids), self.groups[g]
        if self._actions is not None:
            self._actions[chosen] = actions
        self.control.chosen[group.start : group.stop] = 0
        self.control.chosen[chosen] = 1
        self._command(g, STEP_ALL if len(chosen) == len(group) else STEP_SOME, slot)
        if self._actions is None:
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
        control.kind[g], control.slot[g] = kind, slot
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
            self._sleep(timeout)
            found = self._arrived()
        if self.spin and not self._open:
            self.control.main_waits[0] = 0
        return found

    def _sleep(self, timeout: float) -> None:
        control = self.control
        if not control.main_waits[0]:
            control.main_core[0], control.main_waits[0] = core(), 1
            timeout = min(timeout, RECHECK_S)  # the flag may be seen too late: look again soon
        for fd, _ in self._poll.poll(timeout * 1000):
            if fd == self._ready_fd:
                os.read(fd, 65536)
            elif fd in self._by_sentinel:
                self._poll.unregister(fd)
                self._ended.add(self._by_sentinel[fd])

    def _arrived(self) -> list[tuple[int, Any]]:
        found, self._told = self._told, []
        for g in list(self._open):
            if self.control.done[g] == self.control.asked[g]:
                found.append((g, self._answer(g)))
            elif g in self._ended:
                found.append((g, self._died(g)))
        self._open.difference_update(g for g, _ in found)
        return found

    def _answer(self, g: int) -> Any:
        """What a job that is done has to say beside numbers."""
        control, answer = self.control, None
        if control.mail[g]:
            control.mail[g] = 0
            pipe = self.workers[g].pipe
            try:
                if not pipe.poll(ANSWER_S):
                    self._kill(g)
                    return WorkerLost('timeout', f'{self.whose(g)}: answering took longer than {ANSWER_S:g} s')
                answer, objects = pipe.recv()
            except (EOFError, OSError):
                return self._died(g)
            for i, final, observation in objects or ():
                copy_row(self._store.final_rows[i] if final else self._store.rows[control.slot[g]][i], observation)
        elif control.kind[g] != ASK and control.news[g]:
            answer = Events()
            answer.finished = [i for i in self.groups[g] if self._store.done[i]]
        return answer

    def resets(self, g: int) -> bool:
        """Whether a group is beginning an episode within a step."""
        return self.control.resetting[g] != 0

    def unanswered(self) -> list[int]:
        """After Ctrl-C: the groups that still have to answer."""
        control = self.control
        found = [g for g in self._everybody if control.asked[g] != control.done[g] or control.mail[g]]
        self._open.update(found)
        return found

    # ------------------------------------------------------------------ ending
    def _died(self, g: int) -> WorkerLost:
        """Clear away a process that has ended by itself; tells how."""
        process, ended = self.workers[g].process, self._well_ended(g)
        process.join(1)
        code = process.exitcode
        self._kill(g)
        how = f'was ended by signal {-code}' if code is not None and code < 0 else f'ended with exit code {code}'
        return WorkerLost('crash', f'the subprocess of {self.whose(g)} {how}', ended)

    def give_up(self, g: int, what: str) -> WorkerLost:
        """End a group whose job takes too long."""
        text, ended = f'{"a reset" if what == "begin" else "a step"} took too long', self._well_ended(g)
        if what == 'start':
            text = f'making the envs took longer than {self._cfg["connect_timeout"]:g} s'
        self._kill(g)
        return WorkerLost('timeout', f'{self.whose(g)}: {text}; the subprocess was ended', ended)

    def _well_ended(self, g: int) -> int | None:
        """The env whose next episode was about to begin in the step in which the process was lost."""
        control = self.control
        if control.kind[g] == ASK or self._plan.by_pipe or not control.resetting[g]:
            return None
        i = self.groups[g].start + control.resetting[g] - 1
        return i if self._store.done[i] else None

    def _kill(self, g: int) -> None:
        """End a process and all that its envs have started, and free what belongs to it."""
        worker = self.workers.pop(g, None)
        if worker is None:
            return
        with contextlib.suppress(KeyError):
            self._poll.unregister(worker.process.sentinel)
        self._by_sentinel.pop(worker.process.sentinel, None)
        self._ended.discard(g)
        self._open.discard(g)
        _end(worker.process)
        worker.pipe.close()
        worker.wake.close()
        worker.process.join()
        worker.process.close()
        control = self.control
        control.asked[g] = control.done[g]
        control.resetting[g] = control.mail[g] = control.news[g] = 0

    def close(self) -> list[EnvFault]:
        """End all groups and free everything; tells what the envs' ``close`` raised."""
        faults: list[EnvFault] = [] if self._host is None else self._host.close()
        idle = [g for g in self.workers if g not in self._open]
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
        self._control_block.close()
        if self._block is not None:
            self._block.close()
        self.control = self._control_block = None  # an error that somebody keeps may hold this object
        self._block = self._store = self._actions = self._host = self.step_all = None
        return faults


def _wake(worker: _Worker) -> None:
    """Wake a process that sleeps; one that has died is found by ``wait``."""
    with contextlib.suppress(BrokenPipeError):
        os.write(worker.wake_fd, b'\0')


def _joined(answers: list[Events | None]) -> Events:
    """The events of several groups as one."""
    joined = Events()
    for events in answers:
        if events is not None:
            joined.finished += events.finished
            joined.infos.update(events.infos)
            joined.faults += events.faults
    return joined


def _end(process: Any) -> None:
    end_group(process.pid)
    process.kill()


def _end_all(workers: dict[int, _Worker]) -> None:
    for worker in workers.values():
        _end(worker.process)


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
