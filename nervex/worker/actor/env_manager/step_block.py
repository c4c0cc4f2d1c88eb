"""What an env manager answers: a step of n envs as columns; and the documented form, env_id -> row of tensors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import torch

from nervex.envs import BaseEnvTimestep
from nervex.utils import tree
from nervex.utils.errors import NervexError

# torch has no arithmetic on these
_WIDER = {np.dtype(np.uint16): np.int32, np.dtype(np.uint32): np.int64, np.dtype(np.uint64): np.int64}


class EnvState(IntEnum):
    """Where an env stands. VOID: not built; INIT: built; RUN: waits for an action or steps; RESET: begins an episode;
    DONE: has had its episodes; ERROR: has failed for good."""

    VOID = 0
    INIT = 1
    RUN = 2
    RESET = 3
    DONE = 4
    ERROR = 5


class EnvStateError(NervexError, ValueError):
    """A call that the state of the manager or of an env does not allow."""


class _ReadOnlyDict(dict):
    """The empty info that all rows share; writing to it would write to all of them."""

    def _refuse(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError('this info is shared and empty; make a dict of your own')

    __setitem__ = __delitem__ = update = setdefault = pop = popitem = clear = __ior__ = _refuse  # type: ignore

    def __reduce__(self) -> Any:
        return dict, ()


EMPTY_INFO: dict = _ReadOnlyDict()


@dataclass(slots=True, eq=False)
class StepBlock:
    """
    Overview:
        One step of n envs; read only. ``obs`` is what the step returned: the final observation where an episode
        ended (``observe()`` then shows the next episode's first). Valid until the advance after the next one.
    Shapes:
        - env_id (:obj:`np.ndarray`): :math:`(n, )` int64
        - obs (:obj:`np.ndarray | dict`): :math:`(n, ...)`
        - reward (:obj:`np.ndarray`): :math:`(n, )` or :math:`(n, k)` float32
        - done, truncated (:obj:`np.ndarray`): :math:`(n, )` bool; done = terminated or truncated
        - episode_return, episode_length (:obj:`np.ndarray`): :math:`(n, )`, valid where done
        - info (:obj:`list`): a dict for each row; the same empty one where the env gave none
        - abnormal (:obj:`Sequence[int]`): ids whose unfinished episode must be dropped, before the rows are taken: a
          row of such an env (seldom there is one) belongs to its next episode
        - whole (:obj:`bool`): every env of the manager has a row, in the order of the ids
    """

    env_id: np.ndarray
    obs: Any
    reward: np.ndarray
    done: np.ndarray
    truncated: np.ndarray
    episode_return: np.ndarray
    episode_length: np.ndarray
    env_infos: Any = None  # row -> dict, where an env gave one; or a function that makes that
    abnormal: Sequence[int] = ()
    whole: bool = False

    @property
    def info(self) -> list[dict]:
        """One dict a row; made when asked for."""
        infos = self.infos
        return [infos.get(k, EMPTY_INFO) for k in range(len(self.env_id))]

    @property
    def infos(self) -> dict[int, dict]:
        """Only the infos that are not empty: row -> dict. At an episode's end they hold the two usual keys."""
        if callable(self.env_infos):
            self.env_infos = self.env_infos()
        infos = self.env_infos or EMPTY_INFO
        if not self.done.any():
            return infos
        infos = dict(infos)
        for k in np.flatnonzero(self.done).tolist():
            usual = {'final_eval_reward': float(self.episode_return[k]), 'truncated': bool(self.truncated[k])}
            infos[k] = {**usual, **infos.get(k, {}), 'truncated': usual['truncated']}
        return infos

    def rows(self, index: np.ndarray) -> 'StepBlock':
        """A block of copies of some rows."""
        infos = self.infos
        kept = {k: infos[row] for k, row in enumerate(index.tolist()) if row in infos}
        columns = (self.env_id, self.obs, self.reward, self.done, self.truncated)
        env_id, obs, reward, done, truncated = tree.index(columns, index)
        sums = self.episode_return[index], self.episode_length[index]
        return StepBlock(env_id, obs, reward, done, truncated, *sums, kept, self.abnormal)

    def __len__(self) -> int:
        return len(self.env_id)

    def __repr__(self) -> str:
        return f'StepBlock(env_id={self.env_id.tolist()}, done={self.done.tolist()}, abnormal={list(self.abnormal)})'


def by_row(ids: list[int], infos: Any) -> Any:
    """The infos by row instead of env id; if they are yet to be made, a function that does."""
    if callable(infos):
        return lambda: by_row(ids, infos())
    return {k: infos[i] for k, i in enumerate(ids) if i in infos}


def check_id(env_id: Any, env_num: int) -> int:
    """The same id; raises for what is none."""
    if isinstance(env_id, bool) or not isinstance(env_id, (int, np.integer)) or not 0 <= env_id < env_num:
        raise EnvStateError(f'unknown env id {env_id!r}; the ids are 0 to {env_num - 1}')
    return int(env_id)


# ---- the documented form
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
