"""Whole runs on every kind of env manager, and the statistics of scaled observations through a run's whole life."""

import copy

import gymnasium
import numpy as np
import pytest
import torch

from nervex.data import TrajectoryDataset
from nervex.entry import collect, eval, serial_pipeline
from nervex.entry.cli import main
from nervex.envs import GymEnv
from nervex.policy import create_policy, load_policy
from nervex.run.build import EVALUATION_SEED_OFFSET
from nervex.utils import CheckpointError, ConfigError
from nervex.worker import BaseEnvManager

MANAGERS = ['base', 'sync_subprocess', 'async_subprocess', 'thread', 'vector']


@pytest.fixture
def gym_dqn(short_dqn):
    """The same on Gymnasium's own CartPole, with a learning rate that changes the policy within the short run."""
    short_dqn.env.update(env_type='gym', env_id='CartPole-v1', import_names=None)
    return short_dqn


@pytest.mark.parametrize('manager', MANAGERS)
def test_a_run_on_every_kind_of_manager(gym_dqn, manager):
    gym_dqn.env.update(env_manager_type=manager, actor_env_num=3, evaluator_env_num=2)
    result = serial_pipeline(gym_dqn, seed=0)
    assert result.env_steps >= 400 and result.train_iters > 0 and len(result.history) >= 2
    played = eval(gym_dqn, load_path=result.checkpoint, n_episode=5)
    assert len(played.returns) == 5 and (played.returns == played.lengths).all()


def test_the_command_on_the_vector_manager(capsys):
    main(
        ['-m', 'serial', '-c', 'cartpole_dqn', '-o', 'env.env_type=gym', '-o', 'env.env_id=CartPole-v1']
        + ['-o', 'env.env_manager_type=vector', '-o', 'commander.max_env_step=200', '-o', 'exp_name=run']
    )
    assert 'env steps' in capsys.readouterr().out


def test_an_env_whose_episodes_never_end_shows_at_once_what_goes_on(capsys, caplog):
    main(
        ['-m', 'serial', '-c', 'cartpole_ppo', '-o', 'env.env_type=gym', '-o', 'env.env_id=CliffWalking-v1', '-s', '0']
        + ['-o', 'evaluator.max_episode_step=30', '-o', 'commander.max_env_step=200', '-o', 'exp_name=run']
    )
    first, second, third, *_ = capsys.readouterr().out.splitlines()
    assert first == 'building ppo for CliffWalking-v1 ...' and second == 'in run; Ctrl-C saves and stops it'
    assert third == 'evaluating the policy after 0 updates ...'
    assert any('cut after 30 steps' in record.getMessage() for record in caplog.records)


def test_episodes_that_a_vector_manager_plays_along_are_not_saved(gym_dqn):
    checkpoint = serial_pipeline(gym_dqn, seed=0).checkpoint
    gym_dqn.env.update(env_manager_type='vector', evaluator_env_num=3)
    played, written = collect(gym_dqn, load_path=checkpoint, n_episode=7, folder='demo')
    data = TrajectoryDataset('demo', strict=True)
    assert written == 7 and sorted(data.lengths) == sorted(played.lengths)


@pytest.fixture
def scaled(gym_dqn):
    gym_dqn.env.manager = dict(norm_obs=True, norm_reward=True)
    gym_dqn.policy.learn.init_data_count = 64
    gym_dqn.evaluator.n_episode = 4
    return gym_dqn


def statistics(checkpoint):
    return torch.load(checkpoint, weights_only=True)['attached']['normalizer']


@pytest.mark.parametrize('manager', ['base', 'sync_subprocess'])
def test_eval_mode_scales_as_the_run_did(scaled, manager):
    scaled.env.env_manager_type = manager
    result = serial_pipeline(scaled, seed=0)
    known = statistics(result.checkpoint)['obs'][0]
    assert result.env_steps <= known['count'] <= result.env_steps * 1.2  # the evaluator has added nothing
    assert np.all(np.array(known['var']) > 0) and known['mean'] != [0.0] * 4
    played = eval(scaled, seed=0, load_path=result.checkpoint, n_episode=4)
    assert played.mean == result.final_return  # the same episodes as at the end of the run
    shifted = torch.load(result.checkpoint, weights_only=True)
    shifted['attached']['normalizer']['obs'][0]['mean'] = [2.0, 2.0, 2.0, 2.0]
    torch.save(shifted, 'shifted.pth.tar')
    other = eval(scaled, seed=0, load_path='shifted.pth.tar', n_episode=4)
    assert other.returns.tolist() != played.returns.tolist()  # so they do matter


@pytest.mark.parametrize('manager', ['base', 'async_subprocess'])
def test_statistics_survive_stop_and_resume(scaled, manager):
    scaled.env.env_manager_type = manager
    scaled.learner = dict(resume=dict(interval_s=0.0, max_cost=None))
    half = copy.deepcopy(scaled)
    half.exp_name, half.commander.max_env_step = 'half', 200
    serial_pipeline(half, seed=0)
    resumed = serial_pipeline(None, resume='half', overrides=('commander.max_env_step=400',))
    if manager == 'base':
        scaled.exp_name = 'whole'
        whole = serial_pipeline(scaled, seed=0)
        assert statistics(resumed.checkpoint) == statistics(whole.checkpoint)
        assert resumed.history == whole.history
    else:  # its envs begin anew, its statistics do not
        assert statistics(resumed.checkpoint)['obs'][0]['count'] >= resumed.env_steps


def test_a_checkpoint_of_another_scale_is_refused(scaled):
    checkpoint = serial_pipeline(scaled, seed=0).checkpoint
    scaled.env.manager = {}
    with pytest.raises(CheckpointError, match='norm_obs=True, the config says False'):
        eval(scaled, load_path=checkpoint)
    with pytest.raises(CheckpointError, match='with normalizer beside the policy, this run has nothing'):
        serial_pipeline(scaled, overrides=(f'learner.load_path={checkpoint}',))


def played_by_hand(policy, seed):
    """The return of the first episode that an evaluation with this seed plays; observations are the env's own."""
    with BaseEnvManager(env_fn=GymEnv, env_cfg=[dict(env_id='CartPole-v1')], episode_num=1) as envs:
        envs.seed(seed + EVALUATION_SEED_OFFSET, dynamic_seed=True)
        envs.launch()
        envs.seed(seed + EVALUATION_SEED_OFFSET, dynamic_seed=True)
        envs.reset()
        while not envs.done:
            ids, data = policy.eval_mode.data_preprocess(envs.ready_obs)
            action = policy.eval_mode.forward(ids, data)['action']
            steps = envs.step({env_id: action[k] for k, env_id in enumerate(ids)})
        return steps[0].info['final_eval_reward']


def test_a_loaded_policy_stepped_by_hand_scales_observations_as_its_run_did(scaled):
    scaled.env.evaluator_env_num = 1
    result = serial_pipeline(scaled, seed=0)
    state = torch.load(result.checkpoint, weights_only=True)
    assert state['config']['policy']['model']['obs_dim'] == 4 and state['attached']['normalizer']['norm_obs']
    played = eval(scaled, seed=5, load_path=result.checkpoint, n_episode=1)
    made = create_policy(result.config.policy, enable_field=['eval'])
    made.eval_mode.load_state_dict(state)
    for policy in (made, load_policy(result.checkpoint)):
        assert played_by_hand(policy, 5) == played.mean
    made.eval_mode.load_state_dict({'model': state['model']})  # as if the checkpoint had no scaling
    obs = torch.randn(64, 4) * torch.tensor([0.1, 1.0, 0.1, 1.0]) + 0.5
    ids = list(range(64))
    seen = load_policy(result.checkpoint).eval_mode.forward(ids, {'obs': obs})['action']
    known = state['attached']['normalizer']['obs'][0]
    mean, std = torch.tensor(known['mean']), torch.tensor(known['var']).sqrt()
    expected = made.eval_mode.forward(ids, {'obs': ((obs - mean) / std).clip(-10, 10).float()})['action']
    assert (torch.as_tensor(seen) == torch.as_tensor(expected)).all()
    assert (torch.as_tensor(seen) != torch.as_tensor(made.eval_mode.forward(ids, {'obs': obs})['action'])).any()


class TwoParts(gymnasium.Env):
    """Observations are a dict of two arrays of different form."""

    observation_space = gymnasium.spaces.Dict(
        pos=gymnasium.spaces.Box(-1, 1, (3,)), cells=gymnasium.spaces.Box(0, 255, (2, 4), np.uint8)
    )
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._obs(), {}

    def step(self, action):
        self.steps += 1
        return self._obs(), float(action), self.steps >= 10, False, {}

    def _obs(self):
        cells = self.np_random.integers(0, 255, (2, 4)).astype(np.uint8)
        return {'pos': self.np_random.uniform(-1, 1, 3).astype(np.float32), 'cells': cells}


class TakesParts(torch.nn.Module):
    def __init__(self, action_dim: int) -> None:
        super().__init__()
        self.q = torch.nn.Linear(11, action_dim)

    def forward(self, inputs):
        pos, cells = inputs['obs']['pos'], inputs['obs']['cells']
        assert set(inputs['obs']) == {'pos', 'cells'} and pos.shape[1:] == (3,) and cells.shape[1:] == (2, 4)
        return {'logit': self.q(torch.cat([pos, cells.float().flatten(1) / 255], -1))}


class TakesOneArray(torch.nn.Module):
    def __init__(self, obs_dim: int, action_dim: int) -> None:
        super().__init__()


def test_all_keys_of_a_dict_observation_reach_a_network_of_ones_own():
    config = dict(
        env=dict(env_type='gym', env_fn=TwoParts, actor_env_num=2, evaluator_env_num=1),
        policy=dict(policy_type='dqn', learn=dict(batch_size=8)),
        actor=dict(n_sample=8),
        evaluator=dict(n_episode=1, eval_freq=100),
        commander=dict(max_env_step=100),
    )
    assert serial_pipeline(config, seed=0, model=TakesParts).train_iters > 0
    for model in (None, TakesOneArray):
        with pytest.raises(ConfigError) as error:
            serial_pipeline(config, seed=0, model=model)
        assert "takes no obs_dim: its forward gets every part as inputs['obs'][key]" in str(error.value)
    assert serial_pipeline({**config, 'env': {**config['env'], 'flatten_obs': True}}, seed=0).train_iters > 0
