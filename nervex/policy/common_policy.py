"""``CommonPolicy``: what most algorithms do in a round, so that an algorithm's own file holds only the algorithm."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import torch

from nervex.data import Batch, default_collate
from nervex.graph.update import LossFn, Update
from nervex.policy.action_space import model_input
from nervex.policy.batched import batched
from nervex.policy.parts import PolicyParts
from nervex.policy.sequences import cut_sequences, pack_states, state_before_first, time_first
from nervex.policy.traj_block import batched_steps, repeats_of, without_time
from nervex.torch_utils.crossing import as_float32, to_tensors
from nervex.utils import tree


class CommonPolicy(PolicyParts):
    """
    Overview:
        What most algorithms share: a subclass writes its loss, and overrides what is special to it. By default a batch
        becomes tensors, ``_loss`` is minimised by one optimizer, a target network follows where ``learn.algo`` has
        ``target_update_freq`` or ``target_theta``, samplers turn the model's output into actions (with a schedule of
        epsilon where ``command.eps`` is set), and samples are steps with n-step rewards.
        All of it takes N rows at once; a subclass that overrides a hook without ``@batched`` gets rows for that hook.
        How the parts are built, by which settings: ``nervex/policy/parts.py``.
    """

    # ---- learn ----
    def _data_preprocess_learn(self, data: Batch | list[dict]) -> dict[str, Any]:
        """
        Overview:
            Rows -> tensors on the device. ``done`` becomes 1. where the episode truly ended and 0. where only the time
            ran out; ``IS`` is the buffer's importance weight (1 without priorities), ``weight`` the same with
            ``use_priority``, else None. Sequences get their time axis in front; ``prev_state`` becomes a list of
            states.
        """
        if isinstance(data, Batch):
            out = data.to_torch(self._device if self._use_cuda else None)
        else:
            out = to_tensors(default_collate(list(data)), self._device)
        done, truncated = out.get('done'), out.get('truncated')
        if self._cfg.learn.ignore_done:
            out['done'] = None
        elif done is not None:
            out['done'] = done.float() if truncated is None else (done > truncated).float()  # done and not truncated
        if (reward := out.get('reward')) is not None and reward.dim() == 2 and reward.shape[1] == 1:
            out['reward'] = reward.squeeze(1)  # rows carry rewards of shape (1, )
        out['weight'] = out.get('IS') if self._use_priority else None
        if 'IS' not in out:
            out['IS'] = self._no_weights(len(data))
        if self._time_columns:
            if 'reward' in out:
                out['reward'] = out['reward'].reshape(*out['mask'].shape, -1).squeeze(-1)  # one a step, or one an agent
            return time_first(out, self._time_columns)
        return out

    def _no_weights(self, rows: int) -> torch.Tensor:
        """Importance weights of rows that were all drawn alike."""
        ones = self.__dict__.get('_ones')
        if ones is None or len(ones) != rows:
            ones = self._ones = torch.ones(rows, device=self._device)
        return ones

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        """The loss of a batch, and what is logged of it; ``td_error``, one a row, becomes the priority."""
        raise NotImplementedError(f'{type(self).__name__}._loss(data) -> (loss, values to log)')

    def _forward_learn(self, data: dict[str, Any]) -> dict[str, Any]:
        """One update along the gradient of ``_loss``, and of the target network."""
        loss, info = self._minimize(self._loss, data, self._optimizer)
        if self._has_target:
            self._armor.target_update(self._model)
        log = {'cur_lr': self._optimizer.param_groups[0]['lr'], 'total_loss': loss, **info}
        td_error = log.pop('td_error', None)
        return {**log, 'priority': td_error.abs()} if self._use_priority and td_error is not None else log

    def _minimize(self, loss_fn: LossFn, data: dict, optimizer: Any) -> tuple[torch.Tensor, dict]:
        """
        Overview:
            One update of ``optimizer``'s parameters along the gradient of ``loss_fn(data) -> (loss, log values)``; the
            loss function is a method of the policy, and everything that changes enters it as a tensor in ``data``.
        """
        updates = self.__dict__.setdefault('_updates', {})
        name = loss_fn.__name__
        if name not in updates:
            learn = self._cfg.learn
            updates[name] = Update(loss_fn, optimizer, learn.graph, self._model, self._use_distributed, learn.matmul)
            if name in self.__dict__.get('_update_states', {}):
                updates[name].load_state_dict(self._update_states[name])
        return updates[name](data)

    def _get_setting_learn(self, command_info: dict) -> dict:
        learn = self._cfg.learn
        if learn.learning_rate_schedule == 'constant':
            return {}
        done = command_info['progress']
        left = 1 - done if learn.learning_rate_schedule == 'linear' else (1 + math.cos(math.pi * done)) / 2
        return {'lr_part': learn.learning_rate_end + (1 - learn.learning_rate_end) * left}

    @cached_property
    def _has_target(self) -> bool:
        return hasattr(self._armor, 'target_model')

    @cached_property
    def _use_priority(self) -> bool:
        return self._cfg.use_priority

    @cached_property
    def _gamma(self) -> float:
        return self._cfg.learn.algo.discount_factor

    @cached_property
    def _nstep(self) -> int:
        return self._cfg.learn.algo.nstep

    def _nstep_kwargs(self, data: dict[str, Any]) -> dict[str, Any]:
        """How many rewards a sample has, and the discount of what follows where it has fewer."""
        return {'nstep': self._nstep, 'value_gamma': data.get('value_gamma')}

    @staticmethod
    def _time_first(data: dict[str, Any]) -> torch.Tensor:
        """Rewards (B, nstep) or (B, ) -> (nstep, B)."""
        reward = data['reward']
        return reward.unsqueeze(0) if reward.dim() == 1 else reward.t()

    # ---- collect and eval ----
    @batched
    def _data_preprocess_collect(self, data: Any) -> tuple[list[int], dict]:
        """``{env_id: obs}``, or the actor's block of observations -> (env ids, the model's input)."""
        if isinstance(data, dict):
            ids = list(data)
            return ids, self._model_input(to_tensors(default_collate([data[i] for i in ids]), self._device))
        obs = data.obs
        if type(obs) is np.ndarray and obs.dtype != np.float64:  # most are: no further call
            return data.env_id, {'obs': obs}
        return data.env_id, self._model_input(as_float32(obs))

    def _model_input(self, obs: Any) -> dict[str, Any]:
        """``{'obs': batch}``; an ``action_mask`` among the observations goes beside the rest."""
        if not isinstance(obs, dict):
            return {'obs': obs}
        heads = self._cfg.model['action_dim'] if 'action_dim' in self._cfg.model else None
        return model_input(obs, heads if isinstance(heads, (list, tuple)) else None)

    def _sequence_input(self, obs: Any, state: list[Any]) -> dict[str, Any]:
        """The input of a recurrent model for sequences, time first, from their first states on."""
        return {**self._model_input(obs), 'prev_state': state, 'enable_fast_timestep': True}

    @batched
    def _data_postprocess_collect(self, data_id: list[int], output: dict) -> dict:
        """The output as it is, in columns; a worker cuts it into rows where a hook wants rows."""
        return output

    @batched
    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        if not self._remembers:
            return self._collect_armor.forward(data, **self._sampler_kwargs(data_id))
        output = self._collect_armor.forward(data, data_id=data_id, **self._sampler_kwargs(data_id))
        if any(state is None for state in output['prev_state']):
            if not hasattr(self, '_first_state'):
                self._first_state = state_before_first(self._model, to_tensors(data, self._device))
            output['prev_state'] = [self._first_state if s is None else s for s in output['prev_state']]
        return output

    def _sampler_kwargs(self, data_id: list[int]) -> dict[str, Any]:
        """What the collecting sampler needs beside the model's output: epsilon, where there is one."""
        return {'eps': self._eps} if 'eps' in self._collect_setting_set else {}

    def _get_setting_collect(self, command_info: dict) -> dict:
        return {'eps': self._epsilon_greedy(command_info[self._eps_by])} if 'eps' in self._cfg.command else {}

    @batched
    def _process_transition(self, obs: Any, armor_output: dict, timestep: Any) -> dict:
        transition = {
            'obs': obs,
            'next_obs': timestep.obs,
            'action': armor_output['action'],
            'reward': timestep.reward,
            'done': timestep.done,
        }
        if 'prev_state' in armor_output:
            transition['prev_state'] = pack_states(armor_output['prev_state'])
        return transition

    @batched
    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        return self._eval_armor.forward(data, data_id=data_id) if self._remembers else self._eval_armor.forward(data)

    # ---- samples ----
    def _get_traj_overlap(self) -> int:
        """Steps at a window's end that come again in the next one: n-step targets need the steps behind them."""
        return self._collect_nstep - 1

    @cached_property
    def _collect_nstep(self) -> int:
        algo = self._cfg.collect.algo
        return algo.nstep if 'nstep' in algo else 1

    @batched_steps
    def _get_train_sample(self, traj_cache: Batch) -> Batch:
        """A window of steps, time first -> training samples with n-step rewards."""
        samples, learn = traj_cache, self._cfg.learn.algo
        if self._collect_nstep > 1:
            overlap = repeats_of(traj_cache, self._get_traj_overlap())
            gamma = learn.discount_factor if 'discount_factor' in learn else None
            samples = self._adder.get_nstep_return_data(samples, self._collect_nstep, gamma=gamma, overlap=overlap)
        return without_time(samples, traj_cache)

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
        return self._model(self._model_input(self._rows_of(traj['next_obs'], where)))['value']

    def _rows_of(self, column: Any, mask: np.ndarray) -> Any:
        """The masked rows of a column, nested or not, as tensors on the device."""
        nested = column.to_dict() if isinstance(column, Batch) else column
        return to_tensors(tree.index(nested, mask), self._device)

    def _sequences(self, traj: Batch, context: int = 0) -> Batch:
        """
        Overview:
            A window of steps, time first, -> sequences of ``unroll_len`` steps with a time axis inside the row, see
            ``cut_sequences``.
        Arguments:
            - context (:obj:`int`): earlier steps at the head of each sequence
        """
        return cut_sequences(traj, self._cfg.collect.unroll_len, context, repeats_of(traj, context))
