"""Observations and rewards scaled by running statistics over all envs, as a manager around a manager."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nervex.rl_utils.normalize import Normalizer
from nervex.utils import tree
from nervex.utils.errors import CheckpointError
from nervex.worker.actor.env_manager.forms import RowMap, TimestepMap, ready_map, step_map
from nervex.worker.actor.env_manager.step_block import StepBlock


class NormalizedEnvManager:
    """
    Overview:
        A manager whose observations (and rewards) are scaled; returns of episodes stay the true ones. Everything that
        is not about that is the inner manager's. An evaluator's manager follows the actor's:
        ``evaluator_env.normalizer.follow(actor_env.normalizer)``. ``raw_observed`` and ``raw_step`` are what the inner
        manager's ``observe`` and ``advance`` answered last.
    """

    def __init__(self, manager: Any, normalizer: Normalizer) -> None:
        self.manager, self.normalizer = manager, normalizer
        self._returns = np.zeros(manager.env_num)
        self._seen: Any = None  # the inner block that was scaled last
        self._shown: Any = None  # ... and what came of it
        self.raw_observed: tuple[np.ndarray, Any] | None = None
        self.raw_step: StepBlock | None = None
        self._fresh = np.ones(manager.env_num, bool)  # envs whose present observation has not been counted

    def observe(self) -> tuple[np.ndarray, Any]:
        """Ids and scaled observations of the envs that wait for an action."""
        ids, obs = self.raw_observed = self.manager.observe()
        if obs is self._seen:
            return ids, self._shown
        fresh = self._fresh[ids]
        if fresh.any() and not self.normalizer.frozen:  # first observations of episodes; the others came with a step
            rows = np.flatnonzero(fresh)
            self.normalizer.observe(tree.index(obs, rows))
            self._fresh[ids] = False
        self._seen, self._shown = obs, self.normalizer.observe(obs, count=False)
        return ids, self._shown

    def advance(self, ids: np.ndarray, actions: Any) -> StepBlock:
        """Step these envs; what they answer is scaled."""
        block = self.raw_step = self.manager.advance(ids, actions)
        self._seen = None
        lost = list(block.abnormal)
        self._returns[lost], self._fresh[lost] = 0.0, True
        obs = self.normalizer.observe(block.obs)
        reward = self.normalizer.reward(block, self._returns)
        self._fresh[block.env_id[block.done]] = True
        return replace(block, obs=obs, reward=reward)

    @property
    def ready_obs(self) -> RowMap:
        """env_id -> observation of the envs that wait for an action."""
        return ready_map(self)

    next_obs = ready_obs

    def step(self, actions: Mapping[int, Any] | Any) -> TimestepMap:
        """Step envs, given env_id -> action or a stacked block; env_id -> BaseEnvTimestep."""
        return step_map(self, actions)

    def launch(self, reset_param: Any = None) -> None:
        """Make the envs and begin their first episodes."""
        self.manager.launch(reset_param)
        self._begin()

    def reset(self, reset_param: Any = None) -> None:
        """Begin new episodes; the discounted returns begin anew."""
        self.manager.reset(reset_param)
        self._begin()

    def _begin(self) -> None:
        self._returns[:], self._fresh[:], self._seen = 0.0, True, None

    def state_dict(self) -> dict[str, Any] | None:
        """The inner manager's state with the statistics; None if the inner one cannot be saved."""
        inner = self.manager.state_dict()
        if inner is None:
            return None
        own = {'returns': self._returns.tolist(), 'fresh': self._fresh.tolist()}
        return {'inner': inner, 'normalizer': self.normalizer.state_dict(), **own}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        self.manager.load_state_dict(state['inner'])
        self.normalizer.load_state_dict(state['normalizer'])
        self._returns[:], self._fresh[:], self._seen = state['returns'], state['fresh'], None

    def present_obs(self, ids: Sequence[int]) -> Any:
        """The observations of these envs, stacked."""
        return self.normalizer.observe(self.manager.present_obs(ids), count=False)

    def __enter__(self) -> 'NormalizedEnvManager':
        return self

    def __exit__(self, *exc: Any) -> None:
        self.manager.close()

    def __getattr__(self, name: str) -> Any:
        if name in ('manager', 'normalizer'):
            raise AttributeError(name)
        return getattr(self.manager, name)

    def __repr__(self) -> str:
        return f'NormalizedEnvManager({self.manager!r})'


def load_for_evaluation(manager: Any, checkpoint: dict[str, Any], source: str) -> None:
    """
    Overview:
        Make a manager scale observations as they were when the checkpoint was saved, and learn nothing more.
    Arguments:
        - source (:obj:`str`): where the checkpoint came from, for the error if it does not fit the manager's settings
    """
    saved = checkpoint.get('attached', {}).get('normalizer')
    was_scaled = saved is not None and saved['norm_obs']
    normalizer = manager.normalizer if isinstance(manager, NormalizedEnvManager) else None
    scales = normalizer is not None and normalizer.norm_obs
    if was_scaled != scales:
        raise CheckpointError(
            f'{source}: was trained with env.manager.norm_obs={was_scaled}, the config says {scales}; make them equal'
        )
    if normalizer is not None:
        normalizer.freeze()
        if saved is not None:
            normalizer.load_state_dict(saved)
