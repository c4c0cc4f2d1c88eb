"""What runs in an env subprocess: a host, driven through shared memory and two pipes."""

import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing import connection as mp_connection
from multiprocessing import parent_process
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from nervex.envs.hosting.actions import ActionRows
from nervex.envs.hosting.host import EnvFault, EnvHost
from nervex.envs.hosting.layout import ObjectCell, tree_leaves
from nervex.envs.hosting.shared import ASK, STEP_ALL, Control, SharedBlock
from nervex.envs.hosting.store import BlockStore
from nervex.envs.hosting.waiting import Apart, Sleeper, keeps_order, make_fence, spin_while

STOPS = (signal.SIGINT, signal.SIGTERM)
GRACE_S = 10.0  # between SIGTERM and the end of a worker


class WorkerSetup:
    """
    Overview:
        What a worker is told at its start. ``payload`` is pickled by cloudpickle, so that functions made on the spot
        reach a spawned process too.
    """

    def __init__(self, index: int, first_id: int, env_fn: Any, cfgs: list[dict], options: dict) -> None:
        self.index, self.first_id, self.env_fn, self.cfgs, self.options = index, first_id, env_fn, cfgs, options

    def __getstate__(self) -> bytes:
        import cloudpickle

        return cloudpickle.dumps(self.__dict__)

    def __setstate__(self, state: bytes) -> None:
        import pickle

        self.__dict__.update(pickle.loads(state))


def worker_main(setup: WorkerSetup, pipe: Any, wake: Any, ready: Any, foreign_fds: list[int]) -> None:
    """The life of a subprocess: build the envs, then obey until the other end of the pipe is closed."""
    for fd in foreign_fds:  # inherited by fork from the main process: ends of other workers' pipes
        os.close(fd)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the main process decides
    signal.signal(signal.SIGTERM, _leave_later)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)  # the main process has held them back till here
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    if 'torch' in sys.modules:  # a fork of a process that has used threads must not use them
        sys.modules['torch'].set_num_threads(1)
    _seed_globals(setup)
    worker = Worker(setup, pipe, wake.fileno(), ready.fileno())
    try:
        if worker.build():
            worker.run()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        worker.host.close()  # the main process is gone, or does not want this worker any more
    except KeyboardInterrupt:
        os._exit(1)


class Worker:
    """The loop of a subprocess. Interfaces: build, run."""

    _publish: Callable[[], None] | None = None  # called when a command is done, before that is told; see ThreadWorker

    def __init__(self, setup: WorkerSetup, pipe: Any, wake_fd: int, ready_fd: int) -> None:
        self._pipe, self._wake_fd, self._ready_fd, self._w = pipe, wake_fd, ready_fd, setup.index
        options = setup.options
        self.host = EnvHost(setup.env_fn, setup.cfgs, setup.first_id, options['auto_reset'], options['episode_num'])
        self._spin, self._together, self._describe = options['spin'], options['together'], options['describe']
        self._token = setup.index.to_bytes(2, 'little')
        for k, (seed, kwargs) in enumerate(zip(options['seeds'], options['reset_kwargs'])):
            self.host.reset_kwargs[k] = kwargs
            self.host.episodes[k] = options['episodes'][k]
            if seed is not None:
                self.host.seed(k, *seed)
                self.host.renewed[k] = options['renewed'][k]

    @staticmethod
    def dump(answer: Any) -> Any:
        """Pickled; Connection.send would do the same, but not ahead of the moment of sending."""
        return bytes(ForkingPickler.dumps(answer))

    def build(self) -> bool:
        """Make the envs, tell what they look like, and map the shared memory. False if an env cannot be made."""
        phase, k, answer = 'build', 0, None
        try:
            for k in range(self.host.num):
                self.host.build(k)
            if self._describe:
                phase, k = 'reset', 0
                answer = self.host.first_observation()
            data = self.dump(answer)
        except Exception as error:
            self._pipe.send_bytes(self.dump(self.host.fault(k, phase, error)))
            return False
        self._pipe.send_bytes(data)
        self._map(self._pipe.recv())
        return True

    def _map(self, plan: dict) -> None:
        """Attach the host to the shared memory."""
        block = SharedBlock.receive(self._pipe)
        memory = memoryview(block.buffer)[plan['control_bytes'] :]
        store = BlockStore(plan['layout'], plan['envs'], plan['reward_size'], memory, plan['private'])
        control = Control(plan['workers'], plan['envs'], plan['action'], block.buffer)
        self._attach(plan, control, store, self.host.first_id)

    def _attach(self, plan: dict, control: Control, store: BlockStore, row: int) -> None:
        self._plan, self._control, self._row = plan, control, row
        self._news, self._by_pipe = control.news, plan['by_pipe']
        self.host.attach(store, row)
        self.host.resetting = control.resetting[self._w : self._w + 1]
        self._low, high = self.host.first_id, self.host.first_id + self.host.num
        self._actions = None if control.actions is None else control.actions[self._low : high]
        self._chosen = control.chosen[self._low : high]
        self._split = ActionRows(plan['act_space']).split

    def run(self) -> None:
        """Obey commands until the pipe is closed."""
        control, w = self._control, self._w
        asked, done, waits = control.asked, control.done, control.main_waits
        kinds, slots, mails, spin = control.kind, control.slot, control.mail, self._spin
        obey, publish, together = self._obey, self._publish, self._together and keeps_order()
        sleeper = Sleeper(control.asleep, w, self._wake_fd, always=not spin)
        number, apart, fence = done[w], Apart(), make_fence()

        def arrived() -> bool:
            return asked[w] != number

        while True:
            if not (spin and spin_while(asked, w, number)):
                if spin:
                    apart.check(control.main_core[0])
                if not sleeper.until(arrived):
                    return
            number = asked[w]
            mail = obey(kinds[w], slots[w])
            if publish is not None:
                publish()
            mails[w] = mail is not None
            if not spin:
                control.asleep[w] = 1  # before 'done', so that the next command certainly comes with a byte
            done[w] = number
            if together:  # the last one tells; of two that end at the same moment each must see the other
                fence()
            if waits[0] and (not together or asked == done):
                self._tell()
            if mail is not None:
                self._pipe.send_bytes(mail)

    def _tell(self) -> None:
        """Wake the main process."""
        os.write(self._ready_fd, self._token)

    def _obey(self, kind: int, slot: int) -> bytes | None:
        """Run one command; what does not fit into the shared memory is answered, pickled."""
        if kind == ASK:
            name, args = self._pipe.recv()
            try:
                answer = getattr(self, '_ask_' + name)(*args)
            except Exception as error:
                answer = self.host.fault(0, name, error)
            return self.dump(answer)
        actions = self._actions if self._actions is not None else self._pipe.recv()
        rows = self._split(actions, self.host.action_form)
        which = None
        if kind != STEP_ALL:
            which = np.flatnonzero(self._chosen).tolist()
            if self._actions is not None:
                rows = [rows[k] for k in which]
        events = self.host.step(slot, rows, which)
        self._news[self._w] = events is not None or self._by_pipe
        if events is None and not self._by_pipe:
            return None
        objects = self._objects(slot, range(self.host.num) if which is None else which, events)
        if events is not None and not events.infos and not events.faults and objects is None:
            return None
        infos = {} if events is None else {self._low + k: info for k, info in events.infos.items()}
        return self.dump((infos, [] if events is None else events.faults, objects))

    def _ask_begin(self, slot: int, which: list[int], renew: bool, kwargs: dict[int, dict], fresh: bool) -> tuple:
        """Begin episodes; answers the faults and the object leaves of the first observations."""
        faults = []
        for k in which:
            if k in kwargs:
                self.host.reset_kwargs[k] = kwargs[k]
            if fresh:
                self.host.episodes[k] = 0
            try:
                if renew:
                    self.host.renew(k)
                self.host.reset(k, slot)
            except Exception as error:
                faults.append(self.host.fault(k, 'reset', error))
        bad = {fault.env_id - self._low for fault in faults}
        return faults, self._objects(slot, [k for k in which if k not in bad], None)

    def _ask_seed(self, which: list[int], seeds: list[int], dynamic: bool | None) -> None:
        for k, seed in zip(which, seeds):
            self.host.seed(k, seed, dynamic)

    def _ask_call(self, name: str, calls: list | None, which: list[int]) -> list:
        return [self.host.ask(k, name, None if calls is None else calls[n]) for n, k in enumerate(which)]

    def _ask_close(self) -> list[EnvFault]:
        return self.host.close()

    def _objects(self, slot: int, which: Any, events: Any) -> list | None:
        """(env id, is it the final observation, values) of the leaves that are not in shared memory."""
        if not self._by_pipe:
            return None
        rows = [(k, False, self.host.rows[slot][k]) for k in which]
        if events is not None:
            rows += [(k, True, self.host.final_rows[k]) for k in events.finished]
        private = self._plan['private']
        return [
            (
                self._low + k,
                final,
                [
                    leaf.get() if isinstance(leaf, ObjectCell) else leaf.copy()
                    for leaf in tree_leaves(row)
                    if private or isinstance(leaf, ObjectCell)
                ],
            )
            for k, final, row in rows
        ]


def _leave_later(number: int, frame: Any) -> None:
    """SIGTERM often reaches the whole group: the main process then has a moment to save the envs."""
    leaving = threading.Timer(GRACE_S, os._exit, (128 + number,))
    leaving.daemon = True
    leaving.start()


def _leave_with_parent() -> None:
    """End this process when its parent has died, even if an env hangs in a step."""
    parent, ppid = parent_process(), os.getppid()
    while parent is not None:
        gone = mp_connection.wait([parent.sentinel], 0.5)
        if gone or (os.getppid() != ppid):
            os._exit(1)


def _seed_globals(setup: WorkerSetup) -> None:
    """Forked workers would all draw the same from the global generators."""
    seeds = [s[0] for s in setup.options['seeds'] if s is not None]
    entropy = [abs(seeds[0]), setup.first_id] if seeds else None
    seed = int(np.random.SeedSequence(entropy).generate_state(1)[0])
    np.random.seed(seed)
    random.seed(seed)
