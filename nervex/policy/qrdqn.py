"""Quantile regression DQN: the return's distribution as its quantiles at fixed fractions."""

from __future__ import annotations

from typing import Any

import torch

from nervex.loader import enum, interval
from nervex.policy.action_space import greedy, over_heads
from nervex.policy.dqn import DQNPolicy, Forward
from nervex.rl_utils import TDLoss, qrdqn_nstep_td_data, qrdqn_nstep_td_error
from nervex.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register('qrdqn')
class QRDQNPolicy(DQNPolicy):
    """
    Overview:
        The quantile Huber loss between the quantiles of Q(s, a) and those of r + gamma Q_target(s', a*), where a* has
        the largest mean. Paper: Dabney et al. 2018.
    """

    config = dict(
        policy_type='qrdqn',
        learn=dict(algo=dict(kappa=1.0)),  # (float) where the Huber loss turns linear; 0: the plain quantile loss
    )
    config_rules = dict(learn=dict(algo=dict(kappa=interval(0), huber=enum(False))))  # kappa does what huber does

    def default_model(self) -> tuple[str, list[str]]:
        return 'qr_fc', ['nervex.model']

    def _td_error(self, data: dict[str, Any], online: Forward, target: Forward) -> tuple[TDLoss, Any]:
        output = online(self._model_input(data['obs']))
        with torch.no_grad():
            next_input = self._model_input(data['next_obs'])
            following = target(next_input)
            chooser = online(next_input)['logit'] if self._double_q else following['logit']
            next_action = greedy(chooser, next_input.get('action_mask'))
        fields = qrdqn_nstep_td_data(
            output['q'],
            following['q'],
            data['action'],
            next_action,
            self._time_first(data),
            data['done'],
            output['tau'],
            data['weight'],
        )
        kwargs = {'kappa': self._cfg.learn.algo.kappa, **self._nstep_kwargs(data)}
        return over_heads(qrdqn_nstep_td_error, fields, self._gamma, **kwargs), output['logit']
