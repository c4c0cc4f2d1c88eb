"""Offline mode: learn from recorded episodes; the envs only evaluate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nervex.data import Batch
from nervex.data.trajectories import TrajectoryDataset
from nervex.policy.traj_block import TrajBlock
from nervex.run.build import start_serial
from nervex.run.launch import EnvSetting, Passed, prepare_launch
from nervex.run.progress import say_building
from nervex.run.result import RunResult
from nervex.run.serial_run import SerialRun
from nervex.utils import ConfigError
from nervex.worker.actor.env_manager import NormalizedEnvManager


def offline_pipeline(
    cfg: str | dict | None,
    data: str | Sequence[str] | TrajectoryDataset | None,
    seed: int | None = 0,
    env_setting: EnvSetting | None = None,
    policy_fn: Any = None,
    model_type: Any = None,
    *,
    enable_total_log: bool = False,
    overrides: tuple[str, ...] = (),
    progress: bool = False,
    resume: str | None = None,
    trust: bool = False,
) -> RunResult:
    """
    Overview:
        Fill the buffer with the samples that the policy makes of recorded episodes, then learn and evaluate until
        ``evaluator.stop_val`` or ``commander.max_train_iter`` is reached. Nothing is collected. With
        ``env.manager.norm_obs`` observations are scaled by the mean and variance of the data.
    Arguments:
        - cfg, seed, env_setting, policy_fn, model_type, ...: as in ``serial_pipeline``
        - data (:obj:`str | Sequence[str] | TrajectoryDataset`): folder or files of trajectories (``nervex -m collect``
          writes them), or the dataset itself; None only with ``resume``, whose saved state has what was learned from
    """
    dataset = data if isinstance(data, TrajectoryDataset) or data is None else TrajectoryDataset(data, strict=True)
    passed = Passed(env_setting, policy_fn, model_type)
    launch = prepare_launch(cfg, seed, passed, overrides, resume, collects=False, trust=trust)
    if (result := launch.already()) is not None:
        return result
    say_building(progress, launch.cfg)
    with start_serial(launch) as run:
        if run.cfg.commander.max_train_iter is None:
            raise ConfigError(['commander.max_train_iter: missing; offline learning has no env steps to end by'])
        if run.cfg.env.manager.get('norm_reward'):
            raise ConfigError(['env.manager.norm_reward: got True, but recorded rewards are learned as they are'])
        run.show(progress, enable_total_log)
        run.begin()
        if not run.buffer.count():
            if dataset is None:
                raise ConfigError(['--data: missing; the run was stopped before a state with its data was saved'])
            fill(run, dataset)
        try:
            while run.going_on():
                run.commander.step()
                if run.evaluator.due(run.learner.train_iter) and run.evaluate():
                    break
                before = run.learner.train_iter
                for batch in run.batches():
                    run.train(batch)
                if run.learner.train_iter == before:
                    text = f'the data give {run.buffer.count()} rows, too few for one batch of policy.learn.batch_size'
                    raise ConfigError([f'replay_buffer: {text}'])
            else:
                run.evaluate()
        except KeyboardInterrupt:
            raise run.interrupted() from None
        return run.finish()


def fill(run: SerialRun, dataset: TrajectoryDataset) -> None:
    """Push the samples of all episodes, made as an actor has them made, into the buffer."""
    make, used = run.policy.collect_mode.get_train_sample, 0
    for columns in _scaled_episodes(run, dataset):
        samples = make(TrajBlock.cut(columns, repeats=0))
        if len(samples):
            run.buffer.push_data(samples)
            used += len(samples)
    if not used:
        raise ConfigError(['the policy makes no samples of these episodes; are they shorter than its sequences?'])
    if run.buffer.count() < used:
        raise ConfigError(
            [f'replay_buffer: keeps {run.buffer.count()} of the {used} samples of the data; set meta_maxlen to {used}']
        )


def _scaled_episodes(run: SerialRun, dataset: TrajectoryDataset) -> Iterator[dict[str, Any]]:
    """The columns of each episode, their observations scaled by the statistics of all where the envs' are scaled."""
    envs, episodes = run.actor.env, range(len(dataset.lengths))
    normalizer = envs.normalizer if isinstance(envs, NormalizedEnvManager) else None
    if normalizer is not None and normalizer.is_new:
        for number in episodes:
            normalizer.observe(_block(dataset.episode(number).to_numpy()['obs']))
    for number in episodes:
        columns = dict(dataset.episode(number).to_numpy().items())
        for name in ('obs', 'next_obs'):
            if normalizer is not None and name in columns:
                scaled = normalizer.observe(_block(columns[name]), count=False)
                columns[name] = Batch(scaled) if isinstance(scaled, dict) else scaled
        yield columns


def _block(column: Any) -> Any:
    return column.to_dict() if isinstance(column, Batch) else column
