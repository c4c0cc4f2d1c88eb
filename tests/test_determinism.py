"""One seed, one result; another seed, another; and no clock decides a number."""

import copy
import random
import re
import sys
import time
from pathlib import Path

import pytest
import torch

from app_zoo.classic_control.pendulum.entry import pendulum_sac_default_config
from nervex.entry import serial_pipeline


def numbers_of_the_logs() -> str:
    text = ''.join(
        Path(p).read_text(encoding='utf-8')
        for p in (
            'log/learner/learner_logger.txt',
            'log/evaluator/evaluator_logger.txt',
            'log/actor/collect_logger.txt',
        )
    )
    text = re.sub(r'^\[.*?\]', '', text, flags=re.M)  # times of day
    text = re.sub(r'(avg_step_per_sec|avg_time_per_episode) \S+', '', text)  # speeds
    return re.sub(r'\S+ env steps/s|ckptBaseLearner\d+', '', text)


@pytest.mark.parametrize('name', ['short_dqn', 'short_ppo'])
def test_same_seed_same_weights_and_logs(name, request, tmp_path, monkeypatch):
    cfg = request.getfixturevalue(name)
    cfg.learner = dict(hook=dict(log_show=dict(ext_args=dict(freq=1))))
    runs = []
    for folder, seed in (('a', 1), ('b', 1), ('c', 2)):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        result = serial_pipeline(cfg, seed=seed)
        runs.append((torch.load(result.checkpoint, weights_only=True)['model'], numbers_of_the_logs()))
    (weights_a, logs_a), (weights_b, logs_b), (weights_c, logs_c) = runs
    assert all(torch.equal(weights_a[k], weights_b[k]) for k in weights_a)
    assert logs_a == logs_b
    assert not all(torch.equal(weights_a[k], weights_c[k]) for k in weights_a)
    assert logs_a != logs_c


def lying_clocks(monkeypatch, seed):
    """Every clock of Python runs forward by jumps of its own choice, up to 50 ms; what was timed is forgotten."""
    jumps = random.Random(seed)
    for module in [m for name, m in sys.modules.items() if name.startswith('nervex.')]:
        for function in vars(module).values():
            if hasattr(function, 'cache_clear'):
                function.cache_clear()
    for name in ('time', 'monotonic', 'perf_counter', 'process_time', 'thread_time'):
        now = [getattr(time, name)()]

        def look(now=now):
            now[0] += 10 ** jumps.uniform(-7, -1.3)
            return now[0]

        monkeypatch.setattr(time, name, look)


@pytest.mark.parametrize('name', ['sac', 'dqn'])
def test_runs_whose_clocks_differ_end_with_the_same_weights(name, request, tmp_path, monkeypatch):
    """Nets that are 256 wide with batches of 256, where oneDNN and MKL are both in question."""
    if name == 'dqn':
        cfg = request.getfixturevalue('short_dqn')
        cfg.policy.model.hidden_dim_list = [256, 256]
    else:
        cfg = copy.deepcopy(pendulum_sac_default_config)
        cfg.policy.model.hidden_dim_list = [256, 256]
        cfg.evaluator.eval_freq, cfg.evaluator.stop_val = 40, 1000
        cfg.commander = dict(max_env_step=300)
        cfg.policy.collect.random_steps = 100
    cfg.policy.learn.batch_size = 256
    cfg.policy.learn.init_data_count = 256
    weights = []
    for lie in (0, 1, 2, None):
        (tmp_path / str(lie)).mkdir()
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path / str(lie))
            if lie is not None:
                lying_clocks(patch, lie)
            result = serial_pipeline(cfg, seed=0)
            weights.append(torch.load(result.checkpoint, weights_only=True)['model'])
    for other in weights[1:]:
        assert all(torch.equal(weights[0][k], other[k]) for k in weights[0])
