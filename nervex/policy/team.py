"""What the policies of a team share: agents are an axis, samples are sequences of whole steps."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import nn

from nervex.armor import Armor
from nervex.data import Batch
from nervex.policy.batched import batched
from nervex.policy.common_policy import CommonPolicy
from nervex.policy.ddpg import NOISE, OffPolicyACPolicy
from nervex.policy.sequences import sequence_settings
from nervex.policy.traj_block import batched_steps
from nervex.utils.declare import settings


class _Acting(nn.Module):
    """The part of a team's model that acts, as a module that can be recorded."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, data: dict[str, Any]) -> dict[str, Any]:
        return self.model.compute_action(data)  # type: ignore[operator]


class TeamPolicy(CommonPolicy):
    """
    Overview:
        Observations are dicts: ``agent_state`` (A, d) is what each agent sees, ``global_state`` (s, ) what a mixer or a
        central critic sees, ``action_mask`` (A, n) which actions are legal. Actions are (A, ), continuous ones (A, k);
        a reward is the team's or has one number an agent. A model with a memory keeps it for each env and agent.
        Where agents may leave before the others, ``agent_alive`` (A, ) is 1 for those who still play: no loss counts
        the steps of the others, nor depends on what they see and do. What follows the end of an agent is worth to it
        what it is worth to the living if the reward is the team's, and nothing if each has its own.
    """

    config = settings(
        learn=dict(algo=dict(discount_factor=0.99)),
        **sequence_settings(25),
    )

    action_kinds: tuple[str, ...] = ('team',)
    _time_columns: tuple[str, ...] = ('obs', 'action', 'reward', 'done', 'mask')
    #: what of the model's output is stored with a step
    _keeps: tuple[str, ...] = ('action', 'prev_state')

    def _model_input(self, obs: Any) -> dict[str, Any]:
        return {'obs': obs}

    @cached_property
    def _state_shape(self) -> tuple[int, ...]:
        """Of the states of one env; without elements where the model has no memory."""
        return self._model.state_shape

    @cached_property
    def _remembers(self) -> bool:  # type: ignore[override]
        return self._state_shape[-1] > 0

    def _acting_armor(self, sampler: str, envs: int = 0, save_states: bool = False, **kwargs: Any) -> Armor:
        armor = self._recorded_armor(_Acting(self._model))
        if self._remembers:
            shape = self._state_shape
            armor.add_plugin('main', 'state_block', state_num=envs, shape=shape, save_prev_state=save_states)
        if sampler:
            armor.add_plugin('main', sampler, **kwargs)
        return armor

    def _kept(self, output: dict[str, Any]) -> dict[str, Any]:
        """What of the model's output is stored with a step."""
        return {name: output[name] for name in self._keeps if name in output}

    @batched
    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        more = {'data_id': data_id} if self._remembers else {}
        return self._kept(self._collect_armor.forward(data, **more, **self._sampler_kwargs(data_id)))

    @batched
    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        more = {'data_id': data_id} if self._remembers else {}
        return {'action': self._eval_armor.forward(data, **more)['action']}

    @batched_steps
    def _get_train_sample(self, traj_cache: Batch) -> Batch:
        return self._sequences(traj_cache)

    def _team_reward(self, data: dict[str, Any]) -> torch.Tensor:
        """The team's reward (T, B): the sum where the env gives one an agent."""
        reward = data['reward']
        return reward if reward.dim() == 2 else reward.sum(-1)

    @staticmethod
    def _now_and_next(obs: dict[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """The observations of the steps of sequences, and those behind each of them."""
        now, following = ({name: part[cut] for name, part in obs.items()} for cut in (slice(None, -1), slice(1, None)))
        return now, following

    @staticmethod
    def _real(data: dict[str, Any]) -> torch.Tensor:
        """(T, B, A) bool: which steps are no padding, and of an agent that still plays."""
        steps = data['mask'].unsqueeze(-1)
        alive = data['obs'].get('agent_alive')
        return (
            steps.expand(*steps.shape[:2], data['action'].shape[2])
            if alive is None
            else steps & (alive[: len(steps)] > 0)
        )

    @staticmethod
    def _squared(error: torch.Tensor, real: torch.Tensor, data: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        """
        Overview:
            The mean of the squared errors of real steps, each sequence with its weight; and the mean size of each
            sequence's errors.
        Shapes:
            - error, real: :math:`(T, B)`, or :math:`(T, B, A)`; the second result :math:`(B, )`
        """
        real = real.to(error.dtype)
        squared, size = error.pow(2) * real, error.detach().abs() * real
        if data['weight'] is not None:
            squared = squared * data['weight'].view(-1, *[1] * (error.dim() - 2))
        others = [axis for axis in range(error.dim()) if axis != 1]
        return squared.sum() / real.sum(), size.sum(others) / real.sum(others).clamp_min(1)

    def _first_state(self, data: dict[str, Any]) -> torch.Tensor | None:
        """The stored states (B, A, F) of the first steps of sequences."""
        return torch.stack(data['prev_state']) if 'prev_state' in data else None


class TeamActorsPolicy(TeamPolicy, OffPolicyACPolicy):
    """
    Overview:
        What policies share whose actors climb critics: samples of one step, noise on continuous actions, and random
        ones at the start of a run.
    """

    config = settings(
        learn=dict(grad_clip_norm=10.0, algo=dict(target_theta=0.01)),
        collect=dict(unroll_len=1, **NOISE),
    )
    no_nstep = 'its targets are one step long'

    def _init_collect(self) -> None:
        super()._init_collect()
        if self._model.continuous:
            collect = self._cfg.collect
            noise = {'noise_type': collect.noise_type, 'noise_kwargs': {'sigma': collect.noise_sigma}}
            envs = collect.env_num if self._remembers else 0
            self._collect_armor = self._acting_armor('action_noise', envs, save_states=True, **noise)

    def _init_eval(self) -> None:
        super()._init_eval()
        if self._model.continuous:
            self._eval_armor = self._acting_armor('', self._cfg.eval.env_num if self._remembers else 0)

    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        output = self._collect_armor.forward(data, data_id=data_id)
        if self._random_left > 0:
            self._random_left -= len(output['action'])
            output = {**output, 'action': self._random_action(output, self._explore.on(self._device))}
        return self._kept(output)
