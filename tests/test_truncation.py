"""
A time limit is no end: values that are learned through it are right, and would not be otherwise.

A ring of 6 places, one step on whatever the action; leaving place 0 gives 1. An episode begins anywhere and is cut
after two steps, so that the value 0.8^(steps to place 0) / (1 - 0.8^6) is seen only by who goes on from the place
behind the cut: not by who takes the cut for an end, nor by who takes the next episode's first place for the one behind.
"""

import gymnasium
import numpy as np
import pytest
import torch

from nervex.entry import serial_pipeline
from nervex.run.build import build_serial

PLACES, GAMMA, LENGTH = 6, 0.8, 2
TRUE = np.array([GAMMA ** (-place % PLACES) for place in range(PLACES)]) / (1 - GAMMA**PLACES)


class Ring(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Box(0, 1, (PLACES,)), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(PLACES))
        return self.obs(), {}

    def step(self, action):
        reward, self.place = float(self.place == 0), (self.place + 1) % PLACES
        return self.obs(), reward, False, False, {}

    def obs(self):
        return np.eye(PLACES, dtype=np.float32)[self.place]


gymnasium.register('Ring-v0', Ring, max_episode_steps=LENGTH)


class Table(torch.nn.Module):
    """One number a place and action."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Linear(PLACES, 2, bias=False)
        torch.nn.init.zeros_(self.table.weight)

    def forward(self, data):
        return {'logit': self.table(data['obs'] if isinstance(data, dict) else data)}


def ring(policy_type, manager, **parts):
    env = dict(env_type='gym', env_id='Ring-v0', env_manager_type=manager, actor_env_num=4, evaluator_env_num=1)
    config = dict(env=env, policy=dict(policy_type=policy_type), evaluator=dict(n_episode=1, eval_freq=10**6))
    for key, part in parts.items():
        config[key] = {**config.get(key, {}), **part}
    return config


def bellman(behind):
    """Values if the place behind a cut had the values ``behind``; half of all steps are the last one."""
    values = np.zeros(PLACES)
    for _ in range(200):
        following = np.roll(values, -1)
        values = (np.arange(PLACES) == 0) + GAMMA * (following + behind(values, following)) / 2
    return values


def test_the_wrong_ways_are_far_off():
    assert np.abs(bellman(lambda values, following: following) - TRUE).max() < 1e-6
    assert np.abs(bellman(lambda values, following: 0.0) - TRUE).max() > 0.3
    assert np.abs(bellman(lambda values, following: values.mean()) - TRUE).max() > 0.1


@pytest.mark.parametrize(
    'manager, nstep',
    [('base', 1), ('base', 3), ('sync_subprocess', 1), ('async_subprocess', 1), ('thread', 1), ('vector', 1)],
)
def test_dqn(manager, nstep):
    algo = dict(discount_factor=GAMMA, nstep=nstep, target_update_freq=10)
    learn = dict(batch_size=128, learning_rate=0.01, train_step=10, init_data_count=128, algo=algo)
    policy = dict(policy_type='dqn', learn=learn)
    commander = dict(max_env_step=1600)
    config = ring('dqn', manager, policy=policy, actor=dict(n_sample=16), commander=commander)
    table = Table()
    serial_pipeline(config, seed=0, model=table)
    learned = table.table.weight.detach().numpy()
    assert np.abs(learned - TRUE).max() < 0.05


@pytest.mark.parametrize('gae_lambda', [0.0, 0.95])
def test_ppo(gae_lambda):
    algo = dict(discount_factor=GAMMA, gae_lambda=gae_lambda)
    learn = dict(epochs=5, batch_size=64, learning_rate=5e-3, algo=algo)
    policy = dict(policy_type='ppo', learn=learn, model=dict(hidden_dim_list=[32]))
    config = ring('ppo', 'base', policy=policy, actor=dict(n_sample=128), commander=dict(max_env_step=5120))
    with build_serial(config, 0) as run:
        while run.actor.total_step < 5120:
            run.collect()
            for batch in run.batches():
                run.train(batch)
        values = run.policy._model({'obs': torch.eye(PLACES)}, mode='compute_value')['value']
    assert np.abs(values.detach().numpy() - TRUE).max() < 0.1
