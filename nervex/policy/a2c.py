"""Advantage actor-critic: one step along the policy gradient for each round of collecting."""

from __future__ import annotations

from typing import Any

import torch

from nervex.armor.stochastic import mu_sigma_of
from nervex.policy.on_policy_ac import OnPolicyACPolicy
from nervex.rl_utils import a2c_data, a2c_error, a2c_error_continuous
from nervex.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register('a2c')
class A2CPolicy(OnPolicyACPolicy):
    """
    Overview:
        The loss is -log pi(a|s) A + c_v (R - V)^2 - c_e H(pi), with R = V + A before A is normalised. With
        ``gae_lambda`` 1 the advantage is the n-step return of a round minus the value. Paper: Mnih et al. 2016.
    """

    config = dict(
        policy_type='a2c',
        learn=dict(batch_size=64, algo=dict(adv_norm=False)),
    )

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        algo = self._algo
        output = self._armor.forward(self._model_input(data['obs']))
        adv = self._normalised(data['adv'], data['weight'])
        new, _ = self._logits(output['logit'], data, output.get('action_mask'))
        fields = a2c_data(new, data['action'], output['value'], adv, data['return_'], data['weight'])
        loss = (a2c_error if mu_sigma_of(new) is None else a2c_error_continuous)(fields)
        total = loss.policy_loss + algo.value_weight * loss.value_loss - algo.entropy_weight * loss.entropy_loss
        return total, {
            'policy_loss': loss.policy_loss.detach(),
            'value_loss': loss.value_loss.detach(),
            'entropy_loss': loss.entropy_loss.detach(),
            'adv_abs_max': adv.abs().max(),
        }
