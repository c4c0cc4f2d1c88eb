"""-m offline: learning from trajectory files, whose own statistics scale them."""

import os

import numpy as np
import pytest

from nervex.data import Batch, TrajectoryDataset, TrajectoryWriter
from nervex.entry import eval, offline_pipeline, serial_pipeline
from nervex.entry.cli import main
from nervex.entry.offline_entry import OfflineRun
from nervex.policy import ILPolicy
from nervex.run.build import start_serial
from nervex.run.launch import Passed, prepare_launch
from nervex.utils import CheckpointError, ConfigError
from nervex.worker.learner.checkpoints import load_checkpoint_file

CONFIG = dict(
    env=dict(env_type='cartpole', import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env']),
    policy=dict(policy_type='il', model=dict(hidden_dim_list=[16]), learn=dict(train_step=10)),
    evaluator=dict(n_episode=3, eval_freq=100, stop_val=None),
    commander=dict(max_train_iter=20),
)


@pytest.fixture
def data():
    """Episodes whose observations have mean 3 and deviation 2 in each column."""
    rng = np.random.default_rng(0)
    with TrajectoryWriter('demo') as writer:
        for _ in range(30):
            obs = rng.normal(3, 2, (21, 4)).astype(np.float32)
            rest = dict(action=rng.integers(0, 2, 20), reward=np.ones(20, np.float32), truncated=np.zeros(20, bool))
            writer.add(Batch(dict(obs=obs[:-1], next_obs=obs[1:], done=np.arange(20) == 19, **rest)))
    return 'demo'


def config(**manager):
    return {**CONFIG, 'env': {**CONFIG['env'], 'manager': manager}}


def test_the_command_learns_from_files(data, capsys):
    main(['-m', 'offline', '-c', 'cartpole_il', '--data', data, '-s', '0', '-o', 'commander.max_train_iter=20'])
    assert 'finished: return' in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(['-m', 'offline', '-c', 'cartpole_il'])
    assert stop.value.code == 2 and '--data FOLDER' in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main(['-m', 'offline', '-c', 'cartpole_il', '--data', 'nowhere'])
    assert stop.value.code == 2 and 'nowhere' in capsys.readouterr().err


def test_files_are_scaled_by_their_own_mean_and_variance(data):
    found = {}

    def look(run):
        """What the buffer would get, and what the statistics are afterwards."""
        episodes = list(run.episodes())
        found['obs'], found['next_obs'] = (np.concatenate([e[key] for e in episodes]) for key in ('obs', 'next_obs'))
        return episodes

    passed = Passed(data=TrajectoryDataset(data))
    with start_serial(prepare_launch(config(norm_obs=True), 0, passed, collects=False), OfflineRun) as run:
        look(run)
        before = dict(found)
        look(run)  # the statistics are taken once
    assert np.abs(found['obs'].mean(0)).max() < 1e-5 and found['obs'].std(0) == pytest.approx(1, abs=1e-4)
    assert np.array_equal(before['obs'], found['obs']) and found['next_obs'].std() == pytest.approx(1, abs=0.05)
    raw = np.concatenate([TrajectoryDataset(data).episode(k).to_numpy()['next_obs'] for k in range(30)])
    obs = np.concatenate([TrajectoryDataset(data).episode(k).to_numpy()['obs'] for k in range(30)])
    assert found['next_obs'] == pytest.approx((raw - obs.mean(0)) / obs.std(0), abs=1e-4)


def test_the_statistics_of_the_data_are_part_of_the_checkpoint_and_scale_evaluation(data):
    result = offline_pipeline(config(norm_obs=True), data, seed=0)
    saved = load_checkpoint_file(result.checkpoint)['attached']['normalizer']['obs'][0]
    assert saved['count'] == 600 and saved['mean'] == pytest.approx([3] * 4, abs=0.3)
    again = eval(config(norm_obs=True), seed=0, load_path=result.checkpoint, n_episode=3)
    assert again.mean == pytest.approx(result.final_return)


@pytest.mark.parametrize(
    'policy, env, words',
    [
        ('td3_bc', 'Pendulum-v1', 'has discrete actions, but the env takes continuous ones'),
        ('il', 'MountainCar-v0', r'has obs of shape \(4,\), those of the env have \(2,\)'),
    ],
)
def test_data_of_another_env_are_refused(data, policy, env, words):
    cfg = {**CONFIG, 'env': dict(env_type='gym', env_id=env), 'policy': dict(policy_type=policy)}
    cfg['env'] |= dict(use_act_scale=True) if policy == 'td3_bc' else {}
    with pytest.raises(ConfigError, match='--data: ' + words):
        offline_pipeline(cfg, data)


def test_parts_and_choices_that_the_env_has_not_are_refused(data):
    team = {**CONFIG, 'env': dict(env_type='two_step'), 'policy': dict(policy_type='iql')}
    with pytest.raises(
        ConfigError, match=r'--data: has no obs\.agent_state, a part of what the env shows\n.*global_state'
    ):
        offline_pipeline(team, data)
    obs = np.zeros((21, 4), np.float32)
    rest = dict(reward=np.ones(20, np.float32), truncated=np.zeros(20, bool), done=np.arange(20) == 19)
    with TrajectoryWriter('three') as writer:
        writer.add(Batch(dict(obs=obs[:-1], next_obs=obs[1:], action=np.arange(20) % 3, **rest)))
    with pytest.raises(ConfigError, match='--data: has actions from 0 to 2, the env takes 0 to 1'):
        offline_pipeline(CONFIG, 'three')
    with TrajectoryWriter('parts') as writer:
        writer.add(Batch(dict(obs=Batch(a=obs[:-1]), next_obs=Batch(a=obs[1:]), action=np.arange(20) % 2, **rest)))
    with pytest.raises(ConfigError, match=r'--data: has obs in parts \(a\), those of the env have none'):
        offline_pipeline(CONFIG, 'parts')


def test_a_policy_that_needs_more_than_is_recorded_is_refused(data):
    cfg = {**CONFIG, 'policy': dict(policy_type='ppo')}
    with pytest.raises(ConfigError, match=r"PPOPolicy._get_train_sample asks for 'value', .* takes il, cql"):
        offline_pipeline(cfg, data, seed=0)


def test_an_error_of_a_hook_that_is_not_about_the_data_is_told_as_it_is(data):
    class Forgetful(ILPolicy):
        def _get_train_sample(self, traj_cache):
            return {'action': 1}[0]

    with pytest.raises(KeyError, match=r'^0$'):
        offline_pipeline(CONFIG, data, policy_fn=Forgetful)


def test_a_run_that_cannot_begin_leaves_no_folder(data):
    checkpoint = offline_pipeline({**CONFIG, 'exp_name': 'narrow'}, data).checkpoint
    wide = {**CONFIG, 'exp_name': 'wide', 'learner': dict(load_path=checkpoint)}
    wide['policy'] = {**CONFIG['policy'], 'model': dict(hidden_dim_list=[32])}
    with pytest.raises(CheckpointError, match='does not fit this policy and model'):
        offline_pipeline(wide, data)
    with pytest.raises(ConfigError, match='takes il, cql'):
        offline_pipeline({**CONFIG, 'policy': dict(policy_type='ppo'), 'exp_name': 'wide'}, data)
    assert not os.path.exists('wide') and os.path.exists('narrow')
    with pytest.raises(ConfigError, match='takes il, cql'):
        offline_pipeline({**CONFIG, 'policy': dict(policy_type='ppo'), 'exp_name': 'narrow'}, data)
    assert os.path.exists(checkpoint)


def test_scaled_rewards_are_refused(data):
    with pytest.raises(ConfigError, match=r'env\.manager\.norm_reward: got True'):
        offline_pipeline(config(norm_reward=True), data, seed=0)


def test_imitation_of_oneself_is_warned_of(caplog):
    cfg = {**CONFIG, 'actor': dict(n_sample=8), 'commander': dict(max_train_iter=2)}
    serial_pipeline(cfg, seed=0)
    assert 'ILPolicy: it imitates the actions of recorded episodes, and here they are its own' in caplog.text
    caplog.clear()
    serial_pipeline('cartpole_cql', seed=0, overrides=('commander.max_train_iter=2', 'exp_name=other'))
    assert not caplog.records
