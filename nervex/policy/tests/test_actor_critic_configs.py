"""The built-in configs of actor-critic policies: short, and each runs; the slow test solves its problem."""

import pytest

from nervex.config import builtin_configs
from nervex.entry import serial_pipeline

#: name -> env steps that were more than enough for every seed
CONFIGS = {
    'pendulum_ddpg': 10_000,
    'pendulum_td3': 10_000,
    'pendulum_sac': 10_000,
    'pendulum_ppo': 60_000,
    'cartpole_sac': 15_000,
    'cartpole_a2c': 60_000,
}


@pytest.mark.parametrize('name', CONFIGS)
def test_a_config_states_only_what_differs(name):
    with open(builtin_configs()[name], encoding='utf-8') as f:
        assert len(f.readlines()) < 45


@pytest.mark.parametrize('name', CONFIGS)
def test_a_config_runs_for_a_few_updates(name):
    few = ('commander.max_train_iter=3', 'evaluator.n_episode=1', 'env.evaluator_env_num=1', 'evaluator.eval_freq=100')
    result = serial_pipeline(name, seed=0, overrides=few)
    assert result.train_iters >= 3 and result.curve_path


@pytest.mark.slow
@pytest.mark.parametrize('seed', [0, 1, 2])
@pytest.mark.parametrize('name', CONFIGS)
def test_a_config_solves_its_problem(name, seed):
    result = serial_pipeline(name, seed=seed)
    assert result.solved and result.env_steps <= CONFIGS[name]
