"""What actor-critic algorithms share whose samples are sequences: with a memory, or with targets over many steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nervex.armor import Armor
from nervex.data import Batch
from nervex.loader import enum, interval, is_type
from nervex.policy.batched import batched
from nervex.policy.on_policy_ac import OnPolicyACPolicy, rows_of, select
from nervex.policy.sequences import FirstStates, cut_sequences, pack_states, time_first, unpack_states


class SequenceACPolicy(OnPolicyACPolicy):
    """
    Overview:
        A sample is a sequence of ``unroll_len`` steps of one env, shorter where its episode or the window ends (then
        ``mask`` is False behind). A model that has ``initial_state`` is recurrent: its state is kept for each env while
        acting, and stored, so that a sequence starts with the state that it had when it was collected.
    """

    config = dict(
        collect=dict(
            env_num=1,  # (int) envs that collect; filled from env.actor_env_num
            unroll_len=16,  # (int) steps of a sequence
            traj_len=16,  # (int | 'inf') steps of one env between two cuts into sequences
        ),
        eval=dict(env_num=1),  # (int) envs that evaluate; filled from env.evaluator_env_num
    )
    config_rules = dict(
        collect=dict(
            env_num=is_type(int) & interval(1),
            traj_len=enum('inf') | is_type(float) & interval(1) | is_type(int) & interval(1),
        ),
        eval=dict(env_num=is_type(int) & interval(1)),
    )

    #: columns of a batch that have a time axis
    _time_columns: tuple[str, ...] = ('obs', 'action', 'reward', 'done', 'mask')

    @property
    def _recurrent(self) -> bool:
        return hasattr(self._model, 'initial_state')

    # ---- learn ----
    def _data_preprocess_learn(self, data: Batch | list[dict]) -> dict[str, Any]:
        """As in ``CommonPolicy``, and time first; ``prev_state`` becomes a list of states."""
        out = super()._data_preprocess_learn(data)
        if 'reward' in out:
            out['reward'] = out['reward'].reshape(out['mask'].shape)  # sequences of one step; rows with rewards (1, )
        return time_first(out, self._time_columns)

    def _unrolled(self, data: dict[str, Any]) -> dict[str, Any]:
        """The model over all steps of the sequences: ``logit`` and ``value``, time first."""
        given = self._model_input(data['obs'])
        if self._recurrent:
            given = {**given, 'prev_state': data['prev_state'], 'enable_fast_timestep': True}
        return self._armor.forward(given)

    # ---- collect ----
    def _init_collect(self) -> None:
        super()._init_collect()
        if self._recurrent:
            self._first_states = FirstStates(self._model)
            self._collect_armor = self._remembering_armor('policy_sample', self._cfg.collect.env_num, True)

    def _remembering_armor(self, sampler: str, envs: int, save: bool) -> Armor:
        armor = Armor(self._model)
        armor.add_plugin('main', 'hidden_state', state_num=envs, save_prev_state=save)
        armor.add_plugin('main', sampler)
        armor.add_plugin('main', 'grad', enable_grad=False)
        return armor

    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        if not self._recurrent:
            return self._collect_armor.forward(data)
        output = self._collect_armor.forward(data, data_id=data_id)
        output['prev_state'] = self._first_states.fill(output['prev_state'], data)
        return output

    @batched
    def _process_transition(self, obs: Any, armor_output: dict, timestep: Any) -> dict:
        transition = super()._process_transition(obs, armor_output, timestep)
        if 'prev_state' in armor_output:
            transition['prev_state'] = pack_states(armor_output['prev_state'])
        return transition

    def _values_behind(self, traj: Batch, where: np.ndarray) -> torch.Tensor:
        if not self._recurrent:
            return super()._values_behind(traj, where)
        _, here = self._data_preprocess_collect(rows_of(traj['obs'], where))
        _, behind = self._data_preprocess_collect(rows_of(traj['next_obs'], where))
        state = self._model({**here, 'prev_state': unpack_states(select(traj['prev_state'], where))})['next_state']
        return self._model({**behind, 'prev_state': state})['value']

    def _cut_sequences(self, traj: Batch) -> Batch:
        return cut_sequences(traj, self._cfg.collect.unroll_len)

    # ---- eval ----
    def _init_eval(self) -> None:
        super()._init_eval()
        if self._recurrent:
            self._eval_armor = self._remembering_armor('policy_mode', self._cfg.eval.env_num, False)

    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        kwargs = {'data_id': data_id} if self._recurrent else {}
        return {'action': self._eval_armor.forward(data, **kwargs)['action']}
