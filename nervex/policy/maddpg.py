"""MADDPG and MATD3: agents that act by what they see, and climb critics that see what all of them see and do."""

from __future__ import annotations

from typing import Any

import torch

from nervex.policy.action_space import legal
from nervex.policy.ddpg import TARGET_NOISE, smaller
from nervex.policy.team import TeamActorsPolicy
from nervex.rl_utils.coma import of_the_living
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('maddpg')
class MADDPGPolicy(TeamActorsPolicy):
    """
    Overview:
        Each agent's critic learns y_i = r_i + gamma (1 - d) Q_i'(s', mu'(o')) of the actions of all, its actor climbs
        Q_i(s, a_1, .., mu_i(o_i), .., a_A). Discrete actions are drawn from the softmax over the legal ones, with the
        gradient of a Gumbel-softmax (straight through); evaluations take the likeliest. Paper: Lowe et al. 2017.
    """

    config = settings(
        policy_type='maddpg',
        model=dict(use_twin_critic=False),
        learn=dict(
            batch_size=256,
            algo=dict(
                temperature=setting(1.0, 'number > 0', 'of the softmax that discrete actions have their gradient from'),
                logit_weight=setting(1e-3, 'number >= 0', 'weight of the squared logits: draws stay unlike each other'),
                **TARGET_NOISE,
            ),
        ),
    )
    _default_model = 'team_qac'

    action_kinds = ('team', 'team_continuous')
    takes_action_mask = True
    _collects_by, _evaluates_by = 'multinomial_sample', 'argmax_sample'

    # ---- learn ----
    def _critic_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        obs, reward, done = data['obs'], data['reward'], data['done']
        now, following = self._now_and_next(obs)
        q_values = self._q_values(self._armor.forward, {'obs': now, 'action': _of_living(self._stored(data), now)})
        with torch.no_grad():
            given = {'obs': obs, 'prev_state': self._first_state(data)}
            output = self._armor.target_forward(given, param={'mode': 'compute_action'})
            action = _of_living(self._smoothed(self._chosen(output))[1:], following)
            next_value = smaller(self._q_values(self._armor.target_forward, {'obs': following, 'action': action}))
            next_value = of_the_living(next_value, following.get('agent_alive'), each=reward.dim() == 3)
            goes_on = self._gamma if done is None else self._gamma * (1 - done.unsqueeze(-1))
            goal = (reward if reward.dim() == 3 else reward.unsqueeze(-1)) + goes_on * next_value
        losses, sizes = zip(*(self._squared(goal - q, self._real(data), data) for q in q_values))
        log = {'td_error': torch.stack(sizes).mean(0), 'q_value': q_values[0].mean()}
        return torch.stack(losses).sum(), log

    def _actor_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        now, _ = self._now_and_next(data['obs'])
        given = {'obs': now, 'prev_state': self._first_state(data)}
        output = self._armor.forward(given, param={'mode': 'compute_action'})
        own = self._chosen(output)
        mine = torch.eye(own.shape[-2], dtype=torch.bool, device=own.device).unsqueeze(-1)
        action = torch.where(mine, own.unsqueeze(-3), self._stored(data).unsqueeze(-3))  # each its own among theirs
        judged = {'obs': now, 'action': _of_living(action, now, rows=True)}
        cost, real = -self._q_values(self._armor.forward, judged)[0], self._real(data)
        if 'logit' in output:
            cost = cost + self._cfg.learn.algo.logit_weight * output['logit'].pow(2).mean(-1)
        return (cost * real).sum() / real.sum(), {}

    def _stored(self, data: dict[str, Any]) -> torch.Tensor:
        """The actions that were done, as vectors (T, B, A, k)."""
        action = data['action']
        return action if self._model.continuous else _one_hot(action, self._model.action_dim)

    def _chosen(self, output: dict[str, Any]) -> torch.Tensor:
        """The actions of a model as vectors (*, A, k): as they are, or drawn, with the gradient of the softmax."""
        if 'logit' not in output:
            return output['action']
        logit = legal(output['logit'], output.get('action_mask'))
        race = torch.empty_like(logit).exponential_(generator=self._generator)
        soft = torch.softmax((logit - race.log()) / self._cfg.learn.algo.temperature, -1)
        return _one_hot(soft.argmax(-1), soft.shape[-1]) + (soft - soft.detach())

    def _smoothed(self, action: torch.Tensor) -> torch.Tensor:
        return super()._smoothed(action) if self._model.continuous else action


@POLICY_REGISTRY.register('matd3')
class MATD3Policy(MADDPGPolicy):
    """
    Overview:
        MADDPG against overestimation, as TD3: the smaller of two critics makes the target, continuous actions of the
        target are smoothed by clipped noise, and the actors move half as often. Paper: Ackermann et al. 2019.
    """

    config = settings(
        policy_type='matd3',
        model=dict(use_twin_critic=True),
        learn=dict(algo=dict(actor_update_freq=2, target_noise_sigma=0.2)),
    )


def _one_hot(action: torch.Tensor, size: int) -> torch.Tensor:
    """Numbers of actions as vectors; torch's own looks at the numbers, which a recording cannot."""
    zeros = torch.zeros(*action.shape, size, device=action.device)
    return zeros.scatter(-1, action.unsqueeze(-1), 1.0)


def _of_living(action: torch.Tensor, obs: dict[str, Any], rows: bool = False) -> torch.Tensor:
    """Actions (*, A, k), or one row of all for each agent (*, A, A, k), with zeros for agents that have left."""
    alive = obs.get('agent_alive')
    return action if alive is None else action * (alive.unsqueeze(-2) if rows else alive).unsqueeze(-1)
