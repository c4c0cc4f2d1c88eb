"""Offline mode: learn from recorded episodes; the envs only evaluate."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from nervex.config import read_config
from nervex.data.trajectories import TrajectoryDataset
from nervex.entry.build import EnvSetting, build_serial
from nervex.entry.serial_run import RunResult, SerialRun
from nervex.policy.traj_block import TrajBlock
from nervex.utils import ConfigError
from nervex.utils.class_config import merge_config


def offline_pipeline(
    cfg: str | dict,
    data: str | Sequence[str] | TrajectoryDataset,
    seed: int | None = 0,
    env_setting: EnvSetting | None = None,
    policy_fn: Any = None,
    model_type: Any = None,
    *,
    enable_total_log: bool = False,
    overrides: tuple[str, ...] = (),
    progress: bool = False,
    resume: str | None = None,
) -> RunResult:
    """
    Overview:
        Fill the buffer with the samples that the policy makes of recorded episodes, then learn and evaluate until
        ``evaluator.stop_val`` or ``commander.max_train_iter`` is reached. Nothing is collected.
    Arguments:
        - cfg, seed, env_setting, policy_fn, model_type, ...: as in ``serial_pipeline``
        - data (:obj:`str | Sequence[str] | TrajectoryDataset`): folder or files of trajectories (``nervex -m collect``
          writes them), or the dataset itself
    """
    dataset = data if isinstance(data, TrajectoryDataset) else TrajectoryDataset(data, strict=True)
    cfg = _without_collecting(cfg)
    with build_serial(cfg, seed, env_setting, policy_fn, model_type, overrides, resume) as run:
        if run.cfg.commander.max_train_iter is None:
            raise ConfigError(['commander.max_train_iter: missing; offline learning has no env steps to end by'])
        run.show(progress, enable_total_log)
        run.begin()
        if not run.buffer.count():
            fill(run, dataset)
        try:
            while run.going_on():
                run.commander.step()
                if run.evaluator.due(run.learner.train_iter) and run.evaluate():
                    break
                for batch in run.batches():
                    run.train(batch)
            else:
                run.evaluate()
        except KeyboardInterrupt:
            raise run.interrupted() from None
        return run.finish()


def fill(run: SerialRun, dataset: TrajectoryDataset) -> None:
    """Push the samples of all episodes, made as an actor has them made, into the buffer."""
    make, used = run.policy.collect_mode.get_train_sample, 0
    for number in range(len(dataset.lengths)):
        samples = make(TrajBlock.cut(dict(dataset.episode(number).to_numpy().items()), repeats=0))
        if len(samples):
            run.buffer.push_data(samples)
            used += len(samples)
    if not used:
        raise ConfigError(['the policy makes no samples of these episodes; are they shorter than its sequences?'])
    if run.buffer.count() < used:
        raise ConfigError(
            [f'replay_buffer: keeps {run.buffer.count()} of the {used} samples of the data; set meta_maxlen to {used}']
        )


def _without_collecting(cfg: str | Mapping) -> dict:
    """The config with a size of collecting, which the actor's section must have although nothing is collected."""
    given = dict(read_config(cfg) if isinstance(cfg, (str, os.PathLike)) else cfg)
    actor = given.get('actor') or {}
    if actor.get('n_sample') is None and actor.get('n_episode') is None:
        given['actor'] = merge_config(actor, dict(n_sample=1))
    return given
