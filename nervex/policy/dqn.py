"""Deep Q-learning with double Q, n-step targets, a target network and, on request, prioritized replay."""

from __future__ import annotations

from typing import Any

import torch

from nervex.armor import Armor
from nervex.loader import enum, interval, is_type
from nervex.policy.batched import batched
from nervex.policy.common_policy import CommonPolicy
from nervex.rl_utils import epsilon_greedy, q_nstep_td_data, q_nstep_td_error
from nervex.torch_utils import Adam
from nervex.torch_utils.flat import FlatParameters
from nervex.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register('dqn')
class DQNPolicy(CommonPolicy):
    """
    Overview:
        y = sum_k<n gamma^k r_t+k + gamma^n Q_target(s_t+n, argmax_a Q(s_t+n, a)); the loss is the weighted mean of
        (Q(s_t, a_t) - y)^2. Papers: Mnih et al. 2015; van Hasselt et al. 2016 (double Q); Schaul et al. 2016.
    """

    config = dict(
        policy_type='dqn',
        learn=dict(
            train_step=3,
            algo=dict(
                target_update_freq=100,  # (int) updates between two copies into the target network
                discount_factor=0.97,  # (float) gamma in [0, 1]
                nstep=1,  # (int) rewards summed before the target network takes over
                double_q=True,  # (bool) the online network chooses the action of the target
            ),
        ),
        collect=dict(algo=dict(nstep=1)),  # filled from learn.algo.nstep
        command=dict(
            eps=dict(
                type='exp',  # (str) 'exp' or 'linear'
                start=0.95,  # (float) share of random actions at the start
                end=0.1,  # (float) and at the end
                decay=10000,  # (int) steps of the decay
                by='learner_step',  # (str) what counts as a step: 'learner_step' (updates) or 'envstep'
            )
        ),
    )
    config_rules = dict(
        learn=dict(algo=dict(target_update_freq=is_type(int) & interval(1))),
        command=dict(
            eps=dict(
                type=enum('exp', 'linear'),
                start=interval(0, 1),
                end=interval(0, 1),
                decay=interval(1),
                by=enum('learner_step', 'envstep'),
            )
        ),
    )

    def default_model(self) -> tuple[str, list[str]]:
        return 'fc_discrete_net', ['nervex.model']

    def _init_learn(self) -> None:
        algo = self._cfg.learn.algo
        self._gamma, self._nstep, self._double_q = algo.discount_factor, algo.nstep, algo.double_q
        self._armor = Armor(self._model)
        self._armor.add_model('target', update_type='assign', update_kwargs={'freq': algo.target_update_freq})
        self._armor.mode(train=True)
        self._armor.target_mode(train=True)
        flat = FlatParameters(self._model)
        FlatParameters(self._armor.target_model)
        self._optimizer = Adam(flat, lr=self._cfg.learn.learning_rate, weight_decay=self._cfg.learn.weight_decay)

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        q = self._armor.forward({'obs': data['obs']})['logit']
        with torch.no_grad():
            target_q = self._armor.target_forward({'obs': data['next_obs']})['logit']
            chooser = self._armor.forward({'obs': data['next_obs']})['logit'] if self._double_q else target_q
            next_action = chooser.argmax(dim=-1)
        reward = data['reward']
        reward = reward.unsqueeze(0) if reward.dim() == 1 else reward.t()
        fields = q_nstep_td_data(q, target_q, data['action'], next_action, reward, data['done'], data['weight'])
        loss, td_error = q_nstep_td_error(fields, self._gamma, nstep=self._nstep, value_gamma=data.get('value_gamma'))
        return loss, {'td_error': td_error, 'q_value': q.detach()}

    def _forward_learn(self, data: dict[str, Any]) -> dict[str, Any]:
        loss, info = self._minimize(self._loss, data, self._optimizer)
        self._armor.target_update(self._model)
        return {
            'cur_lr': self._optimizer.param_groups[0]['lr'],
            'total_loss': loss,
            'q_value': info['q_value'],
            'grad_norm': info['grad_norm'],
            **({'priority': info['td_error'].abs()} if self._use_priority else {}),
        }

    def _monitor_vars_learn(self) -> list[str]:
        return ['cur_lr', 'total_loss', 'q_value', 'grad_norm']

    def _init_collect(self) -> None:
        self._collect_armor = Armor(self._model)
        self._collect_armor.add_plugin('main', 'eps_greedy_sample')
        self._collect_armor.add_plugin('main', 'grad', enable_grad=False)
        self._collect_setting_set = {'eps'}

    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        return self._collect_armor.forward(data, eps=self._eps)

    @batched
    def _process_transition(self, obs: Any, armor_output: dict, timestep: Any) -> dict:
        return {
            'obs': obs,
            'next_obs': timestep.obs,
            'action': armor_output['action'],
            'reward': timestep.reward,
            'done': timestep.done,
        }

    def _init_eval(self) -> None:
        self._eval_armor = Armor(self._model)
        self._eval_armor.add_plugin('main', 'argmax_sample')
        self._eval_armor.add_plugin('main', 'grad', enable_grad=False)

    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        return self._eval_armor.forward(data)

    def _init_command(self) -> None:
        eps = self._cfg.command.eps
        self._eps_by = eps.by
        self._epsilon_greedy = epsilon_greedy(eps.start, eps.end, eps.decay, eps.type)

    def _get_setting_collect(self, command_info: dict) -> dict:
        return {'eps': self._epsilon_greedy(command_info[self._eps_by])}
