"""Proximal policy optimisation for discrete actions: clipped ratio, clipped value, GAE."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nervex.armor import Armor
from nervex.data import Batch
from nervex.loader import interval, is_type, optional
from nervex.policy.batched import batched
from nervex.policy.common_policy import CommonPolicy
from nervex.rl_utils import flatten_time, gae, gae_data, ppo_data, ppo_error
from nervex.torch_utils import Adam
from nervex.torch_utils.flat import FlatParameters
from nervex.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register('ppo')
class PPOPolicy(CommonPolicy):
    """
    Overview:
        ratio = pi(a|s) / pi_old(a|s); the loss is -min(ratio A, clip(ratio, 1 +- eps) A) + c_v (R - V)^2 - c_e H(pi),
        with R = V_old + A before A is normalised. An end by time limit bootstraps from its last observation's value.
        Papers: Schulman et al. 2017 (PPO), 2016 (GAE); Ye et al. 2020 (dual clip).
    """

    config = dict(
        policy_type='ppo',
        on_policy=True,
        learn=dict(
            epochs=10,  # (int | None) passes over what was collected; None: train_step updates
            learning_rate=3e-4,
            grad_clip_norm=0.5,  # (float | None) largest norm of the gradient; None: not clipped
            algo=dict(
                value_weight=0.5,  # (float) weight of the value loss
                entropy_weight=0.01,  # (float) weight of the entropy bonus
                clip_ratio=0.2,  # (float) eps of the clipped ratio
                use_value_clip=True,  # (bool) clip the value's change by clip_ratio, too
                dual_clip=None,  # (float | None) lower bound c > 1 of the objective at negative advantages
                adv_norm=True,  # (bool) normalise advantages in each update
                discount_factor=0.99,  # (float) gamma in [0, 1]
                gae_lambda=0.95,  # (float) lambda in [0, 1]
            ),
        ),
    )
    config_rules = dict(
        learn=dict(
            epochs=optional(is_type(int) & interval(1)),
            grad_clip_norm=optional(interval(0, left_ok=False)),
            algo=dict(
                value_weight=interval(0),
                clip_ratio=interval(0, left_ok=False),
                gae_lambda=interval(0, 1),
                dual_clip=optional(interval(1, left_ok=False)),
            ),
        )
    )

    def default_model(self) -> tuple[str, list[str]]:
        return 'fc_vac', ['nervex.model']

    def _init_learn(self) -> None:
        learn = self._cfg.learn
        self._algo = learn.algo
        self._armor = Armor(self._model)
        self._armor.mode(train=True)
        clip = (
            {} if learn.grad_clip_norm is None else {'grad_clip_type': 'clip_norm', 'clip_value': learn.grad_clip_norm}
        )
        self._optimizer = Adam(
            FlatParameters(self._model), lr=learn.learning_rate, weight_decay=learn.weight_decay, **clip
        )

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        algo = self._algo
        output = self._armor.forward({'obs': data['obs']})
        adv = data['adv']
        if algo.adv_norm:
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        fields = ppo_data(
            output['logit'],
            data['logit'],
            data['action'],
            output['value'],
            data['value'],
            adv,
            data['return_'],
            data['weight'],
        )
        loss, info = ppo_error(fields, algo.clip_ratio, algo.use_value_clip, algo.dual_clip)
        total = loss.policy_loss + algo.value_weight * loss.value_loss - algo.entropy_weight * loss.entropy_loss
        return total, {
            'policy_loss': loss.policy_loss.detach(),
            'value_loss': loss.value_loss.detach(),
            'entropy_loss': loss.entropy_loss.detach(),
            'approx_kl': info.approx_kl,
            'clipfrac': info.clipfrac,
            'adv_abs_max': adv.abs().max(),
        }

    def _forward_learn(self, data: dict[str, Any]) -> dict[str, Any]:
        loss, info = self._minimize(self._loss, data, self._optimizer)
        return {'cur_lr': self._optimizer.param_groups[0]['lr'], 'total_loss': loss, **info}

    def _monitor_vars_learn(self) -> list[str]:
        return [
            'cur_lr',
            'total_loss',
            'policy_loss',
            'value_loss',
            'entropy_loss',
            'approx_kl',
            'clipfrac',
            'adv_abs_max',
            'grad_norm',
        ]

    def _init_collect(self) -> None:
        algo = self._cfg.learn.algo
        self._gae_args = algo.discount_factor, algo.gae_lambda
        self._collect_armor = self._acting_armor('multinomial_sample')

    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        return self._collect_armor.forward(data)

    @batched
    def _process_transition(self, obs: Any, armor_output: dict, timestep: Any) -> dict:
        return {
            'obs': obs,
            'next_obs': timestep.obs,
            'action': armor_output['action'],
            'logit': armor_output['logit'],
            'value': armor_output['value'],
            'reward': timestep.reward,
            'done': timestep.done,
        }

    def _get_traj_overlap(self) -> int:
        return 0

    @batched
    def _get_train_sample(self, traj_cache: Any) -> Any:
        """
        Overview:
            A window of steps, time first, -> the same steps with ``adv`` and ``return_``. The values of the states
            behind the window's end and behind time limits are computed here, in one call.
        """
        if not isinstance(traj_cache, Batch):
            rows = self._the_adder.get_traj(traj_cache, 'inf')
            samples = self._get_train_sample(Batch.from_rows(list(rows)))
            return [samples[i] for i in range(len(samples))]
        traj = traj_cache
        value, reward, done = (torch.as_tensor(traj[key]) for key in ('value', 'reward', 'done'))
        truncated = torch.as_tensor(traj['truncated'])
        next_value = self._next_values(traj, value, done, truncated)
        adv = gae(gae_data(value, reward, next_value=next_value, done=done, truncated=truncated), *self._gae_args)
        kept = {key: traj[key] for key in traj.keys() if key not in ('next_obs', 'reward', 'done', 'truncated')}
        samples = Batch.of({**kept, 'adv': adv.numpy(), 'return_': (adv + value).numpy()})
        return samples if done.dim() == 1 else flatten_time(samples)

    def _next_values(
        self, traj: Batch, value: torch.Tensor, done: torch.Tensor, truncated: torch.Tensor
    ) -> torch.Tensor:
        """V of the state behind each step: the next row's value, and one model call where there is no next row."""
        next_value = torch.cat([value[1:], torch.zeros_like(value[:1])])
        needs = truncated.clone()
        needs[-1] |= ~done[-1]
        if needs.any():
            where = needs.numpy()
            obs = _select(traj['next_obs'], where)
            _, data = self._data_preprocess_collect(_Rows(np.arange(int(where.sum())), obs))
            with torch.no_grad():
                next_value[needs] = self._model(data, mode='compute_action_value')['value'].cpu()
        return next_value

    def _init_eval(self) -> None:
        self._eval_armor = self._acting_armor('argmax_sample')

    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        return self._eval_armor.forward(data)


class _Rows:
    """A block of observations with made-up ids, for a model call outside of the rollout."""

    def __init__(self, env_id: np.ndarray, obs: Any) -> None:
        self.env_id, self.obs = env_id, obs


def _select(column: Any, mask: np.ndarray) -> Any:
    if isinstance(column, (dict, Batch)):
        return {key: _select(column[key], mask) for key in column.keys()}
    return torch.as_tensor(column[mask])
