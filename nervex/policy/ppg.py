"""Phasic policy gradient: PPO with a network each for policy and value, and a phase that brings them together."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from nervex.armor.sampling import Draws, mu_sigma_of
from nervex.data import Batch
from nervex.policy.ppo import PPOPolicy
from nervex.policy.sequences import map_tensors
from nervex.rl_utils import gaussian_kl_divergence, ppg_data, ppg_joint_error, ppo_value_data, ppo_value_error
from nervex.utils import POLICY_REGISTRY, tree
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('ppg')
class PPGPolicy(PPOPolicy):
    """
    Overview:
        Policy phase: PPO's policy loss for one network, the value loss for another. Auxiliary phase, every
        ``aux_freq`` updates: the policy network also learns returns by a head of its own, while KL(old policy || new)
        keeps what it does; the value network goes on learning. Paper: Cobbe et al. 2020. With two buffers named
        ``policy`` and ``value`` the value learns from the second one, which may reach further back than the last round.
    """

    config = settings(
        policy_type='ppg',
        learn=dict(
            aux_freq=setting(64, 'int >= 1', 'updates between two auxiliary phases'),
            epochs_aux=setting(6, 'int >= 1', 'passes of an auxiliary phase over the kept rows'),
            aux_rows=setting(2048, 'int >= 1', "newest rows of the value's batches kept for the auxiliary phase"),
            learning_rate_aux=setting(None, 'number > 0 | None', 'its step size; None: learning_rate'),
            algo=dict(
                use_value_clip=False,
                beta_weight=setting(1.0, 'number >= 0', 'weight of the divergence from the old policy'),
            ),
        ),
    )
    _default_model = 'fc_ppg'

    learn_parts: tuple[str, ...] = ('_optimizer_value', '_optimizer_aux', '_draws', '_updates_done')
    _phase = 'aux_value_loss auxiliary_loss behavioral_cloning_loss'
    _logs = f'{PPOPolicy._logs} value_grad_norm {_phase}'

    # ---- learn ----
    def _init_learn(self) -> None:
        self._armor = self._learning_armor()
        self._optimizer = self._new_optimizer(self._model.policy_net)
        self._optimizer_value = self._new_optimizer(self._model.value_net)
        self._optimizer_aux = self._new_optimizer(self._model.policy_net, self._cfg.learn.learning_rate_aux)
        self._draws = Draws()
        self._updates_done = 0
        self._kept: list[dict[str, Any]] = []

    def _data_preprocess_learn(self, data: Any) -> dict[str, Any]:
        """A batch of each buffer; one batch stands for both."""
        if isinstance(data, dict) and isinstance(data.get('value'), Batch) and 'policy' in data:
            return {name: super(PPGPolicy, self)._data_preprocess_learn(data[name]) for name in ('policy', 'value')}
        batch = super()._data_preprocess_learn(data)
        return {'policy': batch, 'value': batch}

    def _forward_learn(self, data: dict[str, Any]) -> dict[str, Any]:
        loss, info = self._minimize(self._loss, data['policy'], self._optimizer)
        value_loss, value_info = self._minimize(self._value_loss, data['value'], self._optimizer_value)
        self._keep(data['value'])
        self._updates_done += 1
        log = {
            'cur_lr': self._optimizer.param_groups[0]['lr'],
            'total_loss': loss + value_loss,
            **info,
            'value_loss': value_loss,
            'value_grad_norm': value_info['grad_norm'],
        }
        if self._updates_done % self._cfg.learn.aux_freq == 0:
            log.update(self._auxiliary_phase())
        return log

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        output = self._run(data['obs'], 'compute_action')
        return self._clipped_loss({**output, 'value': data['value']}, data, data['weight'])

    def _value_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        algo, value = self._cfg.learn.algo, self._run(data['obs'], 'compute_value')['value']
        fields = ppo_value_data(value, data['value'], data['return_'], None)
        return ppo_value_error(fields, algo.clip_ratio, algo.use_value_clip), {}

    def _run(self, obs: Any, mode: str) -> dict[str, Any]:
        return self._armor.forward(self._model_input(obs), param={'mode': mode})

    # ---- auxiliary phase ----
    def _keep(self, data: dict[str, Any]) -> None:
        """Copies: the buffer uses the memory of a batch again."""
        self._kept.append(map_tensors({name: data[name] for name in ('obs', 'return_')}, torch.clone))
        while sum(len(rows['return_']) for rows in self._kept[1:]) >= self._cfg.learn.aux_rows:
            self._kept.pop(0)

    def _auxiliary_phase(self) -> dict[str, Any]:
        """Passes over all kept rows in a new order each; the mean of what is logged."""
        learn, rows = self._cfg.learn, tree.cat(self._kept)
        with torch.no_grad():
            rows['logit'] = self._run(rows['obs'], 'compute_action')['logit']
        count, log = len(rows['return_']), []
        for _ in range(learn.epochs_aux):
            order = torch.randperm(count, generator=self._draws.on(self._device), device=self._device)
            for chosen in order.split(learn.batch_size):
                data = map_tensors(rows, partial(torch.index_select, dim=0, index=chosen))
                _, info = self._minimize(self._auxiliary_loss, data, self._optimizer_aux)
                value_loss, _ = self._minimize(self._aux_value_loss, data, self._optimizer_value)
                log.append({**info, 'aux_value_loss': value_loss})
        self._kept = []
        return {name: torch.stack([entry[name] for entry in log]).mean() for name in self._phase.split()}

    def _auxiliary_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        output = self._run(data['obs'], 'compute_aux')
        new, old = self._logits(output, data)
        if mu_sigma_of(new) is not None:
            fields = ppo_value_data(output['aux_value'], None, data['return_'], None)
            auxiliary, cloning = ppo_value_error(fields, use_value_clip=False), gaussian_kl_divergence(old, new).mean()
        else:
            joint = ppg_data(new, old, None, output['aux_value'], None, data['return_'], None)
            auxiliary, cloning = ppg_joint_error(joint, use_value_clip=False)
        loss = auxiliary + self._cfg.learn.algo.beta_weight * cloning
        return loss, {'auxiliary_loss': auxiliary.detach(), 'behavioral_cloning_loss': cloning.detach()}

    def _aux_value_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        value = self._run(data['obs'], 'compute_value')['value']
        return ppo_value_error(ppo_value_data(value, None, data['return_'], None), use_value_clip=False), {}

    # ---- state ----
    def _state_dict_learn(self) -> dict:
        return {**super()._state_dict_learn(), 'kept': list(self._kept)}

    def _load_state_dict_learn(self, state_dict: dict) -> None:
        super()._load_state_dict_learn(state_dict)
        self._kept = [map_tensors(rows, lambda x: x.to(self._device)) for rows in state_dict.get('kept', [])]
