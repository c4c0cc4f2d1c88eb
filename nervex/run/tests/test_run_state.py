import random

import numpy as np
import pytest
import torch

from nervex.run import state as run_state
from nervex.run.folder import FolderInUseError, RunFolder
from nervex.utils import CheckpointError


def test_saving_waits_for_the_interval_and_for_its_share_of_the_run(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(run_state.time, 'monotonic', lambda: now[0])
    schedule = run_state.SaveSchedule(interval_s=10.0, max_cost=0.02)
    assert not schedule.due()
    now[0] = 110.0
    assert schedule.due()
    now[0] = 111.0  # the save took 1 s: at 2 % the next one is due 50 s later
    schedule.took(now[0] - 110.0)
    now[0] = 160.9
    assert not schedule.due()
    now[0] = 161.0
    assert schedule.due()


def test_without_a_limit_of_cost_only_the_interval_counts(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(run_state.time, 'monotonic', lambda: now[0])
    schedule = run_state.SaveSchedule(interval_s=0.0, max_cost=None)
    schedule.took(50.0)
    assert schedule.due()


def test_no_interval_never_saves():
    assert not run_state.SaveSchedule(None, 0.02).due()


def test_random_states_continue_their_sequences():
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    random.gauss(0, 1)
    np.random.randn()
    state = run_state.random_state()
    drawn = random.gauss(0, 1), np.random.randn(), torch.rand(1).item()
    run_state.load_random_state(state)
    assert (random.gauss(0, 1), np.random.randn(), torch.rand(1).item()) == drawn


def test_logs_are_cut_to_what_they_were(tmp_path):
    (tmp_path / 'sub').mkdir()
    kept, config = tmp_path / 'sub/a.txt', tmp_path / 'config.yaml'
    kept.write_text('old')
    config.write_text('x')
    sizes = run_state.log_sizes(str(tmp_path))
    kept.write_text('old and new')
    config.write_text('longer')
    (tmp_path / 'later.txt').write_text('new')
    run_state.cut_logs(str(tmp_path), sizes)
    assert kept.read_text() == 'old' and config.read_text() == 'longer' and not (tmp_path / 'later.txt').exists()


def test_the_newest_readable_state_is_taken(tmp_path, caplog):
    for name in ('run_state_9_90.pth.tar', 'run_state_10_100.pth.tar'):
        torch.save({'version': run_state.STATE_VERSION, 'name': name}, tmp_path / name)
    assert run_state.newest_state(str(tmp_path))[1]['name'] == 'run_state_10_100.pth.tar'
    (tmp_path / 'run_state_10_100.pth.tar').write_bytes(b'half')
    assert run_state.newest_state(str(tmp_path))[1]['name'] == 'run_state_9_90.pth.tar'
    assert 'run_state_10_100' in caplog.text
    assert run_state.newest_state(str(tmp_path / 'none')) == (None, None)


@pytest.mark.parametrize('version, text', [(99, 'newer nervex.*update'), (1, 'older nervex.*--load')])
def test_a_state_of_another_version_is_refused(tmp_path, version, text):
    torch.save({'version': version}, tmp_path / 'run_state_1_1.pth.tar')
    with pytest.raises(CheckpointError, match=text):
        run_state.newest_state(str(tmp_path))


def test_a_folder_belongs_to_one_run_at_a_time(tmp_path):
    first = RunFolder(str(tmp_path / 'run'))
    with pytest.raises(FolderInUseError, match='exp_name'):
        RunFolder(str(tmp_path / 'run'))
    first.close()
    RunFolder(str(tmp_path / 'run')).close()
    assert not list((tmp_path / 'run').iterdir())


def test_only_logs_of_an_older_run_are_moved_aside(tmp_path):
    (tmp_path / 'log').mkdir()
    (tmp_path / 'log/mine.txt').write_text('not of a run')
    RunFolder(str(tmp_path)).close()
    assert (tmp_path / 'log/mine.txt').exists()
    (tmp_path / 'log/config.yaml').write_text('seed: 0')
    RunFolder(str(tmp_path)).close()
    assert (tmp_path / 'log_1/mine.txt').exists() and not (tmp_path / 'log').exists()
