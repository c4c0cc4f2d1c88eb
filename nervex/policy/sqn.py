"""Soft Q-learning with twin networks: values that count entropy, and a temperature that keeps it near a target."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch

from nervex.armor import Armor, IArmorStatelessPlugin
from nervex.policy.action_space import legal, over_heads, side_by_side
from nervex.policy.common_policy import CommonPolicy
from nervex.policy.sac import Temperature
from nervex.rl_utils import entropy, soft_q_nstep_td_data, soft_q_nstep_td_error
from nervex.torch_utils import Adam
from nervex.torch_utils.flat import FlatParameters
from nervex.utils import POLICY_REGISTRY, tree
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('sqn')
class SQNPolicy(CommonPolicy):
    """
    Overview:
        Both networks learn y = r + gamma alpha log sum_a exp(Q(s', a) / alpha), where Q is the smaller of the two
        targets; acting draws from softmax(min Q / alpha). The temperature alpha falls while the entropy of that policy
        is above its target. Paper: Wang and Ross 2019 (arXiv:1912.10891).
    """

    config = settings(
        policy_type='sqn',
        learn=dict(
            train_step=8,
            algo=dict(
                target_theta=0.005,
                discount_factor=0.99,
                nstep=1,
                alpha=setting(0.2, 'number > 0', 'temperature, or its first value'),
                auto_alpha=setting(True, 'bool', 'adjust the temperature'),
                target_entropy=setting(0.2, 'number >= 0', 'nats of each action head that the temperature aims at'),
                learning_rate_alpha=setting(1e-3, 'number > 0', 'step size of the temperature'),
            ),
        ),
        collect=dict(algo=dict(nstep=1)),
    )
    _default_model = 'sqn'

    action_kinds = ('discrete', 'multi_discrete')
    learn_parts: tuple[str, ...] = ('_temperature', '_optimizer_alpha')
    collect_parts: tuple[str, ...] = ('_temperature',)
    _logs = 'cur_lr total_loss q_value entropy alpha grad_norm'

    # ---- learn ----
    def _init_learn(self) -> None:
        super()._init_learn()
        algo = self._cfg.learn.algo
        self._target_entropy = algo.target_entropy
        if algo.auto_alpha:
            rate = algo.learning_rate_alpha
            self._optimizer_alpha = self._scheduled(Adam(FlatParameters(self._temperature), lr=rate))

    @cached_property
    def _temperature(self) -> Temperature:
        """What learning and collecting share."""
        return Temperature(self._cfg.learn.algo.alpha).to(self._device)

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        alpha = data['alpha']
        output = self._armor.forward(self._model_input(data['obs']))
        with torch.no_grad():
            following = self._model_input(data['next_obs'])
            next_q = legal(self._armor.target_forward(following)['logit'], following.get('action_mask'))
        rest = (next_q, data['action'], self._time_first(data), data['done'], data['weight'])
        kwargs = {'alpha': alpha, **self._nstep_kwargs(data)}
        losses = [
            over_heads(soft_q_nstep_td_error, soft_q_nstep_td_data(q, *rest), self._gamma, **kwargs)
            for q in output['q_value']
        ]
        heads = len(output['logit']) if isinstance(output['logit'], list) else 1
        least = legal(output['logit'], output.get('action_mask'))
        total: Any = sum(loss for loss, _ in losses)
        return total, {
            'td_error': sum(error.abs() for _, error in losses) / len(losses),
            'q_value': side_by_side(output['logit']).detach(),
            'entropy': entropy(tree.map(lambda q: q / alpha, least)).mean().detach() / heads,
        }

    def _alpha_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        return self._temperature.log_alpha * (data['entropy'] - self._target_entropy), {}

    def _forward_learn(self, data: dict[str, Any]) -> dict[str, Any]:
        data['alpha'] = alpha = self._temperature().detach()
        log = super()._forward_learn(data)
        if self._cfg.learn.algo.auto_alpha:
            self._minimize(self._alpha_loss, {'entropy': log['entropy']}, self._optimizer_alpha)
        return {**log, 'alpha': alpha}

    # ---- collect ----
    def _init_collect(self) -> None:
        self._collect_armor = Armor(self._model)
        self._collect_armor.add_plugin('main', 'graph', backend='off')
        self._collect_armor.add_plugin('main', _SoftPolicy, temperature=self._temperature)
        self._collect_armor.add_plugin('main', 'multinomial_sample')


class _SoftPolicy(IArmorStatelessPlugin):
    """Turns action values into the logits of the soft policy: Q / alpha."""

    def __init__(self, temperature: Temperature) -> None:
        self._temperature = temperature

    def wrap(self, forward: Any) -> Any:
        def soft_forward(data: Any, **kwargs: Any) -> dict:
            output, alpha = forward(data, **kwargs), self._temperature().item()
            return {**output, 'logit': tree.map(lambda head: head / alpha, output['logit'])}

        return soft_forward
