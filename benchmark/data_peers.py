"""The buffers of Stable-Baselines3, Tianshou, cpprb and TorchRL, called as their own algorithms call them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from data_jobs import ALPHA, BETA, CAPACITY, SHAPE, UNIFORM, Adapter, Rows, cases


def sb3() -> dict:
    """Its own vectorised form for 8 rows at a time; time limits are not tracked, which is its faster setting."""
    from gymnasium import spaces
    from stable_baselines3.common.buffers import ReplayBuffer

    class SB3(Adapter):
        def __init__(self, size: str, prioritized: bool) -> None:
            shape, dtype = SHAPE[size]
            space = spaces.Box(0, 255, shape, dtype) if size == 'atari' else spaces.Box(-9, 9, shape, dtype)
            self.make = lambda envs: ReplayBuffer(
                CAPACITY[size], space, spaces.Discrete(2), 'cpu', envs, handle_timeout_termination=False
            )
            self.blocks: list[Rows] = []
            self.buffer = None

        def _filled(self, envs: int) -> Any:
            buffer = self.make(envs)
            for block in self.blocks:
                for k in range(0, len(block['done']) - envs + 1, envs):
                    self._add(buffer, {name: column[k : k + envs] for name, column in block.items()})
            self.blocks = []
            return buffer

        @staticmethod
        def _add(buffer: Any, b: Rows) -> None:
            buffer.add(b['obs'], b['next_obs'], b['action'], b['reward'], b['done'], [{}] * len(b['done']))

        def fill(self, block: Rows) -> None:
            self.blocks.append(block)

        def adder(self, block: Rows) -> Callable[[], Any]:
            n = len(block['done'])
            buffer, infos = self._filled(n), [{} for _ in range(n)]
            obs, next_obs, action, reward, done = (block[k] for k in ('obs', 'next_obs', 'action', 'reward', 'done'))
            return lambda: buffer.add(obs, next_obs, action, reward, done, infos)

        def sampler(self, n: int) -> Callable[[], Any]:
            buffer = self._filled(1)
            return lambda: buffer.sample(n)

    return cases(SB3, UNIFORM)


def tianshou() -> dict:
    from tianshou.data import Batch, PrioritizedVectorReplayBuffer, VectorReplayBuffer

    class Tianshou(Adapter):
        def __init__(self, size: str, prioritized: bool) -> None:
            self.prioritized, self.size = prioritized, size
            self.blocks: list[Rows] = []

        def fill(self, block: Rows) -> None:
            self.blocks.append(block)

        def _filled(self, envs: int) -> Any:
            if self.prioritized:
                buffer = PrioritizedVectorReplayBuffer(CAPACITY[self.size], envs, alpha=ALPHA, beta=BETA)
            else:
                buffer = VectorReplayBuffer(CAPACITY[self.size], envs)
            for block in self.blocks:
                for k in range(0, len(block['done']) - envs + 1, envs):
                    buffer.add(self._batch({name: column[k : k + envs] for name, column in block.items()}))
            self.blocks = []
            return buffer

        @staticmethod
        def _batch(b: Rows) -> Any:
            return Batch(
                obs=b['obs'],
                act=b['action'],
                rew=b['reward'],
                obs_next=b['next_obs'],
                terminated=b['done'],
                truncated=np.zeros_like(b['done']),
                done=b['done'],
                info=Batch(),
            )

        def adder(self, block: Rows) -> Callable[[], Any]:
            buffer, batch = self._filled(len(block['done'])), self._batch(block)
            return lambda: buffer.add(batch)

        def sampler(self, n: int) -> Callable[[], Any]:
            buffer, weight = self._filled(1), np.random.default_rng(0).random(n)
            if not self.prioritized:
                return lambda: buffer.sample(n)

            def sample() -> None:
                _, index = buffer.sample(n)
                buffer.update_weight(index, weight)

            return sample

    return cases(Tianshou)


def cpprb() -> dict:
    from cpprb import PrioritizedReplayBuffer, ReplayBuffer

    class Cpprb(Adapter):
        def __init__(self, size: str, prioritized: bool) -> None:
            shape, dtype = SHAPE[size]
            columns = {
                'obs': {'shape': shape, 'dtype': dtype},
                'next_obs': {'shape': shape, 'dtype': dtype},
                'action': {'dtype': np.int64},
                'reward': {'dtype': np.float32},
                'done': {'dtype': bool},
            }
            self.prioritized = prioritized
            if prioritized:
                self.buffer = PrioritizedReplayBuffer(CAPACITY[size], columns, alpha=ALPHA)
            else:
                self.buffer = ReplayBuffer(CAPACITY[size], columns)

        def fill(self, block: Rows) -> None:
            self.buffer.add(**block)

        def adder(self, block: Rows) -> Callable[[], Any]:
            return lambda: self.buffer.add(**block)

        def sampler(self, n: int) -> Callable[[], Any]:
            buffer, priority = self.buffer, np.random.default_rng(0).random(n)
            if not self.prioritized:
                return lambda: buffer.sample(n)

            def sample() -> None:
                found = buffer.sample(n, BETA)
                buffer.update_priorities(found['indexes'], priority)

            return sample

    return cases(Cpprb)


def torchrl() -> dict:
    """Uniform only: the compiled sum tree of these releases does not load beside this torch."""
    import torch
    from tensordict import TensorDict
    from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer

    class TorchRL(Adapter):
        def __init__(self, size: str, prioritized: bool) -> None:
            self.buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(CAPACITY[size]), batch_size=32)

        @staticmethod
        def _tensors(block: Rows) -> Any:
            return TensorDict({k: torch.from_numpy(np.array(v)) for k, v in block.items()}, [len(block['done'])])

        def fill(self, block: Rows) -> None:
            self.buffer.extend(self._tensors(block))

        def adder(self, block: Rows) -> Callable[[], Any]:
            tensors = self._tensors(block)
            if len(block['done']) == 1:
                return lambda: self.buffer.add(tensors[0])
            return lambda: self.buffer.extend(tensors)

        def sampler(self, n: int) -> Callable[[], Any]:
            return lambda: self.buffer.sample(n)

    return cases(TorchRL, UNIFORM)
