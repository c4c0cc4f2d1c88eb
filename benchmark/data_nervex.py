"""nervex's buffers in the data benchmarks."""

from collections.abc import Callable
from typing import Any

import numpy as np
from data_jobs import ALPHA, BETA, CAPACITY, UNIFORM, Adapter, Rows, cases

from nervex.data import Batch, BufferManager, PrioritizedReplayBuffer, ReplayBuffer, sum_tree


class Manager(Adapter):
    """BufferManager, as the training loop uses it: rows and Batches in, batches whose memory is used again out."""

    reuse, frame_axis = True, None

    def __init__(self, size: str, prioritized: bool) -> None:
        self.prioritized = prioritized
        self.buffer = BufferManager(
            {
                'meta_maxlen': CAPACITY[size],
                'use_priority': prioritized,
                'alpha': ALPHA,
                'beta': BETA,
                'anneal_step': 0,
                'frame_axis': self.frame_axis,
                'monitor': {'log_freq': 0},
            },
            seed=0,
        )

    def fill(self, block: Rows) -> None:
        self.buffer.push_data(Batch.of(dict(block)))

    def adder(self, block: Rows) -> Callable[[], Any]:
        push, batch = self.buffer.push_data, Batch.of(dict(block))
        if len(batch) == 1:
            batch = {name: column[0] for name, column in block.items()}
        return lambda: push(batch)

    def sampler(self, n: int) -> Callable[[], Any]:
        buffer, reuse, priority = self.buffer, self.reuse, np.random.default_rng(0).random(n)
        if not self.prioritized:
            return lambda: buffer.sample(n, 0, reuse)

        def sample() -> None:
            batch = buffer.sample(n, 0, reuse)
            buffer.update(
                {
                    'priority': priority,
                    'replay_unique_id': batch['replay_unique_id'],
                    'replay_buffer_idx': batch['replay_buffer_idx'],
                }
            )

        return sample


class Fresh(Manager):
    reuse = False


class Tensors(Manager):
    """What a policy gets: a dict of tensors."""

    def sampler(self, n: int) -> Callable[[], Any]:
        buffer = self.buffer
        return lambda: buffer.sample(n, 0, True).to_torch()


class PlainCalls(Manager):
    """As a hand-written loop calls it: a Batch made of its arrays, a sample with memory of its own as tensors."""

    def adder(self, block: Rows) -> Callable[[], Any]:
        push = self.buffer.push_data
        obs, action, reward, next_obs, done = block.values()
        return lambda: push(Batch(obs=obs, action=action, reward=reward, next_obs=next_obs, done=done))

    def sampler(self, n: int) -> Callable[[], Any]:
        buffer = self.buffer
        return lambda: buffer.sample(n).to_torch()


class FramesOnce(Manager):
    frame_axis = 0


class Steps(Adapter):
    """ReplayBuffer and PrioritizedReplayBuffer."""

    def __init__(self, size: str, prioritized: bool) -> None:
        self.prioritized = prioritized
        self.buffer = (
            PrioritizedReplayBuffer(CAPACITY[size], ALPHA, BETA, seed=0)
            if prioritized
            else ReplayBuffer(CAPACITY[size], seed=0)
        )

    @staticmethod
    def _batch(block: Rows) -> Batch:
        return Batch.of(
            {
                'obs': block['obs'],
                'act': block['action'],
                'rew': block['reward'],
                'done': block['done'],
                'obs_next': block['next_obs'],
            }
        )

    def fill(self, block: Rows) -> None:
        self.buffer.extend(self._batch(block))

    def adder(self, block: Rows) -> Callable[[], Any]:
        add, batch = self.buffer.add, self._batch(block)
        if len(batch) > 1:
            extend = self.buffer.extend
            return lambda: extend(batch)
        obs, act, rew, done, obs_next = (column[0] for column in batch.values())
        return lambda: add(obs, act, rew, done, obs_next)

    def sampler(self, n: int) -> Callable[[], Any]:
        buffer, priority = self.buffer, np.random.default_rng(0).random(n)
        if not self.prioritized:
            return lambda: buffer.sample(n)

        def sample() -> None:
            _, index = buffer.sample(n)
            buffer.update_weight(index, priority)

        return sample


def manager() -> dict:
    return cases(Manager)


def fresh() -> dict:
    return cases(Fresh, ('s32', 's256'))


def tensors() -> dict:
    return cases(Tensors, ('s32', 's256'))


def plain_calls() -> dict:
    return cases(PlainCalls, ('add8', 's32', 's256'))


def frames_once() -> dict:
    return cases(FramesOnce, sizes=('atari',))


def steps() -> dict:
    return cases(Steps)


def plain() -> dict:
    """Without numba: only what has priorities differs."""
    sum_tree.fastest = lambda: sum_tree
    return cases(
        Manager,
        tuple(job for job in UNIFORM + ('per_add1', 'per_add8', 'per_s32u', 'per_s256u') if job.startswith('per_')),
        ('cart',),
    )
