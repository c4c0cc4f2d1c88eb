"""Which slots of a ring follow each other: the steps before and after a step in the same episode of the same env."""

from __future__ import annotations

from typing import Any

import numpy as np


class Timeline:
    """
    Overview:
        Links the slots of a ring into trajectories. As long as one env writes, a step follows the slot before it and
        only the beginnings are noted; with the first ``env_id`` every slot gets links of its own. Episodes end with
        ``done``, with ``cut()``, or where their older part was overwritten.
    Attributes:
        - count (:obj:`int`): steps that were ever written; step k is in slot k modulo capacity. As long as one env
          writes, a caller may just raise it, and ``settle`` before anything else is asked
    Interfaces:
        add, settle, cut, previous, next, stack, order
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.count = self._known = 0  # steps written, and how many of them have been looked at
        self.linked = False  # whether several envs write
        self._begins = np.zeros(capacity, dtype=bool)  # one env: this step does not follow the slot before it
        self._open = False  # one env: the last step has not ended its episode
        self._before = self._after = np.zeros(0, dtype=np.int64)  # several envs: neighbours, the own slot if none
        self._last: dict[Any, int] = {}  # several envs: number of an env's last step, if it is not done

    @property
    def head(self) -> int:
        """The slot of the next step."""
        return self.count % self.capacity

    @property
    def size(self) -> int:
        """Slots in use."""
        return min(self.count, self.capacity)

    def add(self, done: np.ndarray, env_id: np.ndarray | None = None) -> np.ndarray:
        """Steps that were written in this order, from ``head`` on; gives their slots. No ``env_id``: all of env 0."""
        n, done, start = len(done), np.asarray(done, dtype=bool), self.head
        if env_id is None and not self.linked and 0 < n <= self.capacity - start:  # the usual case, in few steps
            self._begins[start] = not self._open
            self._begins[start + 1 : start + n] = done[:-1]
            self._open = not done[-1]
            self.count = self._known = self.count + n
            return np.arange(start, start + n)
        slots = (np.arange(n) + start) % self.capacity
        if env_id is not None and not self.linked:
            self._use_links()
        if self.linked:
            envs = [0] * n if env_id is None else np.asarray(env_id).tolist()
            for slot, env, end in zip(slots.tolist(), envs, done.tolist()):
                self._link(slot, env, end)
        elif n:
            self._begins[slots] = np.concatenate([[not self._open], done[:-1]])
            self._open = not done[-1]
        if not self.linked:
            self.count += n
        self._known = self.count
        return slots

    def settle(self, done: np.ndarray) -> None:
        """
        Overview:
            Look at the steps of the only env by which ``count`` was raised.
        Arguments:
            - done (:obj:`np.ndarray`): the whole column, all slots
        """
        waiting = self.count - self._known
        if waiting:
            n = min(waiting, self.capacity)
            slots = np.arange(self.count - n, self.count) % self.capacity
            ends = done[slots].astype(bool).reshape(n, -1).any(axis=1)
            self._begins[slots] = np.concatenate([[waiting > n or not self._open], ends[:-1]])
            self._open, self._known = not ends[-1], self.count

    def _use_links(self) -> None:
        slots = np.arange(self.capacity)
        used = slots < self.size
        before, after = np.where(used, self.previous(slots), slots), np.where(used, self.next(slots), slots)
        self._before, self._after, self.linked = before, after, True
        self._last = {0: self.count - 1} if self._open else {}

    def _link(self, slot: int, env: Any, done: bool) -> None:
        before, after = self._before, self._after
        later = int(after[slot])
        before[later] = later  # what lay here is overwritten: its successor becomes a beginning
        number = self._last.get(env, -1)
        earlier = number % self.capacity if number > self.count - self.capacity and number >= 0 else slot
        before[slot], after[earlier], after[slot] = earlier, slot, slot
        if done:
            self._last.pop(env, None)
        else:
            self._last[env] = self.count
        self.count += 1

    def isolate(self, slot: int) -> None:
        """Make the oldest step (in ``head``) a trajectory of its own."""
        after = (slot + 1) % self.capacity
        if self.linked:
            after = int(self._after[slot])
            self._before[after], self._before[slot], self._after[slot] = after, slot, slot
        else:
            self._begins[slot] = self._begins[after] = True

    def cut(self) -> None:
        """What comes next does not follow what was there."""
        self._open, self._last = False, {}

    def previous(self, slots: np.ndarray) -> np.ndarray:
        """The slot of the step before; a first step is its own."""
        if self.linked:
            return self._before[slots]
        first = 0 if self.size < self.capacity else self.head
        return np.where(self._begins[slots] | (slots == first), slots, (slots - 1) % self.capacity)

    def next(self, slots: np.ndarray) -> np.ndarray:
        """The slot of the step after; a last step is its own."""
        if self.linked:
            return self._after[slots]
        after = (slots + 1) % self.capacity
        return np.where(self._begins[after] | (after == self.head), slots, after)

    def stack(self, slots: np.ndarray, length: int) -> np.ndarray:
        """Slots of the last ``length`` steps up to each slot, oldest first; the first step is repeated. (*, length)."""
        steps = [slots]
        for _ in range(length - 1):
            steps.append(self.previous(steps[-1]))
        return np.stack(steps[::-1], axis=-1)

    def order(self) -> np.ndarray:
        """All used slots in the order in which they were written."""
        start = 0 if self.size < self.capacity else self.head
        return (np.arange(self.size) + start) % self.capacity

    def labels(self) -> np.ndarray:
        """A number per step, in the order in which they were written, that tells the trajectories apart."""
        order = self.order()
        label = np.full(self.capacity, -1, dtype=np.int64)
        count = 0
        for slot, earlier in zip(order.tolist(), self.previous(order).tolist()):
            if earlier == slot:
                label[slot], count = count, count + 1
            else:
                label[slot] = label[earlier]
        return label[order]

    def grow(self, capacity: int) -> None:
        """More slots, for a timeline that has not gone round (its oldest step lies in slot 0)."""
        new = np.arange(self.capacity, capacity)
        self._begins = np.concatenate([self._begins, np.zeros(len(new), dtype=bool)])
        if self.linked:
            self._before, self._after = np.concatenate([self._before, new]), np.concatenate([self._after, new])
        self.capacity = capacity
