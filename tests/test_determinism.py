"""One seed, one result; another seed, another."""

import re
from pathlib import Path

import pytest
import torch

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
