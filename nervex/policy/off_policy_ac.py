"""What off-policy actor-critic algorithms share: two optimizers, targets that follow, random first steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from nervex.armor import Armor
from nervex.armor.draws import Draws
from nervex.loader import interval, is_type, optional
from nervex.policy.batched import batched
from nervex.policy.common_policy import CommonPolicy
from nervex.rl_utils import v_nstep_td_data, v_nstep_td_error
from nervex.torch_utils.flat import FlatParameters

Forward = Callable[..., dict]


class OffPolicyACPolicy(CommonPolicy):
    """
    Overview:
        A subclass writes ``_critic_loss`` and ``_actor_loss``, pure functions of the batch, and how it explores. Its
        model has the parts ``actor`` and ``critic``. Continuous actions lie in [-1, 1]: ``env.use_act_scale`` of an env
        stretches them to its own bounds.
    """

    config = dict(
        learn=dict(
            batch_size=128,
            learning_rate_actor=None,  # (float | None) step size of the actor; None: learning_rate
            learning_rate_critic=None,  # (float | None) step size of the critic; None: learning_rate
            algo=dict(
                discount_factor=0.99,  # (float) gamma in [0, 1]
                nstep=1,  # (int) rewards summed before the target network takes over
                target_theta=0.005,  # (float) share of the new weights in each update of the target networks
                actor_update_freq=1,  # (int) updates of the critic between two of the actor and the targets
            ),
        ),
        collect=dict(
            random_steps=0,  # (int) env steps with uniformly random actions at the start of the run
            algo=dict(nstep=1),  # filled from learn.algo.nstep
        ),
    )
    config_rules = dict(
        learn=dict(
            learning_rate_actor=optional(interval(0, left_ok=False)),
            learning_rate_critic=optional(interval(0, left_ok=False)),
            algo=dict(
                target_theta=interval(0, 1, left_ok=False),
                actor_update_freq=is_type(int) & interval(1),
            ),
        ),
        collect=dict(random_steps=is_type(int) & interval(0)),
    )

    action_kinds: tuple[str, ...] = ('continuous',)
    action_range = (-1.0, 1.0)
    takes_action_mask = False
    resume_parts = ('_explore',)

    # ---- learn ----
    def _init_learn(self) -> None:
        learn, algo = self._cfg.learn, self._cfg.learn.algo
        self._gamma, self._nstep = algo.discount_factor, algo.nstep
        self._actor_update_freq, self._updates_done = algo.actor_update_freq, 0
        self._draws = Draws()
        self._armor = Armor(self._model)
        self._armor.add_model('target', update_type='momentum', update_kwargs={'theta': algo.target_theta})
        self._armor.mode(train=True)
        self._armor.target_mode(train=True)
        self._actor_optimizer = self._new_optimizer(self._model.actor, learn.learning_rate_actor)
        self._critic_optimizer = self._new_optimizer(self._model.critic, learn.learning_rate_critic)
        FlatParameters(self._armor.target_model.actor)
        FlatParameters(self._armor.target_model.critic)

    @property
    def _generator(self) -> torch.Generator:
        """Source of the random numbers in the losses."""
        return self._draws.on(self._device)

    def _critic_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        raise NotImplementedError(f'{type(self).__name__}._critic_loss')

    def _actor_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        raise NotImplementedError(f'{type(self).__name__}._actor_loss')

    def _td_loss(
        self, q_values: list[torch.Tensor], next_value: torch.Tensor, data: dict[str, Any]
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        """The summed loss of all critics towards one target, and what is logged of it."""
        reward = data['reward']
        reward = reward.unsqueeze(0) if reward.dim() == 1 else reward.t()
        rest = (next_value, reward, data['done'], data['weight'], data.get('value_gamma'))
        errors = [v_nstep_td_error(v_nstep_td_data(q, *rest), self._gamma, self._nstep) for q in q_values]
        loss = sum(error.loss for error in errors)
        td_error = sum(error.td_error_per_sample.abs() for error in errors) / len(errors)
        return loss, {'td_error': td_error, 'q_value': q_values[0].mean()}

    def _forward_learn(self, data: dict[str, Any]) -> dict[str, Any]:
        loss, info = self._minimize(self._critic_loss, data, self._critic_optimizer)
        log = {
            'cur_lr_critic': self._critic_optimizer.param_groups[0]['lr'],
            'cur_lr_actor': self._actor_optimizer.param_groups[0]['lr'],
            'critic_loss': loss,
            'q_value': info['q_value'],
            'critic_grad_norm': info['grad_norm'],
        }
        if self._use_priority:
            log['priority'] = info['td_error']
        self._updates_done += 1
        if self._updates_done % self._actor_update_freq == 0:
            log.update(self._update_actor(data))
            self._armor.target_update(self._model)
        log['total_loss'] = loss + log['actor_loss'] if 'actor_loss' in log else loss
        return log

    def _update_actor(self, data: dict[str, Any]) -> dict[str, Any]:
        loss, info = self._minimize(self._actor_loss, data, self._actor_optimizer)
        return {'actor_loss': loss, 'actor_grad_norm': info['grad_norm']}

    def _monitor_vars_learn(self) -> list[str]:
        names = ['total_loss', 'critic_loss', 'actor_loss', 'q_value', 'critic_grad_norm', 'actor_grad_norm']
        return ['cur_lr_actor', 'cur_lr_critic', *names]

    def _learn_parts(self) -> dict[str, Any]:
        own = {'optimizer_actor': self._actor_optimizer, 'optimizer_critic': self._critic_optimizer}
        return {**super()._learn_parts(), **own, 'draws': self._draws}

    def _state_dict_learn(self) -> dict:
        return {**super()._state_dict_learn(), 'updates_done': self._updates_done}

    def _load_state_dict_learn(self, state_dict: dict) -> None:
        super()._load_state_dict_learn(state_dict)
        self._updates_done = int(state_dict.get('updates_done', 0))

    # ---- collect ----
    def _init_collect(self) -> None:
        self._collect_setting_set = {'random_left'}
        self._random_left = self._cfg.collect.random_steps
        self._explore = Draws()
        self._collect_armor = Armor(self._model)
        self._add_exploration()
        self._collect_armor.add_plugin('main', 'grad', enable_grad=False)

    def _add_exploration(self) -> None:
        """Plugins of the collecting armor."""

    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        output = self._collect_armor.forward(data, data_id=data_id, param={'mode': 'compute_action'})
        if self._random_left > 0:
            self._random_left -= len(output['action'])
            output['action'] = self._random_action(output, self._explore.on(self._device))
        return {'action': output['action']}

    def _random_action(self, output: dict, generator: torch.Generator) -> torch.Tensor:
        return torch.empty_like(output['action']).uniform_(-1, 1, generator=generator)

    @batched
    def _process_transition(self, obs: Any, armor_output: dict, timestep: Any) -> dict:
        return {
            'obs': obs,
            'next_obs': timestep.obs,
            'action': armor_output['action'],
            'reward': timestep.reward,
            'done': timestep.done,
        }

    # ---- eval and command ----
    def _init_eval(self) -> None:
        self._eval_armor = Armor(self._model)
        self._eval_armor.add_plugin('main', 'grad', enable_grad=False)

    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        return {'action': self._eval_armor.forward(data, param={'mode': 'compute_action'})['action']}

    def _get_setting_collect(self, command_info: dict) -> dict:
        """How many random steps are left: by the count of env steps, so that a resumed run knows, too."""
        return {'random_left': max(0, self._cfg.collect.random_steps - command_info['envstep'])}


def as_list(q_value: Any) -> list[torch.Tensor]:
    """The values of one critic or of several, as a list."""
    return [q_value] if isinstance(q_value, torch.Tensor) else list(q_value)
