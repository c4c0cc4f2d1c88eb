"""Conservative Q-learning from recorded data, for discrete actions and for continuous ones."""

from __future__ import annotations

import math
from typing import Any

import torch

from nervex.policy.action_space import Heads, legal, side_by_side
from nervex.policy.ddpg import smaller
from nervex.policy.dqn import DQNPolicy
from nervex.policy.sac import SACPolicy
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


@POLICY_REGISTRY.register('cql_continuous')
class ContinuousCQLPolicy(SACPolicy):
    """
    Overview:
        SAC's loss of the critics, with targets r + gamma (1 - d) min Q_target(s', a'), plus ``cql_alpha`` times
        E[log int exp Q(s, a) da - Q(s, a_data)] each; the integral is estimated by importance from ``cql_samples``
        uniform actions, and as many draws from pi(a|s) and from pi(a|s'). Runs on recorded episodes, see
        ``offline_pipeline``. Paper: Kumar et al. 2020.
    """

    config = settings(
        policy_type='cql_continuous',
        learn=dict(
            algo=dict(
                cql_alpha=setting(5.0, 'number >= 0', 'weight of the pessimism'),
                cql_samples=setting(10, 'int >= 1', 'actions of each of the three kinds that stand for all actions'),
            ),
        ),
    )
    _logs = f'{SACPolicy._logs} td_loss cql_loss'

    def _next_value(self, q_values: list[torch.Tensor], cost: torch.Tensor) -> torch.Tensor:
        return smaller(q_values)

    def _td_loss(
        self, q_values: list[torch.Tensor], next_value: torch.Tensor, data: dict[str, Any]
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        loss, info = super()._td_loss(q_values, next_value, data)
        with torch.no_grad():
            action, log_density = self._stand_ins(data)
        obs = data['obs'].unsqueeze(1).expand(-1, action.shape[1], -1)
        of_all = self._q_values(self._armor.forward, {'obs': obs, 'action': action})
        rows: Any = sum(torch.logsumexp(q - log_density, 1) - now for q, now in zip(of_all, q_values))
        rows = rows - len(q_values) * math.log(action.shape[1])
        gap = rows.mean() if data['weight'] is None else (rows * data['weight']).mean()
        total = loss + self._cfg.learn.algo.cql_alpha * gap
        return total, {**info, 'td_loss': loss.detach(), 'cql_loss': gap.detach()}

    def _stand_ins(self, data: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        """Actions (B, 3 n, D), uniform and by the policy here and in the next state; their log-densities (B, 3 n)."""
        count, (rows, size) = self._cfg.learn.algo.cql_samples, data['action'].shape
        pair = torch.cat([data[key].unsqueeze(1).expand(-1, count, -1) for key in ('obs', 'next_obs')], 1)
        drawn = self._draw(pair)
        uniform = torch.rand((rows, count, size), device=pair.device, generator=self._generator) * 2 - 1
        density = torch.full((rows, count), -size * math.log(2.0), device=pair.device)
        return torch.cat([uniform, drawn['action']], 1), torch.cat([density, drawn['log_prob']], 1)
