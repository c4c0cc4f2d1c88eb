"""Conservative Q-learning from recorded data, for discrete actions."""

from __future__ import annotations

from typing import Any

import torch

from nervex.policy.action_space import Heads, legal, side_by_side
from nervex.policy.dqn import DQNPolicy
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('cql')
class CQLPolicy(DQNPolicy):
    """
    Overview:
        DQN's loss plus ``cql_alpha`` times E[log sum_a exp Q(s, a) - Q(s, a_data)]: values of actions that the data
        does not show are pushed down, so that the policy does not trust what nobody tried. Runs on recorded episodes,
        see ``offline_pipeline``. Paper: Kumar et al. 2020.
    """

    config = settings(
        policy_type='cql',
        learn=dict(
            algo=dict(discount_factor=0.99, cql_alpha=setting(1.0, 'number >= 0', 'weight of the pessimism')),
        ),
    )

    _logs = f'{DQNPolicy._logs} td_loss cql_loss'

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        (loss, td_error), q = self._td_error(data, self._armor.forward, self._armor.target_forward)
        mask = self._model_input(data['obs']).get('action_mask')
        gap = _optimism(legal(q, mask), data['action'])
        gap = gap.mean() if data['weight'] is None else (gap * data['weight']).mean()
        total = loss + self._cfg.learn.algo.cql_alpha * gap
        return total, {
            'td_error': td_error,
            'q_value': side_by_side(q).detach(),
            'td_loss': loss.detach(),
            'cql_loss': gap.detach(),
        }


def _optimism(q: Heads, action: torch.Tensor) -> torch.Tensor:
    """log sum_a exp Q(s, a) - Q(s, a_data) of each row, the mean over the heads."""
    if isinstance(q, torch.Tensor):
        return torch.logsumexp(q, dim=-1) - q.gather(-1, action.unsqueeze(-1)).squeeze(-1)
    total: Any = sum(_optimism(head, taken) for head, taken in zip(q, action.unbind(-1)))
    return total / len(q)
