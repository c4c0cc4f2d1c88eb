"""A resumed run of any policy goes on bit for bit, and everything that a value policy says it logs is there."""

import pytest
import torch

from app_zoo.classic_control.cartpole.envs import CartPoleEnv
from nervex.policy.tests import test_impala, test_on_policy_ac, test_ppo_recurrent
from nervex.policy.tests.learning import BASE
from nervex.policy.tests.test_off_policy_ac import DISCRETE
from nervex.policy.tests.test_off_policy_ac import proof as continuous_proof
from nervex.policy.tests.test_value_policies import EPS, PROOFS, proof
from nervex.policy.tests.toy_control import DepositEnv
from nervex.run.build import build_serial
from nervex.run.state import save_state
from nervex.utils.class_config import merge_config

NAMES = [*PROOFS, 'dqn']
ACTOR_CRITIC = {
    **{name: test_on_policy_ac.proof(name) for name in test_on_policy_ac.PROOFS},
    'impala': test_impala.proof(test_impala.MEMORY),
    'ppo_recurrent': test_ppo_recurrent.proof(1),
    'sac_discrete': DISCRETE,
}
CONTINUOUS = {name: continuous_proof(name) for name in ('droq', 'tqc', 'crossq', 'implicit_q')}
ACTOR_CRITIC.update(CONTINUOUS)
QUICK = ('sqn', 'r2d2', 'impala', 'ppo_recurrent', 'ppg', *CONTINUOUS)
SHORT = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in (*NAMES, *ACTOR_CRITIC)]


def setting_of(name):
    return (DepositEnv if name in CONTINUOUS else CartPoleEnv, [{}] * 4, [{}] * 2)


def config(name):
    if name in ACTOR_CRITIC:
        policy, cfg = name, ACTOR_CRITIC[name]
    else:
        policy, cfg = proof(name) if name in PROOFS else (name, dict(policy=dict(use_priority=True, **EPS)))
    cfg = merge_config(merge_config(BASE, cfg), dict(env={}, exp_name='run', evaluator=dict(n_episode=2, eval_freq=60)))
    cfg['policy']['policy_type'] = policy
    return cfg


def rounds(run, count):
    for _ in range(count):
        run.commander.step()
        if run.evaluator.due(run.learner.train_iter):
            run.evaluate()
        run.collect()
        for batch in run.batches():
            run.train(batch)


@pytest.mark.parametrize('name', SHORT)
def test_a_resumed_run_goes_on_exactly(name):
    with build_serial(config(name), 0, setting_of(name)) as run:
        run.begin()
        rounds(run, 10)
        save_state(run)
        learned = run.learner.train_iter
        rounds(run, 10)
        assert 0 < learned < run.learner.train_iter
        steps, straight = run.actor.total_step, {k: v.clone() for k, v in run.policy._model.state_dict().items()}
    with build_serial(config(name), 0, setting_of(name), resume='run') as run:
        run.begin()
        rounds(run, 10)
        assert run.actor.total_step == steps
        assert all(torch.equal(straight[k], v) for k, v in run.policy._model.state_dict().items())


@pytest.mark.parametrize('name', NAMES)
def test_every_monitored_value_is_there_and_finite(name):
    with build_serial(config(name), 0, setting_of(name)) as run:
        run.begin()
        run.commander.step()
        run.collect()
        values = run.learner.train(next(iter(run.batches())))
        named = run.policy._monitor_vars_learn()
        assert {'cur_lr', 'total_loss', 'grad_norm', 'q_value'} <= set(named)
        assert all(torch.isfinite(torch.as_tensor(values[key], dtype=torch.float32)).all() for key in named)
