"""Soft actor-critic whose critics give quantiles of the return; targets leave out the largest of them."""

from __future__ import annotations

from typing import Any

import torch
from easydict import EasyDict

from nervex.policy.sac import SACPolicy
from nervex.rl_utils import qrdqn_nstep_td_data, qrdqn_nstep_td_error
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('tqc')
class TQCPolicy(SACPolicy):
    """
    Overview:
        Truncated quantile critics: y_j = r + gamma (1 - d) (z_j - alpha log pi(a'|s')), where the z are the quantiles
        of all target critics together without the ``drop_quantiles`` largest a critic; each critic descends the
        quantile Huber loss towards all y, the actor climbs the mean of all quantiles. Paper: Kuznetsov et al. 2020.
    """

    config = settings(
        policy_type='tqc',
        model=dict(critic_num=5, num_quantiles=25),
        learn=dict(
            algo=dict(drop_quantiles=setting(2, 'int >= 0', 'largest quantiles, a critic, that targets leave out')),
        ),
    )

    @classmethod
    def check_config(cls, cfg: EasyDict) -> list[tuple[str, str]]:
        """Settings of this policy that do not go together: pairs (path, what is wrong)."""
        problems = super().check_config(cfg)
        if 'num_quantiles' in cfg.model:
            count, dropped = cfg.model.num_quantiles, cfg.learn.algo.drop_quantiles
            if dropped >= count > 1:
                text = f'got {dropped}, must be less than policy.model.num_quantiles = {count}'
                problems.append(('learn.algo.drop_quantiles', text))
        return problems

    @staticmethod
    def _wrong_quantiles(count: int) -> str | None:
        return None if count > 1 else 'must be at least 2; one alone is policy sac'

    def _next_value(self, q_values: list[torch.Tensor], cost: torch.Tensor) -> torch.Tensor:
        pooled = torch.cat(q_values, -1).sort(-1).values
        kept = pooled.shape[-1] - self._cfg.learn.algo.drop_quantiles * len(q_values)
        return pooled[:, :kept] - cost.unsqueeze(-1)

    def _judged(self, q_values: list[torch.Tensor]) -> torch.Tensor:
        return torch.cat(q_values, -1).mean(-1)

    def _td_loss(
        self, q_values: list[torch.Tensor], next_value: torch.Tensor, data: dict[str, Any]
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        rows, count = q_values[0].shape
        tau = (torch.arange(count, device=next_value.device) + 0.5) / count
        only = torch.zeros(rows, dtype=torch.long, device=next_value.device)  # one head of one action
        rest = (next_value.unsqueeze(1), only, only, self._time_first(data), data['done'], tau, data['weight'])
        how = (self._gamma, self._nstep, data.get('value_gamma'))
        errors = [qrdqn_nstep_td_error(qrdqn_nstep_td_data(q.unsqueeze(1), *rest), *how) for q in q_values]
        loss: Any = sum(error.loss for error in errors) / count  # the mean over the own quantiles
        td_error = sum(error.td_error_per_sample for error in errors) / (count * len(errors))
        return loss, {'td_error': td_error, 'q_value': q_values[0].mean()}
