"""A run whose updates are recorded ends with the weights of one whose updates are not, bit for bit."""

import pytest
import torch

from nervex.policy.tests.learning import train
from nervex.policy.tests.test_impala import IMPALA
from nervex.policy.tests.toy_control import DepositEnv
from nervex.policy.tests.toy_envs import TemptationEnv
from nervex.utils.class_config import merge_config

WIDE = dict(model=dict(hidden_dim_list=[256, 256]), learn=dict(train_step=4, batch_size=256))
OFTEN = dict(policy=dict(learn=dict(train_step=4, batch_size=64)))
RUNS = {
    'dqn': (TemptationEnv, {}),
    'ppo': (TemptationEnv, dict(actor=dict(n_sample=64), policy=dict(learn=dict(batch_size=32)))),
    'td3': (DepositEnv, OFTEN),
    'sac': (DepositEnv, OFTEN),
    'droq': (DepositEnv, OFTEN),
    'tqc': (DepositEnv, OFTEN),
    'crossq': (DepositEnv, merge_config(OFTEN, dict(policy=dict(model=dict(critic_hidden_dim_list=[64]))))),
    'implicit_q': (DepositEnv, OFTEN),
    'cql_continuous': (DepositEnv, OFTEN),
    'sac, 256 wide': (DepositEnv, dict(policy=WIDE)),
    'impala': (TemptationEnv, IMPALA),
    'impala, 13 steps': (
        TemptationEnv,
        merge_config(IMPALA, dict(policy=dict(collect=dict(unroll_len=13, traj_len=13)))),
    ),
}


@pytest.mark.parametrize('name', list(RUNS))
def test_the_recorded_update_equals_the_ordinary_one_bit_for_bit(name, tmp_path, monkeypatch, caplog):
    env, cfg = RUNS[name]
    weights = {}
    for graph in ('off', 'ts'):
        (tmp_path / graph).mkdir()
        monkeypatch.chdir(tmp_path / graph)
        own = dict(policy=dict(learn=dict(graph=graph)), commander=dict(max_env_step=240), evaluator=dict(stop_val=1e9))
        result = train(name.split(',')[0], env, merge_config(cfg, own))
        weights[graph] = torch.load(result.checkpoint, weights_only=True)['model']
    assert all(torch.equal(weights['off'][k], weights['ts'][k]) for k in weights['off'])
    assert 'eager' not in caplog.text
