"""Quantile regression DQN: the return's distribution as its quantiles at fixed fractions."""

from __future__ import annotations

from typing import Any

from nervex.policy.action_space import over_heads
from nervex.policy.dqn import DQNPolicy
from nervex.rl_utils import TDLoss, qrdqn_nstep_td_data, qrdqn_nstep_td_error
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('qrdqn')
class QRDQNPolicy(DQNPolicy):
    """
    Overview:
        The quantile Huber loss between the quantiles of Q(s, a) and those of r + gamma Q_target(s', a*), where a* has
        the largest mean. Paper: Dabney et al. 2018.
    """

    config = settings(
        policy_type='qrdqn',
        learn=dict(
            algo=dict(
                kappa=setting(1.0, 'number >= 0', 'where the Huber loss turns linear; 0: the plain quantile loss'),
                huber=setting(False, 'False', 'kappa does what huber does'),
            )
        ),
    )
    _default_model = 'qr_fc'

    def _error_of(self, output: dict, following: dict, taken: Any, weight: Any, kwargs: dict[str, Any]) -> TDLoss:
        fields = qrdqn_nstep_td_data(*(output['q'], following['q'], *taken, output['tau'], weight))
        return over_heads(qrdqn_nstep_td_error, fields, self._gamma, kappa=self._cfg.learn.algo.kappa, **kwargs)
