"""The documented form of an env manager: mappings env_id -> row of tensors, made from the block form."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from nervex.envs import BaseEnvTimestep
from nervex.utils import tree

# torch has no arithmetic on these
_WIDER = {np.dtype(np.uint16): np.int32, np.dtype(np.uint32): np.int64, np.dtype(np.uint64): np.int64}


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
        return tree.index(self.obs, self._index[env_id])

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
        return BaseEnvTimestep(tree.index(self.obs, k), self.reward[k], bool(self.done[k]), self.info[k])


def ready_map(manager: Any) -> RowMap:
    """``ready_obs`` of a manager, from its ``observe``."""
    ids, obs = manager.observe()
    return RowMap(ids, as_tensor(obs))


def step_map(manager: Any, actions: Mapping[int, Any] | Any) -> TimestepMap:
    """
    Overview:
        ``step`` of a manager, from its ``advance``. Everything is copied: what a caller keeps never changes under it.
    Arguments:
        - manager (:obj:`Any`): an EnvManager, or what behaves as one
        - actions (:obj:`Mapping | Any`): env_id -> action, or one stacked block for the envs that are ready
    """
    if isinstance(actions, Mapping):
        if not actions:
            raise ValueError('step(): no action given; pass {env_id: action} for ready envs')
        ids, block = manager.checked_ids(actions), manager.action_rows.stack(list(actions.values()))
    else:
        ids, block = manager.observe()[0], actions
        if len(actions) != len(ids):
            raise ValueError(f'step(): {len(ids)} envs are ready, but {len(actions)} actions were given')
    answer = manager.advance(ids, block)
    reward = np.array(answer.reward, np.float32).reshape(len(answer), manager.reward_size)
    columns = {
        'obs': as_tensor(answer.obs),
        'reward': torch.from_numpy(reward),
        'done': torch.from_numpy(answer.done.copy()),
        'truncated': torch.from_numpy(answer.truncated.copy()),
    }
    ids, info = answer.env_id.tolist(), [dict(info) for info in answer.info]
    if len(answer.abnormal):  # the rows of restarted envs: the first observation of the new episode, and why
        again = sorted(int(i) for i in answer.abnormal)
        reasons = {fault.env_id: f'{fault.kind} in {fault.phase}' for fault in manager.faults.recent}
        no = torch.zeros(len(again), dtype=torch.bool)
        first = as_tensor(manager.present_obs(again))
        more = {'obs': first, 'reward': torch.zeros(len(again), manager.reward_size), 'done': no, 'truncated': no}
        columns = tree.cat([columns, more])
        ids, info = ids + again, info + [{'abnormal': True, 'reason': reasons.get(i, 'fault')} for i in again]
    return TimestepMap(ids, info=info, **columns)


def as_tensor(block: Any) -> Any:
    """A copy as torch tensors; object columns stay arrays of objects."""
    return tree.map(_tensor, block)


def _tensor(leaf: np.ndarray) -> Any:
    if leaf.dtype == object:
        return leaf.copy()
    return torch.from_numpy(leaf.astype(_WIDER[leaf.dtype]) if leaf.dtype in _WIDER else leaf.copy())
