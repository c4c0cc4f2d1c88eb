"""R2D2: recurrent double DQN from replayed sequences, with stored states, burn-in and rescaled values."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from easydict import EasyDict

from nervex.data import Batch
from nervex.policy.action_space import Heads, greedy
from nervex.policy.dqn import DQNPolicy, Forward
from nervex.policy.sequences import map_tensors, sequence_settings
from nervex.policy.traj_block import batched_steps
from nervex.rl_utils import TDLoss, rollout_nstep_data, rollout_nstep_return, value_inv_transform, value_transform
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('r2d2')
class R2D2Policy(DQNPolicy):
    """
    Overview:
        A sample is a sequence. Its recurrent state, as it was when the steps were collected, is warmed up on
        ``burnin_step`` earlier steps without gradient; each later step learns its n-step double Q target under h.
        Priority of a sequence: eta max |td| + (1 - eta) mean |td|. Paper: Kapturowski et al. 2019.
    """

    config = settings(
        policy_type='r2d2',
        learn=dict(
            graph='off',  # recurrent layers cannot be recorded
            algo=dict(
                target_update_freq=200,
                discount_factor=0.99,
                nstep=5,
                burnin_step=setting(2, 'int >= 0', 'earlier steps on which the stored state is warmed up'),
                value_rescale=setting(True, 'bool', 'learn h(Q), for rewards of very different sizes'),
                priority_eta=setting(0.9, 'number in [0, 1]', "share of the largest error in a sequence's priority"),
                huber=setting(False, 'False', 'rescaled values need none'),
            ),
        ),
        **sequence_settings(20, algo=dict(nstep=5)),
    )
    _default_model = 'fcr_discrete_net'
    _time_columns = ('obs', 'action', 'reward', 'done', 'mask')
    _remembers = True

    @classmethod
    def check_config(cls, cfg: EasyDict) -> list[tuple[str, str]]:
        """Settings of this policy that do not go together: pairs (path, what is wrong)."""
        problems = super().check_config(cfg)
        nstep, steps = cfg.learn.algo.nstep, cfg.collect.unroll_len
        if nstep > steps:
            text = f'got {nstep}, must be at most policy.collect.unroll_len = {steps}: targets end with their sequence'
            problems.append(('learn.algo.nstep', text))
        return problems

    @cached_property
    def _burnin(self) -> int:
        return self._cfg.learn.algo.burnin_step

    # ---- learn ----
    def _td_error(self, data: dict[str, Any], online: Forward, target: Forward) -> tuple[TDLoss, Any]:
        """The loss of sequences with their priorities: largest error and mean one, without padding; and the values."""
        error, q = self._sequence_error(data, online, target)
        mask, eta = data['mask'].float(), self._cfg.learn.algo.priority_eta
        squared = error.pow(2) * mask if data['weight'] is None else error.pow(2) * mask * data['weight']
        size = error.detach().abs() * mask
        priority = eta * size.max(0).values + (1 - eta) * (size.sum(0) / mask.sum(0).clamp_min(1))
        return TDLoss(squared.sum() / mask.sum(), priority), q

    def _sequence_error(self, data: dict[str, Any], online: Forward, target: Forward) -> tuple[torch.Tensor, Heads]:
        """Error of every step (length, B), over several heads the root of the mean square; and the action values."""
        output = self._unrolled(data, online)
        with torch.no_grad():
            target_q = self._unrolled(data, target)['logit']
        q, mask, action = output['logit'], output.get('action_mask'), data['action']
        if isinstance(q, torch.Tensor):
            return self._head_error(data, q, target_q, mask, action), q
        masks = [None] * len(q) if mask is None else mask
        errors = [self._head_error(data, *head) for head in zip(q, target_q, masks, action.unbind(-1))]
        return torch.stack(errors).pow(2).mean(0).add(1e-12).sqrt(), q

    def _head_error(
        self, data: dict[str, Any], q: torch.Tensor, target_q: torch.Tensor, legal: Any, action: torch.Tensor
    ) -> torch.Tensor:
        rescale = self._cfg.learn.algo.value_rescale
        taken = q[:-1].gather(-1, action.unsqueeze(-1)).squeeze(-1)
        with torch.no_grad():
            best = greedy(q if self._double_q else target_q, legal)
            value = target_q.gather(-1, best.unsqueeze(-1)).squeeze(-1)
            if rescale:
                value = value_inv_transform(value)
            mask = data['mask']
            ended = data['done'] if data['done'] is not None else torch.zeros_like(data['reward'])
            cut = torch.cat([~mask[1:], torch.ones_like(mask[:1])])  # the next step is no part of this sequence
            rollout = rollout_nstep_data(value, data['reward'], cut, cut & (ended == 0), value[1:])
            goal = rollout_nstep_return(rollout, self._gamma, self._nstep)
            if rescale:
                goal = value_transform(goal)
        return goal - taken

    def _unrolled(self, data: dict[str, Any], forward: Forward) -> dict[str, Any]:
        """The network over all steps behind the burn-in."""
        obs, state, burnin = data['obs'], data['prev_state'], self._burnin
        if burnin:
            with torch.no_grad():
                warm = forward(self._sequence_input(map_tensors(obs, lambda x: x[:burnin]), state))['next_state']
            state = [stored if fresh else new for stored, new, fresh in zip(state, warm, data['fresh'].tolist())]
        return forward(self._sequence_input(map_tensors(obs, lambda x: x[burnin:]), state))

    # ---- collect ----
    def _get_traj_overlap(self) -> int:
        return self._burnin

    @batched_steps
    def _get_train_sample(self, traj_cache: Batch) -> Batch:
        return self._with_priority(self._sequences(traj_cache, self._burnin))
