"""What the block form of an env manager answers: one step of n envs as columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from nervex.utils import tree
from nervex.utils.errors import NervexError


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
