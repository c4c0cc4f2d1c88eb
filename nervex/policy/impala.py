"""IMPALA: actor-critic from old trajectories, corrected by V-trace."""

from __future__ import annotations

from typing import Any

import torch
from easydict import EasyDict

from nervex.armor.sampling import mu_sigma_of
from nervex.data import Batch
from nervex.policy.action_space import joined, legal
from nervex.policy.batched import batched
from nervex.policy.ppo import A2CPolicy
from nervex.policy.sequences import map_tensors, sequence_settings
from nervex.policy.traj_block import batched_steps
from nervex.rl_utils import (
    gaussian_log_prob_and_entropy,
    log_prob_and_entropy,
    vtrace_targets,
    vtrace_targets_data,
)
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('impala')
class IMPALAPolicy(A2CPolicy):
    """
    Overview:
        Samples carry log mu(a|s) of the policy that acted, however old: with rho = pi(a|s) / mu(a|s), clipped, the
        values learn V-trace targets vs, and the policy's loss is -rho log pi(a|s) (r + gamma vs' - V) - c_e H(pi).
        Paper: Espeholt et al. 2018. The model may be recurrent ('fcr_vac').
    """

    config = settings(
        policy_type='impala',
        on_policy=False,
        learn=dict(
            epochs=None,
            batch_size=16,
            optimizer='rmsprop',  # as in the paper; Adam with its small eps collapsed for single seeds
            optimizer_eps=1e-3,
            algo=dict(
                adv_norm=False,
                gae_lambda=1.0,  # of the trace
                rho_clip_ratio=setting(1.0, 'number > 0', 'largest importance weight of a TD error'),
                c_clip_ratio=setting(1.0, 'number > 0', 'largest importance weight in the trace'),
                rho_pg_clip_ratio=setting(1.0, 'number > 0', "largest importance weight of the policy's gradient"),
            ),
        ),
        **sequence_settings(16),
    )
    no_nstep = 'V-trace looks as far as the sequence reaches, policy.collect.unroll_len'
    _logs = f'{A2CPolicy._logs} approx_kl clipfrac'
    _time_columns = ('obs', 'action', 'log_prob', 'reward', 'done', 'mask')

    @classmethod
    def check_config(cls, cfg: EasyDict) -> list[tuple[str, str]]:
        """Settings of this policy that do not go together: pairs (path, what is wrong)."""
        problems = super().check_config(cfg)
        if cfg.learn.epochs is not None and not cfg.on_policy:
            text = f'got {cfg.learn.epochs}, but a replay buffer has no epochs; set learn.train_step instead'
            problems.append(('learn.epochs', text))
        return problems

    def _build_model(self, model: Any) -> torch.nn.Module:
        built = super()._build_model(model)
        self._remembers = hasattr(built, 'initial_state')
        return built

    # ---- learn ----
    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        algo, mask = self._cfg.learn.algo, data['mask']
        output = self._unrolled(data)
        value, steps = output['value'], len(mask)
        now = map_tensors({'logit': output['logit'], 'mask': output.get('action_mask')}, lambda x: x[:steps])
        log_pi, certainty = _log_prob_and_entropy(now['logit'], now['mask'], data['action'])
        log_pi = log_pi.masked_fill(~mask, 0.0)  # the action may be illegal behind the end: -inf times weight 0
        log_rho = (log_pi - data['log_prob'] * mask).detach()
        return_, adv = self._targets(log_rho, value.detach(), data)

        weight = mask.float() if data['weight'] is None else mask * data['weight']
        weight = weight / mask.float().mean()
        adv = self._normalised(adv, weight)
        error = return_ - value[:-1]
        policy_loss, value_loss = -(weight * log_pi * adv).mean(), (weight * error.pow(2)).mean()
        entropy = (weight * certainty).mean()
        rho, td_error = log_rho.exp(), (error.detach().abs() * mask).sum(0) / mask.sum(0)
        return policy_loss + algo.value_weight * value_loss - algo.entropy_weight * entropy, {
            'policy_loss': policy_loss.detach(),
            'value_loss': value_loss.detach(),
            'entropy_loss': entropy.detach(),
            'adv_abs_max': (adv * mask).abs().max(),
            'approx_kl': (weight * (rho - 1 - log_rho)).mean(),
            'clipfrac': (weight * (rho > algo.rho_clip_ratio)).mean(),
            'td_error': td_error,
        }

    def _targets(
        self, log_rho: torch.Tensor, value: torch.Tensor, data: dict[str, Any]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """V-trace targets and advantages. The observation behind a step is always the next one of its sequence."""
        algo, mask = self._cfg.learn.algo, data['mask']
        cut = torch.cat([~mask[1:], torch.ones_like(mask[:1])])  # the next step is no part of this sequence
        goes_on = cut if data['done'] is None else cut & (data['done'] == 0)
        reward = data['reward'] * algo.reward_scale
        fields = vtrace_targets_data(log_rho, value[:-1], reward, cut, goes_on, value[1:])
        clips = (algo.rho_clip_ratio, algo.c_clip_ratio, algo.rho_pg_clip_ratio)
        return vtrace_targets(fields, algo.discount_factor, algo.gae_lambda, *clips)

    # ---- collect ----
    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        output = super()._forward_collect(data_id, data)
        taken = output['drawn'] if 'drawn' in output else joined(output['action'])
        log_prob, _ = _log_prob_and_entropy(output['logit'], output.get('action_mask'), taken)
        return {**output, 'log_prob': log_prob}

    @batched
    def _process_transition(self, obs: Any, armor_output: dict, timestep: Any) -> dict:
        transition = super()._process_transition(obs, armor_output, timestep)
        left_out = ('logit', 'value')  # the learner computes both anew
        kept = {key: column for key, column in transition.items() if key not in left_out}
        return {**kept, 'log_prob': armor_output['log_prob']}

    @batched_steps
    def _get_train_sample(self, traj_cache: Batch) -> Batch:
        return self._sequences(traj_cache)


def _log_prob_and_entropy(logit: Any, mask: Any, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of the stored actions under the new policy, whatever the action space."""
    pair = mu_sigma_of(logit)
    if pair is not None:
        return gaussian_log_prob_and_entropy(pair, action)
    return log_prob_and_entropy(legal(logit, mask), action)
