"""Backend: where envs live and step. A new one is one file: a subclass, and a manager class that names it."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from nervex.envs.hosting.actions import ActionRows
from nervex.envs.hosting.block import BlockStore
from nervex.envs.hosting.messages import EnvFault, HostSetup
from nervex.envs.hosting.one_env import make_env
from nervex.utils.errors import NervexError


class WorkerLost(NervexError):
    """
    Overview:
        A group of envs was lost: its process or thread has ended, or was ended because it took too long.
    Arguments:
        - kind (:obj:`str`): what the fault is called: crash, timeout, ...
        - ended (:obj:`int | None`): the env whose step was good and that was lost while it began its next episode
        - one_fault (:obj:`bool`): it is one fault, not one of each env
    """

    def __init__(self, kind: str, text: str, ended: int | None = None, one_fault: bool = False) -> None:
        super().__init__(text)
        self.kind, self.ended, self.one_fault = kind, ended, one_fault


PENDING: Any = object()  # the answer of ``step_all`` if it is not over yet


class Backend:
    """
    Overview:
        The manager knows states, seeds, retries and blocks; a backend makes envs, has them work and notices when they
        are lost. Envs come in *groups* (a process, a thread, or the calling thread), and a group has one job at a time.
        A job is given by ``launch``, ``step`` or ``ask``, which do not wait; ``wait`` tells which jobs have ended, and
        with what answer. Usually a group is an ``EnvHost``, which does all that is asked (``setup.host()``, ``make``,
        ``attach``, ``step``, ``obey``), and the backend only carries calls to where the host lives: see ``threads.py``.

        A kind of manager is then two lines, which a config may name::

            @ENV_MANAGER_REGISTRY.register('mine')
            class MyEnvManager(EnvManager):
                backend = MyBackend
    Arguments:
        - env_num (:obj:`int`): number of envs
        - cfg (:obj:`dict`): the manager's complete settings
        - together (:obj:`bool`): all envs usually step at the same time
    Attributes:
        - groups (:obj:`list[range]`): the env ids of each group
        - partial_steps (:obj:`bool`): whether some of the ready envs may be stepped without the others
        - interrupts (:obj:`bool`): whether an env that hangs is ended, so that timeouts hold
        - apart (:obj:`bool`): each group has a process of its own
        - step_all (:obj:`Callable | None`): (slot, actions, ids) -> events: a faster step of all envs (without
          ``partial_steps``: of those that are ready), with the actions as they come; None if nothing happened, PENDING
          if ``wait`` will answer for each group; set by ``attach``
    """

    partial_steps = True
    interrupts = True
    apart = False
    step_all: Callable[[int, Any, Any], Any] | None = None

    def __init__(self, env_num: int, cfg: dict, together: bool) -> None:
        self.groups: list[range] = [range(env_num)]

    def launch(self, g: int, setup: HostSetup) -> None:
        """Job: make the envs of group g, also again after it was lost. Its answer is that of ``EnvHost.make``."""
        raise NotImplementedError

    def share(self, layout: Any, reward_size: int, action_rows: ActionRows) -> BlockStore:
        """Make the memory that steps write to; called once, when all envs are made."""
        raise NotImplementedError

    def attach(self, g: int) -> None:
        """Have group g, whose envs are made, write to that memory from now on."""
        raise NotImplementedError

    def step(self, g: int, slot: int, ids: Sequence[int], actions: Any) -> None:
        """Job: step these envs of group g (ascending) with a row of actions each. It answers ``EnvHost.step``'s."""
        raise NotImplementedError

    def ask(self, g: int, name: str, args: tuple) -> None:
        """Job: ``EnvHost.obey(name, args)``, whose answer it has; an EnvFault if that raised."""
        raise NotImplementedError

    def wait(self, timeout: float) -> list[tuple[int, Any]]:
        """(group, answer) of the jobs that have ended, within so many seconds; WorkerLost if the group is lost."""
        raise NotImplementedError

    def give_up(self, g: int, what: str) -> WorkerLost:
        """End a group whose job takes too long (``what`` names the job); ``launch`` replaces it."""
        raise NotImplementedError

    def resets(self, g: int) -> bool:
        """Whether the group is beginning an episode within a step, so that the reset's time limit counts."""
        return False

    def unanswered(self) -> list[int]:
        """After Ctrl-C in ``step_all``: the groups that still have to answer."""
        return []

    def close(self) -> list[EnvFault]:
        """End all groups and free everything; tells what the envs' ``close`` raised."""
        raise NotImplementedError

    @staticmethod
    def info(env_fn: Callable[[dict], Any], cfgs: Sequence[dict]) -> Any:
        """The envs' description before they are launched: one is made and closed to ask it."""
        env = make_env(env_fn, cfgs[0])
        try:
            return env.info()
        finally:
            env.close()

    def whose(self, g: int) -> str:
        """The envs of a group, for messages."""
        ids = self.groups[g]
        return f'env {ids.start}' if len(ids) == 1 else f'envs {ids.start} to {ids.stop - 1} (they share one)'


class InProcess(Backend):
    """
    Overview:
        All envs in the calling thread, one after the other: a job is done when it is given. It cannot interrupt an env
        that hangs.
    """

    interrupts = False
    host: Any = None
    store: Any = None

    def __init__(self, env_num: int, cfg: dict, together: bool) -> None:
        super().__init__(env_num, cfg, together)
        self.answers: list[tuple[int, Any]] = []  # that ``wait`` has not handed out

    def launch(self, g: int, setup: HostSetup) -> None:
        """Job: make the envs of a group."""
        self.host = setup.host()
        self.answers.append((g, self.host.make()))

    def share(self, layout: Any, reward_size: int, action_rows: ActionRows) -> BlockStore:
        """Make the memory that steps write to."""
        self.store, self.rows = BlockStore(layout, self.groups[-1].stop, reward_size), action_rows
        return self.store

    def attach(self, g: int) -> None:
        """Have a group write to that memory from now on."""
        self.host.attach(self.store, self.host.first_id, self.rows)
        self.step_all = self.host.step_all

    def step(self, g: int, slot: int, ids: Sequence[int], actions: Any) -> None:
        """Job: step these envs of a group."""
        self.answers.append((g, self.host.step(slot, actions, ids)))

    def ask(self, g: int, name: str, args: tuple) -> None:
        """Job: an attribute or a method of the envs of a group."""
        self.answers.append((g, self.host.obey(name, args)))

    def wait(self, timeout: float) -> list[tuple[int, Any]]:
        """The jobs that have ended, with their answers."""
        if not self.answers:
            time.sleep(timeout)  # somebody is to be tried again later
        answers, self.answers = self.answers, []
        return answers

    def close(self) -> list[EnvFault]:
        """End all groups and free everything; tells what the envs' ``close`` raised."""
        host, self.host, self.store, self.step_all = self.host, None, None, None
        return [] if host is None else host.close()
