"""A run whose weights or losses become NaN keeps its last good state, and goes on from there with another rate."""

import math

import pytest
import torch
import yaml

from nervex.entry import serial_pipeline
from nervex.run.state import state_files
from nervex.utils import ConfigError, TrainingError, tree
from nervex.utils.file_helper import read_file


def test_a_run_that_diverged_is_resumed_from_before_it_with_another_rate(short_dqn, tmp_path):
    short_dqn.exp_name = 'run'
    short_dqn.learner = dict(resume=dict(interval_s=0.0, max_cost=None))
    short_dqn.policy.learn.learning_rate = 1e30
    with pytest.raises(TrainingError, match='--resume goes on'):
        serial_pipeline(short_dqn, seed=0)

    (folder,) = tmp_path.glob('run/ckptBaseLearner*')
    states = [read_file(path)['learner'] for path in state_files(str(folder))]
    assert states and all(torch.isfinite(x).all() for s in states for x in tree.leaves(s['model']))
    with pytest.raises(ConfigError, match='batch_size'):
        serial_pipeline(None, resume='run', overrides=('policy.learn.batch_size=8',))
    with pytest.raises(TrainingError):  # nothing was changed
        serial_pipeline(None, resume='run')

    result = serial_pipeline(None, resume='run', overrides=('policy.learn.learning_rate=0.0005',))
    assert result.env_steps == 400 and math.isfinite(result.final_return)
    longer = serial_pipeline(None, resume='run', overrides=('commander.max_env_step=500',))  # with that rate
    for checkpoint in (result.checkpoint, longer.checkpoint):
        state = read_file(checkpoint)
        assert state['optimizer']['param_groups'][0]['lr'] == 0.0005
        assert all(torch.isfinite(x).all() for x in tree.leaves(state['model']))
    assert yaml.safe_load((tmp_path / 'run/log/run.yaml').read_text(encoding='utf-8'))['diverged'] is None
    with pytest.raises(ConfigError, match='learning_rate'):  # it has not diverged any more
        serial_pipeline(None, resume='run', overrides=('policy.learn.learning_rate=0.5',))
