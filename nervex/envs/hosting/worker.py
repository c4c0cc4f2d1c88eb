"""What runs in an env subprocess: a host, driven through shared memory and two pipes."""

import contextlib
import os
import random
import signal
import sys
import threading
from collections.abc import Sequence
from multiprocessing import connection as mp_connection
from multiprocessing import parent_process
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from nervex.envs.hosting.messages import Events, HostSetup
from nervex.envs.hosting.shared import ASK, STEP_ALL, Control, Plan, SharedBlock
from nervex.envs.hosting.waiting import Apart, Sleeper, keeps_order, spin_while

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
GRACE_S = 10.0  # between SIGTERM and the end of a worker


def worker_main(setup: HostSetup, control: tuple, pipe: Any, wake: Any, ready: Any, foreign_fds: list[int]) -> None:
    """The life of a subprocess: obey until the other end of the pipe is closed."""
    os.setpgrp()  # a process group of its own, which ends with it: nothing that an env starts is left behind. (Not
    # a session: Linux shares the processor between sessions, which makes waiting for a worker many times slower.)
    for fd in foreign_fds:  # inherited by fork from the main process: ends of other workers' pipes
        os.close(fd)
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)  # the main process decides
    signal.signal(signal.SIGTERM, _leave_later)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)  # the main process has held them back till here
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    if 'torch' in sys.modules:  # a fork of a process that has used threads must not use them
        sys.modules['torch'].set_num_threads(1)
    _seed_globals(setup)
    host = setup.host()
    try:
        with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
            Worker(host, pipe, wake.fileno(), ready.fileno(), *control).obey_commands()
        host.close()  # the main process is gone, or does not want this worker any more
    finally:
        end_group(os.getpid())


class Worker:
    """
    Overview:
        The loop of a subprocess.
    Arguments:
        - pipe (:obj:`Connection`): for what does not fit into the shared memory, and the memory itself
        - wake_fd, ready_fd (:obj:`int`): a byte here wakes this process; a byte there tells that something is done
        - workers, envs, g (:obj:`int`): how many there are, and which of the groups of envs this one has
        - spin, together (:obj:`bool`): wait awake for a moment; the last worker to be ready tells, and no other
    """

    def __init__(
        self,
        host: Any,
        pipe: Any,
        wake_fd: int,
        ready_fd: int,
        workers: int,
        envs: int,
        g: int,
        spin: bool,
        together: bool,
    ) -> None:
        self.host, self._g, self._pipe, self._wake_fd, self._ready_fd = host, g, pipe, wake_fd, ready_fd
        self._control = Control(workers, envs, SharedBlock.receive(pipe).memory)
        host.resetting = self._control.resetting[g : g + 1]
        self._spin, self._together = spin, together and keeps_order()

    def obey_commands(self) -> None:
        """Obey until the pipe is closed."""
        control, g, spin, together = self._control, self._g, self._spin, self._together
        asked, done, waits = control.asked, control.done, control.main_waits
        kinds, slots, mails, token = control.kind, control.slot, control.mail, g.to_bytes(2, 'little')
        sleeper = Sleeper(control.asleep, g, self._wake_fd, always=not spin)
        number, apart, fence = done[g], Apart(), threading.Lock()

        def arrived() -> bool:
            return asked[g] != number

        while True:
            if not (spin and spin_while(asked, g, number)):
                if spin:
                    apart.check(control.main_core[0])
                if not sleeper.until(arrived):
                    return
            number = asked[g]
            mail = self._ask() if kinds[g] == ASK else self._step(slots[g], kinds[g] == STEP_ALL)
            mails[g] = mail is not None
            if not spin:
                control.asleep[g] = 1  # before 'done', so that the next command certainly comes with a byte
            done[g] = number
            if together:  # the last one tells; of two that end at the same moment each must see the other: taking and
                with fence:  # leaving a lock lets what follows read only after what precedes was stored for all
                    pass
            if waits[0] and (not together or asked == done):
                os.write(self._ready_fd, token)
            if mail is not None:
                self._pipe.send_bytes(mail)

    def _ask(self) -> bytes:
        """A job by name; its answer travels by pipe."""
        message = self._pipe.recv()
        if isinstance(message, Plan):  # there is memory to write to from now on
            self._attach(message)
            message = self._pipe.recv()
        name, args = message
        try:
            answer = self.host.obey(name, args)
            return _dump((answer, self._observations(args[0], args[1], None) if name == 'begin' else None))
        except (Exception, SystemExit) as error:  # also: what an env says of itself cannot be pickled
            return _dump((self.host.fault(0, 'build' if name == 'make' else name, error), None))

    def _attach(self, plan: Plan) -> None:
        store, rows, actions = plan.open(SharedBlock.receive(self._pipe).memory)
        low, high = self.host.first_id, self.host.first_id + self.host.num
        self.host.attach(store, low, rows)
        self._by_pipe = plan.by_pipe
        self._actions = None if actions is None else actions[low:high]
        self._chosen = self._control.chosen[low:high]

    def _step(self, slot: int, everyone: bool) -> bytes | None:
        """A step; what does not fit into the shared memory is answered."""
        actions = self._actions if self._actions is not None else self._pipe.recv()
        which = None
        if not everyone:
            which = np.flatnonzero(self._chosen).tolist()
            if self._actions is not None:
                actions = actions[which]
        events = self.host.step(slot, actions, which)
        self._control.news[self._g] = events is not None or self._by_pipe
        if not self._by_pipe and (events is None or not (events.infos or events.faults)):
            return None  # that an episode ended is in the shared memory
        ids = [self.host.first_id + k for k in (self.host.everyone if which is None else which)]
        return _dump((events, self._observations(slot, ids, events)))

    def _observations(self, slot: int, ids: Sequence[int], events: Events | None) -> list | None:
        """(env id, is it the final one, observation) if these are not in shared memory."""
        if not self._by_pipe:
            return None
        host = self.host
        rows = [(i, False, host.rows[slot][i - host.first_id]) for i in ids]
        rows += [(i, True, host.final_rows[i - host.first_id]) for i in (events.finished if events else ())]
        return rows


def _dump(answer: Any) -> bytes:
    """Pickled; Connection.send would do the same, but not ahead of the moment of sending."""
    return bytes(ForkingPickler.dumps(answer))


def end_group(leader: int) -> None:
    """Kill a worker's process group: what its envs have started ends with it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _leave_later(number: int, frame: Any) -> None:
    """SIGTERM often reaches the whole group: the main process then has a moment to save the envs."""
    leaving = threading.Timer(GRACE_S, end_group, (os.getpid(),))
    leaving.daemon = True
    leaving.start()


def _leave_with_parent() -> None:
    """End this process when its parent has died, even if an env hangs in a step."""
    parent, ppid = parent_process(), os.getppid()
    while parent is not None:
        gone = mp_connection.wait([parent.sentinel], 0.5)
        if gone or (os.getppid() != ppid):
            end_group(os.getpid())


def _seed_globals(setup: HostSetup) -> None:
    """Forked workers would all draw the same from the global generators."""
    seeds = [s[0] for s in setup.seeds if s is not None]
    entropy = [abs(seeds[0]), setup.first_id] if seeds else None
    seed = int(np.random.SeedSequence(entropy).generate_state(1)[0])
    np.random.seed(seed)
    random.seed(seed)
