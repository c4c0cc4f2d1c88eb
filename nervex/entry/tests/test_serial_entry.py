"""
Training from Python in one file: to read, to run and to begin from.

    python nervex/entry/tests/test_serial_entry.py            # CartPole by DQN, until it is solved
    pytest nervex/entry/tests/test_serial_entry.py            # the same calls, cut short
"""

from copy import deepcopy

import pytest

from app_zoo.classic_control.cartpole.entry import cartpole_dqn_default_config, cartpole_ppo_default_config
from app_zoo.classic_control.cartpole.envs import CartPoleEnv
from nervex.entry import eval, serial_pipeline
from nervex.model import FCDiscreteNet
from nervex.policy import create_policy
from nervex.policy.dqn import DQNPolicy

SHORT = ('commander.max_env_step=1200', 'evaluator.eval_freq=20', 'evaluator.stop_val=1000')


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """A run writes into the current folder where ``exp_name`` names no other."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize('config', [cartpole_dqn_default_config, cartpole_ppo_default_config])
def test_a_config_is_all_that_a_run_needs(config):
    result = serial_pipeline(deepcopy(config), seed=0, overrides=SHORT)
    assert result.env_steps >= 1200 and result.history and result.checkpoint


def test_envs_policy_and_model_may_be_passed_beside_the_config():
    """``env_setting``: the class or function of an env, and one dict for each env that collects and that evaluates."""
    config = deepcopy(cartpole_dqn_default_config)
    config.policy.model = dict(hidden_dim_list=[32])
    result = serial_pipeline(
        config, 0, (CartPoleEnv, [{} for _ in range(4)], [{} for _ in range(2)]), DQNPolicy, FCDiscreteNet,
        overrides=SHORT,
    )  # fmt: skip
    assert result.env_steps >= 1200


def test_what_was_trained_is_evaluated_and_loaded_again():
    result = serial_pipeline(deepcopy(cartpole_dqn_default_config), seed=0, overrides=SHORT)
    assert len(eval(None, load_path=result.checkpoint, n_episode=3).returns) == 3
    assert isinstance(create_policy(result.config.policy, enable_field=['eval']), DQNPolicy)


if __name__ == '__main__':
    trained = serial_pipeline(cartpole_dqn_default_config, seed=0, progress=True)
    print(trained.verdict)
    print('checkpoint:', trained.best_checkpoint)
