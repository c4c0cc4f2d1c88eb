"""Observations and rewards of the envs of a manager, scaled by running statistics over all of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nervex.rl_utils.normalize import Normalizer
from nervex.utils import tree
from nervex.utils.errors import CheckpointError
from nervex.worker.actor.env_manager.groups import Groups
from nervex.worker.actor.env_manager.running import Running
from nervex.worker.actor.env_manager.step_block import StepBlock


class Scaled(Running):
    """
    Overview:
        The running envs of a manager that scales observations (and rewards); returns of episodes stay the true ones.
        ``raw_observed`` and ``raw_step`` are what the envs answered last.
    """

    def __init__(self, groups: Groups, wait: tuple[int, float] | None, normalizer: Normalizer) -> None:
        super().__init__(groups, wait)
        self.raw_observed: tuple[np.ndarray, Any] | None = None
        self.raw_step: StepBlock | None = None
        self._normalizer = normalizer
        self._returns = np.zeros(self._env_num)
        self._fresh = np.ones(self._env_num, bool)  # envs whose present observation has not been counted
        self._seen: Any = None  # the block that was scaled last
        self._shown: Any = None  # ... and what came of it

    def observe(self) -> tuple[np.ndarray, Any]:
        """Ids and scaled observations of the envs that wait for an action."""
        ids, obs = self.raw_observed = super().observe()
        if obs is self._seen:
            return ids, self._shown
        fresh = self._fresh[ids]
        if fresh.any() and not self._normalizer.frozen:  # first observations of episodes; the others came with a step
            rows = np.flatnonzero(fresh)
            self._normalizer.observe(tree.index(obs, rows))
            self._fresh[ids] = False
        self._seen, self._shown = obs, self._normalizer.observe(obs, count=False)
        return ids, self._shown

    def advance(self, ids: np.ndarray, actions: Any) -> StepBlock:
        """Step these envs; what they answer is scaled."""
        block = self.raw_step = super().advance(ids, actions)
        self._seen = None
        lost = list(block.abnormal)
        self._returns[lost], self._fresh[lost] = 0.0, True
        obs = self._normalizer.observe(block.obs)
        reward = self._normalizer.reward(block, self._returns)
        self._fresh[block.env_id[block.done]] = True
        return replace(block, obs=obs, reward=reward)

    def present_obs(self, ids: Sequence[int]) -> Any:
        """The observations of these envs, stacked."""
        return self._normalizer.observe(super().present_obs(ids), count=False)

    def reset(self, ids: list[int]) -> None:
        """Begin new episodes of these envs; their discounted returns begin anew."""
        super().reset(ids)
        self._returns[ids], self._fresh[ids], self._seen = 0.0, True, None

    def state_of(self, inner: dict[str, Any]) -> dict[str, Any]:
        """The envs' state with the statistics."""
        own = {'returns': self._returns.tolist(), 'fresh': self._fresh.tolist()}
        return {'inner': inner, 'normalizer': self._normalizer.state_dict(), **own}

    def load(self, state: dict[str, Any]) -> dict[str, Any]:
        """Put back what ``state_of`` gave; answers the envs' state."""
        self._normalizer.load_state_dict(state['normalizer'])
        self._returns[:], self._fresh[:], self._seen = state['returns'], state['fresh'], None
        return state['inner']


def load_for_evaluation(manager: Any, checkpoint: dict[str, Any], source: str) -> None:
    """
    Overview:
        Make a manager scale observations as they were when the checkpoint was saved, and learn nothing more.
    Arguments:
        - source (:obj:`str`): where the checkpoint came from, for the error if it does not fit the manager's settings
    """
    saved = checkpoint.get('attached', {}).get('normalizer')
    was_scaled = saved is not None and saved['norm_obs']
    normalizer = manager.normalizer
    scales = normalizer is not None and normalizer.norm_obs
    if was_scaled != scales:
        raise CheckpointError(
            f'{source}: was trained with env.manager.norm_obs={was_scaled}, the config says {scales}; make them equal'
        )
    if normalizer is not None:
        normalizer.freeze()
        if saved is not None:
            normalizer.load_state_dict(saved)
