"""Implicit Q-learning: values of the best actions in the data, without asking for any that are not."""

from __future__ import annotations

from typing import Any

import torch

from nervex.policy.ddpg import OffPolicyACPolicy, smaller
from nervex.rl_utils import gaussian_entropy, gaussian_log_prob
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('implicit_q')
class ImplicitQPolicy(OffPolicyACPolicy):
    """
    Overview:
        The state value descends |tau - 1{u < 0}| u^2 with u = min Q_target(s, a) - V(s), so it is an expectile of the
        values of the data's actions, near their best for tau near 1; the critics' target is r + gamma (1 - d) V(s');
        the actor imitates, with weights exp(beta (min Q_target(s, a) - V(s))). No loss asks for the value of an action
        that the data does not show. Runs on recorded episodes, see ``offline_pipeline``, or on its own. Known as IQL;
        here ``iql`` is independent Q-learning. Paper: Kostrikov et al. 2022.
    """

    config = settings(
        policy_type='implicit_q',
        learn=dict(
            batch_size=256,
            learning_rate=3e-4,
            algo=dict(
                expectile=setting(0.7, 'number in (0, 1)', 'tau: 0.5 is the mean of the data, near 1 its best action'),
                beta=setting(3.0, 'number >= 0', 'how much the actor prefers better actions; 0 imitates all alike'),
                weight_limit=setting(100.0, 'number > 0', 'largest weight of a sample in the loss of the actor'),
            ),
        ),
    )
    _default_model = 'implicit_q'
    _targets_wait = False
    _logs = f'{OffPolicyACPolicy._logs} value_loss value weight entropy'

    def _critic_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        with torch.no_grad():
            next_value = self._value(data['next_obs'])
            judged = self._judged(data)
        q_values = self._q_values(self._armor.forward, {'obs': data['obs'], 'action': data['action']})
        loss, info = self._td_loss(q_values, next_value, data)
        value = self._value(data['obs'])
        surprise = expectile_loss(judged - value, self._cfg.learn.algo.expectile)
        value_loss = surprise.mean() if data['weight'] is None else (surprise * data['weight']).mean()
        return loss + value_loss, {**info, 'value_loss': value_loss.detach(), 'value': value.detach().mean()}

    def _actor_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        algo = self._cfg.learn.algo
        with torch.no_grad():
            advantage = self._judged(data) - self._value(data['obs'])
            weight = (algo.beta * advantage).exp().clamp(max=algo.weight_limit)
        param = {'mode': 'compute_action', 'deterministic': True}
        logit = self._armor.forward({'obs': data['obs']}, param=param)['logit']
        loss = -(weight * gaussian_log_prob(logit, data['action'])).mean()
        return loss, {'weight': weight.mean(), 'entropy': gaussian_entropy(logit).detach().mean()}

    def _judged(self, data: dict[str, Any]) -> torch.Tensor:
        """What the target critics say of the actions in the data."""
        return smaller(self._q_values(self._armor.target_forward, {'obs': data['obs'], 'action': data['action']}))

    def _value(self, obs: Any) -> torch.Tensor:
        return self._armor.forward({'obs': obs}, param={'mode': 'compute_value'})['value']

    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        param = {'mode': 'compute_action', 'deterministic': True}
        return {'action': self._eval_armor.forward(data, param=param)['action']}


def expectile_loss(error: torch.Tensor, expectile: float) -> torch.Tensor:
    """
    Overview:
        :math:`|\\tau - 1\\{u < 0\\}| u^2`: least in the mean at the :math:`\\tau`-expectile.
    Shapes:
        - error and result :math:`(B, )`
    """
    return torch.where(error < 0, 1 - expectile, expectile) * error.pow(2)
