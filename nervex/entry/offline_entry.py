"""Offline mode: learn from recorded episodes; the envs only evaluate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from nervex.data import Batch
from nervex.data.names import missing_column
from nervex.data.trajectories import TrajectoryDataset
from nervex.entry.serial_entry import serial_loop
from nervex.policy.batched import name_of
from nervex.policy.suits import action_kind
from nervex.policy.traj_block import TrajBlock
from nervex.run.build import start_serial
from nervex.run.launch import EnvSetting, Passed, prepare_launch
from nervex.run.result import RunResult
from nervex.run.serial_run import SerialRun
from nervex.utils import ConfigError

_OFFLINE = 'il, cql, cql_continuous, td3_bc, implicit_q, and most policies with a replay buffer'


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
    progress: bool | None = None,
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
    passed = Passed(env_setting, policy_fn, model_type, dataset)
    launch = prepare_launch(cfg, seed, passed, overrides, resume, collects=False, trust=trust)
    return launch.carry_out(partial(start_serial, kind=OfflineRun), serial_loop, progress, enable_total_log)


class OfflineRun(SerialRun):
    """A serial run that collects nothing: before its first round the buffer gets the samples of recorded episodes."""

    mode, collects = 'offline', False

    def begin(self) -> None:
        """Fill the buffer, but for a resumed run, which has it full."""
        if self.cfg.commander.max_train_iter is None:
            raise ConfigError(['commander.max_train_iter: missing; offline learning has no env steps to end by'])
        if self.cfg.env.manager.get('norm_reward'):
            raise ConfigError(['env.manager.norm_reward: got True, but recorded rewards are learned as they are'])
        super().begin()
        if self.buffer.count():
            return
        if self.data is None:
            raise ConfigError(['--data: missing; the run was stopped before a state with its data was saved'])
        self._check_data()
        make, used = self.policy.collect_mode.get_train_sample, 0
        for columns in self.episodes():
            try:
                samples = make(TrajBlock.cut(columns, repeats=0))
            except KeyError as e:
                remedy = f'only what the policy collects itself has it; -m offline takes {_OFFLINE}'
                missing = missing_column(e, columns, f'policy.policy_type: {name_of(make)}', remedy)
                if missing is e:
                    raise
                raise ConfigError([str(missing)]) from e
            if len(samples):
                self.buffer.push_data(samples)
                used += len(samples)
        if not used:
            raise ConfigError(['the policy makes no samples of these episodes; are they shorter than its sequences?'])
        if (kept := self.buffer.count()) < used:
            text = f'keeps {kept} of the {used} samples of the data; set meta_maxlen to {used}'
            raise ConfigError([f'replay_buffer: {text}'])

    def _check_data(self) -> None:
        """Whether the data are of an env like the one that evaluates."""
        info, first = self.actor.env.env_info(), self.data.episode(0).to_numpy()
        kind, action = action_kind(info), first['action']
        continuous = kind in ('continuous', 'team_continuous')
        if kind is not None and isinstance(action, np.ndarray) and (action.dtype.kind == 'f') != continuous:
            kinds = ('discrete', 'continuous') if continuous else ('continuous', 'discrete')
            raise ConfigError(['--data: has {} actions, but the env takes {} ones'.format(*kinds)])
        wrong = list(_misfits('obs', first['obs'], info.obs_space.shape))
        if continuous:
            wrong += _misfits('action', action, info.act_space.shape)
        elif kind is not None and isinstance(action, np.ndarray):
            wrong += _not_in(self.data.steps.to_numpy()['action'], info.act_space.value.get('n'))
        if wrong:
            raise ConfigError([f'--data: {text}' for text in wrong])

    def episodes(self) -> Iterator[dict[str, Any]]:
        """The columns of each episode; where the envs' observations are scaled, scaled by the statistics of all."""
        normalizer, numbers = self.actor.env.normalizer, range(len(self.data.lengths))
        if normalizer is not None and normalizer.is_new:
            for number in numbers:
                normalizer.observe(_block(self.data.episode(number).to_numpy()['obs']))
        for number in numbers:
            columns = dict(self.data.episode(number).to_numpy().items())
            for name in ('obs', 'next_obs'):
                if normalizer is not None and name in columns:
                    scaled = normalizer.observe(_block(columns[name]), count=False)
                    columns[name] = Batch(scaled) if isinstance(scaled, dict) else scaled
            yield columns

    def collect(self) -> None:
        """Nothing: all data are there."""
        self._before = None

    def batches(self) -> Iterator[Any]:
        """The batches of one round; too few rows for one would be rounds without end."""
        before = self.learner.train_iter
        yield from super().batches()
        if self.learner.train_iter == before:
            text = f'the data give {self.buffer.count()} rows, too few for one batch of policy.learn.batch_size'
            raise ConfigError([f'replay_buffer: {text}'])


def _misfits(name: str, column: Any, shape: Any) -> Iterator[str]:
    """In which parts rows are not of these shapes."""
    if isinstance(shape, dict):
        parts = column if isinstance(column, Batch) else {}
        for part, inner in shape.items():
            if part not in parts:
                yield f'has no {name}.{part}, a part of what the env shows'
            else:
                yield from _misfits(f'{name}.{part}', parts[part], inner)
    elif isinstance(column, Batch):
        yield f'has {name} in parts ({", ".join(column.keys())}), those of the env have none'
    elif isinstance(column, np.ndarray) and column.shape[1:] != tuple(shape):
        yield f'has {name} of shape {column.shape[1:]}, those of the env have {tuple(shape)}'


def _not_in(action: np.ndarray, n: Any) -> Iterator[str]:
    """Whether these are choices of so many; of several, a number each."""
    if n is None:
        return
    rows = action.reshape(len(action), -1)
    if rows.shape[1] != np.size(n):
        yield f'has actions of shape {action.shape[1:]}, those of the env have {np.shape(n)}'
    elif not ((rows >= 0) & (rows < np.asarray(n))).all():
        yield f'has actions from {action.min()} to {action.max()}, the env takes 0 to {np.max(n) - 1}'


def _block(column: Any) -> Any:
    return column.to_dict() if isinstance(column, Batch) else column
