"""Hindsight experience replay: the steps of an episode again, as if the goal had been what was reached later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from nervex.data import Batch
from nervex.rl_utils.her import merge_halves, reached, split_halves
from nervex.utils.declare import setting, settings
from nervex.utils.registry_factory import TRANSFORM_REGISTRY
from nervex.worker.actor.transform.sample_transform import SampleTransform


@TRANSFORM_REGISTRY.register('her')
class HindsightRelabel(SampleTransform):
    """
    Overview:
        Adds ``k`` copies of every sample, each with another goal that its episode reached, and the reward for it.
        Observations are ``concat(state, goal)`` where the state is what counts as achieved, or dicts with
        ``achieved_goal`` and ``desired_goal``; other forms come with functions of their own.
        Paper: Andrychowicz et al. 2017 (arXiv:1707.01495).
    Arguments:
        - cfg (:obj:`Mapping`): the settings below; functions may be given as ``'module:function'`` and work on blocks:
          split: obs -> (state, desired goal, achieved goal); merge: (state, goal) -> obs; reward: (achieved, desired)
          -> rewards :math:`(B, 1)`
    """

    config = settings(
        strategy=setting('future', "'future' | 'final' | 'episode'", 'which steps of the episode the goals come from'),
        k=setting(4, 'int >= 1', 'new goals for each sample'),
        ends_at_goal=setting(True, 'bool', 'a step that reaches its goal is the last one of its episode'),
        split=setting(None, 'callable | None', 'obs -> (state, desired goal, achieved goal); None: see above'),
        merge=setting(None, 'callable | None', '(state, goal) -> obs; None: see above'),
        reward=setting(None, 'callable | None', '(achieved, desired) -> rewards; None: 1 where they are equal'),
    )
    needs_whole_episodes = True

    def __init__(self, cfg: Mapping | None = None, seed: Any = None) -> None:
        super().__init__(cfg, seed)
        cfg = self._cfg
        self._split, self._merge = cfg.split or _split, cfg.merge or _merge
        self._reward = cfg.reward or reached

    def __call__(self, samples: Batch) -> Batch:
        self._check(samples)
        done = np.asarray(samples['done']).astype(bool)
        k, rows = self._cfg.k, np.arange(len(done))
        source = self._sources(done, k).reshape(-1)
        again = np.repeat(rows, k)
        obs, next_obs = _tensors(samples['obs']), _tensors(samples['next_obs'])
        (state, _, _), (next_state, _, achieved) = self._split(obs), self._split(next_obs)
        goal, reached_now = _take(achieved, source), _take(achieved, again)
        reward = torch.as_tensor(self._reward(reached_now, goal))
        copies: dict[str, Any] = {key: _take(samples[key], again) for key in samples.keys()}
        copies['obs'] = self._merge(_take(state, again), goal)
        copies['next_obs'] = self._merge(_take(next_state, again), goal)
        copies['reward'] = reward.reshape(copies['reward'].shape)
        if self._cfg.ends_at_goal:
            success = reached(reached_now, goal).reshape(-1) > 0
            copies['done'] = success
            if 'truncated' in copies:
                copies['truncated'] = torch.zeros_like(success)
        return Batch.cat([samples, _like(copies, samples)])

    def _sources(self, done: np.ndarray, k: int) -> np.ndarray:
        """For each row the rows whose outcome becomes its goal, (rows, k)."""
        rows = np.arange(len(done))
        ends = np.flatnonzero(done)
        episode = np.searchsorted(ends, rows)
        last = ends[episode]
        if self._cfg.strategy == 'final':
            return np.repeat(last[:, None], k, axis=1)
        first = rows if self._cfg.strategy == 'future' else np.concatenate([[0], ends + 1])[episode]
        return self._rng.integers(first[:, None], last[:, None] + 1, size=(len(rows), k))

    @staticmethod
    def _check(samples: Batch) -> None:
        if not np.asarray(samples['done'])[-1]:
            raise ValueError('her: the samples must be whole episodes in order; set policy.collect.traj_len to "inf"')
        size = np.asarray(samples['reward']).reshape(len(samples), -1).shape[1]
        if size != 1:
            raise ValueError(f'her: samples have {size} rewards each; goals change step by step, so set nstep to 1')
        if 'priority' in samples:
            raise ValueError('her: first priorities are those of the old goals; set first_priority to False')


def _split(obs: Any) -> tuple[Any, Any, Any]:
    if not isinstance(obs, dict):
        return split_halves(obs)
    return obs, obs['desired_goal'], obs['achieved_goal']


def _merge(state: Any, goal: Any) -> Any:
    return {**state, 'desired_goal': goal} if isinstance(state, dict) else merge_halves(state, goal)


def _tensors(column: Any) -> Any:
    if isinstance(column, (dict, Batch)):
        return {key: _tensors(column[key]) for key in column.keys()}
    return torch.as_tensor(column)


def _take(column: Any, rows: np.ndarray) -> Any:
    if isinstance(column, (dict, Batch)):
        return {key: _take(column[key], rows) for key in column.keys()}
    return column[torch.from_numpy(rows)] if isinstance(column, torch.Tensor) else column[rows]


def _like(columns: dict[str, Any], model: Batch) -> Batch:
    """Columns of the kinds and dtypes of another Batch."""
    out: dict[str, Any] = {}
    for key, value in columns.items():
        old = model[key]
        if isinstance(old, Batch):
            out[key] = _like(value, old)
        elif isinstance(old, torch.Tensor):
            out[key] = torch.as_tensor(value).to(old.dtype)
        else:
            out[key] = np.asarray(value).astype(old.dtype, copy=False)
    return Batch.of(out)
