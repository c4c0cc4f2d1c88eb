"""The actor: steps the envs with the policy and answers training samples."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from typing import Any

import numpy as np
from easydict import EasyDict

from nervex.data import Batch
from nervex.policy.batched import is_batched
from nervex.utils import ACTOR_REGISTRY
from nervex.utils.class_config import class_config
from nervex.worker.actor.collect_log import CollectLog
from nervex.worker.actor.columns import (
    BlockTimestep,
    SharedTensors,
    as_array,
    check_names,
    copy_row,
    own,
    pick,
    policy_forward,
    row_of,
    stack_rows,
    stamped,
)
from nervex.worker.actor.rollout import ColumnRollout, RowRollout
from nervex.worker.actor.state import from_state, to_state
from nervex.worker.actor.transform import SampleTransforms

logger = logging.getLogger(__name__)
_COUNTERS = ('total_step', 'total_sample', 'total_episode', 'total_duration', 'rounds', 'last_iter')


@ACTOR_REGISTRY.register('base')
class BaseSerialActor:
    """
    Overview:
        Collects exactly ``n_sample`` training samples, or the samples of ``n_episode`` whole episodes, a call. The envs
        are not reset between calls.
    Interfaces:
        generate_data, reset, close, env, policy
    """

    config = dict(
        actor_type='base',  # (str) registered name of an actor
        n_sample=None,  # (int | None) training samples of one round; give this or n_episode
        n_episode=None,  # (int | None) whole episodes of one round
        traj_len=None,  # (int | 'inf' | None) window length; taken from policy.collect.traj_len
        traj_print_freq=100,  # (int) episodes between two lines in the log, 0 for none
        collect_print_freq=100,  # (int) rounds between two lines in the log, 0 for none
        transform={},  # (dict) name -> settings of what changes samples before they are stored: dict(her=dict(k=4))
    )

    def __init__(
        self,
        cfg: dict | None = None,
        exp_name: str = '.',
        tb_logger: Any = None,
        seed: int | None = None,
        log_name: str | None = 'collect',
    ) -> None:
        self._cfg = EasyDict(class_config(type(self), cfg))
        self.log = CollectLog(exp_name, log_name, tb_logger)
        self._transform = SampleTransforms(self._cfg, seed)
        self._env: Any = None
        self._policy: Any = None
        self._spare: list[Any] = []
        self.rounds = self.last_iter = 0
        self._open = True
        self.total_step = self.total_sample = self.total_episode = 0
        self.total_duration = 0.0
        self.recent_returns: deque = deque(maxlen=100)
        self.recent_lengths: deque = deque(maxlen=100)
        self.settings: dict[str, dict[str, Any]] = {}  # what the commander set, for the log

    # ---- parts ----
    @property
    def env(self) -> Any:
        return self._env

    @env.setter
    def env(self, env_manager: Any) -> None:
        self._env = env_manager
        self._prepare()

    @property
    def policy(self) -> Any:
        return self._policy

    @policy.setter
    def policy(self, collect_mode: Any) -> None:
        self._policy = collect_mode
        self._prepare()

    def _prepare(self) -> None:
        """Choose the form in which transitions travel, by the marks on the policy's methods."""
        if self._env is None or self._policy is None:
            return
        n = self._env.env_num
        self._transition_columns = is_batched(self._policy.process_transition)
        self._sample_columns = is_batched(self._policy.get_train_sample)
        traj_len = float('inf') if self._cfg.traj_len in ('inf', float('inf')) else self._cfg.traj_len
        if not self._sample_columns:
            self._rollout: Any = RowRollout(self._policy.get_train_sample, n, traj_len or 1)
        elif traj_len == float('inf') or (traj_len is None and self._cfg.n_sample is None):
            self._rollout = ColumnRollout(self._policy.get_train_sample, n, None)
        else:
            overlap = self._policy.get_attribute('traj_overlap') or 0
            steps = int(traj_len) if traj_len else math.ceil(self._cfg.n_sample / n)
            self._rollout = ColumnRollout(self._policy.get_train_sample, n, steps, overlap)
        self._asynchronous = self._env.asynchronous
        self._pool, self._tensors = {}, SharedTensors()

    def reset(self) -> None:
        """Forget unfinished episodes, and start the envs and the policy's state anew."""
        self._env.reset()
        self._policy.reset()
        self._spare.clear()
        self._prepare()

    # ---- collecting ----
    def generate_data(
        self, iter_count: int, n_episode: int | None = None, n_sample: int | None = None
    ) -> tuple[Batch | list[dict], dict[str, Any]]:
        """
        Overview:
            Step the envs until enough samples (or episodes) are there.
        Arguments:
            - iter_count (:obj:`int`): the learner's iteration, stamped on every sample as ``collect_iter``
            - n_episode, n_sample (:obj:`int | None`): at most one of them; None takes the config's
        Returns:
            - data (:obj:`Batch | list[dict]`): the samples: columns, or rows if the policy makes rows
            - collect_info (:obj:`dict[str, Any]`): totals so far, and what this round did
        """
        if n_episode is None and n_sample is None:
            n_episode, n_sample = self._cfg.n_episode, self._cfg.n_sample
        if (n_episode is None) == (n_sample is None):
            raise ValueError(
                f'actor: give either n_sample or n_episode, got n_sample={n_sample}, n_episode={n_episode}'
            )
        start = time.perf_counter()
        first_step, first_episode = self.total_step, self.total_episode
        pieces, self._spare = self._spare, []
        count = sum(len(piece) for piece in pieces)
        while (count < n_sample) if n_sample is not None else (self.total_episode - first_episode < n_episode):
            for piece in self._step(iter_count):
                pieces.append(piece)
                count += len(piece)
        data = self._exactly(pieces, count, n_sample)
        kept = count if n_sample is None else n_sample
        data = self._transform(data)
        self.total_sample += kept
        seconds = time.perf_counter() - start
        self.total_duration += seconds
        self.rounds += 1
        self.last_iter = iter_count
        samples = len(data) if self._transform else kept
        return data, self._collect_info(iter_count, samples, first_step, first_episode, seconds)

    def _step(self, iter_count: int) -> list[Any]:
        env = self._env
        ids, obs = env.observe()
        output = policy_forward(self._policy, ids, obs, self._tensors)
        action = as_array(output['action'])
        step = env.advance(ids, action)
        if len(step.abnormal):
            for env_id in step.abnormal:
                self._rollout.drop(env_id)
                self._policy.reset(data_id=[int(env_id)])
                self._pool.pop(int(env_id), None)
        if self._asynchronous or step.env_id is not ids:
            obs, output = self._answered(ids, obs, output, step.env_id)
        n = len(step.env_id)
        self.total_step += n
        if n == 0:
            return []
        any_done = step.done.any()
        samples = self._store(obs, output, step, any_done, iter_count)
        if any_done:
            self._finish_episodes(step)
        return samples

    def _answered(self, ids: np.ndarray, obs: Any, output: dict, answered: np.ndarray) -> tuple[Any, dict]:
        """What the answered envs had seen and what the policy had said, whichever call that was in."""
        for k, i in enumerate(ids):
            self._pool[int(i)] = (copy_row(obs, k), {key: pick(value, k, key) for key, value in output.items()})
        rows = [self._pool.pop(int(i)) for i in answered]
        if not rows:
            return obs, output
        return stack_rows([r[0] for r in rows]), {key: stack_rows([r[1][key] for r in rows]) for key in output}

    def _store(self, obs: Any, output: dict, step: Any, any_done: bool, iter_count: int) -> list[Any]:
        obs_t, ids, timestep = self._tensors.tensor(obs), step.env_id, BlockTimestep(step, self._tensors)
        if self._transition_columns and self._sample_columns:
            array, transition = self._tensors.array, self._policy.process_transition(obs_t, output, timestep)
            columns = {key: array(value) for key, value in transition.items()}
        else:
            rows = self._rows(obs_t, output, timestep)
            if not self._sample_columns:
                return self._store_rows(rows, step, iter_count)
            columns = {key: as_array(value) for key, value in Batch.from_rows(rows).to_dict().items()}
        check_names(columns)
        columns.setdefault('truncated', step.truncated)
        samples = self._rollout.add(ids, ids is self._env.all_ids, columns, step.done if any_done else None)
        return [stamped(batch, iter_count) for batch in samples]

    def _rows(self, obs: Any, output: dict, timestep: Any) -> list[dict]:
        """One transition an env, made by the documented call a row, or cut out of the columns."""
        if self._transition_columns:
            columns = self._policy.process_transition(obs, output, timestep)
            return [{key: row_of(value, k) for key, value in columns.items()} for k in range(len(timestep.env_id))]
        rows = []
        for k in range(len(timestep.env_id)):
            said = {key: pick(value, k, key) for key, value in output.items()}
            rows.append(self._policy.process_transition(row_of(obs, k), said, timestep.row(k)))
        return rows

    def _store_rows(self, rows: list[dict], step: Any, iter_count: int) -> list[list[dict]]:
        samples: list[dict] = []
        for k, row in enumerate(rows):
            check_names(row)
            kept = {key: own(value) for key, value in row.items()}
            kept.setdefault('truncated', bool(step.truncated[k]))
            kept['collect_iter'] = iter_count
            samples += self._rollout.add(int(step.env_id[k]), kept, bool(step.done[k]))
        return [samples] if samples else []

    def _finish_episodes(self, step: Any) -> None:
        done = np.flatnonzero(step.done)
        self._policy.reset(data_id=[int(i) for i in step.env_id[done]])
        for k in done:
            episode_return, length = float(np.sum(step.episode_return[k])), int(step.episode_length[k])
            self.recent_returns.append(episode_return)
            self.recent_lengths.append(length)
            self.total_episode += 1
            if self._cfg.traj_print_freq and self.total_episode % self._cfg.traj_print_freq == 0:
                self.log.line(
                    f'episode {self.total_episode}: env {int(step.env_id[k])}, '
                    f'return {episode_return:.3f}, {length} steps'
                )

    def _exactly(self, pieces: list[Any], count: int, n_sample: int | None) -> Batch | list[dict]:
        """Join the pieces; what exceeds ``n_sample`` waits for the next call."""
        if not pieces:
            return []
        if isinstance(pieces[0], Batch):
            data = pieces[0] if len(pieces) == 1 else Batch.cat(pieces)
        else:
            data = [row for piece in pieces for row in piece]
        if n_sample is not None and count > n_sample:
            self._spare = [data[n_sample:]]
            data = data[:n_sample]
        return data

    def _collect_info(self, iter_count: int, samples: int, first_step: int, first_episode: int, seconds: float) -> dict:
        if self._cfg.collect_print_freq and self.rounds % self._cfg.collect_print_freq == 0:
            self.log.totals(self, iter_count)
        return dict(
            total_collect_step=self.total_step,
            total_step=self.total_step,
            total_sample=self.total_sample,
            total_episode=self.total_episode,
            total_duration=self.total_duration,
            envstep=self.total_step,
            step=self.total_step - first_step,
            sample=samples,
            episode=self.total_episode - first_episode,
            duration=seconds,
        )

    # ---- life ----
    def state_dict(self) -> dict[str, Any]:
        """Counters, and the steps and policy outputs of unfinished episodes; only tensors, numbers, lists, dicts."""
        return {
            **{name: getattr(self, name) for name in _COUNTERS},
            'recent_returns': list(self.recent_returns),
            'recent_lengths': list(self.recent_lengths),
            'rollout': self._rollout.state_dict(),
            'transform': self._transform.state_dict(),
            'spare': [to_state(piece) for piece in self._spare],
            'pool': {str(i): [to_state(obs), to_state(said)] for i, (obs, said) in self._pool.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        for name in _COUNTERS:
            setattr(self, name, state[name])
        self.recent_returns.extend(state['recent_returns'])
        self.recent_lengths.extend(state['recent_lengths'])
        self._rollout.load_state_dict(state['rollout'])
        self._transform.load_state_dict(state['transform'])
        self._spare = [from_state(piece) for piece in state['spare']]
        self._pool = {int(i): (from_state(obs), from_state(said)) for i, (obs, said) in state['pool'].items()}

    def forget_unfinished(self) -> None:
        """Drop the steps of all unfinished episodes, for envs that begin anew."""
        for env_id in range(self._env.env_num):
            self._rollout.drop(env_id)
        self._pool.clear()
        self._policy.reset()

    def close(self) -> None:
        """Log the totals, close the envs and the log file; closing twice is fine."""
        if self._env is not None:
            self._env.close()
        if self._open:
            self._open = False
            self.log.totals(self, self.last_iter)
            self.log.close()
