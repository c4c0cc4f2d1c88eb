"""The relay is solved with a memory, and left to chance without."""

import copy

import pytest

from app_zoo.team_games.entry.relay_mappo_default_config import main_config
from app_zoo.team_games.envs import RelayGame
from nervex.entry import serial_pipeline
from nervex.policy.tests.learning import train

pytestmark = pytest.mark.slow


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('memory', ['gru', None])
def test_only_who_remembers_can_tell(tmp_path, monkeypatch, memory, seed):
    monkeypatch.chdir(tmp_path)
    cfg = copy.deepcopy(main_config)
    cfg.policy.model.lstm_type = memory
    assert serial_pipeline(cfg, seed=seed).solved == (memory == 'gru')


@pytest.mark.parametrize('seed', range(3))
def test_values_learn_it_too_where_no_mixer_hides_a_wrong_answer(tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    cfg = dict(
        policy=dict(
            model=dict(lstm_type='gru'),
            learn=dict(train_step=8, algo=dict(target_update_freq=50)),
            collect=dict(unroll_len=5, traj_len='inf'),
            command=dict(eps=dict(type='linear', start=1.0, end=0.1, decay=4000)),
        ),
        actor=dict(n_episode=8),
        evaluator=dict(n_episode=40, stop_val=1.0),
        commander=dict(max_env_step=30000),
    )
    assert train('iql', RelayGame, cfg, seed).solved
