"""Actor-critic on what the policy has just collected (A2C), proximal policy optimisation (PPO), PPO with a memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nervex.armor.sampling import mu_sigma_of
from nervex.data import Batch
from nervex.policy.action_space import legal
from nervex.policy.batched import batched
from nervex.policy.common_policy import CommonPolicy
from nervex.policy.sequences import map_tensors, sequence_settings, unpack_states
from nervex.policy.traj_block import batched_steps, without_time
from nervex.rl_utils import (
    a2c_data,
    a2c_error,
    a2c_error_continuous,
    gae,
    gae_data,
    ppo_data,
    ppo_error,
    ppo_error_continuous,
)
from nervex.utils import POLICY_REGISTRY, ConfigError, tree
from nervex.utils.declare import setting, settings


def value_in(output: dict[str, Any], model: Any) -> Any:
    """``output['value']``; where there is none the network is named."""
    if 'value' not in output:
        text = f'{type(model).__name__} answers {", ".join(output)}, but no value; take fc_vac, conv_vac or another one'
        raise ConfigError([f'policy.model: {text} whose output has logit and value'])
    return output['value']


@POLICY_REGISTRY.register('a2c')
class A2CPolicy(CommonPolicy):
    """
    Overview:
        Advantage actor-critic: the loss is -log pi(a|s) A + c_v (R - V)^2 - c_e H(pi), with R = V + A before A is
        normalised. Advantages are GAE; with ``gae_lambda`` 1 they are the n-step return of a round minus the value. An
        end by time limit bootstraps from its last observation's value. Actions may be discrete, of several heads, or
        continuous (the model's logit is a tensor, a list, or a pair (mu, sigma)); continuous ones reach the env within
        [-1, 1]. Papers: Mnih et al. 2016; Schulman et al. 2016 (GAE).
    """

    config = settings(
        policy_type='a2c',
        on_policy=True,
        learn=dict(
            epochs=1,
            grad_clip_norm=0.5,
            algo=dict(
                value_weight=setting(0.5, 'number >= 0', 'weight of the value loss'),
                entropy_weight=setting(0.01, 'number', 'weight of the entropy bonus'),
                adv_norm=setting(False, 'bool', 'normalise advantages in each update'),
                discount_factor=0.99,
                gae_lambda=0.95,
                reward_scale=setting(1.0, 'number > 0', 'factor of the rewards, for values of a size easy to learn'),
            ),
        ),
    )
    _default_model = 'fc_vac'

    action_range = (-1.0, 1.0)
    _logs = 'cur_lr total_loss policy_loss value_loss entropy_loss adv_abs_max grad_norm'
    no_nstep = 'generalised advantages weigh all numbers of steps, by gae_lambda'

    # ---- learn ----
    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        output = self._armor.forward(self._model_input(data['obs']))
        adv = self._normalised(data['adv'], data['weight'])
        new, _ = self._logits(output, data)
        fields = a2c_data(new, data['action'], output['value'], adv, data['return_'], data['weight'])
        loss = (a2c_error if mu_sigma_of(new) is None else a2c_error_continuous)(fields)
        return self._weighed(loss, adv)

    def _weighed(self, loss: Any, adv: torch.Tensor) -> tuple[torch.Tensor, dict[str, Any]]:
        """The losses of policy, value and entropy as one, and the log."""
        algo = self._cfg.learn.algo
        total = loss.policy_loss + algo.value_weight * loss.value_loss - algo.entropy_weight * loss.entropy_loss
        return total, {
            'policy_loss': loss.policy_loss.detach(),
            'value_loss': loss.value_loss.detach(),
            'entropy_loss': loss.entropy_loss.detach(),
            'adv_abs_max': adv.abs().max(),
        }

    @staticmethod
    def _logits(output: dict[str, Any], data: dict[str, Any]) -> tuple[Any, Any]:
        """The model's logit and the stored one, in the form that losses take: a tensor, a list, or (mu, sigma)."""
        new, old, mask = output['logit'], data.get('logit'), output.get('action_mask')
        if mu_sigma_of(new) is not None:
            return mu_sigma_of(new), mu_sigma_of(old)
        return legal(new, mask), legal(list(old.values()) if isinstance(old, dict) else old, mask)

    def _normalised(self, adv: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
        if not self._cfg.learn.algo.adv_norm or adv.numel() < 2:
            return adv
        if weight is None:
            return (adv - adv.mean()) / (adv.std() + 1e-8)
        mean = (adv * weight).mean()
        return (adv - mean) / (((adv - mean).pow(2) * weight).mean().sqrt() + 1e-8)

    def _unrolled(self, data: dict[str, Any]) -> dict[str, Any]:
        """The model over all steps of sequences: ``logit`` and ``value``, time first."""
        obs = data['obs']
        given = self._sequence_input(obs, data['prev_state']) if self._remembers else self._model_input(obs)
        return self._armor.forward(given)

    # ---- collect ----
    def _init_collect(self) -> None:
        super()._init_collect()
        self._gae_args = self._gamma, self._cfg.learn.algo.gae_lambda

    @batched
    def _process_transition(self, obs: Any, armor_output: dict, timestep: Any) -> dict:
        logit, drawn = armor_output['logit'], armor_output.get('drawn')
        transition = super()._process_transition(obs, armor_output, timestep)
        return {
            **transition,
            'action': transition['action'] if drawn is None else drawn,
            'logit': {str(k): head for k, head in enumerate(logit)} if isinstance(logit, list) else logit,
            'value': value_in(armor_output, self._model),
        }

    def _get_traj_overlap(self) -> int:
        return 0

    @batched_steps
    def _get_train_sample(self, traj_cache: Batch) -> Batch:
        """
        Overview:
            A window of steps, time first, -> the same steps with ``adv`` and ``return_``. The values of the states
            behind the window's end and behind time limits are computed here, in one call.
        """
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
        return without_time(steps, traj)


@POLICY_REGISTRY.register('ppo')
class PPOPolicy(A2CPolicy):
    """
    Overview:
        ratio = pi(a|s) / pi_old(a|s); the loss is -min(ratio A, clip(ratio, 1 +- eps) A) + c_v/2 (R - V)^2 - c_e H(pi),
        with R = V_old + A before A is normalised. Papers: Schulman et al. 2017 (PPO); Ye et al. 2020 (dual clip).
    """

    config = settings(
        policy_type='ppo',
        learn=dict(
            epochs=10,
            learning_rate=3e-4,
            algo=dict(
                adv_norm=True,
                clip_ratio=setting(0.2, 'number > 0', 'eps of the clipped ratio'),
                use_value_clip=setting(True, 'bool', "clip the value's change by clip_ratio, too"),
                dual_clip=setting(None, 'number > 1 | None', 'lower bound c of the objective at negative advantages'),
            ),
        ),
    )
    _logs = f'{A2CPolicy._logs} approx_kl clipfrac'

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        output = self._armor.forward(self._model_input(data['obs']))
        return self._clipped_loss(output, data, data['weight'])

    def _clipped_loss(
        self, output: dict[str, Any], data: dict[str, Any], weight: torch.Tensor | None
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        algo, adv = self._cfg.learn.algo, self._normalised(data['adv'], weight)
        new, old = self._logits(output, data)
        fields = ppo_data(new, old, data['action'], output['value'], data['value'], adv, data['return_'], weight)
        error = ppo_error if mu_sigma_of(new) is None else ppo_error_continuous
        loss, info = error(fields, algo.clip_ratio, algo.use_value_clip, algo.dual_clip)
        total, log = self._weighed(loss, adv)
        return total, {**log, 'approx_kl': info.approx_kl, 'clipfrac': info.clipfrac}


@POLICY_REGISTRY.register('ppo_recurrent')
class RecurrentPPOPolicy(PPOPolicy):
    """
    Overview:
        PPO's loss over sequences: each starts with the state of LSTM or GRU that it had when it was collected, and the
        gradient flows back through all of its steps. ``batch_size`` counts sequences.
    """

    config = settings(
        policy_type='ppo_recurrent',
        learn=dict(
            graph='off',  # recurrent layers cannot be recorded
            batch_size=8,
        ),
        **sequence_settings(16),
    )
    _default_model = 'fcr_vac'

    _time_columns = ('obs', 'action', 'logit', 'value', 'adv', 'return_', 'mask')
    _remembers = True

    def _build_model(self, model: Any) -> torch.nn.Module:
        built = super()._build_model(model)
        if not hasattr(built, 'initial_state'):
            name = type(built).__name__
            raise ConfigError([f"policy.model: {name} has no memory; take 'fcr_vac' or 'convr_vac', or policy 'ppo'"])
        return built

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        real = data['mask']
        output = self._unrolled(data)
        columns = (output, ('logit', 'value', 'action_mask')), (data, ('logit', 'value', 'action', 'adv', 'return_'))
        new, old = (
            {name: map_tensors(source[name], lambda x: x[real]) for name in names if name in source}
            for source, names in columns
        )
        return self._clipped_loss(new, old, None)

    def _values_behind(self, traj: Batch, where: np.ndarray) -> torch.Tensor:
        here, behind = (self._model_input(self._rows_of(traj[key], where)) for key in ('obs', 'next_obs'))
        before = unpack_states(self._rows_of(traj['prev_state'], where))
        state = self._model({**here, 'prev_state': before})['next_state']
        return self._model({**behind, 'prev_state': state})['value']

    def _cut(self, steps: Batch, traj: Batch) -> Batch:
        """Sequences of steps; what follows their last one has had its part in the advantages."""
        columns = {**dict(steps.items()), 'next_obs': traj['next_obs'], 'done': traj['done']}
        samples = self._sequences(Batch.of(columns))
        samples['obs'] = tree.map(lambda x: x[:, :-1], samples['obs'])
        return samples
