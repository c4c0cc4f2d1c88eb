"""IMPALA: it learns from old and from foreign trajectories, and V-trace is what makes it."""

import copy
import math

import numpy as np
import pytest
import torch

from nervex.data import Batch
from nervex.policy import check_batched, create_policy
from nervex.policy.impala import IMPALAPolicy
from nervex.policy.tests.learning import by_rows, train, wrong_sign
from nervex.policy.tests.toy_control import DepositEnv
from nervex.policy.tests.toy_envs import CueEnv, EndlessEnv, ForbiddenEnv, SwitchesEnv, TemptationEnv
from nervex.utils import ConfigError
from nervex.utils.class_config import merge_config
from nervex.worker.actor.env_manager import create_env_manager

#: a replay buffer of 64 sequences, each seen several times, most of them by an older policy
IMPALA = dict(
    policy=dict(
        learn=dict(train_step=4, batch_size=16, learning_rate=3e-3, algo=dict(entropy_weight=0.05)),
        collect=dict(unroll_len=8, traj_len=8),
    ),
    replay_buffer=dict(meta_maxlen=64),
    evaluator=dict(eval_freq=40),
    commander=dict(max_env_step=6000),
)
LIMITED = dict(policy=dict(learn=dict(algo=dict(discount_factor=0.9))))
MEMORY = dict(
    policy=dict(model=dict(model_type='fcr_vac', hidden_dim_list=[32], lstm_hidden_dim=16), learn=dict(graph='off')),
    evaluator=dict(eval_freq=100),
)


def proof(*more):
    cfg = copy.deepcopy(IMPALA)
    for part in more:
        cfg = merge_config(cfg, part)
    return cfg


def no_bootstrap(cls):
    """The same policy, for which every step is the last one of its episode."""

    class NoBootstrap(cls):
        def _targets(self, log_rho, value, data):
            return super()._targets(log_rho, value * 0, {**data, 'done': None, 'mask': data['mask'].cumsum(0) < 2})

    return NoBootstrap


class Foreign(IMPALAPolicy):
    """Acts at random for ever, whatever has been learned."""

    def _forward_collect(self, data_id, data):
        output = super()._forward_collect(data_id, data)
        output['action'] = torch.randint(2, output['action'].shape)
        return {**output, 'log_prob': torch.full(output['action'].shape, math.log(0.5))}


class Uncorrected(Foreign):
    """Takes foreign steps for its own."""

    def _targets(self, log_rho, value, data):
        return super()._targets(log_rho * 0, value, data)


def until(best):
    return dict(evaluator=dict(stop_val=best))


@pytest.mark.parametrize(
    'env, best',
    [(TemptationEnv, 1.0), (SwitchesEnv, 1.9), (ForbiddenEnv, 0.0)],
    ids=['discrete', 'two heads', 'masks'],
)
def test_learns_from_a_replay_buffer(env, best):
    assert train('impala', env, proof(until(best))).solved


def test_learns_continuous_actions():
    cfg = proof(until(0.85), dict(policy=dict(learn=dict(algo=dict(entropy_weight=0.0)))))
    assert train('impala', DepositEnv, cfg).solved


def test_a_time_limit_is_no_end():
    assert train('impala', EndlessEnv, proof(LIMITED), env_cfg=dict(limit=2)).final_return == 2


def test_learns_from_the_steps_of_another_policy_and_only_by_the_correction():
    """At gamma 0.85 going on is worth 0.52 to who goes on, and less than the temptation's 0.2 to who acts at random."""
    cfg = proof(dict(policy=dict(learn=dict(algo=dict(discount_factor=0.85)))))
    assert train(Foreign, TemptationEnv, merge_config(cfg, until(1))).solved
    assert train(Uncorrected, TemptationEnv, cfg).final_return < 0.5


@pytest.mark.slow
@pytest.mark.parametrize('broken', [wrong_sign, no_bootstrap])
def test_the_proof_fails_for_a_broken_loss(broken):
    assert train(broken(IMPALAPolicy), TemptationEnv, proof(until(1))).best_return < 0.5


@pytest.mark.parametrize('kind', ['lstm', 'gru'])
def test_with_a_memory_it_solves_what_it_cannot_without(kind):
    assert train('impala', CueEnv, proof(until(1), MEMORY, dict(policy=dict(model=dict(lstm_type=kind))))).solved
    without = train('impala', CueEnv, proof(until(1), dict(commander=dict(max_env_step=2000))))
    assert without.best_return < 0.5


@pytest.mark.parametrize(
    'env, model',
    [
        (TemptationEnv, dict(obs_dim=5, action_dim=2)),
        (SwitchesEnv, dict(obs_dim=6, action_dim=[2, 3])),
        (DepositEnv, dict(obs_dim=3, action_dim=2, continuous=True)),
        (CueEnv, dict(obs_dim=2, action_dim=2, model_type='fcr_vac')),
    ],
    ids=['discrete', 'two heads', 'continuous', 'memory'],
)
def test_both_forms_of_transitions_and_samples_agree(env, model):
    manager = create_env_manager('base', env, [{}] * 3, {})
    manager.seed(0)
    policy = make(['collect'], collect=dict(env_num=3, unroll_len=4, traj_len=4), model=model)
    with manager:
        manager.launch()
        assert check_batched(policy, manager, steps=20) == 60


@pytest.mark.parametrize('env, more', [(TemptationEnv, {}), (CueEnv, MEMORY)], ids=['plain', 'memory'])
def test_runs_in_the_documented_row_form(env, more):
    result = train(by_rows(IMPALAPolicy), env, proof(more, dict(commander=dict(max_env_step=400))))
    assert result.train_iters > 10


def make(fields, model, model_instance=None, **cfg):
    torch.manual_seed(0)
    return create_policy(dict(policy_type='impala', model=model, **cfg), enable_field=fields, model=model_instance)


class Table(torch.nn.Module):
    """The observation is the value; the policy is even."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, data):
        obs = data['obs'].squeeze(-1)
        return {'logit': torch.stack([obs * 0, obs * 0], -1) * self.scale, 'value': obs * self.scale}


def sequence(mask, done, truncated=None, log_prob=0.5):
    """Values 1, 2, 3, rewards 1, 1; the policy that acted did so with this probability."""
    return Batch.of(
        dict(
            obs=np.array([[[1.0], [2.0], [3.0]]], np.float32),
            action=np.array([[0, 1]]),
            reward=np.ones((1, 2), np.float32),
            log_prob=np.full((1, 2), math.log(log_prob), np.float32),
            done=np.array([done]),
            truncated=np.array([truncated or (False, False)]),
            mask=np.array([mask]),
        )
    )


def learned(batch, **algo):
    """Targets and advantages of the two steps, and what the loss tells."""
    algo = dict(discount_factor=0.5) | algo
    policy = make(['learn'], {}, Table(), learn=dict(algo=algo))
    data = policy._data_preprocess_learn(batch)
    log_rho = math.log(0.5) - data['log_prob']
    return_, adv = policy._targets(log_rho, data['obs'].squeeze(-1), data)
    return return_[:, 0].tolist(), adv[:, 0].tolist(), policy._loss(data)[1]


def test_targets_by_hand():
    whole, on = (True, True), (False, False)
    # delta: 1 + 0.5 * 2 - 1 = 1 and 1 + 0.5 * 3 - 2 = 0.5; vs_1 = 2.5; vs_0 = 1 + 1 + 0.5 * 0.5 = 2.25
    assert learned(sequence(whole, on))[:2] == ([2.25, 2.5], [1 + 0.5 * 2.5 - 1, 0.5])
    assert learned(sequence(whole, (False, True)))[:2] == ([1.5, 1.0], [0.5, -1.0])
    assert learned(sequence(whole, (False, True), (False, True)))[:2] == ([2.25, 2.5], [1.25, 0.5])
    # the steps were twice as likely for the policy that acted: rho = c = 1 / 2
    found = learned(sequence(whole, on, log_prob=1.0))[:2]
    assert found[0] == pytest.approx([1 + 0.5 + 0.25 * 0.25, 2.25]) and found[1] == pytest.approx([0.5625, 0.25])


def test_large_importance_weights_are_clipped():
    whole, on = (True, True), (False, False)
    assert learned(sequence(whole, on, log_prob=0.25))[:2] == learned(sequence(whole, on))[:2]
    wider = learned(sequence(whole, on, log_prob=0.25), rho_clip_ratio=2.0, c_clip_ratio=2.0)[0]
    assert wider == pytest.approx([1 + 2 * 1 + 0.5 * 2 * 1, 2 + 2 * 0.5])


def test_padding_has_no_part():
    cut = sequence((True, False), (False, True))  # the block of steps ended, not the episode
    return_, adv, info = learned(cut)
    assert return_[0] == 1 + 1 and adv[0] == 1
    assert info['value_loss'].item() == pytest.approx(1.0) and info['td_error'].tolist() == [1.0]
    assert info['policy_loss'].item() == pytest.approx(math.log(2))


def test_the_recorded_update_equals_eager_bit_for_bit():
    eager, graphed = (make(['learn'], dict(obs_dim=1, action_dim=2), learn=dict(graph=g)) for g in ('off', 'ts'))
    batch = sequence((True, False), (False, True))
    for policy in (eager, graphed):
        for _ in range(5):
            policy._forward_learn(policy._data_preprocess_learn(batch))
    for a, b in zip(eager._model.parameters(), graphed._model.parameters()):
        assert torch.equal(a, b)


def test_priorities_are_one_a_sequence():
    policy = dict(use_priority=True)
    assert train('impala', TemptationEnv, proof(until(1), dict(policy=policy))).solved


@pytest.mark.parametrize(
    'policy, path',
    [
        (dict(learn=dict(epochs=3)), 'policy.learn.epochs'),
        (dict(on_policy=True, use_priority=True), 'policy.use_priority'),
        (dict(learn=dict(algo=dict(rho_clip_ratio=0.0))), 'policy.learn.algo.rho_clip_ratio'),
        (dict(collect=dict(unroll_len=9)), 'policy.collect.unroll_len'),
    ],
)
def test_settings_that_make_no_sense_are_told_with_their_path(policy, path):
    with pytest.raises(ConfigError, match=path):
        train('impala', TemptationEnv, proof(dict(policy=policy)))
