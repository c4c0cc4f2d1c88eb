"""Proximal policy optimisation with a memory."""

from __future__ import annotations

from typing import Any

import torch

from nervex.data import Batch
from nervex.policy.ppo import PPOPolicy
from nervex.policy.sequence_ac import SequenceACPolicy
from nervex.policy.sequences import map_tensors
from nervex.utils import POLICY_REGISTRY, ConfigError


@POLICY_REGISTRY.register('ppo_recurrent')
class RecurrentPPOPolicy(SequenceACPolicy, PPOPolicy):
    """
    Overview:
        PPO's loss over sequences: each starts with the state of LSTM or GRU that it had when it was collected, and the
        gradient flows back through all of its steps. ``batch_size`` counts sequences.
    """

    config = dict(
        policy_type='ppo_recurrent',
        learn=dict(
            graph='off',  # recurrent layers cannot be recorded
            batch_size=8,
        ),
    )
    _time_columns = ('obs', 'action', 'logit', 'value', 'adv', 'return_', 'mask')

    def default_model(self) -> tuple[str, list[str]]:
        return 'fcr_vac', ['nervex.model']

    def _build_model(self, model: Any) -> torch.nn.Module:
        built = super()._build_model(model)
        if not hasattr(built, 'initial_state'):
            name = type(built).__name__
            raise ConfigError([f"policy.model: {name} has no memory; take 'fcr_vac' or 'convr_vac', or policy 'ppo'"])
        return built

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        real = data['mask']
        output = self._unrolled(data)
        columns = (output, ('logit', 'value', 'action_mask')), (data, ('logit', 'value', 'action', 'adv', 'return_'))
        new, old = (
            {name: map_tensors(source[name], lambda x: x[real]) for name in names if name in source}
            for source, names in columns
        )
        return self._clipped_loss(new, old, None)

    def _cut(self, steps: Batch, traj: Batch) -> Batch:
        """Sequences of steps; what follows their last one has had its part in the advantages."""
        columns = dict(steps.items())
        samples = self._cut_sequences(Batch.of({**columns, 'next_obs': traj['next_obs'], 'done': traj['done']}))
        samples['obs'] = _without_last(samples['obs'])
        return samples


def _without_last(obs: Any) -> Any:
    if isinstance(obs, Batch):
        return Batch.of({key: _without_last(value) for key, value in obs.items()})
    return obs[:, :-1]
