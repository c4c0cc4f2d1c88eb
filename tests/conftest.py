"""Every test of a whole run works in an empty folder of its own."""

import copy

import pytest
import torch


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def short_dqn():
    """CartPole DQN, cut after a few rounds of updates."""
    from app_zoo.classic_control.cartpole.entry import cartpole_dqn_default_config

    cfg = copy.deepcopy(cartpole_dqn_default_config)
    cfg.policy.learn.init_data_count = 64
    cfg.evaluator.eval_freq, cfg.evaluator.stop_val = 20, 1000
    cfg.commander.max_env_step = 400
    return cfg


@pytest.fixture
def short_ppo():
    """CartPole PPO, cut after two rounds of updates."""
    from app_zoo.classic_control.cartpole.entry import cartpole_ppo_default_config

    cfg = copy.deepcopy(cartpole_ppo_default_config)
    cfg.actor.n_sample, cfg.policy.learn.batch_size, cfg.policy.learn.epochs = 128, 64, 2
    cfg.evaluator.stop_val = 1000
    cfg.commander.max_env_step = 256
    return cfg
