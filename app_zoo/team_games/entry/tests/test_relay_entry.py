"""The relay is solved with a memory, and left to chance without."""

import copy

import pytest

from app_zoo.team_games.entry.relay_mappo_default_config import main_config
from nervex.entry import serial_pipeline

pytestmark = pytest.mark.slow


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('memory', ['gru', None])
def test_only_who_remembers_can_tell(tmp_path, monkeypatch, memory, seed):
    monkeypatch.chdir(tmp_path)
    cfg = copy.deepcopy(main_config)
    cfg.policy.model.lstm_type = memory
    assert serial_pipeline(cfg, seed=seed).solved == (memory == 'gru')
