"""FrameTable: the images of stacked observations, every one kept once."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from nervex.data.columns import numpy_column
from nervex.data.memory import check_memory, take_rows
from nervex.utils.errors import ConfigError

STACKED = ('obs', 'next_obs')
_REMEMBERED = 8192  # recent frames that a new one is compared with
_TOGETHER = 64  # rows whose obs and next_obs are stored one after the other: what both have is recognised


class FrameTable:
    """
    Overview:
        Rows whose columns ``obs`` and ``next_obs`` are stacks of frames, e.g. four images of 84x84, are stored with the
        numbers of their frames in place of the stacks. A frame that was seen lately is not stored again; stacks are put
        together when they are sampled. Frames are recognised by their content (checksum, then comparison), so that
        samples are the same as those of plain storage whatever the envs, episode ends or n-step windows do; only memory
        depends on it. Frames lie in a ring of their own; should it overflow (very short episodes), the rows of the
        overwritten frames are reported as expired.
    Arguments:
        - capacity (:obj:`int`): number of rows
        - name (:obj:`str`): whose frames they are, for error messages
        - axis (:obj:`int`): of the stack in one observation: 0 for (4, 84, 84), -1 or 2 for (84, 84, 4)
    """

    def __init__(self, capacity: int, name: str, axis: int) -> None:
        self._name, self._axis = name, axis
        slack = min(capacity // 20 + 256, _REMEMBERED + 64)
        self._limit = capacity + slack  # frames that are kept
        self._recent = min(slack - 64, _REMEMBERED)  # older frames are stored again: their slot is needed soon
        self._frames: np.ndarray | None = None  # (limit, *frame)
        self._stack_shape: tuple = ()
        self.made = 0  # frames ever stored; frame k lies at k % limit
        self._seen: list[dict[int, int]] = [{}, {}]  # checksum -> frame number, two generations
        self._bound = 0  # no row needs an earlier frame
        self._torch_stacks: set[str] = set()  # columns that were pushed as tensors
        self._pool: list[np.ndarray] = []  # memory of samples

    def plan(self, columns: Mapping) -> tuple[dict, int]:
        """Columns as ``encode`` would give them, and the bytes for the frames; BufferMemoryError if they do not fit."""
        stacks = self._stacks(columns)
        numbers = {name: np.zeros(part.shape[:2], dtype=np.int32) for name, part in stacks.items()}
        needed = check_memory(self._name, self._limit, {'frames': next(iter(stacks.values()))[0][:1]})
        return {**columns, **numbers}, needed

    def encode(self, columns: Mapping) -> dict:
        """Columns with frame numbers in place of stacks; frames that are new are stored."""
        stacks = self._stacks(columns)
        self._torch_stacks.update(name for name in stacks if isinstance(columns[name], torch.Tensor))
        pieces: dict[str, list[np.ndarray]] = {name: [] for name in stacks}
        for start in range(0, len(next(iter(stacks.values()))), _TOGETHER):
            for name, part in stacks.items():
                pieces[name].append(self._numbers_of(name, part[start : start + _TOGETHER]))
        dtype = np.int32 if self.made < 2**31 else np.int64
        return {**columns, **{name: np.concatenate(parts).astype(dtype) for name, parts in pieces.items()}}

    def _stacks(self, columns: Mapping) -> dict[str, np.ndarray]:
        found = {}
        for name in (name for name in STACKED if name in columns):
            column = numpy_column(columns[name])
            if not isinstance(column, np.ndarray) or column.ndim < 3:
                raise ConfigError(f"{self._name}: frame_axis is set, but column '{name}' is not a stack of images")
            if not -column.ndim < self._axis < column.ndim - 1:
                shape = column.shape[1:]
                raise ValueError(f"{self._name}: frame_axis is {self._axis}, but '{name}' has rows of shape {shape}")
            found[name] = np.ascontiguousarray(np.moveaxis(column, self._stack_axis(column.ndim), 1))
        if not found:
            raise KeyError(f"{self._name}: frame_axis is set, but the rows have no column 'obs'")
        return found

    def _stack_axis(self, ndim: int) -> int:
        return self._axis + 1 if self._axis >= 0 else ndim + self._axis

    def _numbers_of(self, name: str, stacks: np.ndarray) -> np.ndarray:
        """The frame numbers (n, k) of stacks of k frames, storing those that are new."""
        if self._frames is None:
            check_memory(self._name, self._limit, {'frames': stacks[0][:1]})
            self._stack_shape = stacks.shape[1:]
            self._frames = np.zeros((self._limit, *stacks.shape[2:]), dtype=stacks.dtype)
        if stacks.shape[1:] != self._stack_shape or stacks.dtype != self._frames.dtype:
            raise ValueError(
                f"{self._name}: column '{name}' has stacks of shape {stacks.shape[1:]} and dtype "
                f'{stacks.dtype}, expected {self._stack_shape} and {self._frames.dtype}'
            )
        flat = stacks.reshape(-1, *stacks.shape[2:])
        numbers, doubtful = np.empty(len(flat), dtype=np.int64), []
        for k, frame in enumerate(flat):
            key = zlib.crc32(frame)
            number = self._seen[0].get(key, self._seen[1].get(key, -1))
            if number < 0 or number < self.made - self._recent:
                number = self._store(frame, key)
            else:
                doubtful.append(k)
            numbers[k] = number
        if doubtful:  # equal checksums need not mean equal frames
            same = self._frames[numbers[doubtful] % self._limit] == flat[doubtful]
            for k in np.array(doubtful)[~same.reshape(len(doubtful), -1).all(axis=1)].tolist():
                numbers[k] = self._store(flat[k], zlib.crc32(flat[k]))
        return numbers.reshape(stacks.shape[:2])

    def _store(self, frame: np.ndarray, key: int) -> int:
        assert self._frames is not None
        number = self.made
        self._frames[number % self._limit] = frame
        self.made += 1
        if len(self._seen[0]) >= _REMEMBERED:
            self._seen = [{}, self._seen[0]]
        self._seen[0][key] = number
        return number

    def expired(self, columns: Mapping, size: int) -> np.ndarray:
        """Of the first ``size`` rows with these frame numbers, the positions of those whose frames were overwritten."""
        first = self.made - self._limit  # frames before this one are gone
        if first <= self._bound:
            return np.zeros(0, dtype=np.int64)
        lowest = np.min([columns[name][:size].min(axis=1) for name in STACKED if name in columns], axis=0)
        self._bound = int(lowest[lowest >= first].min(initial=self.made))
        return np.flatnonzero(lowest < first)

    def forget(self) -> None:
        """No row is left; frames that come again are still recognised."""
        self._bound = self.made

    def decode(self, columns: dict) -> dict:
        """The columns with stacks in place of frame numbers, in the layout in which they were pushed."""
        assert self._frames is not None
        for name in (name for name in STACKED if name in columns):
            stacks = take_rows(self._frames, columns[name] % self._limit, self._pool)
            stacks = np.moveaxis(stacks, 1, self._stack_axis(stacks.ndim))
            columns[name] = torch.from_numpy(stacks) if name in self._torch_stacks else stacks
        return columns

    def state_dict(self) -> dict[str, Any]:
        """The frames and what is known about them."""
        frames = None if self._frames is None else torch.from_numpy(self._frames[: min(self.made, self._limit)].copy())
        return {
            'frames': frames,
            'made': self.made,
            'bound': self._bound,
            'stack_shape': list(self._stack_shape),
            'torch_stacks': sorted(self._torch_stacks),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave. Frames from before are not recognised any more: only memory is lost."""
        self.made, self._bound, self._seen = state['made'], state['bound'], [{}, {}]
        self._stack_shape, self._torch_stacks = tuple(state['stack_shape']), set(state['torch_stacks'])
        self._frames = None
        if state['frames'] is not None:
            frames = state['frames'].numpy()
            self._frames = np.zeros((self._limit, *frames.shape[1:]), dtype=frames.dtype)
            self._frames[: len(frames)] = frames
