"""Inputs of the data benchmarks, the cases made of a buffer's functions, and two simple buffers to compare with."""

import random
import re
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from clock import Clock

Rows = dict[str, np.ndarray]
CAPACITY = {'cart': 100_000, 'atari': 10_000}
SHAPE = {'cart': ((4,), np.float32), 'atari': ((4, 84, 84), np.uint8)}
JOBS = ('add1', 'add8', 's32', 's256', 'per_add1', 'per_add8', 'per_s32u', 'per_s256u')
CASES = [f'{size}_{job}' for size in CAPACITY for job in JOBS]
ALPHA, BETA = 0.6, 0.4


def rows(size: str, n: int) -> Rows:
    """``n`` transitions. Images are stacks that move on by one frame, as in Atari."""
    shape, dtype = SHAPE[size]
    rng = np.random.default_rng(0)
    if size == 'atari':
        frames = rng.integers(0, 256, (n + 4, 84, 84), dtype=np.uint8)
        stacks = np.stack([frames[k : k + n + 1] for k in range(4)], 1)
        obs, next_obs = stacks[:-1], stacks[1:]
    else:
        obs, next_obs = (rng.normal(size=(n, *shape)).astype(dtype) for _ in range(2))
    return {
        'obs': obs,
        'action': rng.integers(0, 2, n),
        'reward': rng.normal(size=n).astype(np.float32),
        'next_obs': next_obs,
        'done': rng.random(n) < 0.01,
    }


class Adapter:
    """A buffer of one library. ``fill`` gets blocks of rows until it is full; what is None cannot be done."""

    def __init__(self, size: str, prioritized: bool) -> None:
        raise NotImplementedError

    def fill(self, block: Rows) -> None:
        raise NotImplementedError

    def adder(self, block: Rows) -> Callable[[], Any]:
        """What adds this block (of 1 or 8 rows) when it is called."""
        raise NotImplementedError

    def sampler(self, n: int) -> Callable[[], Any]:
        """What takes a sample of ``n`` when it is called, and updates its priorities if the buffer has them."""
        raise NotImplementedError


def cases(adapter: type[Adapter], jobs: tuple[str, ...] = JOBS, sizes: tuple[str, ...] = ('cart', 'atari')) -> dict:
    """The cases that a buffer can do; a case counts transitions."""
    return {f'{size}_{job}': _case(adapter, size, job) for size in sizes for job in jobs}


UNIFORM = JOBS[:4]


def _case(adapter: type[Adapter], size: str, job: str) -> Callable[[Clock], int]:
    def case(clock: Clock) -> int:
        buffer = adapter(size, job.startswith('per_'))
        block = rows(size, 500)
        for _ in range(CAPACITY[size] // 500):
            buffer.fill(block)
        n = int(re.search(r'\d+', job).group())
        timed = buffer.adder(rows(size, n)) if 'add' in job else buffer.sampler(n)
        for _ in range(3):  # compiles what is compiled, makes the memory that is used again
            timed()
        return n * clock.repeat(timed)

    return case


class ArrayFloor(Adapter):
    """The least that NumPy arrays take: assignment and ``take`` without any care."""

    def __init__(self, size: str, prioritized: bool) -> None:
        self.capacity, self.at = CAPACITY[size], 0
        self.arrays = {k: np.zeros((self.capacity, *v.shape[1:]), v.dtype) for k, v in rows(size, 1).items()}
        self.rng = np.random.default_rng(0)

    def fill(self, block: Rows) -> None:
        self.adder(block)()

    def adder(self, block: Rows) -> Callable[[], Any]:
        n, single = len(block['done']), {k: v[0] for k, v in block.items()}

        def one() -> None:
            for name, array in self.arrays.items():
                array[self.at] = single[name]
            self.at = (self.at + 1) % self.capacity

        def many() -> None:
            place = slice(self.at, self.at + n)
            for name, array in self.arrays.items():
                array[place] = block[name]
            self.at = (self.at + n) % self.capacity

        return one if n == 1 else many

    def sampler(self, n: int) -> Callable[[], Any]:
        def sample() -> Rows:
            index = self.rng.integers(0, self.capacity, n)
            return {name: array.take(index, 0) for name, array in self.arrays.items()}

        return sample


class ListOfDicts(Adapter):
    """What is written first, and what DI-engine's deque buffer does: keep references, stack when sampled."""

    def __init__(self, size: str, prioritized: bool) -> None:
        self.rows, self.random = deque(maxlen=CAPACITY[size]), random.Random(0)

    @staticmethod
    def _row(block: Rows, k: int) -> dict[str, torch.Tensor]:
        return {name: torch.from_numpy(np.array(column[k])) for name, column in block.items()}

    def fill(self, block: Rows) -> None:
        self.rows.extend(self._row(block, k) for k in range(len(block['done'])))

    def adder(self, block: Rows) -> Callable[[], Any]:
        return lambda: self.fill(block)

    def sampler(self, n: int) -> Callable[[], Any]:
        self.rows = list(self.rows)  # a deque is slow to index: an unfair handicap

        def sample() -> dict[str, torch.Tensor]:
            found = self.random.choices(self.rows, k=n)
            return {name: torch.stack([row[name] for row in found]) for name in found[0]}

        return sample


def array_floor() -> dict:
    return cases(ArrayFloor, UNIFORM)


def list_of_dicts() -> dict:
    return cases(ListOfDicts, UNIFORM)
