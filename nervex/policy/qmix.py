"""QMIX, VDN and IQL: teams that learn action values; CollaQ, with values for the others."""

from __future__ import annotations

from typing import Any

import torch

from nervex.model.team import ValueScale
from nervex.policy.action_space import greedy
from nervex.policy.team import TeamPolicy
from nervex.rl_utils import reverse_scan
from nervex.rl_utils.coma import of_the_living
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('qmix')
class QMIXPolicy(TeamPolicy):
    """
    Overview:
        Q-learning of a team: y = r + gamma Q_tot'(s', a'), where Q_tot is made of the agents' values of their own
        actions by a mixer that is monotone in each of them; a' is each agent's best legal action. Papers: Rashid et al.
        2018; Sunehag et al. 2018 (VDN: the sum instead of a mixer, ``model.use_mixer=False``). With ``td_lambda`` the
        targets look further along the stored steps (Peng's Q(lambda), Kozuno et al. 2021).
    """

    config = settings(
        policy_type='qmix',
        learn=dict(
            train_step=8,
            batch_size=32,
            learning_rate=5e-4,
            grad_clip_norm=10.0,
            algo=dict(
                target_update_freq=200,
                double_q=setting(True, 'bool', 'the online network chooses the actions of the target'),
                td_lambda=setting(0.0, 'number in [0, 1]', 'of the targets: 0 looks one step ahead, 1 to the end'),
                standardise_rewards=setting(False, 'bool', 'in units of the spread of those seen, less their mean'),
            ),
        ),
        command=dict(
            eps=dict(type='linear', start=1.0, end=0.05, decay=50000),
            eps_by=setting('envstep', "'learner_step' | 'envstep'", 'what the decay counts: updates or env steps'),
        ),
    )
    _default_model = 'qmix'
    _collects_by = 'eps_greedy_sample'
    _logs = 'cur_lr total_loss q_value grad_norm'
    no_nstep = 'targets weigh all numbers of steps, by td_lambda'
    learn_parts = ('_reward_scale',)
    _reward_scale: ValueScale | None = None

    def _init_learn(self) -> None:
        super()._init_learn()
        if self._cfg.learn.algo.standardise_rewards:
            self._reward_scale = ValueScale().to(self._device)

    def _forward_learn(self, data: dict[str, Any]) -> dict[str, Any]:
        if self._reward_scale is not None:
            self._reward_scale.update(self._team_reward(data)[data['mask']])
        return super()._forward_learn(data)

    def _team_value(self, model: Any, q: torch.Tensor, obs: dict[str, torch.Tensor]) -> torch.Tensor:
        """What is learned of the agents' values (T, B, A): the team's value (T, B), without those who have left."""
        return model.joint(q * obs['agent_alive'] if 'agent_alive' in obs else q, obs)

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        obs, state, real, algo = data['obs'], self._first_state(data), data['mask'], self._cfg.learn.algo
        now, following = self._now_and_next(obs)
        model, target = self._armor.model, self._armor.target_model
        logit = model.agent_values(obs, state)
        value = self._team_value(model, of_actions(logit[:-1], data['action']), now)
        with torch.no_grad():
            target_logit = target.agent_values(obs, state)[1:]
            best = greedy(logit[1:] if algo.double_q else target_logit, following.get('action_mask'))
            next_value = self._team_value(target, of_actions(target_logit, best), following)
            goes_on = self._gamma if data['done'] is None else self._gamma * (1 - data['done'])
            if value.dim() == 3:
                real, goes_on = self._real(data), torch.as_tensor(goes_on).unsqueeze(-1)
                alive, each = following.get('agent_alive'), data['reward'].dim() == 3
                next_value = of_the_living(next_value, alive, each)
            reward = self._team_reward(data)
            if self._reward_scale is not None:
                reward = self._reward_scale.inward(reward)
            goal = reward + goes_on * next_value
            if algo.td_lambda:
                goal = further(goal, next_value, goes_on, real, algo.td_lambda)
        loss, td_error = self._squared(goal - value, real, data)
        return loss, {'td_error': td_error, 'q_value': value.detach()}


@POLICY_REGISTRY.register('vdn')
class VDNPolicy(QMIXPolicy):
    """QMIX with the sum of the agents' values in place of its mixer (Sunehag et al. 2018)."""

    config = settings(policy_type='vdn', model=dict(use_mixer=False))


@POLICY_REGISTRY.register('iql')
class IQLPolicy(QMIXPolicy):
    """Every agent learns for itself, from the team's reward or from its own where the env gives one each (Tan 1993)."""

    config = settings(policy_type='iql', model=dict(use_mixer=False))

    def _team_value(self, model: Any, q: torch.Tensor, obs: dict[str, torch.Tensor]) -> torch.Tensor:
        return q

    def _team_reward(self, data: dict[str, Any]) -> torch.Tensor:
        """The team's (T, B, 1), or each agent's."""
        reward = data['reward']
        return reward if reward.dim() == 3 else reward.unsqueeze(-1)


def further(
    goal: torch.Tensor, next_value: torch.Tensor, goes_on: torch.Tensor | float, real: torch.Tensor, lambda_: float
) -> torch.Tensor:
    """
    Overview:
        Of targets of one step those of TD(lambda): in each, lambda of the value of the next state gives way to the
        target there, if that is a real step.
    Shapes:
        - goal, next_value, goes_on and result: :math:`(T, B)` or :math:`(T, B, A)`; real: the same
    """
    weight = torch.cat([real[1:], torch.zeros_like(real[:1])]) * lambda_ * goes_on
    return reverse_scan(weight, goal - weight * next_value)


def of_actions(logit: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
    """The values of these actions (*, A) among those of all (*, A, P)."""
    return logit.gather(-1, action.unsqueeze(-1)).squeeze(-1)


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
