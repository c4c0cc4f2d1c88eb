"""COMA: agents that learn by what they themselves changed, judged by one critic that sees everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nervex.armor.sampling import Draws
from nervex.data import Batch
from nervex.policy.action_space import legal
from nervex.policy.batched import batched
from nervex.policy.sequences import cut_sequences
from nervex.policy.team import TeamPolicy
from nervex.policy.traj_block import batched_steps, repeats_of
from nervex.rl_utils import coma_data, coma_error
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('coma')
class COMAPolicy(TeamPolicy):
    """
    Overview:
        Counterfactual policy gradients: -log pi(a) (Q(a) - sum_b pi(b) Q(b)) for each agent, where Q is one central
        critic's value of its actions while the others do what they did, learned towards TD(lambda) returns of its
        target network. pi = (1 - eps) softmax + eps / legal actions both acts and learns. Behind a cut sequence or a
        time limit the policy's own action is valued. The critic sees no actions of agents that have left. Paper:
        Foerster et al. 2018.
    """

    config = settings(
        policy_type='coma',
        on_policy=True,
        learn=dict(
            graph='off',  # the action behind a sequence is drawn from a generator of its own
            epochs=1,
            batch_size=16,
            learning_rate=5e-4,
            grad_clip_norm=10.0,
            algo=dict(
                target_theta=0.02,
                td_lambda=setting(0.8, 'number in [0, 1]', 'of the returns: 0 looks one step ahead, 1 to the end'),
                policy_weight=setting(1.0, 'number >= 0', "weight of the policy's loss"),
                value_weight=setting(1.0, 'number >= 0', "weight of the critic's loss"),
                entropy_weight=setting(0.01, 'number >= 0', 'weight of the entropy bonus'),
                reward_scale=setting(1.0, 'number > 0', 'factor of the rewards, for values of a size easy to learn'),
            ),
        ),
        command=dict(
            eps=dict(type='linear', start=0.5, end=0.02, decay=50000),
            eps_by=setting('envstep', "'learner_step' | 'envstep'", 'what the decay counts: updates or env steps'),
        ),
    )
    _default_model = 'coma'
    _collects_by = 'eps_multinomial_sample'
    _time_columns = (*TeamPolicy._time_columns, 'eps')
    _logs = 'cur_lr total_loss policy_loss value_loss entropy_loss q_value grad_norm'
    learn_parts: tuple[str, ...] = ('_draws',)
    no_nstep = 'returns weigh all numbers of steps, by td_lambda'

    # ---- learn ----
    def _init_learn(self) -> None:
        super()._init_learn()
        self._draws = Draws()

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        obs, algo, model, target = data['obs'], self._cfg.learn.algo, self._armor.model, self._armor.target_model
        mask, reward = data['mask'], self._team_reward(data) * algo.reward_scale
        done = torch.zeros_like(reward) if data['done'] is None else data['done']
        eps = torch.cat([data['eps'], data['eps'][-1:]])
        output = model.compute_action({'obs': obs, 'prev_state': self._first_state(data)})
        logit = exploring(output['logit'], obs.get('action_mask'), eps)
        alive = obs.get('agent_alive')
        real = one_row_more(mask)
        action = torch.where(real.unsqueeze(-1), one_row_more(data['action']), self._drawn(logit.detach()))
        seen = action if alive is None else torch.where(alive > 0, action, -1)
        judged = {'obs': obs, 'action': seen, 'last_action': data['last_action']}
        q_value = model.compute_q_value(judged)['q_value']
        with torch.no_grad():
            target_q = target.compute_q_value(judged)['q_value']
        rows = (one_row_more(reward), None, one_row_more(done), real, alive)
        loss = coma_error(coma_data(logit, action, q_value, target_q, *rows), self._gamma, algo.td_lambda)
        total = algo.policy_weight * loss.policy_loss + algo.value_weight * loss.q_value_loss
        return total - algo.entropy_weight * loss.entropy_loss, {
            'policy_loss': loss.policy_loss.detach(),
            'value_loss': loss.q_value_loss.detach(),
            'entropy_loss': loss.entropy_loss.detach(),
            'q_value': q_value.detach().mean(),
        }

    def _drawn(self, logit: torch.Tensor) -> torch.Tensor:
        """Actions drawn from the softmax of logits."""
        race = torch.empty_like(logit).exponential_(generator=self._draws.on(self._device))
        return (logit - race.log()).argmax(-1)

    # ---- collect ----
    @batched
    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        eps = np.broadcast_to(np.asarray(self._eps, np.float32), len(data_id))
        return {**super()._forward_collect(data_id, data), 'eps': eps}

    @batched
    def _process_transition(self, obs: Any, armor_output: dict, timestep: Any) -> dict:
        return {**super()._process_transition(obs, armor_output, timestep), 'eps': armor_output['eps']}

    def _get_traj_overlap(self) -> int:
        return 1  # what was done before the first step of a sequence is seen by the critic

    @batched_steps
    def _get_train_sample(self, traj_cache: Batch) -> Batch:
        """A window of steps, time first, -> sequences with ``last_action``, what was done before their first step."""
        traj = traj_cache
        acted, obs = traj['action'], traj['obs']
        if 'agent_alive' in obs:
            acted = np.where(obs['agent_alive'] > 0, acted, -1)
        last = np.roll(acted, 1, axis=0)
        last[0] = -1
        last[1:][traj['done'][:-1]] = -1
        columns = Batch.of({**dict(traj.items()), 'last_action': last})
        samples = cut_sequences(columns, self._cfg.collect.unroll_len, repeated=repeats_of(traj, 1))
        samples['last_action'] = samples['last_action'][:, 0]
        return samples


def exploring(logit: torch.Tensor, mask: torch.Tensor | None, eps: torch.Tensor) -> torch.Tensor:
    """
    Overview:
        Log-probabilities of (1 - eps) softmax(logit) + eps / legal actions; minus infinity where an action is illegal.
    Shapes:
        - logit, mask and result: :math:`(T, B, A, P)`; eps: :math:`(T, B)`
    """
    masked, share = legal(logit, mask), eps[..., None, None]
    allowed = masked.isfinite()
    mixed = (1 - share) * torch.softmax(masked, -1) + share / allowed.sum(-1, keepdim=True)
    return torch.where(allowed, torch.where(allowed, mixed, 1.0).log(), -torch.inf)


def one_row_more(column: torch.Tensor) -> torch.Tensor:
    """With a row of zeros behind the last step."""
    return torch.cat([column, torch.zeros_like(column[:1])])
