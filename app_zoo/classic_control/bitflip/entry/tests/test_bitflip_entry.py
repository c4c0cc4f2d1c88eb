"""Hindsight makes the difference on BitFlip."""

import copy

import pytest

from app_zoo.classic_control.bitflip.entry import bitflip_dqn_default_config, bitflip_her_dqn_default_config
from nervex.entry import serial_pipeline


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_eight_bits_are_learned_with_hindsight():
    cfg = copy.deepcopy(bitflip_her_dqn_default_config)
    cfg.env.n_bits, cfg.evaluator.eval_freq, cfg.commander.max_env_step = 8, 250, 12_000
    assert serial_pipeline(cfg, seed=0).solved


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(3))
def test_fifteen_bits_are_learned_with_hindsight(seed):
    result = serial_pipeline(bitflip_her_dqn_default_config, seed=seed)
    assert result.solved and result.final_return >= 0.9 and result.env_steps <= 60_000


@pytest.mark.slow
def test_fifteen_bits_are_not_learned_without():
    assert serial_pipeline(bitflip_dqn_default_config, seed=0).final_return < 0.1
