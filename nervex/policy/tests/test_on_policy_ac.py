"""A2C and PPO: they learn problems with a known best return, and broken versions of them do not."""

import copy

import numpy as np
import pytest
import torch

from nervex.data import Batch
from nervex.policy import check_batched, create_policy
from nervex.policy.tests.learning import by_rows, train, wrong_sign
from nervex.policy.tests.toy_control import DepositEnv
from nervex.policy.tests.toy_envs import EndlessEnv, ForbiddenEnv, SwitchesEnv, TemptationEnv
from nervex.utils import POLICY_REGISTRY
from nervex.utils.class_config import merge_config
from nervex.worker.actor.env_manager import create_env_manager

PPO = dict(
    policy=dict(learn=dict(epochs=4, batch_size=32, algo=dict(entropy_weight=0.01))),
    actor=dict(n_sample=64),
    evaluator=dict(eval_freq=80),
    commander=dict(max_env_step=4000),
)
A2C = dict(
    policy=dict(learn=dict(batch_size=32, learning_rate=1e-2, algo=dict(entropy_weight=0.02))),
    actor=dict(n_sample=32),
    evaluator=dict(eval_freq=20),
    commander=dict(max_env_step=4000),
)
PPG = merge_config(
    PPO, dict(policy=dict(learn=dict(aux_freq=16, epochs_aux=2)), replay_buffer=dict(buffer_name=['policy', 'value']))
)
PPG['replay_buffer']['value'] = dict(type='replay', meta_maxlen=256)
PROOFS = {'ppo': PPO, 'a2c': A2C, 'ppo_vanilla': PPO, 'ppg': PPG}
ANY_ACTIONS = ['ppo', 'a2c', 'ppg']  # several heads, and masks
ONE_LOSS = ['ppo', 'a2c']
CONTINUOUS = dict(policy=dict(learn=dict(algo=dict(entropy_weight=0.0))), commander=dict(max_env_step=8000))


def proof(name, *more):
    cfg = copy.deepcopy(PROOFS[name])
    for part in more:
        cfg = merge_config(cfg, part)
    return cfg


def no_bootstrap(cls):
    """The same policy, for which every step is the last one of its episode."""

    class NoBootstrap(cls):
        def _next_values(self, traj, value, done, truncated):
            return torch.zeros_like(value)

        def _init_collect(self):
            super()._init_collect()
            if hasattr(self, '_gae_args'):
                self._gae_args = self._gae_args[0], 0.0

        def _advantages(self, value, next_value, reward, done, truncated):
            return super()._advantages(value, next_value, reward, done * 0 + 1, truncated * 0)

    return NoBootstrap


def limit_is_end(cls):
    """The same policy, which takes a time limit for the end."""

    class LimitIsEnd(cls):
        def _next_values(self, traj, value, done, truncated):
            found = super()._next_values(traj, value, done, truncated)
            return torch.where(truncated, torch.zeros_like(found), found)

        def _advantages(self, value, next_value, reward, done, truncated):
            return super()._advantages(value, next_value, reward, done, truncated * 0)

    return LimitIsEnd


@pytest.mark.parametrize('name', PROOFS)
def test_learns_discrete_actions(name):
    assert train(name, TemptationEnv, proof(name)).final_return == 1


@pytest.mark.parametrize('name', ANY_ACTIONS)
@pytest.mark.parametrize('env, best', [(SwitchesEnv, 1.9), (ForbiddenEnv, 0.0)], ids=['two heads', 'masks'])
def test_learns_several_heads_and_under_masks(name, env, best):
    assert train(name, env, proof(name)).final_return >= best


@pytest.mark.parametrize('name', PROOFS)
def test_learns_continuous_actions(name):
    assert train(name, DepositEnv, proof(name, CONTINUOUS)).final_return > 0.85


@pytest.mark.parametrize('name', PROOFS)
def test_a_time_limit_is_no_end(name):
    """With a discount of 0.9 going on is worth 10 if the limit of 2 steps is no end, else 1.9; leaving is worth 5."""
    cfg = proof(name, dict(policy=dict(learn=dict(algo=dict(discount_factor=0.9, entropy_weight=0.02)))))
    assert train(name, EndlessEnv, cfg, env_cfg=dict(limit=2)).final_return == 2


@pytest.mark.slow
@pytest.mark.parametrize('name', PROOFS)
@pytest.mark.parametrize('broken', [wrong_sign, no_bootstrap])
def test_the_proof_fails_for_a_broken_loss(name, broken):
    cls = broken(POLICY_REGISTRY.get(name))
    assert train(cls, TemptationEnv, proof(name)).final_return < 0.5


@pytest.mark.slow
@pytest.mark.parametrize('name', PROOFS)
def test_the_proof_of_the_time_limit_fails_where_it_is_taken_for_an_end(name):
    cfg = proof(name, dict(policy=dict(learn=dict(algo=dict(discount_factor=0.9, entropy_weight=0.02)))))
    cls = limit_is_end(POLICY_REGISTRY.get(name))
    assert train(cls, EndlessEnv, cfg, env_cfg=dict(limit=2)).final_return == 5


def make(name, fields, obs_dim=5, action_dim=2, continuous=False, **cfg):
    torch.manual_seed(0)
    model = dict(obs_dim=obs_dim, action_dim=action_dim, hidden_dim_list=[16], continuous=continuous)
    return create_policy(dict(policy_type=name, model=model, **cfg), enable_field=fields)


@pytest.mark.parametrize('name', PROOFS)
@pytest.mark.parametrize(
    'env, sizes',
    [
        (TemptationEnv, (5, 2, False)),
        (SwitchesEnv, (6, [2, 3], False)),
        (DepositEnv, (3, 2, True)),
        (ForbiddenEnv, (1, 3, False)),
        (EndlessEnv, (1, 2, False)),
    ],
)
def test_both_forms_of_transitions_and_samples_agree(name, env, sizes):
    if name not in ANY_ACTIONS and env in (SwitchesEnv, ForbiddenEnv):
        pytest.skip('one head, without masks')
    manager = create_env_manager('base', env, [{}] * 3, {})
    manager.seed(0)
    policy = make(name, ['collect'], *sizes)
    with manager:
        manager.launch()
        assert check_batched(policy, manager, steps=20) == 60


def window(**columns):
    """Three steps of one env: values 1, 2, 3, rewards 1, 1, 1."""
    traj = dict(
        obs=np.zeros((3, 5), np.float32),
        next_obs=np.arange(15, dtype=np.float32).reshape(3, 5),
        value=np.array([1, 2, 3], np.float32),
        reward=np.ones(3, np.float32),
        done=np.zeros(3, bool),
        truncated=np.zeros(3, bool),
        action=np.zeros(3, np.int64),
    )
    return Batch.of({**traj, **columns})


@pytest.fixture
def half(monkeypatch):
    """Collecting with gamma 0.5, lambda 1, and a model that values every state at 8."""
    policy = make('a2c', ['collect'], learn=dict(algo=dict(discount_factor=0.5, gae_lambda=1.0)))
    monkeypatch.setattr(policy, '_model', lambda data: {'value': torch.full((len(data['obs']),), 8.0)})
    return policy


def test_an_open_window_bootstraps_behind_its_last_step(half):
    got = half._get_train_sample(window())
    # returns: 1 + 0.5 * 8 = 5; 1 + 0.5 * 5 = 3.5; 1 + 0.5 * 3.5 = 2.75
    assert got['return_'].tolist() == [2.75, 3.5, 5.0]
    assert got['adv'].tolist() == [1.75, 1.5, 2.0]
    assert set(got.keys()) == {'obs', 'action', 'value', 'adv', 'return_'}


def test_an_end_has_no_future_and_a_time_limit_has(half):
    done = np.array([False, True, False])
    assert half._get_train_sample(window(done=done))['return_'].tolist() == [1.5, 1.0, 5.0]
    # the limit: 1 + 0.5 * 8 = 5 behind step 1, and 1 + 0.5 * 5 = 3.5 before it
    assert half._get_train_sample(window(done=done, truncated=done))['return_'].tolist() == [3.5, 5.0, 5.0]


def test_ignore_done_takes_every_end_for_a_time_limit(half):
    half._cfg.learn.ignore_done = True
    done = np.array([False, True, False])
    assert half._get_train_sample(window(done=done))['return_'].tolist() == [3.5, 5.0, 5.0]


def test_rewards_are_scaled_before_returns_are_made_of_them(half):
    half._cfg.learn.algo.reward_scale = 0.1
    # 0.1 + 0.5 * 8 = 4.1; 0.1 + 0.5 * 4.1 = 2.15; 0.1 + 0.5 * 2.15 = 1.175
    assert half._get_train_sample(window())['return_'].tolist() == pytest.approx([1.175, 2.15, 4.1])


def test_a_deque_of_rows_gives_the_same_samples(half):
    from collections import deque

    rows = deque({key: torch.as_tensor(column[k]) for key, column in window().items()} for k in range(3))
    for row in rows:
        row['reward'] = row['reward'].reshape(1)
    got = half._get_train_sample(rows)
    assert [float(row['return_']) for row in got] == [2.75, 3.5, 5.0] and not rows


def test_returns_come_from_raw_advantages_whatever_the_loss_normalises():
    policy = make('ppo', ['learn'])
    data = learn_batch(policy)
    before = data['return_'].clone()
    policy._loss(data)
    assert torch.equal(data['return_'], before)


def learn_batch(policy, rows=6):
    g = torch.Generator().manual_seed(1)
    obs = torch.randn(rows, 5, generator=g)
    with torch.no_grad():
        output = policy._model({'obs': obs})
    adv = torch.randn(rows, generator=g)
    return dict(
        obs=obs,
        action=torch.randint(0, 2, (rows,), generator=g),
        logit=output['logit'],
        value=output['value'],
        adv=adv,
        return_=output['value'] + adv,
        weight=None,
    )


def test_the_first_ppo_step_has_ratio_one():
    policy = make('ppo', ['learn'], learn=dict(algo=dict(adv_norm=False)))
    data = learn_batch(policy)
    _, info = policy._loss(data)
    assert info['approx_kl'].item() == pytest.approx(0, abs=1e-6) and info['clipfrac'].item() == 0
    assert info['policy_loss'].item() == pytest.approx(-data['adv'].mean().item(), abs=1e-6)


@pytest.mark.parametrize('name', ONE_LOSS)
def test_the_recorded_update_learns_the_same(name):
    eager, graphed = make(name, ['learn'], learn=dict(graph='off')), make(name, ['learn'], learn=dict(graph='ts'))
    data = learn_batch(eager)
    for _ in range(5):
        eager._forward_learn(data)
        graphed._forward_learn(data)
    for a, b in zip(eager._model.parameters(), graphed._model.parameters()):
        assert torch.allclose(a, b, atol=1e-6)


def test_a_gaussian_action_reaches_the_env_in_range_and_the_loss_as_it_was_drawn():
    policy = make('ppo', ['collect'], 3, 2, True)
    with torch.no_grad():
        policy._model.actor.log_sigma.fill_(2.0)
    output = policy._forward_collect([0, 1, 2, 3], {'obs': torch.zeros(4, 3)})
    assert output['action'].abs().max() <= 1 < output['drawn'].abs().max()
    step = type('Step', (), dict(obs=torch.zeros(4, 3), reward=torch.zeros(4), done=torch.zeros(4, dtype=torch.bool)))
    assert torch.equal(policy._process_transition(torch.zeros(4, 3), output, step)['action'], output['drawn'])


@pytest.mark.parametrize('name', PROOFS)
def test_runs_in_the_documented_row_form(name):
    few = dict(commander=dict(max_env_step=200), evaluator=dict(n_episode=4))
    assert train(by_rows(POLICY_REGISTRY.get(name)), TemptationEnv, proof(name, few)).train_iters > 3


def test_advantages_and_losses_of_ppo_vanilla_are_those_of_ppo():
    plain = make('ppo_vanilla', ['learn', 'collect'])
    full = make('ppo', ['learn', 'collect'], learn=dict(algo=dict(use_value_clip=False)))
    full._model.load_state_dict(plain._model.state_dict())
    done = np.array([False, True, False])
    obs = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    with torch.no_grad():
        value = full._model({'obs': torch.as_tensor(obs[:3])})['value'].numpy()
    for truncated in (done, done & False):
        log_prob = np.full(3, -0.5, np.float32)
        columns = dict(obs=obs[:3], next_obs=obs[1:], value=value, log_prob=log_prob)
        steps = window(done=done, truncated=truncated, **columns)
        a, b = plain._get_train_sample(steps), full._get_train_sample(steps)
        assert np.allclose(a['adv'], b['adv'], atol=1e-6) and np.allclose(a['return_'], b['return_'], atol=1e-6)
    data = learn_batch(full)
    data['log_prob'] = torch.log_softmax(data['logit'], -1).gather(1, data['action'].unsqueeze(1)).squeeze(1)
    a, b = plain._loss(data)[1], full._loss(data)[1]
    assert a['value_loss'].item() == pytest.approx(b['value_loss'].item(), rel=1e-5)
    assert a['entropy_loss'].item() == pytest.approx(b['entropy_loss'].item(), rel=1e-5)
    assert a['approx_kl'].item() == pytest.approx(0, abs=1e-6)
