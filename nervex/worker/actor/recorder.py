"""Episodes that workers play, as trajectory files."""

from __future__ import annotations

from typing import Any

import numpy as np

from nervex.data import Batch
from nervex.data.trajectories import TrajectoryWriter
from nervex.utils import tree


class EpisodeRecorder(TrajectoryWriter):
    """
    Overview:
        A TrajectoryWriter that sees the steps of an env manager: ``obs, action, reward, next_obs, done, truncated`` as
        the envs gave and got them, also where the policy sees them scaled. An episode in which an env failed is left
        out, and so is one that had begun before.
    Arguments:
        - folder (:obj:`str`): where the numbered files go
    Attributes:
        - begun (:obj:`set[int]`): envs whose present episode had begun before
    """

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.begun: set[int] = set()

    def see(self, manager: Any, ids: np.ndarray, obs: Any, action: np.ndarray, step: Any) -> None:
        """What the envs ``ids`` showed and were told, and the step of those that answered."""
        for env_id in step.abnormal:
            self.drop(int(env_id))
            self.begun.discard(int(env_id))
        if not len(step):
            return
        before: Any = (ids, obs)
        after = step if manager.raw_step is None else manager.raw_step
        if after is not step:  # the manager scales
            if manager.asynchronous:
                raise ValueError(
                    'asynchronous env managers that scale observations cannot record episodes; use '
                    'env.env_manager_type=base or sync_subprocess'
                )
            before = manager.raw_observed
        columns = {
            'obs': tree.index(before[1], _places(before[0], step.env_id)),
            'action': action[_places(ids, step.env_id)],
            'reward': tree.index(after.reward, _places(after.env_id, step.env_id)),
            'next_obs': tree.index(after.obs, _places(after.env_id, step.env_id)),
            'done': step.done.copy(),
            'truncated': step.truncated.copy(),
        }
        whole = [k for k, i in enumerate(step.env_id.tolist()) if i not in self.begun]
        if whole:
            self.record(Batch(tree.index(columns, whole)), env_id=step.env_id[whole])
        self.begun -= set(step.env_id[step.done].tolist())

    def running(self) -> list[int]:
        """Envs whose present episode has begun: a resumed run records them from the next one on."""
        return sorted(self.begun | set(self._open))


def _places(ids: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where in ``ids`` the wanted ones stand."""
    order = np.argsort(ids)
    return order[np.searchsorted(ids, wanted, sorter=order)]
