"""Deep Q-learning with double Q, n-step targets, a target network and, on request, prioritized replay."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from easydict import EasyDict

from nervex.data import Batch
from nervex.policy.action_space import greedy, over_heads, side_by_side
from nervex.policy.common_policy import CommonPolicy
from nervex.policy.traj_block import batched_steps
from nervex.rl_utils import TDLoss, q_nstep_td_data, q_nstep_td_error
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings

Forward = Callable[..., dict]
HUBER = torch.nn.SmoothL1Loss(reduction='none')


@POLICY_REGISTRY.register('dqn')
class DQNPolicy(CommonPolicy):
    """
    Overview:
        y = sum_k<n gamma^k r_t+k + gamma^n Q_target(s_t+n, argmax_a Q(s_t+n, a)); the loss is the weighted mean of
        (Q(s_t, a_t) - y)^2. Papers: Mnih et al. 2015; van Hasselt et al. 2016 (double Q); Schaul et al. 2016
        (prioritized replay); Horgan et al. 2018 (Ape-X: first priorities, one epsilon an env).
    """

    config = settings(
        policy_type='dqn',
        learn=dict(
            train_step=3,
            algo=dict(
                target_update_freq=100,
                discount_factor=0.97,
                nstep=1,
                double_q=setting(True, 'bool', 'the online network chooses the action of the target'),
                huber=setting(False, 'bool', 'errors above 1 count linearly instead of squared, halved below'),
            ),
        ),
        collect=dict(
            env_num=1,
            env_offset=setting(0, 'int >= 0', 'number of the first env here, where several actors share them'),
            algo=dict(
                nstep=1,
                first_priority=setting(False, 'bool', 'with use_priority: samples come with their TD error'),
            ),
        ),
        command=dict(
            eps=dict(type='exp', start=0.95, end=0.1, decay=10000),
            eps_by=setting('learner_step', "'learner_step' | 'envstep'", 'what the decay counts: updates or env steps'),
            eps_spread=setting(0.0, 'number >= 0', 'alpha of Ape-X: env i of N has eps^(1 + alpha i / (N - 1))'),
        ),
    )
    _default_model = 'fc_discrete_net'

    action_kinds = ('discrete', 'multi_discrete')
    _collects_by = 'eps_greedy_sample'
    _logs = 'cur_lr total_loss q_value grad_norm'

    @classmethod
    def check_config(cls, cfg: EasyDict) -> list[tuple[str, str]]:
        """Settings of this policy that do not go together: pairs (path, what is wrong)."""
        problems = super().check_config(cfg)
        if cfg.collect.algo.first_priority and not cfg.use_priority:
            problems.append(('collect.algo.first_priority', 'got True, but nothing uses it; set policy.use_priority'))
        return problems

    # ---- learn ----
    @cached_property
    def _double_q(self) -> bool:
        return self._cfg.learn.algo.double_q

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        (loss, td_error), q = self._td_error(data, self._armor.forward, self._armor.target_forward)
        return loss, {'td_error': td_error, 'q_value': side_by_side(q).detach()}

    def _td_error(self, data: dict[str, Any], online: Forward, target: Forward) -> tuple[TDLoss, Any]:
        """The TD error of a batch, and the action values of its states."""
        output, following, next_action = self._passes(data, online, target)
        taken = (data['action'], next_action, self._time_first(data), data['done'])
        return self._error_of(output, following, taken, data['weight'], self._nstep_kwargs(data)), output['logit']

    def _passes(self, data: dict[str, Any], online: Forward, target: Forward) -> tuple[dict, dict, Any]:
        """What the networks say: online of the states, target of the next states, and the next actions."""
        output = online(self._model_input(data['obs']))
        with torch.no_grad():
            next_input = self._model_input(data['next_obs'])
            following = target(next_input)
            chooser = online(next_input) if self._double_q else following
            return output, following, greedy(chooser['logit'], next_input.get('action_mask'))

    def _error_of(self, output: dict, following: dict, taken: Any, weight: Any, kwargs: dict[str, Any]) -> TDLoss:
        """The error, given what the networks say and ``taken``: action, next action, rewards, done."""
        fields = (output['logit'], following['logit'], *taken, weight)
        criterion = {'criterion': HUBER} if self._cfg.learn.algo.huber else {}
        return over_heads(q_nstep_td_error, q_nstep_td_data(*fields), self._gamma, **criterion, **kwargs)

    # ---- collect ----
    def _init_collect(self) -> None:
        super()._init_collect()
        envs, spread = self._cfg.collect.env_num, self._cfg.command.eps_spread
        self._first_priority = self._cfg.collect.algo.first_priority and self._use_priority
        self._eps_power = 1 + spread * np.arange(envs) / (envs - 1) if spread and envs > 1 else None

    def _sampler_kwargs(self, data_id: list[int]) -> dict[str, Any]:
        """Epsilon: one for all envs, or one for each of these."""
        if self._eps_power is None:
            return {'eps': self._eps}
        return {'eps': self._eps ** self._eps_power[np.asarray(data_id) + self._cfg.collect.env_offset]}

    @batched_steps
    def _get_train_sample(self, traj_cache: Batch) -> Batch:
        return self._with_priority(super()._get_train_sample(traj_cache))

    def _with_priority(self, samples: Batch) -> Batch:
        """The samples, where that is wanted with first priorities by the model that acts."""
        if not self._first_priority or not len(samples):
            return samples
        with torch.no_grad():
            (_, td_error), _ = self._td_error(self._data_preprocess_learn(samples), self._model, self._model)
        return Batch.of({**dict(samples.items()), 'priority': td_error.abs().cpu().numpy()})
