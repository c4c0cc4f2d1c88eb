"""The actor: steps the envs with the policy and answers training samples."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from easydict import EasyDict

from nervex.data import Batch
from nervex.loader.sections import complete
from nervex.policy.batched import is_batched
from nervex.utils import ACTOR_REGISTRY, tree
from nervex.utils.declare import setting, settings
from nervex.utils.part_state import HasState
from nervex.worker.actor.collect_log import CollectLog
from nervex.worker.actor.recorder import EpisodeRecorder
from nervex.worker.actor.rollout import ColumnRollout
from nervex.worker.actor.rows import (
    ObsBlock,
    RowRollout,
    as_array,
    copied,
    in_columns,
    said_by_rows,
    said_rows,
)
from nervex.worker.actor.transform import TRANSFORMS, SampleTransforms

COUNTERS: tuple[str, ...] = ('total_step', 'total_sample', 'total_episode', 'total_duration', 'rounds', 'last_iter')
COUNTERS += ('recent_returns', 'recent_lengths')
LONG_ROUND = 10  # env steps


@ACTOR_REGISTRY.register('base')
class BaseSerialActor(HasState):
    """
    Overview:
        Collects exactly ``n_sample`` training samples, or the samples of ``n_episode`` whole episodes, a call. The envs
        are not reset between calls. What exceeds ``n_sample`` comes with the next call; for an on-policy policy, which
        would learn from it too late, with this one.
    Interfaces:
        generate_data, reset, close, env, policy
    """

    config = settings(
        actor_type=setting('base', 'str | class', 'registered name of an actor'),
        n_sample=setting(None, 'int in [1, 1000000000] | None', 'training samples of one round; this, or n_episode'),
        n_episode=setting(None, 'int in [1, 1000000000] | None', 'whole episodes of one round'),
        traj_len=setting(None, 'int >= 1 | inf | None', 'window length', same_as='policy.collect.traj_len'),
        traj_print_freq=setting(100, 'int >= 0', 'episodes between two lines in the log; 0: none'),
        collect_print_freq=setting(
            100, 'int >= 0', 'rounds between two lines in the log; of long ones, tens of env steps; 0: none'
        ),
        collect_traj=setting(None, 'str | None', 'folder in that of the run, for files of whole episodes; None: none'),
        beside_learning=setting(False, 'bool', 'collect each round while the one before is learned, by older weights'),
        transform=setting({}, TRANSFORMS, 'changes to samples before they are stored, by name: dict(her=dict(k=4))'),
    )

    resume_parts = (*COUNTERS, '_transform', '_spare', '_pool')

    def __init__(
        self,
        cfg: dict | None = None,
        exp_name: str = '.',
        tb_logger: Any = None,
        seed: int | None = None,
        log_name: str | None = 'collect',
    ) -> None:
        self._cfg = EasyDict(complete(type(self), cfg, 'actor', own_only=False))
        self.log = CollectLog(exp_name, log_name, tb_logger)
        self._transform = SampleTransforms(self._cfg, seed)
        folder = self._cfg.collect_traj
        self._recorder = None if folder is None else EpisodeRecorder(os.path.join(exp_name, folder))
        self._env: Any = None
        self._policy: Any = None
        self._open = True
        self.rounds = self.last_iter = self.total_step = self.total_sample = self.total_episode = 0
        self.total_duration = 0.0
        self.recent_returns: deque = deque(maxlen=100)
        self.recent_lengths: deque = deque(maxlen=100)
        self.settings: dict[str, dict[str, Any]] = {}  # what the commander set, for the log

    # ---- parts ----
    @property
    def env(self) -> Any:
        """The env manager."""
        return self._env

    @env.setter
    def env(self, env_manager: Any) -> None:
        """Set it, and prepare what depends on it."""
        self._env = env_manager
        self._prepare()

    @property
    def policy(self) -> Any:
        """The collect mode."""
        return self._policy

    @policy.setter
    def policy(self, collect_mode: Any) -> None:
        """Set it, and prepare what depends on it."""
        self._policy = collect_mode
        self._prepare()

    def _prepare(self) -> None:
        """Wrap the policy's hooks, and make room for the steps."""
        if self._env is None or self._policy is None:
            return
        self._hooks = in_columns(self._policy)
        self._pool: dict[int, tuple[Any, dict]] = {}  # env -> what it saw and the policy said, until it answers
        self._spare: list[Batch] = []  # samples beyond what a call had to answer
        self._on_policy = bool(self._policy.get_attribute('on_policy'))
        self._new_rollout(by_episodes=self._cfg.n_sample is None)

    def _new_rollout(self, by_episodes: bool) -> None:
        """Make room for the steps; ``by_episodes``: a call answers all rows of the episodes that end in it."""
        n, traj_len, n_sample = self._env.env_num, self._cfg.traj_len, self._cfg.n_sample
        self._by_episodes, self._begun_at = by_episodes, self.total_step
        self._together = not self._env.asynchronous
        endless = traj_len in ('inf', float('inf'))
        if not is_batched(self._policy.get_train_sample):
            whole = endless or (by_episodes and n_sample is not None)
            self._rollout: Any = RowRollout(self._policy, n, float('inf') if whole else traj_len or 1)
            return
        window = None
        if not (endless or by_episodes) and (traj_len or n_sample):
            window = int(traj_len) if traj_len else math.ceil(n_sample / n)
        hooks, overlap = self._hooks, self._policy.get_attribute('traj_overlap') or 0
        cut = hooks.get_train_sample
        self._rollout = ColumnRollout(hooks.process_transition, cut, n, window, overlap, self._together)

    def reset(self) -> None:
        """Forget unfinished episodes, and start the envs and the policy's state anew."""
        self._env.reset()
        self.forget_unfinished()
        self._prepare()

    def forget_unfinished(self) -> None:
        """Drop the steps of all unfinished episodes, for envs that begin anew."""
        for env_id in range(self._env.env_num):
            self._rollout.drop(env_id)
            if self._recorder is not None:
                self._recorder.drop(env_id)
        self._pool.clear()
        self._policy.reset()

    # ---- collecting ----
    def generate_data(
        self, iter_count: int, n_episode: int | None = None, n_sample: int | None = None
    ) -> tuple[Batch, dict[str, Any]]:
        """
        Overview:
            Step the envs until enough samples (or episodes) are there.
        Arguments:
            - iter_count (:obj:`int`): the learner's iteration, stamped on every sample as ``collect_iter``
            - n_episode, n_sample (:obj:`int | None`): at most one of them; None takes the config's
        Returns:
            - data (:obj:`Batch`): the samples, which are also a sequence of rows
            - collect_info (:obj:`dict[str, Any]`): totals so far, and what this round did
        """
        if n_episode is None and n_sample is None:
            n_episode, n_sample = self._cfg.n_episode, self._cfg.n_sample
        if (n_episode is None) == (n_sample is None):
            raise ValueError(
                f'actor: give either n_sample or n_episode, got n_sample={n_sample}, n_episode={n_episode}'
            )
        start = time.perf_counter()
        if self._env is None or self._policy is None:
            missing = 'env' if self._env is None else 'policy'
            raise RuntimeError(
                f'{type(self).__name__} has no {missing} yet: set actor.env (an env manager) and actor.policy'
            )
        if (n_sample is None) is not self._by_episodes:  # what runs belongs to neither, so the envs begin anew
            if self.total_step != self._begun_at:
                self._env.reset()
                self.forget_unfinished()
            self._new_rollout(n_sample is None)
        first_step, first_episode = self.total_step, self.total_episode
        fresh: list[Batch] = []
        count = len(self._spare[0]) if self._spare else 0
        wanted = n_episode or 0
        while (count < n_sample) if n_sample is not None else (self.total_episode - first_episode < wanted):
            for piece in self._step():
                fresh.append(piece)
                count += len(piece)
        data = self._joined(fresh, iter_count, count, n_sample)
        samples = len(data)
        self.total_sample += samples
        if self._transform.chain and samples:
            data = self._transform(data)
            samples = len(data)
        seconds = time.perf_counter() - start
        self.total_duration += seconds
        self.rounds += 1
        self.last_iter = iter_count
        info = dict(
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
        if line_due(self._cfg.collect_print_freq, self.rounds, info):
            self.log.totals(self, iter_count)
        return data, info

    def _step(self) -> list[Batch]:
        """One step of the envs that are ready; answers the training samples that it completed."""
        env, hooks = self._env, self._hooks
        ids, obs = env.observe()
        data_id, data = hooks.data_preprocess(ObsBlock(ids, obs))
        output = hooks.data_postprocess(data_id, hooks.forward(data_id, data))
        action = output['action']
        step = env.advance(ids, action if type(action) is np.ndarray else as_array(action))
        if len(step.abnormal):
            for env_id in step.abnormal:
                self._rollout.drop(env_id)
                self._policy.reset(data_id=[int(env_id)])
                self._pool.pop(int(env_id), None)
        if not (self._together and step.whole):
            obs, output = self._answered(ids, obs, output, step.env_id)
            ids = step.env_id
            if not len(step):
                return []
        if self._recorder is not None:
            self._recorder.see(env, ids, obs, as_array(output['action']), step)
        self.total_step += len(step.env_id)
        ends = 1 in step.done.tobytes()  # the quickest way to ask a few bools
        samples = self._rollout.take(obs, output, step, ends)
        if ends:
            self._finish_episodes(step)
        return samples

    def _answered(self, ids: np.ndarray, obs: Any, output: dict, answered: np.ndarray) -> tuple[Any, dict]:
        """What the answered envs had seen and what the policy had said, whichever call that was in."""
        seen, said = tree.unstack(copied(obs), len(ids)), said_rows(copied(output), len(ids))
        self._pool.update(zip(ids.tolist(), zip(seen, said)))
        rows = [self._pool.pop(int(i)) for i in answered]
        if not rows:
            return obs, output
        return tree.stack([seen for seen, _ in rows]), said_by_rows([said for _, said in rows])

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

    def settle(self) -> None:
        """Wait for what is collected beside learning: here nothing is."""

    def _joined(self, fresh: list[Batch], iter_count: int, count: int, n_sample: int | None) -> Batch:
        """What was kept and what is fresh, stamped; what exceeds ``n_sample`` waits for the next call, if it may."""
        pieces, self._spare = self._spare, []
        if fresh:
            data = fresh[0] if len(fresh) == 1 else Batch.cat(fresh)
            stamp = np.empty(count - len(pieces[0]) if pieces else count, dtype=np.int64)
            stamp.fill(iter_count)
            pieces = [*pieces, Batch.of({**dict(data.items()), 'collect_iter': stamp})]
        data = pieces[0] if len(pieces) == 1 else Batch.cat(pieces)
        if n_sample is not None and count > n_sample and not self._on_policy:
            self._spare = [data[n_sample:]]
            data = data[:n_sample]
        return data

    # ---- life ----
    def state_dict(self) -> dict[str, Any]:
        """Counters, and the steps and policy outputs of unfinished episodes; only tensors, numbers, lists, dicts."""
        return {
            **super().state_dict(),
            'by_episodes': self._by_episodes,
            'rollout': self._rollout.state_dict(),
            'recording': list(range(self._env.env_num)) if self._recorder is None else self._recorder.running(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        super().load_state_dict(state)
        self._new_rollout(state['by_episodes'])
        self._begun_at = -1  # somewhere in the middle
        self._rollout.load_state_dict(state['rollout'])
        if self._recorder is not None:
            self._recorder.begun = set(state['recording'])

    def close(self) -> None:
        """Log the totals, close the envs and the log file; closing twice is fine."""
        if self._env is not None:
            self._env.close()
        if self._recorder is not None:
            self._recorder.close()
        if self._open:
            self._open = False
            self.log.totals(self, self.last_iter)
            self.log.close()


def line_due(print_freq: int, rounds: int, info: dict[str, Any]) -> bool:
    """
    Overview:
        Whether the round that has just ended gets a line: every ``print_freq``-th does; of long ones, so that they have
        curves, too, each with which another ten times as many env steps are full.
    Arguments:
        - info (:obj:`dict`): the newest round's, as ``generate_data`` answers it
    """
    if not print_freq:
        return False
    if info['step'] < LONG_ROUND:
        return rounds % print_freq == 0
    steps, after = print_freq * LONG_ROUND, info['total_step']
    return after // steps > (after - info['step']) // steps
