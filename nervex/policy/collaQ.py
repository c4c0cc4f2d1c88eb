"""CollaQ: QMIX whose agents know what they would be worth alone."""

from __future__ import annotations

from typing import Any

import torch

from nervex.policy.qmix import QMIXPolicy, of_actions
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('collaQ')
class CollaQPolicy(QMIXPolicy):
    """
    Overview:
        QMIX's loss with Q_i = Q_alone(what concerns the agent alone) + Q_colla(all that it sees), and beside it
        collaQ_loss_factor mean((sum over agents Q_colla of the same action where they see no others)^2), so that
        Q_alone learns what needs nobody. Observations also have ``agent_alone_state`` and
        ``agent_alone_padding_state``. Paper: Zhang et al. 2020.
    """

    config = settings(
        policy_type='collaQ',
        learn=dict(
            algo=dict(collaQ_loss_factor=setting(1.0, 'number >= 0', 'weight of Q_colla of agents without others')),
        ),
    )
    _default_model = 'collaq'
    _logs = f'{QMIXPolicy._logs} colla_alone_loss'

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        loss, info = super()._loss(data)
        now, _ = self._now_and_next(data['obs'])
        values = self._armor.model.colla_alone_values(now, self._first_state(data))
        of_living = of_actions(values, data['action']) * self._real(data)
        blank, _ = self._squared(of_living.sum(-1), data['mask'], data)
        return loss + self._cfg.learn.algo.collaQ_loss_factor * blank, {**info, 'colla_alone_loss': blank.detach()}
