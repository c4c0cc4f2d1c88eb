"""-m collect: the episodes of a trained policy as trajectory files that come back exactly."""

import os

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


# ---- how the actions of the episodes are chosen ----
def actions_of(config, checkpoint, acts, **more):
    """All actions of six episodes."""
    collect(config, load_path=checkpoint, n_episode=6, folder=acts, acts=acts, **more)
    data = TrajectoryDataset(acts, strict=True)
    return np.concatenate([np.asarray(data.episode(k)['action']) for k in range(6)])


@pytest.mark.parametrize('eps', [0.0, 1.0])
def test_sampled_actions_explore_as_the_run_did_at_its_checkpoint(short_dqn, eps):
    short_dqn.policy.command.eps = dict(type='linear', start=1.0, end=eps, decay=1)
    checkpoint = serial_pipeline(short_dqn, seed=0).checkpoint
    greedy, sampled = (actions_of(short_dqn, checkpoint, acts) for acts in ('greedy', 'sampled'))
    assert np.array_equal(greedy, sampled) == (eps == 0)
    assert eps == 0 or 0.3 < sampled.mean() < 0.7


def test_sampled_continuous_actions_spread_around_the_greedy_ones():
    quick = ('commander.max_env_step=600', 'evaluator.eval_freq=1000', 'env.max_episode_steps=30')
    checkpoint = serial_pipeline('pendulum_sac', seed=0, overrides=quick).checkpoint
    greedy, sampled = (actions_of('pendulum_sac', checkpoint, acts, overrides=quick) for acts in ('greedy', 'sampled'))
    assert np.abs(greedy).max() <= 1 and np.abs(sampled).max() <= 1  # the policy's range, which the env scales
    assert len(np.unique(sampled)) > 150 and sampled.std() > greedy.std()


def test_a_policy_with_a_memory_samples_in_more_envs_than_it_learned_in():
    few = ('env.actor_env_num=2', 'env.evaluator_env_num=3', 'commander.max_env_step=200', 'evaluator.eval_freq=1000')
    checkpoint = serial_pipeline('cartpole_ppo_recurrent', seed=0, overrides=few).checkpoint
    assert len(actions_of('cartpole_ppo_recurrent', checkpoint, 'sampled', overrides=few)) > 6


def test_envs_that_do_not_step_together_are_refused_in_a_line(capsys):
    with pytest.raises(SystemExit) as stop:
        main(['-m', 'collect', '-c', 'cartpole_dqn', '--acts', 'random', '-o', 'env.env_manager_type=async_subprocess'])
    said = capsys.readouterr().err
    assert stop.value.code == 2 and 'take sync_subprocess, or base' in said and 'Traceback' not in said
    assert not os.path.exists('data')


def test_random_actions_need_no_checkpoint(capsys):
    main(['-m', 'collect', '-c', 'cartpole_dqn', '--acts', 'random', '--episodes', '40', '--out', 'rnd', '-s', '3'])
    assert '40 episodes' in capsys.readouterr().out
    data = TrajectoryDataset('rnd', strict=True)
    assert 15 < np.mean(data.lengths) < 32  # 22 steps of CartPole by chance
    drawn = np.concatenate([np.asarray(data.episode(k)['action']) for k in range(40)])
    assert 0.4 < drawn.mean() < 0.6
    with pytest.raises(ValueError, match="'randm'; did you mean 'random'"):
        collect('cartpole_dqn', acts='randm')
