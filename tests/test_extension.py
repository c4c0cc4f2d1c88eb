"""What a user adds from outside: a policy, an env, a network. Nothing inside nervex is edited."""

import copy
from pathlib import Path

import pytest
import torch
from easydict import EasyDict

from app_zoo.classic_control.cartpole.entry import cartpole_dqn_default_config
from nervex.entry import serial_pipeline

MODULES = Path(__file__).parent / 'user_modules'


@pytest.fixture(autouse=True)
def user_modules_on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(MODULES))


def scratch_config(nstep, traj_len):
    cfg = copy.deepcopy(cartpole_dqn_default_config)
    cfg.policy.policy_type, cfg.policy.import_names = 'scratch_dqn', ['scratch_dqn']
    cfg.policy.learn.algo.nstep = nstep
    cfg.policy.collect = dict(traj_len=traj_len, unroll_len=1, algo=dict(nstep=nstep))
    return cfg


@pytest.mark.parametrize('nstep, traj_len', [(1, 1), (3, 1), pytest.param(3, 4, marks=pytest.mark.slow)])
def test_a_policy_written_from_scratch_solves_cartpole(nstep, traj_len):
    assert serial_pipeline(scratch_config(nstep, traj_len), seed=0).solved


def test_every_transition_of_a_row_policy_gets_its_full_nstep_target(monkeypatch):
    """Rewards are all 1 in CartPole, so a padded target shows as a zero; only ends of episodes may have one."""
    from nervex.data import BufferManager

    pushed = []
    original = BufferManager.push_data

    def push(self, data, *args, **kwargs):
        pushed.extend(data)
        return original(self, data, *args, **kwargs)

    monkeypatch.setattr(BufferManager, 'push_data', push)
    cfg = scratch_config(3, 1)
    cfg.commander.max_env_step, cfg.evaluator.stop_val = 1000, 1000
    result = serial_pipeline(cfg, seed=0)
    padded = [row for row in pushed if float(torch.as_tensor(row['reward']).sum()) < 3]
    assert padded and all(row['done'] for row in padded)
    assert len(padded) == 2 * sum(1 for row in pushed if row['done']) / 3
    assert result.env_steps - len(pushed) <= 3 * 8  # at most n rows of each env still wait for their target


class OwnNet(torch.nn.Module):
    def __init__(self, obs_shape, act_shape):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(obs_shape, 128),
            torch.nn.ReLU(),
            torch.nn.Linear(128, 128),
            torch.nn.ReLU(),
            torch.nn.Linear(128, act_shape),
        )

    def forward(self, x):
        return {'logit': self.layers(x['obs'])}


@pytest.mark.parametrize('kwargs', [dict(model_type=OwnNet), dict(model=OwnNet(4, 2))], ids=['class', 'instance'])
def test_a_users_own_network_solves_cartpole(kwargs):
    cfg = copy.deepcopy(cartpole_dqn_default_config)
    cfg.policy.pop('model')
    torch.manual_seed(0)
    if 'model' in kwargs:
        kwargs = dict(model=OwnNet(4, 2))
    assert serial_pipeline(cfg, seed=0, **kwargs).solved


def test_a_users_env_is_found_by_import_names_and_solved():
    cfg = EasyDict(
        dict(
            env=dict(env_type='two_arm', import_names=['two_arm_env'], actor_env_num=4, evaluator_env_num=2),
            policy=dict(
                policy_type='dqn', model=dict(hidden_dim_list=[16]), learn=dict(learning_rate=0.01, batch_size=16)
            ),
            actor=dict(n_sample=8),
            evaluator=dict(stop_val=1, eval_freq=5, n_episode=2),
            commander=dict(max_env_step=2000),
        )
    )
    assert serial_pipeline(cfg, seed=0).solved


def test_a_column_that_the_framework_owns_is_refused(short_dqn, monkeypatch):
    from nervex.policy.dqn import DQNPolicy

    class Taken(DQNPolicy):
        def _process_transition(self, obs, armor_output, timestep):
            return {**super()._process_transition(obs, armor_output, timestep), 'collect_iter': 3}

    with pytest.raises(ValueError, match="'collect_iter'"):
        serial_pipeline(short_dqn, policy_fn=Taken)
