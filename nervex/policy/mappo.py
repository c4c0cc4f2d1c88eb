"""PPO for teams: with a critic that sees everything (MAPPO), or with every agent for itself (IPPO)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nervex.data import Batch
from nervex.policy.batched import batched
from nervex.policy.ppo import PPOPolicy
from nervex.policy.team import TeamPolicy
from nervex.policy.traj_block import batched_steps
from nervex.rl_utils import gae, gae_data
from nervex.rl_utils.coma import of_the_living
from nervex.torch_utils.crossing import to_arrays
from nervex.utils import POLICY_REGISTRY, tree
from nervex.utils.declare import settings


@POLICY_REGISTRY.register('mappo')
class MAPPOPolicy(TeamPolicy, PPOPolicy):
    """
    Overview:
        Each agent's PPO with the team's reward (or its own, where the env gives one an agent) and a value of the global
        state, in units of the returns seen so far. ``batch_size`` counts sequences. Paper: Yu et al. 2022.
    """

    config = settings(
        policy_type='mappo',
        on_policy=True,
        learn=dict(
            epochs=10,
            batch_size=32,
            learning_rate=5e-4,
            grad_clip_norm=10.0,
            algo=dict(
                gae_lambda=0.95,
                entropy_weight=0.01,
                value_weight=1.0,
            ),
        ),
    )
    _default_model = 'team_ac'
    _time_columns = ('obs', 'action', 'logit', 'value', 'adv', 'return_', 'mask')
    _keeps = ('action', 'drawn', 'prev_state', 'logit')
    action_kinds = ('team', 'team_continuous')

    # ---- learn ----
    def _forward_learn(self, data: dict[str, Any]) -> dict[str, Any]:
        scale = self._model.scale
        if scale is not None:
            scale.update(data['return_'][self._real(data)])
        return super()._forward_learn(data)

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        """Over all steps of the sequences; those that are not real weigh nothing."""
        output = self._armor.forward({**self._model_input(data['obs']), 'prev_state': self._first_state(data)})
        value, return_, scale = data['value'], data['return_'], self._model.scale
        if scale is not None:
            value, return_ = scale.inward(value), scale.inward(return_)
        real = self._real(data)
        if 'action_mask' in output:  # of what stands behind an end; there may be no legal action
            output['action_mask'] = torch.where(real.unsqueeze(-1), output['action_mask'], 1)
        weight = real / real.float().mean()
        old = {**data, 'value': value, 'return_': return_}
        return self._clipped_loss({**output, 'value': output['scaled_value']}, old, weight)

    # ---- collect ----
    @batched
    def _process_transition(self, obs: Any, armor_output: dict, timestep: Any) -> dict:
        transition = super()._process_transition(obs, {**armor_output, 'value': None}, timestep)
        del transition['value']  # of all steps at once, below
        return transition

    @batched_steps
    def _get_train_sample(self, traj_cache: Batch) -> Batch:
        """A window of steps, time first, -> sequences with ``value``, ``adv`` and ``return_`` of each agent."""
        traj = traj_cache
        reward, done, truncated = (torch.as_tensor(traj[key]) for key in ('reward', 'done', 'truncated'))
        with torch.no_grad():
            value = self._values_behind(traj, np.s_[:], 'obs').cpu()
        reward = reward.reshape(*done.shape, -1).expand_as(value) * self._cfg.learn.algo.reward_scale
        next_value = self._next_values(traj, value, done, truncated)
        done, truncated = (flag.unsqueeze(-1).expand_as(value) for flag in (done, truncated))
        adv = gae(gae_data(value, reward, next_value=next_value, done=done, truncated=truncated), *self._gae_args)
        kept = {key: traj[key] for key in traj.keys() if key not in ('reward', 'truncated')}
        learned = {'value': value, 'adv': adv, 'return_': adv + value}
        samples = self._sequences(Batch.of({**kept, **to_arrays(learned)}))
        samples['obs'] = tree.map(lambda x: x[:, :-1], samples['obs'])
        return samples

    def _values_behind(self, traj: Batch, where: Any, column: str = 'next_obs') -> torch.Tensor:
        given = self._model_input(self._rows_of(traj[column], where))
        each = traj['reward'].reshape(*traj['done'].shape, -1).shape[-1] > 1
        value = self._model(given, mode='compute_value')['value']
        return of_the_living(value, given['obs'].get('agent_alive'), each)


@POLICY_REGISTRY.register('ippo')
class IPPOPolicy(MAPPOPolicy):
    """MAPPO whose critic sees what the agent sees (de Witt et al. 2020)."""

    config = settings(policy_type='ippo', model=dict(central=False))
