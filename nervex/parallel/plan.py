"""The numbers of a parallel run that follow from its config and the machine."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from easydict import EasyDict

_KINDS = ('actor', 'evaluator', 'learner')


@dataclass(frozen=True)
class Plan:
    """How many of what, and how much of it at a time."""

    actors: int
    envs_per_actor: int
    evaluators: int
    learners: int
    rounds: bool  # collecting and learning in turn
    episodes: bool  # what is collected is counted in episodes, else in samples
    amount: int  # samples (or episodes) of one round of the serial loop
    train_step: int  # updates of one round of the serial loop
    batch: int  # rows of one update
    rows_wanted: int  # rows in the buffer before the first update
    updates_per_unit: float | None  # updates per sample (or episode) collected; None: no bound
    capacity: int | None = None  # rows that the smallest buffer holds

    @property
    def share(self) -> int:
        """What one actor collects of a round."""
        return math.ceil(self.amount / self.actors)


def make_plan(cfg: EasyDict, env_setting: Any = None) -> Plan:
    """Fill in what ``cfg.parallel`` leaves open."""
    parallel, learn = cfg.parallel, cfg.policy.learn
    envs = len(env_setting[1]) if env_setting is not None else cfg.env.actor_env_num
    actors = parallel.actor_num or max(1, min(max(2, os.cpu_count() or 1), envs))
    batch = largest(learn.batch_size if 'batch_size' in learn else None) or 1
    amount = cfg.actor.n_sample or cfg.actor.n_episode
    wanted = max(batch, learn.init_data_count if 'init_data_count' in learn else 0)
    capacity = min((cfg.replay_buffer[name].meta_maxlen for name in cfg.replay_buffer.buffer_name), default=None)
    for name in cfg.replay_buffer.buffer_name:
        buffer = cfg.replay_buffer[name]
        wanted = max(wanted, buffer.replay_start_size, math.ceil(batch * buffer.min_sample_ratio))
    steps = learn.train_step if 'train_step' in learn else 1
    per_unit = None if parallel.ratio == 0 else steps / amount if parallel.ratio is None else parallel.ratio / batch
    return Plan(
        actors=actors,
        envs_per_actor=parallel.envs_per_actor or math.ceil(envs / actors),
        evaluators=parallel.evaluator_num,
        learners=parallel.learner_num,
        rounds=cfg.policy.on_policy if parallel.synchronous is None else parallel.synchronous,
        episodes=cfg.actor.n_sample is None and not parallel.ratio,
        amount=amount,
        train_step=steps,
        batch=batch,
        rows_wanted=wanted,
        updates_per_unit=per_unit,
        capacity=capacity,
    )


def largest(size: Any) -> int | None:
    """The rows of one update, where there may be several buffers."""
    return max(size.values()) if isinstance(size, dict) else size


def role_seed(seed: int, kind: str, index: int, incarnation: int) -> int:
    """A seed that no other role of the run has, nor the same role before it was started anew."""
    entropy = [seed, _KINDS.index(kind), index, incarnation]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0]) % 2**31
