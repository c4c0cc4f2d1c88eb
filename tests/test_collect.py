"""-m collect: the episodes of a trained policy as trajectory files that come back exactly."""

import numpy as np
import pytest

from nervex.data import TrajectoryDataset
from nervex.entry import collect, eval, serial_pipeline
from nervex.entry.cli import main


@pytest.mark.parametrize('manager', ['base', 'sync_subprocess'])
def test_saved_episodes_are_those_that_eval_plays(short_dqn, manager):
    checkpoint = serial_pipeline(short_dqn, seed=0).checkpoint
    short_dqn.env.env_manager_type = manager
    played = eval(short_dqn, load_path=checkpoint, n_episode=7)
    result, written = collect(short_dqn, load_path=checkpoint, n_episode=7, folder='demo')
    data = TrajectoryDataset('demo', strict=True)
    assert written == 7 and sorted(data.lengths) == sorted(played.lengths) == sorted(result.lengths)
    for k in range(7):
        episode = data.episode(k)
        assert episode['done'][-1] and not episode['done'][:-1].any()
        assert np.array_equal(episode['next_obs'][:-1], episode['obs'][1:])
        assert (episode['reward'] == 1).all()


def test_the_command(short_dqn, capsys):
    checkpoint = serial_pipeline(short_dqn, seed=0).checkpoint
    with pytest.raises(SystemExit) as stop:
        main(['-m', 'collect', '-c', 'cartpole_dqn'])
    assert stop.value.code == 2 and '--load' in capsys.readouterr().err
    main(['-m', 'collect', '-c', 'cartpole_dqn', '--load', checkpoint, '--episodes', '3', '--out', 'demo'])
    assert '3 episodes' in capsys.readouterr().out
    assert len(TrajectoryDataset('demo').lengths) == 3


@pytest.mark.parametrize('manager', ['base', 'sync_subprocess'])
def test_files_hold_the_observations_of_the_env_whatever_the_policy_sees(short_dqn, manager):
    short_dqn.env.manager = dict(norm_obs=True)
    checkpoint = serial_pipeline(short_dqn, seed=0).checkpoint
    short_dqn.env.env_manager_type = manager
    _, written = collect(short_dqn, load_path=checkpoint, n_episode=7, folder='demo')
    assert written == 7
    for k in range(7):
        episode = TrajectoryDataset('demo', strict=True).episode(k).to_numpy()
        assert np.array_equal(episode['next_obs'][:-1], episode['obs'][1:])
        assert np.abs(episode['obs'][0]).max() <= 0.05  # CartPole begins within 0.05 of 0 everywhere
        position, velocity = episode['obs'][:, 0], episode['obs'][:, 1]
        assert np.allclose(episode['next_obs'][:, 0], position + 0.02 * velocity, atol=1e-6)  # its own dynamics
