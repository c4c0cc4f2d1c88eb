"""ATOC: agents that learn when to talk to those who are near."""

from __future__ import annotations

from typing import Any

import torch

from nervex.policy.team import TeamActorsPolicy
from nervex.rl_utils.coma import of_the_living
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('atoc')
class ATOCPolicy(TeamActorsPolicy):
    """
    Overview:
        DDPG of agents that share their networks: y_i = r_i + gamma (1 - d) Q'(o_i', mu_i'(o')), where the actor mu sees
        the thoughts of the groups in which an agent talks. Who calls its group together, the agents nearest to it, is
        decided by an attention unit, which learns by cross-entropy towards what the talk would be worth to the group by
        the critic, if all talked, scaled over the batch (1/2: nothing). ``model.communication=False`` is DDPG without
        it. Paper: Jiang and Lu 2018.
    """

    config = settings(
        policy_type='atoc',
        learn=dict(
            batch_size=128,
            learning_rate_attention=setting(None, 'number > 0 | None', 'of the attention unit; None: learning_rate'),
            algo=dict(discount_factor=0.95),
        ),
        collect=dict(traj_len='inf', noise_sigma=0.15),
    )
    _default_model = 'atoc'
    action_kinds = ('team_continuous',)
    takes_action_mask = False
    _logs = f'{TeamActorsPolicy._logs} attention_loss initiators delta_q'
    learn_parts: tuple[str, ...] = ('_optimizer_attention',)
    _parts = ('actor', 'attention', 'critic')

    # ---- learn ----
    def _init_learn(self) -> None:
        super()._init_learn()
        learn = self._cfg.learn
        self._optimizer_attention = self._new_optimizer(self._model.attention, learn.learning_rate_attention)

    def _now(self, data: dict[str, Any], row: int = 0) -> dict[str, Any]:
        """The observations of the steps (B, ...), or behind them (row 1), with what was kept of the groups."""
        given = {'obs': {name: part[row] for name, part in data['obs'].items()}}
        state = self._first_state(data)
        return given if state is None else {**given, 'prev_state': state}

    def _critic_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        now, following, target = self._now(data), self._now(data, 1), self._armor.target_model
        q_value = self._armor.model.compute_q({**now, 'action': data['action'][0]})['q_value']
        with torch.no_grad():
            if 'prev_state' in now:
                following['prev_state'] = target.compute_action(now)['next_state']
            following['action'] = target.compute_action(following)['action']
            goes_on = self._gamma if data['done'] is None else self._gamma * (1 - data['done'][0].unsqueeze(-1))
            reward = data['reward'][0]
            next_value = target.compute_q(following)['q_value']
            next_value = of_the_living(next_value, following['obs'].get('agent_alive'), each=reward.dim() == 2)
            goal = (reward if reward.dim() == 2 else reward.unsqueeze(-1)) + goes_on * next_value
        loss, td_error = self._squared((goal - q_value).unsqueeze(0), self._real(data), data)
        return loss, {'td_error': td_error, 'q_value': q_value.mean()}

    def _actor_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        q_value, real = self._armor.model.optimize_actor(self._now(data))['q_value'], self._real(data)[0]
        return -(q_value * real).sum() / real.sum(), {}

    def _attention_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        model, now = self._armor.model, self._now(data)
        called = model.compute_action(now)
        everybody = torch.ones_like(
            called['is_initiator']
        )  # that plays: who never calls would never learn that it should
        output = model.compute_action({**now, 'is_initiator': everybody, 'group': called['group']}, get_delta_q=True)
        real = self._real(data)[0]
        figures = {'initiators': called['is_initiator'], 'delta_q': output['delta_q']}
        log = {name: (figure * real).sum() / real.sum() for name, figure in figures.items()}
        return model.optimize_actor_attention(output)['loss'], log

    def _forward_learn(self, data: dict[str, Any]) -> dict[str, Any]:
        log = super()._forward_learn(data)
        if not self._model.communication:
            return log
        loss, info = self._minimize(self._attention_loss, data, self._optimizer_attention)
        return {**log, 'attention_loss': loss, 'initiators': info['initiators'], 'delta_q': info['delta_q']}
