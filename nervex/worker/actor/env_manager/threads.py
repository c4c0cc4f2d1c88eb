"""Envs in threads of this process: what a backend has to do, and nothing more."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from nervex.envs.hosting.actions import ActionRows, rows_of
from nervex.envs.hosting.block import BlockStore, copy_row
from nervex.envs.hosting.messages import EnvFault, HostSetup
from nervex.utils.errors import EnvError
from nervex.worker.actor.env_manager.backend import Backend, WorkerLost

CLOSE_S = 5.0  # for threads that still step


class Threads(Backend):
    """
    Overview:
        Each group is a thread, which takes its jobs from an inbox and puts (group, inbox, answer) into the common
        ``_done``. A thread writes into memory of its own, and this one copies it when the job is done; so a thread that
        was given up (threads cannot be ended) never writes where its successor does, and what it still says is known
        by its inbox.

        For envs that wait most of the time, such as clients of a game server; a step that computes in Python holds up
        all the others.
    """

    def __init__(self, env_num: int, cfg: dict, together: bool) -> None:
        super().__init__(env_num, cfg, together)
        size = max(1, int(cfg['envs_per_worker']))
        self.groups = [range(a, min(a + size, env_num)) for a in range(0, env_num, size)]
        self._hosts: dict[int, Any] = {}
        self._inboxes: dict[int, queue.SimpleQueue] = {}
        self._done: queue.SimpleQueue = queue.SimpleQueue()
        self._busy: set[int] = set()
        self._threads: dict[int, threading.Thread] = {}
        self._given_up: list[threading.Thread] = []

    def launch(self, g: int, setup: HostSetup) -> None:
        """Job: make the envs of a group."""
        host = setup.host()
        inbox: queue.SimpleQueue = queue.SimpleQueue()
        self._hosts[g], self._inboxes[g] = host, inbox
        self._busy.add(g)
        args = (g, host, inbox, self._done)
        self._threads[g] = threading.Thread(target=_live, args=args, daemon=True, name=f'nervex-envs-{setup.first_id}')
        self._threads[g].start()

    def share(self, layout: Any, reward_size: int, action_rows: ActionRows) -> BlockStore:
        """Make the memory that steps write to."""
        self._store, self._rows = BlockStore(layout, self.groups[-1].stop, reward_size), action_rows
        return self._store

    def attach(self, g: int) -> None:
        """Have a group write to that memory from now on."""
        host = self._hosts[g]
        host.attach(BlockStore(self._store.layout, host.num, self._store.reward_size), 0, self._rows)

    def step(self, g: int, slot: int, ids: Sequence[int], actions: Any) -> None:
        """Job: step these envs of a group."""
        host = self._hosts[g]
        own = rows_of(actions, list(range(len(ids))))  # who gave them may write there again before the thread looks
        self._give(g, host.step, (slot, own, [i - host.first_id for i in ids]), (slot, ids))

    def ask(self, g: int, name: str, args: tuple) -> None:
        """Job: an attribute or a method of the envs of a group."""
        written = (args[0], args[1]) if name == 'begin' else None
        self._give(g, self._hosts[g].obey, (name, args), written)

    def _give(self, g: int, function: Callable, args: tuple, written: tuple | None) -> None:
        """``written`` are the slot and the envs whose rows the job writes."""
        self._busy.add(g)
        self._inboxes[g].put((function, args, written))

    def wait(self, timeout: float) -> list[tuple[int, Any]]:
        """The jobs that have ended, with their answers."""
        answers = []
        try:
            item = self._done.get(timeout=timeout)
            while True:
                g, inbox, answer, written = item
                if self._inboxes.get(g) is inbox:
                    if isinstance(answer, EnvFault) and not self._hosts[g].store:  # its envs could not be made
                        del self._inboxes[g]
                    if written is not None:
                        self._publish(self._hosts[g], *written)
                    self._busy.discard(g)
                    answers.append((g, answer))
                item = self._done.get_nowait()
        except queue.Empty:
            return answers

    def _publish(self, host: Any, slot: int, ids: Sequence[int]) -> None:
        """Copy what the job of a thread has written to where all can see it."""
        own, shown = host.store, self._store
        for i in ids:
            k = i - host.first_id
            copy_row(shown.rows[slot][i], own.rows[slot][k])
            copy_row(shown.final_rows[i], own.final_rows[k])
            shown.reward[slot][i] = own.reward[slot][k]
            for name in ('done', 'truncated', 'episode_return', 'episode_length'):
                getattr(shown, name)[i] = getattr(own, name)[k]

    def give_up(self, g: int, what: str) -> WorkerLost:
        """End a group whose job takes too long."""
        self._inboxes.pop(g).put(None)
        self._given_up = [thread for thread in (*self._given_up, self._threads.pop(g)) if thread.is_alive()]
        if len(self._given_up) > len(self.groups):
            raise EnvError(
                f'{len(self._given_up)} threads of envs hang and cannot be ended, more than there are in use; the last '
                f'one: {self.whose(g)}. Envs that hang so often need processes: env_manager_type async_subprocess'
            )
        text = 'making the envs' if what == 'start' else 'a reset' if what in ('begin', 'reset') else 'a step'
        return WorkerLost(
            'timeout',
            f'{self.whose(g)}: {text} took too long; the thread was given up: it goes on until the env returns',
        )

    def close(self) -> list[EnvFault]:
        """End all groups and free everything; tells what the envs' ``close`` raised."""
        faults: list[EnvFault] = []
        idle = set(self._inboxes) - self._busy
        for inbox in self._inboxes.values():
            inbox.put(None)
        end = time.monotonic() + CLOSE_S
        while idle and time.monotonic() < end:
            with contextlib.suppress(queue.Empty):
                g, inbox, answer, _ = self._done.get(timeout=CLOSE_S)
                if self._inboxes.get(g) is inbox and g in idle:
                    idle.discard(g)
                    faults += answer
        self._inboxes = {}
        return faults


def _live(g: int, host: Any, inbox: queue.SimpleQueue, done: queue.SimpleQueue) -> None:
    """The life of a thread: make the envs, then work until there is a None in the inbox."""
    made = host.make()
    done.put((g, inbox, made, None))
    if isinstance(made, EnvFault):
        inbox.put(None)
    while (job := inbox.get()) is not None:
        function, args, written = job
        try:
            answer = function(*args)
        except (Exception, SystemExit) as error:
            answer = host.fault(0, 'call', error)
        done.put((g, inbox, answer, written))
    done.put((g, inbox, host.close(), None))  # if nobody waits for that, the inbox is not known any more
