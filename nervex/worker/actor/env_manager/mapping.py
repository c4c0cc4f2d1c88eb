"""The documented form of a manager's answers: a mapping env_id -> row, over one stacked block of torch tensors."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from nervex.envs import BaseEnvTimestep


def as_tensor(block: Any) -> Any:
    """A copy as torch tensors, dicts by leaf; object columns become lists."""
    if isinstance(block, dict):
        return {k: as_tensor(v) for k, v in block.items()}
    if block.dtype == object:
        return list(block)
    if block.dtype in _WIDER:  # torch has no arithmetic on these
        return torch.from_numpy(block.astype(_WIDER[block.dtype]))
    return torch.from_numpy(block.copy())


_WIDER = {np.dtype(np.uint16): np.int32, np.dtype(np.uint32): np.int64, np.dtype(np.uint64): np.int64}


def _row(block: Any, k: int) -> Any:
    return {key: _row(v, k) for key, v in block.items()} if isinstance(block, dict) else block[k]


class RowMap(Mapping):
    """
    Overview:
        env_id -> row, in the order of the block. ``env_id`` is the list of ids, ``obs`` the stacked observations.
    """

    def __init__(self, ids: Any, obs: Any) -> None:
        self.env_id = [int(i) for i in ids]
        self.obs = obs
        self._index = {env_id: k for k, env_id in enumerate(self.env_id)}

    def __getitem__(self, env_id: int) -> Any:
        return _row(self.obs, self._index[env_id])

    def __iter__(self) -> Iterator[int]:
        return iter(self.env_id)

    def __len__(self) -> int:
        return len(self.env_id)

    def __repr__(self) -> str:
        return f'{type(self).__name__}({dict(self)})'


class TimestepMap(RowMap):
    """
    Overview:
        env_id -> BaseEnvTimestep of tensors. The stacked columns: ``obs`` (n, ...), ``reward`` (n, 1), ``done`` (n, ),
        ``truncated`` (n, ), ``info`` a list of n dicts.
    """

    def __init__(
        self, ids: Any, obs: Any, reward: torch.Tensor, done: torch.Tensor, truncated: torch.Tensor, info: list[dict]
    ) -> None:
        super().__init__(ids, obs)
        self.reward, self.done, self.truncated, self.info = reward, done, truncated, info

    def __getitem__(self, env_id: int) -> BaseEnvTimestep:
        k = self._index[env_id]
        return BaseEnvTimestep(_row(self.obs, k), self.reward[k], bool(self.done[k]), self.info[k])
