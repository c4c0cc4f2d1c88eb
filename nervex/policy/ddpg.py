"""Deep deterministic policy gradient: an actor that climbs its critic."""

from __future__ import annotations

from typing import Any

import torch

from nervex.loader import enum, interval
from nervex.policy.off_policy_ac import Forward, OffPolicyACPolicy, as_list
from nervex.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register('ddpg')
class DDPGPolicy(OffPolicyACPolicy):
    """
    Overview:
        y = r + gamma (1 - d) Q_target(s', mu_target(s')), the smaller one of twin critics; the critic's loss is
        (Q(s, a) - y)^2, the actor's is -Q(s, mu(s)). Papers: Lillicrap et al. 2016; with twin critics, a delayed actor
        and smoothed target actions it is TD3 (Fujimoto et al. 2018), see :class:`nervex.policy.td3.TD3Policy`.
    """

    config = dict(
        policy_type='ddpg',
        model=dict(use_twin_critic=False),
        learn=dict(
            algo=dict(
                target_noise_sigma=0.0,  # (float) noise on the target's action, which smooths the critic; 0: none
                target_noise_clip=0.5,  # (float) largest size of that noise
            )
        ),
        collect=dict(
            noise_type='gauss',  # (str) noise on the actions: 'gauss', or 'ou' for one that drifts
            noise_sigma=0.1,  # (float) its standard deviation; actions span [-1, 1]
        ),
    )
    config_rules = dict(
        learn=dict(algo=dict(target_noise_sigma=interval(0), target_noise_clip=interval(0))),
        collect=dict(noise_type=enum('gauss', 'ou'), noise_sigma=interval(0)),
    )

    def default_model(self) -> tuple[str, list[str]]:
        return 'qac', ['nervex.model']

    def _critic_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        q_values = self._q_values(self._armor.forward, data['obs'], data['action'])
        with torch.no_grad():
            next_action = self._next_action(data['next_obs'])
            next_values = self._q_values(self._armor.target_forward, data['next_obs'], next_action)
            next_value = next_values[0] if len(next_values) == 1 else torch.min(*next_values)
        return self._td_loss(q_values, next_value, data)

    def _actor_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        action = self._armor.forward({'obs': data['obs']}, param={'mode': 'compute_action'})['action']
        return -self._first_q(data['obs'], action).mean(), {}

    def _first_q(self, obs: Any, action: torch.Tensor) -> torch.Tensor:
        """The value that the actor climbs: the first critic's."""
        return self._q_values(self._armor.forward, obs, action)[0]

    @staticmethod
    def _q_values(forward: Forward, obs: Any, action: torch.Tensor) -> list[torch.Tensor]:
        return as_list(forward({'obs': obs, 'action': action}, param={'mode': 'compute_q'})['q_value'])

    def _next_action(self, next_obs: Any) -> torch.Tensor:
        action = self._armor.target_forward({'obs': next_obs}, param={'mode': 'compute_action'})['action']
        algo = self._cfg.learn.algo
        if not algo.target_noise_sigma:
            return action
        noise = torch.randn(action.shape, dtype=action.dtype, device=action.device, generator=self._generator)
        clip = algo.target_noise_clip
        return (action + (noise * algo.target_noise_sigma).clamp(-clip, clip)).clamp(-1.0, 1.0)

    def _add_exploration(self) -> None:
        collect = self._cfg.collect
        if collect.noise_sigma:
            noise = {'sigma': collect.noise_sigma}
            self._collect_armor.add_plugin('main', 'action_noise', noise_type=collect.noise_type, noise_kwargs=noise)
