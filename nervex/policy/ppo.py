"""Proximal policy optimisation: clipped ratio, clipped value, GAE."""

from __future__ import annotations

from typing import Any

import torch

from nervex.armor.stochastic import mu_sigma_of
from nervex.loader import interval, optional
from nervex.policy.on_policy_ac import OnPolicyACPolicy
from nervex.rl_utils import ppo_data, ppo_error, ppo_error_continuous
from nervex.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register('ppo')
class PPOPolicy(OnPolicyACPolicy):
    """
    Overview:
        ratio = pi(a|s) / pi_old(a|s); the loss is -min(ratio A, clip(ratio, 1 +- eps) A) + c_v (R - V)^2 - c_e H(pi),
        with R = V_old + A before A is normalised. Papers: Schulman et al. 2017 (PPO); Ye et al. 2020 (dual clip).
    """

    config = dict(
        policy_type='ppo',
        learn=dict(
            epochs=10,
            learning_rate=3e-4,
            algo=dict(
                clip_ratio=0.2,  # (float) eps of the clipped ratio
                use_value_clip=True,  # (bool) clip the value's change by clip_ratio, too
                dual_clip=None,  # (float | None) lower bound c > 1 of the objective at negative advantages
            ),
        ),
    )
    config_rules = dict(
        learn=dict(algo=dict(clip_ratio=interval(0, left_ok=False), dual_clip=optional(interval(1, left_ok=False))))
    )

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        output = self._armor.forward(self._model_input(data['obs']))
        return self._clipped_loss(output, data, data['weight'])

    def _clipped_loss(
        self, output: dict[str, Any], data: dict[str, Any], weight: torch.Tensor | None
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        algo, adv = self._algo, self._normalised(data['adv'], weight)
        new, old = self._logits(output['logit'], data, output.get('action_mask'))
        fields = ppo_data(new, old, data['action'], output['value'], data['value'], adv, data['return_'], weight)
        error = ppo_error if mu_sigma_of(new) is None else ppo_error_continuous
        loss, info = error(fields, algo.clip_ratio, algo.use_value_clip, algo.dual_clip)
        total = loss.policy_loss + algo.value_weight * loss.value_loss - algo.entropy_weight * loss.entropy_loss
        return total, {
            'policy_loss': loss.policy_loss.detach(),
            'value_loss': loss.value_loss.detach(),
            'entropy_loss': loss.entropy_loss.detach(),
            'approx_kl': info.approx_kl,
            'clipfrac': info.clipfrac,
            'adv_abs_max': adv.abs().max(),
        }

    def _monitor_vars_learn(self) -> list[str]:
        return [*super()._monitor_vars_learn(), 'approx_kl', 'clipfrac']
