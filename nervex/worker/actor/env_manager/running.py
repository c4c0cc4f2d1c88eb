"""Running: N envs between launch and close: who waits for an action, how a step is made, and its block."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from nervex.envs.hosting.actions import ActionRows, rows_of
from nervex.envs.hosting.block import SLOTS, layout_from, reward_size
from nervex.envs.hosting.messages import EnvFault, Events
from nervex.utils import tree
from nervex.worker.actor.env_manager.backend import PENDING
from nervex.worker.actor.env_manager.groups import Groups
from nervex.worker.actor.env_manager.step_block import EnvState, EnvStateError, StepBlock, by_row, check_id

NOTHING = Events()  # of a step in which nothing happened


class Running:
    """
    Overview:
        The launched envs of a manager. Where steps wait for all (``together``), each writes the next slot of the
        memory, and what a step leaves out is carried along: all observations lie in one slot, and are answered without
        a copy. Else everything lies in one slot and is copied. A step of all that are ready, with nothing else under
        way, goes straight to the backend; everything else is made of the jobs of groups.
    Arguments:
        - groups (:obj:`Groups`): the envs, not made yet
        - wait (:obj:`tuple | None`): answer as soon as so many envs have, or after so many seconds if one has; None: a
          step waits for all envs that were asked
    Interfaces:
        launch, observe, advance, reset, present_obs, at_rest, put_back, close
    """

    _step_all: Any = None
    store: Any = None  # the BlockStore, once the envs are described

    def __init__(self, groups: Groups, wait: tuple[int, float] | None) -> None:
        self.groups, self.backend, self.faults, self._wait = groups, groups.backend, groups.faults, wait
        self._env_num = n = len(groups.states)
        self.all_ids, self._everyone = np.arange(n, dtype=np.int64), list(range(n))
        self._whole = False  # a step of all envs that wait may go straight to the backend
        self._interrupted = False  # Ctrl-C came in the middle of a step
        self._observed: tuple[np.ndarray, Any] | None = None  # the answer of observe(), until it changes
        self._views: list[tuple[np.ndarray, Any]] = []
        self._plain_blocks: list[StepBlock] = []  # of steps in which nothing happens

    def launch(self) -> None:
        """Make the envs and begin their first episodes."""
        self.info, obs = self.groups.make()
        self.action_rows, self.reward_size = ActionRows(getattr(self.info, 'act_space', None)), reward_size(self.info)
        self.store = store = self.backend.share(layout_from(self.info, obs), self.reward_size, self.action_rows)
        n, self._views = self._env_num, [(self.all_ids, obs) for obs in store.obs]
        sums = np.zeros(n), np.zeros(n, np.int64)
        columns = [(store.obs[s], store.reward[s], np.zeros(n, bool), np.zeros(n, bool)) for s in range(SLOTS)]
        self._plain_blocks = [StepBlock(self.all_ids, *parts, *sums, whole=True) for parts in columns]
        self.groups.use()
        self._step_all = self.backend.step_all if self._wait is None else None
        self._look()

    def close(self) -> list[EnvFault]:
        """End the envs; tells what their ``close`` raised."""
        faults = self.backend.close()
        self.store = self._step_all = self._observed = None  # they hold the memory
        self._views, self._plain_blocks = [], []
        return faults

    # ------------------------------------------------------------------ steps
    def observe(self) -> tuple[np.ndarray, Any]:
        """(ids in ascending order, block) of the envs that wait for an action. Do not write to it."""
        if self._observed is None:
            groups = self.groups
            while groups.beginning and not np.count_nonzero(groups.ready):
                groups.progress()
            ids = groups.ready.nonzero()[0]
            if len(ids) == self._env_num and self._wait is None:
                self._observed = self._views[groups.slot]
            else:
                self._observed = ids, self.store.take(groups.slot, ids)
        return self._observed

    def advance(self, ids: np.ndarray, actions: Any) -> StepBlock:
        """Step the envs ``ids`` with one row of ``actions`` each."""
        observed = self._observed
        if not self._whole or observed is None or (ids is not observed[0] and not np.array_equal(ids, observed[0])):
            return self._advance_some(ids, actions)
        if len(actions) != len(ids) and type(actions) is not dict:
            self._refuse_number(len(ids), actions)
        groups = self.groups
        before = groups.slot
        groups.slot = slot = before + 1 if before + 1 < SLOTS else 0
        self._whole, self._interrupted = False, True
        try:
            events = self._step_all(slot, actions, ids)
        except (ValueError, TypeError):  # actions that do not fit: nobody has stepped
            self._whole, self._interrupted, groups.slot = True, False, before
            raise
        if events is None and not self.faults.suspects:
            self._whole, self._interrupted, self._observed = True, False, self._views[slot]
            return self._plain_blocks[slot]
        if events is PENDING:
            groups.watch(range(len(self.backend.groups)))
        elif events is None or not events.faults:
            self._interrupted, events = False, events or NOTHING
            groups.now_waiting(events)
            stepped = self._everyone if events.stepped is None else events.stepped
            return self._block(stepped, events.finished, events.infos, ())
        else:
            groups.take(self._everyone, events)
        return self._settled(self._everyone)

    def _advance_some(self, ids: Iterable[int], actions: Any) -> StepBlock:
        """A step of some of the envs, or while something is under way."""
        if self._interrupted:
            raise EnvStateError('the last step was interrupted half-way; call reset() to begin anew')
        groups, which = self.groups, np.asarray(ids).tolist()
        if not which or self._observed is None or which != self._observed[0].tolist():
            which = [check_id(i, self._env_num) for i in ids]
            busy = self._wait is not None and (groups.results or groups.stepping or groups.beginning)
            if len(set(which)) < len(which) or not groups.ready[which].all() or not (which or busy):
                self._refuse(which)
        actions = self.action_rows.block(actions)
        if type(actions) is not dict and len(actions) != len(which):
            self._refuse_number(len(which), actions)
        if not self.backend.partial_steps and (missing := self._others(which)):
            raise EnvStateError(f'a vectorised env steps all ready envs together; no action for {missing}')
        if groups.abnormal:  # what is done about their loss comes first; their actions were not for these episodes
            kept = [k for k, i in enumerate(which) if i not in groups.abnormal]
            which, actions = [which[k] for k in kept], rows_of(actions, kept)
        self._observed, self._interrupted = None, self._wait is None
        if self._wait is None:
            self._next_slot(which)
        if which or not (self.backend.partial_steps or groups.abnormal):
            groups.step(which, actions)
        if self._wait is None:
            return self._settled(which)
        if self.backend.partial_steps:
            self._wait_for_some(bool(which), *self._wait)
        else:  # the backend has waited
            groups.settle()
        return self._deliver(None)

    def _others(self, ids: list[int]) -> list[int]:
        """The envs that wait for an action, but for these."""
        return sorted(set(self.groups.ready.nonzero()[0].tolist()).difference(ids))

    def _next_slot(self, ids: list[int]) -> None:
        """These envs write the next slot from now on; the observations of the others are carried along."""
        before, self._whole = self.groups.slot, False
        self.groups.slot = slot = (before + 1) % SLOTS
        self.store.carry(self._others(ids), before, slot)

    def _wait_for_some(self, gave: bool, wanted: int, seconds: float) -> None:
        groups = self.groups
        if not (gave or groups.results or groups.stepping or groups.abnormal):
            groups.progress()  # none of the ready envs is wanted: one more may get ready
        wanted = min(wanted, len(groups.stepping) + len(groups.results))
        end = time.monotonic() + seconds
        while not self._enough(wanted, end):
            groups.progress(end if groups.results or groups.abnormal else None)

    def _enough(self, wanted: int, end: float) -> bool:
        """Enough results, or some and the time is over; and will there be an env to go on with?"""
        groups = self.groups
        if not groups.stepping:
            return True
        have = len(groups.results) + len(groups.abnormal)
        if have < wanted and not (have and time.monotonic() >= end):
            return False
        return groups.goes_on

    def _settled(self, order: list[int] | None) -> StepBlock:
        self.groups.settle()
        self._interrupted = False
        return self._deliver(order)

    def _deliver(self, order: list[int] | None) -> StepBlock:
        """The block of all results so far, in this order."""
        groups = self.groups
        results, ended, abnormal = groups.results, sorted(groups.ended), tuple(sorted(groups.abnormal))
        if order is not None and results != order:
            stepped = set(results)
            results = [i for i in order if i in stepped]
        infos = groups.infos
        groups.results, groups.ended, groups.abnormal, groups.infos = [], set(), set(), {}
        groups.ready[results] = True
        return self._block(results, ended, infos, abnormal)

    def _block(self, results: list[int], ended: list[int], infos: Any, abnormal: tuple[int, ...]) -> StepBlock:
        """The block of these results, and what follows from them."""
        store, groups, n = self.store, self.groups, len(results)
        slot, together = groups.slot, self._wait is None
        whole = results is self._everyone or results == self._everyone
        ids = self.all_ids if whole else np.array(results, np.int64)
        rows = ended if whole else [results.index(i) for i in ended]
        done, truncated = np.zeros(n, bool), np.zeros(n, bool)
        for k, i in zip(rows, ended):
            done[k], truncated[k] = True, store.truncated[i]
        if whole and together:
            obs = store.take(slot, None, [(i, i) for i in ended]) if ended else store.obs[slot]
            reward = store.reward[slot].copy() if groups.beginning else store.reward[slot]
            returns, lengths = store.episode_return.copy(), store.episode_length.copy()
        else:
            obs, reward = store.take(slot, ids, list(zip(rows, ended))), store.reward[slot][ids]
            returns, lengths = store.episode_return[ids], store.episode_length[ids]
        if (infos and not whole) or callable(infos):
            infos = by_row(results, infos)
        block = StepBlock(ids, obs, reward, done, truncated, returns, lengths, infos or None, abnormal, whole)
        if self.faults.suspects:
            self.faults.good_steps(results, ended)
        go_on = whole and together and not groups.beginning and not abnormal
        for i in ended:
            go_on = groups.close_episode(i) and go_on
        if go_on:  # as usual: nobody has ended, or who has is in the next episode
            self._whole, self._observed = self._step_all is not None, self._views[slot]
            return block
        if together or not self.backend.partial_steps:
            while groups.beginning and not np.count_nonzero(groups.ready):
                groups.progress()
        self._look()
        return block

    def _look(self) -> None:
        """See whether the next step may be one of all that are ready."""
        groups, self._observed = self.groups, None
        ready = np.count_nonzero(groups.ready)
        whole = ready == self._env_num or (ready and not self.backend.partial_steps)
        self._whole = bool(whole and self._step_all is not None and not groups.abnormal)

    # ------------------------------------------------------------------ between steps
    def reset(self, ids: list[int]) -> None:
        """Let everything that is under way come to its end, drop it, and begin these envs anew together."""
        groups = self.groups
        if not self.backend.partial_steps and (len(ids) < self._env_num or any(groups.setup.reset_kwargs)):
            raise EnvStateError('a vectorised env resets all envs together, without parameters')
        if self._interrupted:
            groups.resume()
        groups.settle()
        if self._interrupted:
            groups.ready[groups.results] = True
            groups.results, self._interrupted = [], False
        if self._wait is None:
            self._next_slot(ids)
        groups.restart(ids)
        self._look()

    def ask(self, name: str, ids: list[int], args: Callable[[list[int]], tuple], needed: bool = True) -> list[Any]:
        """The answers of the hosts of these envs to a job, see Groups; groups may be lost over it."""
        try:
            return self.groups.ask(name, ids, args, needed)
        finally:
            self._look()

    def seed(self, seeds: dict[int, int], dynamic_seed: bool | None) -> None:
        """Seed envs; who is lost over this gets the seed when it is replaced."""
        for i in seeds:
            self.groups.setup.renewed[i] = 0
        self.ask('seed', sorted(seeds), lambda ids: (ids, [seeds[i] for i in ids], dynamic_seed), needed=False)

    def present_obs(self, ids: Sequence[int]) -> Any:
        """The observations of these envs, stacked; waits while their episodes begin."""
        while not self.groups.ready[ids].all():
            self.groups.progress()
            self._observed = None
        return self.store.take(self.groups.slot, np.array(ids))

    @property
    def at_rest(self) -> bool:
        """Whether all envs wait for an action in the middle of their episodes, and all is told."""
        running = all(state is EnvState.RUN for state in self.groups.states)
        return bool(running and self.groups.ready.all() and not self.groups.abnormal and self._wait is None)

    def put_back(self, leaves: list[np.ndarray]) -> None:
        """Observations (as bytes) of all envs, which wait for an action."""
        for leaf, saved in zip(tree.leaves(self.store.obs[self.groups.slot]), leaves):
            leaf[...] = saved.view(leaf.dtype).reshape(leaf.shape)
        self._look()

    # ------------------------------------------------------------------ the ids
    @staticmethod
    def _refuse_number(ids: int, actions: Any) -> None:
        raise ValueError(f'advance(): {ids} ids, but {len(actions)} actions; pass one row for each id')

    def _refuse(self, ids: list[int]) -> None:
        """Raise for ids that may not be stepped now, with the reason for each."""
        if len(set(ids)) != len(ids):
            raise EnvStateError(f'an env was given two actions in one step: {ids}')
        ready = np.flatnonzero(self.groups.ready).tolist()
        if not ids:
            raise EnvStateError(f'no env was given an action; ready are {ready}')
        bad = [f'env {i} ({self.groups.states[i].name})' for i in ids if i not in ready]
        raise EnvStateError(f'not ready for an action: {", ".join(bad)}; ready are {ready}')
