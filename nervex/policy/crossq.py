"""Soft actor-critic without target networks: batch renormalisation over what is and what comes next, together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from nervex.policy.sac import SACPolicy
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('crossq')
class CrossQPolicy(SACPolicy):
    """
    Overview:
        y = r + gamma (1 - d) (min Q(s', a') - alpha log pi(a'|s')) by the critics themselves, without a gradient: pairs
        (s, a) and (s', a') go through them as one batch, so that both are normalised alike. Critics are wide, and
        actor and critics are in training mode only in their own updates. Paper: Bhatt et al. 2024.
    """

    config = settings(
        policy_type='crossq',
        model=dict(norm='batch', critic_hidden_dim_list=[1024, 1024]),
        learn=dict(
            optimizer_beta=0.5,
            algo=dict(
                actor_update_freq=3,
                target_theta=setting(None, 'None', 'there are no target networks'),
            ),
        ),
    )

    _layers_follow = False

    def _build_model(self, model: torch.nn.Module | type | None) -> torch.nn.Module:
        return super()._build_model(model).eval()

    def _init_learn(self) -> None:
        super()._init_learn()
        self._model.eval()

    def _now_and_next(
        self, data: dict[str, Any], next_action: torch.Tensor
    ) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        obs, action = torch.cat([data['obs'], data['next_obs']]), torch.cat([data['action'], next_action])
        with _in_training(self._model.critic):
            pairs = [q.chunk(2) for q in self._q_values(self._armor.forward, {'obs': obs, 'action': action})]
        return [now for now, _ in pairs], [following.detach() for _, following in pairs]

    def _actor_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        with _in_training(self._model.actor):
            return super()._actor_loss(data)


@contextmanager
def _in_training(module: torch.nn.Module) -> Iterator[None]:
    module.train()
    try:
        yield
    finally:
        module.eval()
