"""Imitation learning: behaviour cloning of recorded actions."""

from __future__ import annotations

from typing import Any

import torch

from nervex.data import Batch
from nervex.policy.action_space import greedy, joined, legal
from nervex.policy.common_policy import CommonPolicy
from nervex.rl_utils import entropy, log_prob
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('il')
class ILPolicy(CommonPolicy):
    """
    Overview:
        Maximises the log-probability of the actions in the data: no rewards, no values. Discrete actions, one head or
        several; illegal ones have no part in the probabilities. Runs on recorded episodes, see ``offline_pipeline``.
    """

    config = settings(
        policy_type='il',
        learn=dict(
            algo=dict(entropy_weight=setting(0.0, 'number >= 0', 'how much the policy is kept from certainty')),
        ),
    )
    _default_model = 'fc_discrete_net'

    action_kinds = ('discrete', 'multi_discrete')
    _logs = 'cur_lr total_loss accuracy entropy grad_norm'
    no_own_data = 'it imitates the actions of recorded episodes, and here they are its own'
    no_nstep = 'imitation has no use for rewards'
    no_priority = 'an error of imitation is no reason to see a sample more often'

    def _data_preprocess_learn(self, data: Batch | list[dict]) -> dict[str, Any]:
        """Observations and actions are enough; everything else in the data is left out."""
        out = super()._data_preprocess_learn(data)
        if out['action'].is_floating_point():
            raise TypeError('policy il: the data has continuous actions; behaviour cloning takes discrete ones')
        return {'obs': out['obs'], 'action': out['action'].long()}

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        output = self._armor.forward(self._model_input(data['obs']))
        logit = legal(output['logit'], output.get('action_mask'))
        likelihood, certainty = log_prob(logit, data['action']).mean(), entropy(logit).mean()
        right = (joined(greedy(logit)) == data['action']).float().mean()
        loss = -likelihood - self._cfg.learn.algo.entropy_weight * certainty
        return loss, {'accuracy': right, 'entropy': certainty.detach()}
