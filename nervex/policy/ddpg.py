"""Deterministic policy gradients: an actor climbs its critic (DDPG), twins of it (TD3), near data (TD3+BC)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from nervex.armor.sampling import Draws
from nervex.policy.action_space import legal
from nervex.policy.common_policy import CommonPolicy
from nervex.rl_utils import v_nstep_td_data, v_nstep_td_error
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings

TARGET_NOISE = dict(
    target_noise_sigma=setting(0.0, 'number >= 0', "noise on the target's action; 0: none"),
    target_noise_clip=setting(0.5, 'number >= 0', 'largest size of that noise'),
)
NOISE = dict(
    noise_type=setting('gauss', "'gauss' | 'ou'", 'noise on the actions; ou: one that drifts'),
    noise_sigma=setting(0.1, 'number >= 0', 'its standard deviation; actions span [-1, 1]'),
)


class OffPolicyACPolicy(CommonPolicy):
    """
    Overview:
        A subclass writes ``_critic_loss`` and ``_actor_loss``, pure functions of the batch, and how it explores. Its
        model has the parts ``actor`` and ``critic``. Continuous actions lie in [-1, 1]: ``env.use_act_scale`` of an env
        stretches them to its own bounds.
    """

    config = settings(
        learn=dict(
            batch_size=128,
            learning_rate_actor=setting(None, 'number > 0 | None', 'step size of the actor; None: learning_rate'),
            learning_rate_critic=setting(None, 'number > 0 | None', 'step size of the critic; None: learning_rate'),
            algo=dict(
                discount_factor=0.99,
                nstep=1,
                target_theta=0.005,
                actor_update_freq=setting(1, 'int >= 1', 'updates of the critic for one of the actor and the targets'),
            ),
        ),
        collect=dict(
            random_steps=setting(0, 'int >= 0', 'env steps with uniformly random actions at the start of the run'),
            algo=dict(nstep=1),
        ),
    )

    action_kinds: tuple[str, ...] = ('continuous',)
    action_range = (-1.0, 1.0)
    takes_action_mask = False

    resume_parts: tuple[str, ...] = ('_explore',)
    learn_parts: tuple[str, ...] = ('_optimizer_actor', '_optimizer_critic', '_draws', '_updates_done')
    _collects_by = _evaluates_by = ''  # the model's action as it is
    _parts: tuple[str, ...] = ('actor', 'critic')  # of the model, that have an optimizer each
    _targets_wait = True  # for the actor's updates; False: they follow every update of the critic
    _losses = 'total_loss critic_loss actor_loss q_value critic_grad_norm actor_grad_norm'
    _logs = f'cur_lr_actor cur_lr_critic {_losses}'

    # ---- learn ----
    def _init_learn(self) -> None:
        learn = self._cfg.learn
        self._actor_update_freq, self._updates_done = learn.algo.actor_update_freq, 0
        self._draws = Draws()
        self._armor = self._learning_armor(*self._parts)
        self._optimizer_actor = self._new_optimizer(self._model.actor, learn.learning_rate_actor)
        self._optimizer_critic = self._new_optimizer(self._model.critic, learn.learning_rate_critic)

    @property
    def _generator(self) -> torch.Generator:
        """Source of the random numbers in the losses."""
        return self._draws.on(self._device)

    def _critic_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        raise NotImplementedError(f'{type(self).__name__}._critic_loss')

    def _actor_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        raise NotImplementedError(f'{type(self).__name__}._actor_loss')

    @staticmethod
    def _q_values(forward: Callable[..., dict], data: dict[str, Any]) -> list[torch.Tensor]:
        """The values of one critic, or of each of several."""
        q_value = forward(data, param={'mode': 'compute_q'})['q_value']
        return [q_value] if isinstance(q_value, torch.Tensor) else list(q_value)

    def _td_loss(
        self, q_values: list[torch.Tensor], next_value: torch.Tensor, data: dict[str, Any]
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        """The summed loss of all critics towards one target, and what is logged of it."""
        rest = (next_value, self._time_first(data), data['done'], data['weight'], data.get('value_gamma'))
        errors = [v_nstep_td_error(v_nstep_td_data(q, *rest), self._gamma, self._nstep) for q in q_values]
        loss: Any = sum(error.loss for error in errors)
        td_error = sum(error.td_error_per_sample.abs() for error in errors) / len(errors)
        return loss, {'td_error': td_error, 'q_value': q_values[0].mean()}

    def _smoothed(self, action: torch.Tensor) -> torch.Tensor:
        """The target's action with clipped noise, where the settings want some."""
        algo = self._cfg.learn.algo
        if not algo.target_noise_sigma:
            return action
        noise = torch.randn(action.shape, dtype=action.dtype, device=action.device, generator=self._generator)
        clip = algo.target_noise_clip
        return (action + (noise * algo.target_noise_sigma).clamp(-clip, clip)).clamp(-1.0, 1.0)

    def _forward_learn(self, data: dict[str, Any]) -> dict[str, Any]:
        loss, info = self._minimize(self._critic_loss, data, self._optimizer_critic)
        log = {
            'cur_lr_critic': self._optimizer_critic.param_groups[0]['lr'],
            'cur_lr_actor': self._optimizer_actor.param_groups[0]['lr'],
            'critic_loss': loss,
            'critic_grad_norm': info.pop('grad_norm'),
        }
        td_error = info.pop('td_error')
        if self._use_priority:
            log['priority'] = td_error
        log.update(info)
        self._updates_done += 1
        if is_due := self._updates_done % self._actor_update_freq == 0:
            log.update(self._update_actor(data))
        if self._has_target and (is_due or not self._targets_wait):
            self._armor.target_update(self._model)
        log['total_loss'] = loss + log['actor_loss'] if 'actor_loss' in log else loss
        return log

    def _update_actor(self, data: dict[str, Any]) -> dict[str, Any]:
        loss, info = self._minimize(self._actor_loss, data, self._optimizer_actor)
        return {'actor_loss': loss, 'actor_grad_norm': info.pop('grad_norm'), **info}

    # ---- collect and eval ----
    def _init_collect(self) -> None:
        self._collect_setting_set = {'random_left'}
        self._random_left = self._cfg.collect.random_steps
        self._explore = Draws()
        super()._init_collect()

    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        output = self._collect_armor.forward(data, data_id=data_id, param={'mode': 'compute_action'})
        if self._random_left > 0:
            self._random_left -= len(output['action'])
            output['action'] = self._random_action(output, self._explore.on(self._device))
        return {'action': output['action']}

    def _random_action(self, output: dict, generator: torch.Generator) -> torch.Tensor:
        if not isinstance(output.get('logit'), torch.Tensor):
            return torch.empty_like(output['action']).uniform_(-1, 1, generator=generator)
        chance = torch.empty_like(output['logit']).uniform_(generator=generator)
        return legal(chance, output.get('action_mask')).argmax(-1)

    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        return {'action': self._eval_armor.forward(data, param={'mode': 'compute_action'})['action']}

    def _get_setting_collect(self, command_info: dict) -> dict:
        """How many random steps are left: by the count of env steps, so that a resumed run knows, too."""
        return {'random_left': max(0, self._cfg.collect.random_steps - command_info['envstep'])}


def smaller(q_values: list[torch.Tensor]) -> torch.Tensor:
    """The smallest value that a critic gives."""
    return functools.reduce(torch.min, q_values)


@POLICY_REGISTRY.register('ddpg')
class DDPGPolicy(OffPolicyACPolicy):
    """
    Overview:
        y = r + gamma (1 - d) Q_target(s', mu_target(s')), the smaller one of twin critics; the critic's loss is
        (Q(s, a) - y)^2, the actor's is -Q(s, mu(s)). Papers: Lillicrap et al. 2016; with twin critics, a delayed actor
        and smoothed target actions it is TD3 (Fujimoto et al. 2018), see :class:`TD3Policy`.
    """

    config = settings(
        policy_type='ddpg',
        model=dict(use_twin_critic=False),
        learn=dict(algo=TARGET_NOISE),
        collect=NOISE,
    )
    _default_model = 'qac'

    def _critic_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        q_values = self._q_values(self._armor.forward, {'obs': data['obs'], 'action': data['action']})
        with torch.no_grad():
            following = {'obs': data['next_obs'], 'action': self._next_action(data['next_obs'])}
            next_value = smaller(self._q_values(self._armor.target_forward, following))
        return self._td_loss(q_values, next_value, data)

    def _next_action(self, next_obs: Any) -> torch.Tensor:
        return self._smoothed(self._armor.target_forward({'obs': next_obs}, param={'mode': 'compute_action'})['action'])

    def _actor_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        _, q = self._judged_action(data['obs'])
        return -q.mean(), {}

    def _judged_action(self, obs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """The actor's action, and the value that the actor climbs: the first critic's."""
        action = self._armor.forward({'obs': obs}, param={'mode': 'compute_action'})['action']
        return action, self._q_values(self._armor.forward, {'obs': obs, 'action': action})[0]

    def _init_collect(self) -> None:
        super()._init_collect()
        collect = self._cfg.collect
        if collect.noise_sigma:
            noise = {'noise_type': collect.noise_type, 'noise_kwargs': {'sigma': collect.noise_sigma}}
            self._collect_armor = self._acting_armor('action_noise', **noise)


@POLICY_REGISTRY.register('td3')
class TD3Policy(DDPGPolicy):
    """
    Overview:
        DDPG against overestimation: the smaller of two critics makes the target, the target's action is smoothed by
        clipped noise, and the actor moves half as often. Paper: Fujimoto et al. 2018.
    """

    config = settings(
        policy_type='td3',
        model=dict(use_twin_critic=True),
        learn=dict(algo=dict(actor_update_freq=2, target_noise_sigma=0.2, target_noise_clip=0.5)),
    )


@POLICY_REGISTRY.register('td3_bc')
class TD3BCPolicy(TD3Policy):
    """
    Overview:
        TD3's critics; the actor's loss is -lambda Q(s, mu(s)) + (mu(s) - a_data)^2 with lambda = bc_alpha / mean |Q|:
        it climbs the critic as far as the data reaches, where the critic knows something. Runs on recorded episodes,
        see ``offline_pipeline``; ``env.manager.norm_obs`` scales observations by the data's mean and variance, as the
        paper does. Paper: Fujimoto and Gu 2021.
    """

    config = settings(
        policy_type='td3_bc',
        learn=dict(
            algo=dict(bc_alpha=setting(2.5, 'number >= 0', 'weight of the critic beside imitation; 0 imitates only')),
        ),
    )
    _logs = f'{TD3Policy._logs} bc_loss'

    def _actor_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        action, q = self._judged_action(data['obs'])
        scale = self._cfg.learn.algo.bc_alpha / (q.detach().abs().mean() + 1e-8)
        bc_loss = (action - data['action']).pow(2).mean()
        return bc_loss - scale * q.mean(), {'bc_loss': bc_loss.detach()}
