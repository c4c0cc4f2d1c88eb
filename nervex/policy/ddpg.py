"""Deterministic policy gradients: an actor climbs its critic (DDPG), twins of it (TD3), near data (TD3+BC)."""

from __future__ import annotations

from typing import Any

import torch

from nervex.policy.common_policy import OffPolicyACPolicy
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('ddpg')
class DDPGPolicy(OffPolicyACPolicy):
    """
    Overview:
        y = r + gamma (1 - d) Q_target(s', mu_target(s')), the smaller one of twin critics; the critic's loss is
        (Q(s, a) - y)^2, the actor's is -Q(s, mu(s)). Papers: Lillicrap et al. 2016; with twin critics, a delayed actor
        and smoothed target actions it is TD3 (Fujimoto et al. 2018), see :class:`TD3Policy`.
    """

    config = settings(
        policy_type='ddpg',
        model=dict(use_twin_critic=False),
        learn=dict(
            algo=dict(
                target_noise_sigma=setting(0.0, 'number >= 0', "noise on the target's action; 0: none"),
                target_noise_clip=setting(0.5, 'number >= 0', 'largest size of that noise'),
            )
        ),
        collect=dict(
            noise_type=setting('gauss', "'gauss' | 'ou'", 'noise on the actions; ou: one that drifts'),
            noise_sigma=setting(0.1, 'number >= 0', 'its standard deviation; actions span [-1, 1]'),
        ),
    )

    def default_model(self) -> tuple[str, list[str]]:
        """The registered name of the default model, and the modules to import for it."""
        return 'qac', ['nervex.model']

    def _critic_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        q_values = self._q_values(self._armor.forward, {'obs': data['obs'], 'action': data['action']})
        with torch.no_grad():
            following = {'obs': data['next_obs'], 'action': self._next_action(data['next_obs'])}
            next_values = self._q_values(self._armor.target_forward, following)
            next_value = next_values[0] if len(next_values) == 1 else torch.min(*next_values)
        return self._td_loss(q_values, next_value, data)

    def _next_action(self, next_obs: Any) -> torch.Tensor:
        action = self._armor.target_forward({'obs': next_obs}, param={'mode': 'compute_action'})['action']
        algo = self._cfg.learn.algo
        if not algo.target_noise_sigma:
            return action
        noise = torch.randn(action.shape, dtype=action.dtype, device=action.device, generator=self._generator)
        clip = algo.target_noise_clip
        return (action + (noise * algo.target_noise_sigma).clamp(-clip, clip)).clamp(-1.0, 1.0)

    def _actor_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        _, q = self._judged_action(data['obs'])
        return -q.mean(), {}

    def _judged_action(self, obs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """The actor's action, and the value that the actor climbs: the first critic's."""
        action = self._armor.forward({'obs': obs}, param={'mode': 'compute_action'})['action']
        return action, self._q_values(self._armor.forward, {'obs': obs, 'action': action})[0]

    def _init_collect(self) -> None:
        super()._init_collect()
        collect = self._cfg.collect
        if collect.noise_sigma:
            noise = {'noise_type': collect.noise_type, 'noise_kwargs': {'sigma': collect.noise_sigma}}
            self._collect_armor = self._acting_armor('action_noise', **noise)


@POLICY_REGISTRY.register('td3')
class TD3Policy(DDPGPolicy):
    """
    Overview:
        DDPG against overestimation: the smaller of two critics makes the target, the target's action is smoothed by
        clipped noise, and the actor moves half as often. Paper: Fujimoto et al. 2018.
    """

    config = settings(
        policy_type='td3',
        model=dict(use_twin_critic=True),
        learn=dict(algo=dict(actor_update_freq=2, target_noise_sigma=0.2, target_noise_clip=0.5)),
    )


@POLICY_REGISTRY.register('td3_bc')
class TD3BCPolicy(TD3Policy):
    """
    Overview:
        TD3's critics; the actor's loss is -lambda Q(s, mu(s)) + (mu(s) - a_data)^2 with lambda = bc_alpha / mean |Q|:
        it climbs the critic as far as the data reaches, where the critic knows something. Runs on recorded episodes,
        see ``offline_pipeline``; ``env.manager.norm_obs`` scales observations by the data's mean and variance, as the
        paper does. Paper: Fujimoto and Gu 2021.
    """

    config = settings(
        policy_type='td3_bc',
        learn=dict(
            algo=dict(bc_alpha=setting(2.5, 'number >= 0', 'weight of the critic beside imitation; 0 imitates only')),
        ),
    )

    def _actor_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        action, q = self._judged_action(data['obs'])
        scale = self._cfg.learn.algo.bc_alpha / (q.detach().abs().mean() + 1e-8)
        bc_loss = (action - data['action']).pow(2).mean()
        return bc_loss - scale * q.mean(), {'bc_loss': bc_loss.detach()}

    def _monitor_vars_learn(self) -> list[str]:
        return [*super()._monitor_vars_learn(), 'bc_loss']
