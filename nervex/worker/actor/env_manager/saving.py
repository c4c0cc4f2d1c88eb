"""State of a manager's envs in the middle of their episodes, for an exact resume."""

from typing import Any

import numpy as np
import torch

from nervex.envs.hosting.calls import LOAD, SAVE
from nervex.envs.hosting.layout import tree_leaves
from nervex.worker.actor.env_manager.step_block import EnvState
from nervex.worker.actor.env_manager.worker_pool import WorkerLost


class SavesEnvs:
    """
    Overview:
        ``state_dict`` and ``load_state_dict`` of managers that step all envs together. Envs are saved by pickling, so
        load only what your own runs have saved. Envs that wait in the middle of a step (asynchronous managers), that
        cannot be pickled or are native code are not saved: ``state_dict`` is then None.
    """

    def state_dict(self) -> dict[str, Any] | None:
        """The envs, their observations and their running sums; None if they cannot be saved."""
        ids = range(self.env_num)
        if (
            self.asynchronous
            or any(state is not EnvState.RUN for state in self._states)
            or len(self.observe()[0]) != self.env_num
        ):
            return None
        leaves = tree_leaves(self.observe()[1])
        if any(leaf.dtype == object for leaf in leaves):
            return None
        try:
            saved = self._call(SAVE, [((), {})] * len(ids), ids)
        except WorkerLost:  # the next step restarts its envs
            return None
        if any(env is None for env in saved):
            return None
        return {
            'envs': [torch.frombuffer(bytearray(env), dtype=torch.uint8) for env in saved],
            'obs': [torch.from_numpy(np.ascontiguousarray(leaf).view(np.uint8).copy()) for leaf in leaves],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave, into launched envs of the same kind and number."""
        if len(state['envs']) != self.env_num:
            raise ValueError(f'the saved state has {len(state["envs"])} envs, this manager {self.env_num}')
        saved = [((env.numpy().tobytes(),), {}) for env in state['envs']]
        self._call(LOAD, saved, range(self.env_num))
        for leaf, saved_leaf in zip(tree_leaves(self._store.obs[self._slot]), state['obs']):
            leaf[...] = saved_leaf.numpy().view(leaf.dtype).reshape(leaf.shape)
        self._refresh()
