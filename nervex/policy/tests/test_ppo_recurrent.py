"""Recurrent PPO: it solves what no policy without memory can, and what PPO solves."""

import copy
from collections import deque

import numpy as np
import pytest
import torch

from nervex.data import Batch
from nervex.policy import check_batched, create_policy
from nervex.policy.ppo_recurrent import RecurrentPPOPolicy
from nervex.policy.tests.learning import by_rows, train, wrong_sign
from nervex.policy.tests.test_on_policy_ac import no_bootstrap
from nervex.policy.tests.toy_control import DepositEnv
from nervex.policy.tests.toy_envs import CueEnv, EndlessEnv, ForbiddenEnv, SwitchesEnv, TemptationEnv
from nervex.run.build import build_serial
from nervex.utils import ConfigError
from nervex.utils.class_config import merge_config
from nervex.worker.actor.env_manager import create_env_manager

PPO = dict(
    policy=dict(learn=dict(epochs=4, batch_size=32, algo=dict(entropy_weight=0.01))),
    actor=dict(n_sample=64),
    evaluator=dict(eval_freq=40),
    commander=dict(max_env_step=6000),
)
RECURRENT = merge_config(
    PPO,
    dict(
        policy=dict(model=dict(lstm_hidden_dim=16), learn=dict(batch_size=8), collect=dict(unroll_len=4, traj_len=16)),
        actor=dict(n_sample=32),
    ),
)


def proof(best, *more):
    cfg = merge_config(copy.deepcopy(RECURRENT), dict(evaluator=dict(stop_val=best)))
    for part in more:
        cfg = merge_config(cfg, part)
    return cfg


@pytest.mark.parametrize('kind', ['lstm', 'gru'])
def test_solves_a_problem_of_memory(kind):
    assert train('ppo_recurrent', CueEnv, proof(1, dict(policy=dict(model=dict(lstm_type=kind))))).solved


def test_the_same_policy_without_memory_cannot():
    """Observations of the step that counts do not differ, so that nothing better than a coin exists: 0 on average."""
    result = train('ppo', CueEnv, merge_config(PPO, dict(evaluator=dict(stop_val=1))))
    assert not result.solved and result.best_return < 0.5


@pytest.mark.parametrize(
    'env, best',
    [(TemptationEnv, 1.0), (SwitchesEnv, 1.9), (ForbiddenEnv, 0.0)],
    ids=['discrete', 'two heads', 'masks'],
)
def test_learns_discrete_actions(env, best):
    assert train('ppo_recurrent', env, proof(best)).solved


def test_learns_continuous_actions():
    cfg = proof(0.85, dict(policy=dict(learn=dict(algo=dict(entropy_weight=0.0)))))
    assert train('ppo_recurrent', DepositEnv, cfg).solved


def test_a_time_limit_is_no_end():
    algo = dict(policy=dict(learn=dict(algo=dict(discount_factor=0.9, entropy_weight=0.05))))
    assert train('ppo_recurrent', EndlessEnv, proof(None, algo), env_cfg=dict(limit=2)).final_return == 2


@pytest.mark.slow
@pytest.mark.parametrize('broken', [wrong_sign, no_bootstrap])
def test_the_proof_fails_for_a_broken_loss(broken):
    assert train(broken(RecurrentPPOPolicy), TemptationEnv, proof(1)).best_return < 0.5


def make(fields, obs_dim=2, action_dim=2, continuous=False, **cfg):
    torch.manual_seed(0)
    model = dict(obs_dim=obs_dim, action_dim=action_dim, continuous=continuous, hidden_dim_list=[8], lstm_hidden_dim=4)
    return create_policy(dict(policy_type='ppo_recurrent', model=model, **cfg), enable_field=fields)


SHORT = dict(env_num=3, unroll_len=4, traj_len=4)


@pytest.mark.parametrize(
    'env, sizes',
    [(CueEnv, (2, 2)), (SwitchesEnv, (6, [2, 3])), (DepositEnv, (3, 2, True)), (ForbiddenEnv, (1, 3))],
)
def test_both_forms_of_transitions_and_samples_agree(env, sizes):
    manager = create_env_manager('base', env, [{}] * 3, {})
    manager.seed(0)
    policy = make(['collect'], *sizes, collect=SHORT)
    with manager:
        manager.launch()
        assert check_batched(policy, manager, steps=20) == 60


def test_runs_in_the_documented_row_form():
    few = dict(commander=dict(max_env_step=400))
    assert train(by_rows(RecurrentPPOPolicy), CueEnv, proof(1, few)).train_iters > 10


def rollout(policy, steps, ends=()):
    """One env's steps as a deque of rows, as the actor keeps them."""
    rows, rng = deque(), np.random.default_rng(0)
    obs = torch.as_tensor(rng.normal(size=(steps + 1, 1, 2)), dtype=torch.float32)
    for t in range(steps):
        output = policy._forward_collect([0], {'obs': obs[t]})
        done = t in ends
        step = type('Step', (), dict(obs=obs[t + 1], reward=torch.ones(1), done=torch.tensor([done])))
        columns = policy._process_transition(obs[t], output, step)
        rows.append({**Batch(columns)[0].to_dict(), 'truncated': done})
        if done:
            policy._reset_collect([0])
    return rows


def test_the_first_update_sees_the_policy_that_acted():
    """The unrolled network, from the stored states, gives the logits and values of the steps: the ratio is one."""
    policy = make(['learn', 'collect'], collect=dict(env_num=1, unroll_len=3, traj_len=3))
    data = policy._data_preprocess_learn(policy._get_train_sample(rollout(policy, 11, ends=(4,))))
    assert data['mask'].sum() == 11 and data['mask'].shape == (3, 4)
    output, real = policy._unrolled(data), data['mask']
    assert torch.allclose(output['logit'][real], data['logit'][real], atol=1e-6)
    assert torch.allclose(output['value'][real], data['value'][real], atol=1e-6)
    info = policy._loss(data)[1]
    assert info['approx_kl'].item() == pytest.approx(0, abs=1e-6) and info['clipfrac'].item() == 0


def test_values_behind_a_window_remember_what_led_there():
    policy = make(['learn', 'collect'], collect=SHORT, learn=dict(algo=dict(discount_factor=1.0, gae_lambda=1.0)))
    rows = rollout(policy, 4)
    following = policy._forward_collect([0], {'obs': rows[-1]['next_obs'].unsqueeze(0)})['value']
    samples = policy._get_train_sample(rows)
    assert samples[0]['return_'][-1].item() == pytest.approx(1 + following.item(), abs=1e-5)


def test_a_model_without_memory_is_refused():
    with pytest.raises(ConfigError, match="take 'fcr_vac'"):
        train('ppo_recurrent', CueEnv, merge_config(PPO, dict(policy=dict(model=dict(model_type='fc_vac')))))


def test_each_round_learns_from_all_that_it_collected_and_from_nothing_older(tmp_path, monkeypatch):
    """A window, 16 steps of 4 envs in sequences of 4 at most, gives 16 of them or more, as episodes end."""
    monkeypatch.chdir(tmp_path)
    ours = dict(policy=dict(policy_type='ppo_recurrent', learn=dict(epochs=1)), actor=dict(n_sample=10))
    cfg = merge_config(RECURRENT, ours)
    with build_serial(cfg, 0, (CueEnv, [{}] * 4, [{}])) as run:
        for _ in range(3):
            run.commander.step()
            before = run.actor.total_step
            run.collect()
            batches = [copy.deepcopy(batch) for batch in run.batches()]
            assert all((np.asarray(batch['collect_iter']) == run.learner.train_iter).all() for batch in batches)
            steps = sum(int(np.asarray(batch['mask']).sum()) for batch in batches)
            assert steps == run.actor.total_step - before > 0
            for batch in batches:
                run.train(batch)
