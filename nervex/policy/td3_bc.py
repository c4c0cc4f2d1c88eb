"""TD3+BC: TD3 from recorded data, kept near the recorded actions."""

from __future__ import annotations

from typing import Any

import torch

from nervex.loader import interval
from nervex.policy.td3 import TD3Policy
from nervex.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register('td3_bc')
class TD3BCPolicy(TD3Policy):
    """
    Overview:
        TD3's critics; the actor's loss is -lambda Q(s, mu(s)) + (mu(s) - a_data)^2 with lambda = bc_alpha / mean |Q|:
        it climbs the critic as far as the data reaches, where the critic knows something. Runs on recorded episodes,
        see ``offline_pipeline``; ``env.manager.norm_obs`` scales observations by the data's mean and variance, as the
        paper does. Paper: Fujimoto and Gu 2021.
    """

    config = dict(
        policy_type='td3_bc',
        learn=dict(algo=dict(bc_alpha=2.5)),  # bc_alpha: (float) weight of the critic beside imitation; 0 imitates only
    )
    config_rules = dict(learn=dict(algo=dict(bc_alpha=interval(0))))

    def _actor_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        action = self._armor.forward({'obs': data['obs']}, param={'mode': 'compute_action'})['action']
        q = self._first_q(data['obs'], action)
        scale = self._cfg.learn.algo.bc_alpha / (q.detach().abs().mean() + 1e-8)
        bc_loss = (action - data['action']).pow(2).mean()
        return bc_loss - scale * q.mean(), {'bc_loss': bc_loss.detach()}

    def _update_actor(self, data: dict[str, Any]) -> dict[str, Any]:
        loss, info = self._minimize(self._actor_loss, data, self._actor_optimizer)
        return {'actor_loss': loss, 'actor_grad_norm': info['grad_norm'], 'bc_loss': info['bc_loss']}

    def _monitor_vars_learn(self) -> list[str]:
        return [*super()._monitor_vars_learn(), 'bc_loss']
