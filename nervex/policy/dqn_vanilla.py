"""Deep Q-learning by hand: no armor, no adder, plain torch. The shortest policy that learns."""

from __future__ import annotations

import copy
from typing import Any

import torch

from nervex.policy.common_policy import CommonPolicy
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('dqn_vanilla')
class DQNVanillaPolicy(CommonPolicy):
    """
    Overview:
        The one-step double DQN of ``dqn``, spelled out: armors and the adder are conveniences, not requirements. A
        network gives ``logit``; the target network is a copy of it; a random number decides who explores.
    """

    config = settings(
        policy_type='dqn_vanilla',
        learn=dict(
            train_step=3,
            optimizer=setting('adam', "'adam'", 'there is no choice here'),
            optimizer_eps=setting(None, 'None', 'nor here'),
            learning_rate_schedule=setting('constant', "'constant'", 'nor here'),
            algo=dict(target_update_freq=100, discount_factor=0.97),
        ),
        command=dict(eps=dict(type='exp', start=0.95, end=0.1, decay=10000)),  # decay in updates
    )
    _default_model = 'fc_discrete_net'

    action_kinds = ('discrete',)
    takes_action_mask = False
    no_nstep = "it learns from single steps; 'dqn' has more"
    resume_parts: tuple[str, ...] = ('_generator',)
    learn_parts: tuple[str, ...] = ('_updates_done',)
    _logs = 'cur_lr total_loss q_value grad_norm'

    def _init_learn(self) -> None:
        learn = self._cfg.learn
        self._gamma, self._target_update_freq = learn.algo.discount_factor, learn.algo.target_update_freq
        self._largest_norm = float('inf') if learn.grad_clip_norm is None else learn.grad_clip_norm
        self._target_model = copy.deepcopy(self._model)
        self._optimizer = torch.optim.Adam(
            self._model.parameters(), lr=learn.learning_rate, weight_decay=learn.weight_decay
        )
        self._updates_done = 0

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        q = self._model({'obs': data['obs']})['logit']
        q_taken = q.gather(1, data['action'].unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            next_action = self._model({'obs': data['next_obs']})['logit'].argmax(1, keepdim=True)
            next_value = self._target_model({'obs': data['next_obs']})['logit'].gather(1, next_action).squeeze(1)
            not_done = 1.0 if data['done'] is None else 1.0 - data['done']
            td_error = data['reward'] + self._gamma * not_done * next_value - q_taken
        weight = 1.0 if data['weight'] is None else data['weight']
        loss = (weight * (q_taken - (td_error + q_taken.detach())).pow(2)).mean()
        return loss, {'td_error': td_error, 'q_value': q_taken.detach()}

    def _forward_learn(self, data: dict[str, Any]) -> dict[str, Any]:
        loss, info = self._loss(data)
        self._optimizer.zero_grad()
        loss.backward()
        grad_norm = torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._largest_norm)
        self._optimizer.step()
        self._updates_done += 1
        if self._updates_done % self._target_update_freq == 0:
            self._target_model.load_state_dict(self._model.state_dict())
        return {
            'cur_lr': self._optimizer.param_groups[0]['lr'],
            'total_loss': loss.detach(),
            'q_value': info['q_value'],
            'grad_norm': grad_norm,
            'priority': info['td_error'].abs(),
        }

    def _init_collect(self) -> None:
        self._generator = torch.Generator().manual_seed(int(torch.randint(2**62, ())))
        self._collect_setting_set = {'eps'}

    def _forward_collect(self, data_id: list[int], data: dict[str, Any]) -> dict[str, Any]:
        output = self._forward_eval(data_id, data)
        rows, actions = output['logit'].shape
        explores = torch.rand(rows, generator=self._generator) < self._eps
        random_action = torch.randint(actions, (rows,), generator=self._generator)
        output['action'] = torch.where(explores.to(self._device), random_action.to(self._device), output['action'])
        return output

    def _init_eval(self) -> None:
        """The model alone is enough."""

    @torch.no_grad()
    def _forward_eval(self, data_id: list[int], data: dict[str, Any]) -> dict[str, Any]:
        logit = self._model(data)['logit']
        return {'logit': logit, 'action': logit.argmax(dim=-1)}
