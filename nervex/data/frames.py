"""FrameStore: rows whose observations are stacks of images; every image is kept once."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from nervex.data.columns import ColumnStore
from nervex.data.memory import Recycler, check_memory

STACKED = ('obs', 'next_obs')
_REMEMBERED = 8192  # recent frames that a new one is compared with


class FrameStore(ColumnStore):
    """
    Overview:
        A ColumnStore whose columns ``obs`` and ``next_obs`` are stacks of frames, e.g. four images of 84x84. A frame
        that was seen lately is not stored again: rows keep the numbers of their frames, and stacks are put together
        when they are sampled. Frames are recognised by their content (checksum, then comparison), so that samples
        are the same as those of plain storage whatever the envs, episode ends or n-step windows do; only memory
        depends on it. Frames lie in a ring of their own; should it overflow (very short episodes), the rows of the
        overwritten frames are reported as expired.
    Arguments:
        - frame_axis (:obj:`int`): axis of the stack in one observation: 0 for (4, 84, 84), -1 or 2 for (84, 84, 4)
    """

    def __init__(self, capacity: int, name: str = 'buffer', *, frame_axis: int) -> None:
        super().__init__(capacity, name)
        self._axis = frame_axis
        slack = capacity // 20 + 256
        self._limit = capacity + slack  # frames that are kept
        self._recent = min(slack - 64, _REMEMBERED)  # older frames are stored again: their slot is needed soon
        self._frames: np.ndarray | None = None  # (limit, *frame)
        self._stack_shape: tuple = ()
        self._made = 0  # frames ever stored; frame k lies at k % limit
        self._seen: list[dict[int, int]] = [{}, {}]  # checksum -> frame number, two generations
        self._lowest = np.zeros(0, dtype=np.int64)  # smallest frame number of each row
        self._bound = 0  # no row needs an earlier frame
        self._torch_stacks: set[str] = set()  # columns that were pushed as tensors
        self._stack_recycler = Recycler()

    reusable = False  # stacks are put together in recycled memory anyway
    expires = True

    @property
    def nbytes(self) -> int:
        """Bytes reserved."""
        frames = self._frames.nbytes if self._frames is not None else 0
        return super().nbytes + frames + self._lowest.nbytes

    @property
    def frame_bytes(self) -> int:
        """Bytes of the frames that are stored."""
        return min(self._made, self._limit) * (self._frames[0].nbytes if self._frames is not None else 0)

    def plan(self, columns: Mapping) -> int:
        """Bytes that rows like these will need; BufferMemoryError if they cannot be had."""
        stacks = {name: self._frames_of(name, columns[name]) for name in self._stacked(columns)}
        frames = next(iter(stacks.values()))
        numbers = {name: np.zeros(part.shape[:2], dtype=np.int64) for name, part in stacks.items()}
        needed = check_memory(self.name, self._limit, {'frames': frames[0][:1]})
        return needed + super().plan({**columns, **numbers})

    def _stacked(self, columns: Mapping) -> list[str]:
        names = [name for name in STACKED if name in columns]
        if not names:
            raise KeyError(f"{self.name}: frame_axis is set, but the rows have no column 'obs'")
        return names

    def _frames_of(self, name: str, column: Any) -> np.ndarray:
        """Stacks as (n, k, *frame)."""
        if isinstance(column, torch.Tensor):
            column = column.detach().cpu().numpy()
        if not isinstance(column, np.ndarray) or column.ndim < 3:
            raise ValueError(f"{self.name}: frame_axis is set, but column '{name}' is not a stack of images")
        axis = self._axis + 1 if self._axis >= 0 else column.ndim + self._axis
        return np.ascontiguousarray(np.moveaxis(column, axis, 1))

    def write(self, columns: dict, start: int) -> int:
        """Store rows at the slots ``start, start + 1, ...``, wrapping at the end; gives their number."""
        stored = dict(columns)
        lowest = None
        for name in self._stacked(columns):
            if isinstance(columns[name], torch.Tensor):
                self._torch_stacks.add(name)
            numbers = self._numbers_of(name, self._frames_of(name, columns[name]))
            stored[name] = numbers
            low = numbers.min(axis=1)
            lowest = low if lowest is None else np.minimum(lowest, low)
        n = super().write(stored, start)
        if not len(self._lowest):
            self._lowest = np.zeros(self.capacity, dtype=np.int64)
        self._lowest[(np.arange(n) + start) % self.capacity] = lowest
        return n

    def _numbers_of(self, name: str, frames: np.ndarray) -> np.ndarray:
        """The frame numbers (n, k) of stacks of k frames, storing those that are new."""
        if self._frames is None:
            self._reserve(frames)
        if frames.shape[1:] != self._stack_shape or frames.dtype != self._frames.dtype:
            raise ValueError(
                f"{self.name}: column '{name}' has stacks of shape {frames.shape[1:]} and dtype "
                f'{frames.dtype}, expected {self._stack_shape} and {self._frames.dtype}'
            )
        flat = frames.reshape(-1, *frames.shape[2:])
        numbers = np.empty(len(flat), dtype=np.int64)
        doubtful = []
        for k, frame in enumerate(flat):
            key = zlib.crc32(frame)
            number = self._find(key)
            if number is None:
                numbers[k] = self._store_frame(frame, key)
            else:
                numbers[k] = number
                doubtful.append(k)
        if doubtful:  # equal checksums need not mean equal frames
            same = self._frames[numbers[doubtful] % self._limit] == flat[doubtful]
            same = same.reshape(len(doubtful), -1).all(axis=1)
            for k in np.array(doubtful)[~same].tolist():
                numbers[k] = self._store_frame(flat[k], zlib.crc32(flat[k]))
        return numbers.reshape(frames.shape[:2])

    def _reserve(self, frames: np.ndarray) -> None:
        check_memory(self.name, self._limit, {'frames': frames[0][:1]})
        self._stack_shape = frames.shape[1:]
        self._frames = np.zeros((self._limit, *frames.shape[2:]), dtype=frames.dtype)

    def _find(self, key: int) -> int | None:
        number = self._seen[0].get(key)
        if number is None:
            number = self._seen[1].get(key)
        return number if number is not None and number >= self._made - self._recent else None

    def _store_frame(self, frame: np.ndarray, key: int) -> int:
        number = self._made
        self._frames[number % self._limit] = frame
        self._made += 1
        if len(self._seen[0]) >= _REMEMBERED:
            self._seen = [{}, self._seen[0]]
        self._seen[0][key] = number
        return number

    def expired(self, size: int) -> np.ndarray | None:
        """Slots below ``size`` whose frames were overwritten."""
        first = self._made - self._limit  # frames before this one are gone
        if first <= self._bound:
            return None
        lowest = self._lowest[:size]
        gone = np.flatnonzero(lowest < first)
        self._bound = int(lowest[lowest >= first].min(initial=self._made))
        return gone if len(gone) else None

    def forget(self) -> None:
        """The owner has emptied itself; frames that come again are still recognised."""
        self._bound = self._made

    def _stacks(self, numbers: np.ndarray) -> np.ndarray:
        """Stacks for frame numbers (n, k), in the layout in which they were pushed."""
        n, k = numbers.shape
        out = self._stack_recycler.empty((n * k, *self._frames.shape[1:]), self._frames.dtype)
        self._frames.take((numbers % self._limit).reshape(-1), 0, out, 'clip')
        stacks = out.reshape(n, k, *self._frames.shape[1:])
        axis = self._axis + 1 if self._axis >= 0 else stacks.ndim + self._axis
        return np.moveaxis(stacks, 1, axis)

    def gather(self, slots: np.ndarray) -> dict:
        """The rows at ``slots`` (trusted) in fresh memory, as a dict of columns."""
        columns = super().gather(slots)
        for name in STACKED:
            if name in columns:
                stacks = self._stacks(columns[name])
                columns[name] = torch.from_numpy(stacks) if name in self._torch_stacks else stacks
        return columns

    def state_dict(self, rows: Any) -> dict[str, Any]:
        """Columns with frame numbers, and the frames."""
        frames = None if self._frames is None else torch.from_numpy(self._frames[: min(self._made, self._limit)].copy())
        return {
            **super().state_dict(rows),
            'frames': frames,
            'made': self._made,
            'bound': self._bound,
            'stack_shape': list(self._stack_shape),
            'torch_stacks': sorted(self._torch_stacks),
            'lowest': torch.from_numpy(self._lowest.copy()),
        }

    def load_state_dict(self, state: dict[str, Any], rows: Any) -> None:
        """Put back what ``state_dict`` gave. Frames from before are not recognised any more: only memory is lost."""
        super().load_state_dict(state, rows)
        self._made, self._bound, self._seen = state['made'], state['bound'], [{}, {}]
        self._stack_shape, self._torch_stacks = tuple(state['stack_shape']), set(state['torch_stacks'])
        self._lowest = state['lowest'].numpy().copy()
        self._frames = None
        if state['frames'] is not None:
            frames = state['frames'].numpy()
            self._frames = np.zeros((self._limit, *frames.shape[1:]), dtype=frames.dtype)
            self._frames[: len(frames)] = frames
