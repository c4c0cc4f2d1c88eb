"""A run that is killed at any one of its file operations, and resumed, ends as if it had never been killed."""

import json
import sys
from pathlib import Path

import pytest

from nervex.config import save_config
from nervex.utils.tests import quick_start

HARNESS = Path(__file__).parent / 'kill_harness.py'


@pytest.mark.parametrize(
    'operations', [range(2, 300, 40), pytest.param(range(1, 301), marks=pytest.mark.slow)], ids=['some', 'all']
)
def test_killed_at_a_file_operation_and_resumed_is_as_never_killed(short_dqn, operations):
    killed_and_resumed(short_dqn, operations, max_env_step=120)


def test_killed_while_it_ends_and_resumed_is_as_never_killed(short_dqn):
    killed_and_resumed(short_dqn, range(-17, 1, 2), max_train_iter=40)


def killed_and_resumed(short_dqn, operations, **limits):
    short_dqn.policy.use_priority = True
    short_dqn.env.update(actor_env_num=4, evaluator_env_num=2)
    short_dqn.evaluator.n_episode = 2
    short_dqn.commander.update(limits)
    short_dqn.learner = dict(
        resume=dict(interval_s=0.0, max_cost=None), hook=dict(log_show=dict(ext_args=dict(freq=10)))
    )
    save_config(short_dqn, 'config.yaml')
    command = [sys.executable, str(HARNESS), 'config.yaml', *map(str, operations)]
    done = quick_start.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop('operations') > 300 and found.pop('killed') == len(operations)
    assert not found
