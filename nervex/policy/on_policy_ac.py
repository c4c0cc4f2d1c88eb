"""What on-policy actor-critic algorithms share: sampling from the policy, advantages, one optimizer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from nervex.armor import Armor
from nervex.armor.stochastic import mu_sigma_of
from nervex.data import Batch
from nervex.loader import interval, is_type, optional
from nervex.policy.action_space import joined, legal
from nervex.policy.batched import batched
from nervex.policy.common_policy import CommonPolicy
from nervex.rl_utils import flatten_time, gae, gae_data


class OnPolicyACPolicy(CommonPolicy):
    """
    Overview:
        A subclass writes ``_loss``. Actions may be discrete, of several heads, or continuous (the model's logit is a
        tensor, a list, or a pair (mu, sigma)); continuous ones reach the env within [-1, 1]. Advantages are GAE; an end
        by time limit bootstraps from its last observation's value. Papers: Schulman et al. 2016 (GAE).
    """

    config = dict(
        on_policy=True,
        learn=dict(
            epochs=1,  # (int | None) passes over what was collected; None: train_step updates
            grad_clip_norm=0.5,
            algo=dict(
                value_weight=0.5,  # (float) weight of the value loss
                entropy_weight=0.01,  # (float) weight of the entropy bonus
                adv_norm=True,  # (bool) normalise advantages in each update
                discount_factor=0.99,  # (float) gamma in [0, 1]
                gae_lambda=0.95,  # (float) lambda in [0, 1]
                reward_scale=1.0,  # (float) factor of the rewards, for values of a size that a network learns easily
            ),
        ),
    )
    config_rules = dict(
        learn=dict(
            epochs=optional(is_type(int) & interval(1)),
            algo=dict(
                value_weight=interval(0),
                entropy_weight=interval(),
                gae_lambda=interval(0, 1),
                reward_scale=interval(0, left_ok=False),
            ),
        )
    )

    action_range = (-1.0, 1.0)
    no_nstep = 'generalised advantages weigh all numbers of steps, by gae_lambda'

    def default_model(self) -> tuple[str, list[str]]:
        return 'fc_vac', ['nervex.model']

    # ---- learn ----
    def _init_learn(self) -> None:
        self._algo = self._cfg.learn.algo
        self._armor = Armor(self._model)
        self._armor.mode(train=True)
        self._optimizer = self._new_optimizer(self._model)

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        raise NotImplementedError(f'{type(self).__name__}._loss')

    def _logits(self, new: Any, data: dict[str, Any], mask: Any = None) -> tuple[Any, Any]:
        """The model's logit and the stored one, in the form that losses take: a tensor, a list, or (mu, sigma)."""
        old = data.get('logit')
        if mu_sigma_of(new) is not None:
            return mu_sigma_of(new), mu_sigma_of(old)
        return legal(new, mask), legal(list(old.values()) if isinstance(old, dict) else old, mask)

    def _normalised(self, adv: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
        if not self._algo.adv_norm or adv.numel() < 2:
            return adv
        if weight is None:
            return (adv - adv.mean()) / (adv.std() + 1e-8)
        mean = (adv * weight).mean()
        return (adv - mean) / (((adv - mean).pow(2) * weight).mean().sqrt() + 1e-8)

    def _forward_learn(self, data: dict[str, Any]) -> dict[str, Any]:
        loss, info = self._minimize(self._loss, data, self._optimizer)
        return {'cur_lr': self._optimizer.param_groups[0]['lr'], 'total_loss': loss, **info}

    def _monitor_vars_learn(self) -> list[str]:
        return ['cur_lr', 'total_loss', 'policy_loss', 'value_loss', 'entropy_loss', 'adv_abs_max', 'grad_norm']

    # ---- collect ----
    def _init_collect(self) -> None:
        algo = self._cfg.learn.algo
        self._gae_args = algo.discount_factor, algo.gae_lambda
        self._collect_armor = self._acting_armor('policy_sample')

    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        return self._collect_armor.forward(data)

    @batched
    def _process_transition(self, obs: Any, armor_output: dict, timestep: Any) -> dict:
        logit, drawn = armor_output['logit'], armor_output.get('drawn')
        return {
            'obs': obs,
            'next_obs': timestep.obs,
            'action': joined(armor_output['action']) if drawn is None else drawn,
            'logit': {str(k): head for k, head in enumerate(logit)} if isinstance(logit, list) else logit,
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
        reward = reward.reshape(done.shape) * self._cfg.learn.algo.reward_scale
        truncated = done if self._cfg.learn.ignore_done else torch.as_tensor(traj['truncated'])
        next_value = self._next_values(traj, value, done, truncated)
        adv = gae(gae_data(value, reward, next_value=next_value, done=done, truncated=truncated), *self._gae_args)
        kept = {key: traj[key] for key in traj.keys() if key not in ('next_obs', 'reward', 'done', 'truncated')}
        return self._cut(Batch.of({**kept, 'adv': adv.numpy(), 'return_': (adv + value).numpy()}), traj)

    def _cut(self, steps: Batch, traj: Batch) -> Batch:
        """Steps (T, [N]) -> samples."""
        return steps if steps['adv'].ndim == 1 else flatten_time(steps)

    def _next_values(
        self, traj: Batch, value: torch.Tensor, done: torch.Tensor, truncated: torch.Tensor
    ) -> torch.Tensor:
        """V of the state behind each step: the next row's value, and one model call where there is no next row."""
        next_value = torch.cat([value[1:], torch.zeros_like(value[:1])])
        needs = truncated.clone()
        needs[-1] |= ~done[-1]
        if needs.any():
            with torch.no_grad():
                next_value[needs] = self._values_behind(traj, needs.numpy()).cpu()
        return next_value

    def _values_behind(self, traj: Batch, where: np.ndarray) -> torch.Tensor:
        """The value of the state behind each of these steps."""
        _, data = self._data_preprocess_collect(rows_of(traj['next_obs'], where))
        return self._model(data)['value']

    # ---- eval ----
    def _init_eval(self) -> None:
        self._eval_armor = self._acting_armor('policy_mode')

    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        return {'action': self._eval_armor.forward(data)['action']}


def rows_of(column: Any, mask: np.ndarray) -> SimpleNamespace:
    """The masked observations as a block with made-up ids, for a model call outside of the rollout."""
    return SimpleNamespace(env_id=np.arange(int(mask.sum())), obs=select(column, mask))


def select(column: Any, mask: np.ndarray) -> Any:
    """The masked rows of a column, nested or not, as tensors."""
    if isinstance(column, (dict, Batch)):
        return {key: select(column[key], mask) for key in column.keys()}
    return torch.as_tensor(column[mask])
