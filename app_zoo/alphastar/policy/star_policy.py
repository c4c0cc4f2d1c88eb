"""AlphaStar's way of learning: V-trace, UPGO and TD(lambda) over orders of several parts, close to a teacher."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any

import torch

from app_zoo.alphastar.model.heads import divergence
from app_zoo.alphastar.policy.loss import alphastar_data, alphastar_error
from nervex.armor import Draws
from nervex.data import Batch
from nervex.policy.batched import batched
from nervex.policy.common_policy import CommonPolicy
from nervex.policy.sequences import sequence_settings
from nervex.policy.traj_block import batched_steps
from nervex.utils import POLICY_REGISTRY, ConfigError
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('alphastar')
class AlphaStarPolicy(CommonPolicy):
    """
    Overview:
        Learns from sequences whose orders carry their log-probabilities, part by part, under the policy that gave
        them. The loss: V-trace policy gradient + UPGO + c_v TD(lambda) + c_t KL(teacher || policy) - c_e entropy. The
        teacher is a checkpoint, or the policy as the run began; one with a memory begins each sequence without it.
        Orders are drawn while collecting, and the likeliest in evaluations. Paper: Vinyals et al. 2019.
    """

    config = settings(
        policy_type='alphastar',
        learn=dict(
            graph='off',  # a part is chosen by the parts before it
            batch_size=16,
            learning_rate=3e-4,
            optimizer_eps=1e-5,
            grad_clip_norm=1.0,
            teacher=setting(
                None, 'str | None', 'checkpoint or run whose policy is the teacher; None: the first policy'
            ),
            algo=dict(
                discount_factor=1.0,
                gae_lambda=1.0,  # of V-trace
                td_lambda=setting(0.8, 'number in [0, 1]', 'lambda of the values that are learned'),
                upgo_weight=setting(1.0, 'number >= 0', 'weight of the upgoing policy gradient'),
                value_weight=setting(1.0, 'number >= 0', 'weight of the value loss'),
                teacher_weight=setting(2e-3, 'number >= 0', 'weight of the divergence from the teacher; 0: no teacher'),
                entropy_weight=setting(1e-4, 'number >= 0', 'weight of the entropy bonus'),
                rho_clip_ratio=setting(1.0, 'number > 0', 'largest importance weight of a TD error'),
                c_clip_ratio=setting(1.0, 'number > 0', 'largest importance weight in the trace'),
                rho_pg_clip_ratio=setting(1.0, 'number > 0', "largest importance weight of the policy's gradients"),
            ),
        ),
        **sequence_settings(16, graph='off'),
    )
    action_kinds = ('multi_discrete',)
    no_nstep = 'V-trace and TD(lambda) look as far as the sequence reaches, policy.collect.unroll_len'
    no_priority = 'its losses know no priorities'
    resume_parts = ('_draws',)
    learn_parts = ('_teacher_model',)
    _collects_by = _evaluates_by = ''  # the model itself chooses
    _time_columns = ('obs', 'action', 'log_prob', 'reward', 'done', 'mask')
    _logs = 'cur_lr total_loss policy_loss upgo_loss value_loss entropy_loss teacher_loss mean_rho grad_norm'

    def default_model(self) -> tuple[str, list[str]]:
        """AlphaStar's network in small."""
        return 'alphastar', ['app_zoo.alphastar.model']

    def _build_model(self, model: Any) -> torch.nn.Module:
        built = super()._build_model(model)
        self._remembers = built.remembers
        return built

    # ---- learn ----
    def _init_learn(self) -> None:
        teacher = copy.deepcopy(self._model).requires_grad_(False) if self._taught else None
        super()._init_learn()
        if teacher is not None:
            if self._cfg.learn.teacher is not None:
                _load(teacher, self._cfg.learn.teacher)
            self._armor.add_model('teacher', model=teacher)

    @cached_property
    def _taught(self) -> bool:
        return self._cfg.learn.algo.teacher_weight > 0

    @property
    def _teacher_model(self) -> torch.nn.Module:
        return self._armor.teacher_model

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        algo, mask = self._cfg.learn.algo, data['mask']
        output = self._judged(self._armor.forward, data, data.get('prev_state'))
        apart = None
        if self._taught:
            with torch.no_grad():
                teacher = self._judged(self._armor.teacher_forward, data, None)['logit']
            apart = divergence(teacher, output['logit'], output['made'])
        behind = mask.unsqueeze(-1).logical_not()  # what stands there may be illegal
        new, old = output['log_prob'].masked_fill(behind, 0.0), data['log_prob'].masked_fill(behind, 0.0)
        cut = torch.cat([~mask[1:], torch.ones_like(mask[:1])])  # the next step is no part of this sequence
        goes_on = cut if data['done'] is None else cut & (data['done'] == 0)
        value, weight = output['value'], mask.float() / mask.float().mean()
        ends = (cut, goes_on, value[1:].detach())
        fields = alphastar_data(new, old, output['entropy'], apart, value, data['reward'], weight, *ends)
        clips = (algo.rho_clip_ratio, algo.c_clip_ratio, algo.rho_pg_clip_ratio)
        loss = alphastar_error(fields, algo.discount_factor, algo.td_lambda, algo.gae_lambda, clips)
        total = loss.policy + algo.upgo_weight * loss.upgo + algo.value_weight * loss.value
        total = total + algo.teacher_weight * loss.teacher - algo.entropy_weight * loss.entropy
        log = {f'{name}_loss': value.detach() for name, value in loss._asdict().items()}
        return total, {**log, 'mean_rho': (weight.unsqueeze(-1) * (new - old).exp()).mean().detach()}

    def _judged(self, forward: Any, data: dict[str, Any], state: Any) -> dict[str, Any]:
        """What a model says of the sequences and their orders."""
        return forward({**self._sequence_input(data['obs'], state), 'action': data['action']})

    # ---- collect and eval ----
    def _init_collect(self) -> None:
        super()._init_collect()
        self._draws = Draws()

    def _model_input(self, obs: Any) -> dict[str, Any]:
        return {'obs': obs}

    @batched
    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        output = super()._forward_collect(data_id, {**data, 'generator': self._draws.on(self._device)})
        return {key: output[key] for key in ('action', 'log_prob', 'prev_state') if key in output}

    @batched
    def _process_transition(self, obs: Any, armor_output: dict, timestep: Any) -> dict:
        transition = super()._process_transition(obs, armor_output, timestep)
        return {**transition, 'log_prob': armor_output['log_prob']}

    @batched_steps
    def _get_train_sample(self, traj_cache: Batch) -> Batch:
        return self._sequences(traj_cache)

    @batched
    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        """The likeliest orders; with a ``seed`` beside the observations they are drawn, and ``log_prob`` tells so."""
        kept = ['action', 'next_state']
        if 'seed' in data:
            generator = torch.Generator(self._device).manual_seed(data['seed'])
            data, kept = {**data, 'generator': generator}, [*kept, 'log_prob']
        output = super()._forward_eval(data_id, data)
        return {key: output[key] for key in kept if key in output}


def _load(teacher: torch.nn.Module, path: str) -> None:
    """The weights of a checkpoint, or of the best one of a run."""
    from nervex.run.folder import checkpoint_file
    from nervex.worker.learner.checkpoints import load_checkpoint_file

    try:
        teacher.load_state_dict(load_checkpoint_file(checkpoint_file(path))['model'])
    except RuntimeError as error:
        text = ' '.join(str(error).split())[:200]
        raise ConfigError([f'policy.learn.teacher: {path} is of another network: {text}']) from error
