"""Soft actor-critic for discrete actions: expectations over all actions instead of samples."""

from __future__ import annotations

import math
from typing import Any

import torch

from nervex.loader import interval
from nervex.policy.action_space import legal
from nervex.policy.off_policy_ac import as_list
from nervex.policy.sac import SACPolicy, smaller
from nervex.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register('sac_discrete')
class DiscreteSACPolicy(SACPolicy):
    """
    Overview:
        y = r + gamma (1 - d) sum_a pi(a|s') (min Q_target(s', a) - alpha log pi(a|s')); the actor's loss is
        sum_a pi(a|s) (alpha log pi(a|s) - min Q(s, a)). Paper: Christodoulou 2019.
    """

    config = dict(
        policy_type='sac_discrete',
        learn=dict(
            batch_size=64,
            algo=dict(target_entropy_ratio=0.9),  # (float) the entropy to keep, as a share of the largest one
        ),
    )
    config_rules = dict(learn=dict(algo=dict(target_entropy_ratio=interval(0, 1))))

    action_kinds = ('discrete',)
    takes_action_mask = True

    def default_model(self) -> tuple[str, list[str]]:
        return 'sac_discrete', ['nervex.model.sac.discrete_sac']

    def _critic_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        with torch.no_grad():
            prob, log_prob = self._policy(data['next_obs'])
            soft = smaller(self._q_all(self._armor.target_forward, data['next_obs'])) - self._temperature() * log_prob
            next_value = (prob * soft).sum(-1)
        action = data['action'].unsqueeze(-1)
        q_values = [q.gather(-1, action).squeeze(-1) for q in self._q_all(self._armor.forward, data['obs'])]
        return self._td_loss(q_values, next_value, data)

    def _actor_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        prob, log_prob = self._policy(data['obs'])
        with torch.no_grad():
            q = smaller(self._q_all(self._armor.forward, data['obs']))
        loss = (prob * (self._temperature().detach() * log_prob - q)).sum(-1).mean()
        return loss, {'entropy': -(prob * log_prob).detach().sum(-1).mean()}

    def _policy(self, obs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Probabilities and their logarithms; those of illegal actions are 0 and a large negative number."""
        output = self._armor.forward(self._model_input(obs), param={'mode': 'compute_action'})
        log_prob = torch.log_softmax(legal(output['logit'], output.get('action_mask')), dim=-1)
        return log_prob.exp(), log_prob.clamp_min(-1e9)

    def _q_all(self, forward: Any, obs: Any) -> list[torch.Tensor]:
        return as_list(forward(self._model_input(obs), param={'mode': 'compute_q'})['q_value'])

    def _entropy_wanted(self, data: dict[str, Any]) -> float:
        if self._target_entropy is None:
            with torch.no_grad():
                actions = self._policy(data['obs'])[0].shape[-1]
            self._target_entropy = self._cfg.learn.algo.target_entropy_ratio * math.log(actions)
        return self._target_entropy

    def _add_exploration(self) -> None:
        self._collect_armor.add_plugin('main', 'multinomial_sample')

    def _random_action(self, output: dict, generator: torch.Generator) -> torch.Tensor:
        chance = torch.empty_like(output['logit']).uniform_(generator=generator)
        return legal(chance, output.get('action_mask')).argmax(-1)

    def _init_eval(self) -> None:
        super()._init_eval()
        self._eval_armor.add_plugin('main', 'argmax_sample')

    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        return {'action': self._eval_armor.forward(data, param={'mode': 'compute_action'})['action']}
