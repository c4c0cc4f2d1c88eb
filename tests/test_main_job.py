"""The two built-in CartPole configs reach a mean return of 195 (learning is the claim, so this is CartPole itself)."""

import pytest

from app_zoo.classic_control.cartpole.entry import cartpole_dqn_default_config, cartpole_ppo_default_config
from nervex.entry import eval, serial_pipeline

SEEDS = [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]


@pytest.mark.parametrize('seed', SEEDS)
@pytest.mark.parametrize(
    'config, limit',
    [
        pytest.param(cartpole_dqn_default_config, 20_000, id='dqn'),
        pytest.param(cartpole_ppo_default_config, 40_000, id='ppo'),
    ],
)
def test_cartpole_is_solved(config, limit, seed):
    result = serial_pipeline(config, seed=seed)
    assert result.solved and result.final_return >= 195
    assert result.env_steps <= limit
    again = eval(config, seed=seed + 1, load_path=result.best_checkpoint, n_episode=5)
    assert again.mean >= 150  # other initial states, the same policy
