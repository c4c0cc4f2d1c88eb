"""Deep Q-learning with double Q, n-step targets, a target network and, on request, prioritized replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from nervex.armor import Armor
from nervex.data import Batch
from nervex.loader import enum, interval, is_type
from nervex.policy.action_space import greedy, joined, over_heads, side_by_side
from nervex.policy.batched import batched
from nervex.policy.common_policy import CommonPolicy
from nervex.rl_utils import TDLoss, epsilon_greedy, q_nstep_td_data, q_nstep_td_error
from nervex.torch_utils.flat import FlatParameters
from nervex.utils import POLICY_REGISTRY

Forward = Callable[[dict], dict]
HUBER = torch.nn.SmoothL1Loss(reduction='none')


@POLICY_REGISTRY.register('dqn')
class DQNPolicy(CommonPolicy):
    """
    Overview:
        y = sum_k<n gamma^k r_t+k + gamma^n Q_target(s_t+n, argmax_a Q(s_t+n, a)); the loss is the weighted mean of
        (Q(s_t, a_t) - y)^2. Papers: Mnih et al. 2015; van Hasselt et al. 2016 (double Q); Schaul et al. 2016
        (prioritized replay); Horgan et al. 2018 (Ape-X: first priorities, one epsilon an env).
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
                huber=False,  # (bool) errors above 1 count linearly instead of squared, halved below (Huber's loss)
            ),
        ),
        collect=dict(
            env_num=1,  # (int) envs that collect; filled from env.actor_env_num
            env_offset=0,  # (int) number of the first of them here, where several actors share them
            algo=dict(
                nstep=1,  # (int) filled from learn.algo.nstep
                first_priority=False,  # (bool) with use_priority: samples come with the size of their TD error
            ),
        ),
        command=dict(
            eps=dict(
                type='exp',  # (str) 'exp' or 'linear'
                start=0.95,  # (float) share of random actions at the start
                end=0.1,  # (float) and at the end
                decay=10000,  # (int) steps of the decay
            ),
            eps_by='learner_step',  # (str) what the decay counts: 'learner_step' (updates) or 'envstep'
            eps_spread=0.0,  # (float) alpha of Ape-X: env i of N explores with eps^(1 + alpha i / (N - 1))
        ),
    )
    config_rules = dict(
        learn=dict(algo=dict(target_update_freq=is_type(int) & interval(1))),
        collect=dict(env_num=is_type(int) & interval(1), env_offset=is_type(int) & interval(0)),
        command=dict(
            eps=dict(
                type=enum('exp', 'linear'),
                start=interval(0, 1),
                end=interval(0, 1),
                decay=interval(1),
            ),
            eps_by=enum('learner_step', 'envstep'),
            eps_spread=interval(0),
        ),
    )

    action_kinds = ('discrete', 'multi_discrete')

    @classmethod
    def check_config(cls, cfg: dict) -> list[tuple[str, str]]:
        problems = super().check_config(cfg)
        if cfg.collect.algo.first_priority and not cfg.use_priority:
            problems.append(('collect.algo.first_priority', 'got True, but nothing uses it; set policy.use_priority'))
        return problems

    def default_model(self) -> tuple[str, list[str]]:
        return 'fc_discrete_net', ['nervex.model']

    # ---- learn ----
    def _init_learn(self) -> None:
        algo = self._cfg.learn.algo
        self._gamma, self._nstep, self._double_q = algo.discount_factor, algo.nstep, algo.double_q
        self._armor = Armor(self._model)
        self._armor.add_model('target', update_type='assign', update_kwargs={'freq': algo.target_update_freq})
        self._armor.mode(train=True)
        self._armor.target_mode(train=True)
        self._optimizer = self._new_optimizer(self._model)
        FlatParameters(self._armor.target_model)

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        (loss, td_error), q = self._td_error(data, self._armor.forward, self._armor.target_forward)
        return loss, {'td_error': td_error, 'q_value': side_by_side(q).detach()}

    def _td_error(self, data: dict[str, Any], online: Forward, target: Forward) -> tuple[TDLoss, Any]:
        """The TD error of a batch, and the action values of its states."""
        q = online(self._model_input(data['obs']))['logit']
        with torch.no_grad():
            following = self._model_input(data['next_obs'])
            target_q = target(following)['logit']
            chooser = online(following)['logit'] if self._double_q else target_q
            next_action = greedy(chooser, following.get('action_mask'))
        fields = (q, target_q, data['action'], next_action, self._time_first(data), data['done'], data['weight'])
        kwargs = {'criterion': HUBER} if self._cfg.learn.algo.huber else {}
        kwargs.update(self._nstep_kwargs(data))
        return over_heads(q_nstep_td_error, q_nstep_td_data(*fields), self._gamma, **kwargs), q

    def _nstep_kwargs(self, data: dict[str, Any]) -> dict[str, Any]:
        return {'nstep': self._nstep, 'value_gamma': data.get('value_gamma')}

    @staticmethod
    def _time_first(data: dict[str, Any]) -> torch.Tensor:
        """Rewards (B, nstep) or (B, ) -> (nstep, B)."""
        reward = data['reward']
        return reward.unsqueeze(0) if reward.dim() == 1 else reward.t()

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

    # ---- collect ----
    def _init_collect(self) -> None:
        algo, envs = self._cfg.learn.algo, self._cfg.collect.env_num
        self._gamma, self._nstep, self._double_q = algo.discount_factor, algo.nstep, algo.double_q
        self._first_priority = self._cfg.collect.algo.first_priority and self._use_priority
        spread = self._cfg.command.eps_spread
        self._eps_power = 1 + spread * np.arange(envs) / (envs - 1) if spread and envs > 1 else None
        self._collect_armor = self._acting_armor('eps_greedy_sample')
        self._collect_setting_set = {'eps'}

    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        return self._collect_armor.forward(data, eps=self._row_eps(data_id))

    def _row_eps(self, data_id: list[int]) -> Any:
        """Epsilon: one for all envs, or one for each of these."""
        if self._eps_power is None:
            return self._eps
        return self._eps ** self._eps_power[np.asarray(data_id) + self._cfg.collect.env_offset]

    @batched
    def _process_transition(self, obs: Any, armor_output: dict, timestep: Any) -> dict:
        return {
            'obs': obs,
            'next_obs': timestep.obs,
            'action': joined(armor_output['action']),
            'reward': timestep.reward,
            'done': timestep.done,
        }

    @batched
    def _get_train_sample(self, traj_cache: Any) -> Any:
        samples = super()._get_train_sample(traj_cache)
        if not self._first_priority or not len(samples):
            return samples
        batch = samples if isinstance(samples, Batch) else Batch.from_rows(samples)
        with torch.no_grad():
            (_, td_error), _ = self._td_error(self._data_preprocess_learn(batch), self._model, self._model)
        priority = td_error.abs().cpu().numpy()
        if isinstance(samples, Batch):
            return Batch.of({**dict(samples.items()), 'priority': priority})
        return [{**row, 'priority': float(p)} for row, p in zip(samples, priority)]

    # ---- eval ----
    def _init_eval(self) -> None:
        self._eval_armor = self._acting_armor('argmax_sample')

    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        return self._eval_armor.forward(data)

    # ---- command ----
    def _init_command(self) -> None:
        eps = self._cfg.command.eps
        self._eps_by = self._cfg.command.eps_by
        self._epsilon_greedy = epsilon_greedy(eps.start, eps.end, eps.decay, eps.type)

    def _get_setting_collect(self, command_info: dict) -> dict:
        return {'eps': self._epsilon_greedy(command_info[self._eps_by])}
