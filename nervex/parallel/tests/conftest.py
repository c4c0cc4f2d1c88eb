"""Runs with roles that only pretend, all in this process."""

import pytest

from nervex.parallel.carrier import InlineCarrier
from nervex.parallel.tests.pretenders import Actor, Evaluator, Learner, Pretender
from nervex.parallel.tests.running import build_parallel
from nervex.utils import COMM_ACTOR_REGISTRY, COMM_LEARNER_REGISTRY


@pytest.fixture
def pretend(monkeypatch):
    Pretender.all = []
    for registry, entries in (
        (COMM_ACTOR_REGISTRY, {'pretend': Actor, 'pretend_evaluator': Evaluator}),
        (COMM_LEARNER_REGISTRY, {'pretend': Learner}),
    ):
        monkeypatch.setattr(registry, '_entries', {**registry._entries, **entries})


@pytest.fixture
def start(tmp_path, pretend):
    """Begin a run with pretending roles; it is closed at the end."""
    runs = []

    def begin(on_policy=False, **parallel):
        settings = dict(comm_actor_type='pretend', comm_learner_type='pretend', comm_evaluator_type='pretend_evaluator',
                        carrier='inline', actor_num=2, block=dict(rows=8))  # fmt: skip
        cfg = dict(
            exp_name=str(tmp_path),
            env=dict(env_type='cartpole', import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
                     actor_env_num=8),
            policy=dict(policy_type='ppo' if on_policy else 'dqn'),
            actor=dict(n_sample=16),
            evaluator=dict(stop_val=195, eval_freq=20),
            commander=dict(max_env_step=100_000),
            parallel={**settings, **parallel},
        )  # fmt: skip
        run = build_parallel(cfg, seed=0, carrier=InlineCarrier())
        runs.append(run)
        run.begin()
        return run

    yield begin
    for run in runs:
        run.__exit__()
