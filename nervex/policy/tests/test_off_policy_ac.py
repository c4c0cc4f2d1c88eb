"""DDPG, TD3 and SAC: they learn a problem with a known best return, and broken versions of them do not."""

import copy
import math

import pytest
import torch

from nervex.config import compile_config
from nervex.policy import check_batched, create_policy
from nervex.policy.tests.learning import no_bootstrap, train
from nervex.policy.tests.toy_control import DepositEnv, uphill
from nervex.policy.tests.toy_envs import ForbiddenEnv, TemptationEnv
from nervex.utils import POLICY_REGISTRY, ConfigError
from nervex.utils.class_config import merge_config
from nervex.worker.actor.env_manager import create_env_manager

PROOF = dict(
    policy=dict(
        learn=dict(train_step=8, learning_rate=3e-3, batch_size=64, algo=dict(target_theta=0.05)),
        collect=dict(random_steps=200),
    ),
    evaluator=dict(stop_val=0.9),
    commander=dict(max_env_step=2000),
)
NAMES = ['ddpg', 'td3', 'sac', 'droq', 'tqc', 'crossq', 'implicit_q']
#: what the proofs of some need beside PROOF
OWN = {
    'droq': dict(learn=dict(algo=dict(actor_update_freq=2))),
    'crossq': dict(model=dict(critic_hidden_dim_list=[64]), learn=dict(algo=dict(target_theta=None))),
    'implicit_q': dict(learn=dict(algo=dict(beta=10.0))),
}
TARGETS = [name for name in NAMES if name != 'crossq']


def proof(name):
    return merge_config(PROOF, dict(policy=OWN.get(name, {})))


@pytest.mark.parametrize('name', NAMES)
def test_learns_how_much_to_deposit(name):
    assert train(name, DepositEnv, proof(name)).final_return > 0.9


@pytest.mark.slow
@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize(
    'broken',
    [no_bootstrap, lambda cls: uphill(cls, '_critic_loss'), lambda cls: uphill(cls, '_actor_loss')],
    ids=['no bootstrap', 'critic uphill', 'actor uphill'],
)
def test_the_proof_fails_for_a_broken_loss(name, broken):
    assert train(broken(POLICY_REGISTRY.get(name)), DepositEnv, proof(name)).final_return < 0.8


@pytest.mark.parametrize('nstep', [1, 3])
@pytest.mark.parametrize('name', NAMES)
def test_both_forms_of_transitions_and_samples_agree(name, nstep):
    manager = create_env_manager('base', DepositEnv, [{}] * 3, {})
    manager.seed(0)
    policy = make(name, ['collect'], nstep=nstep, collect=dict(random_steps=0))
    with manager:
        manager.launch()
        assert check_batched(policy, manager, steps=20) == 60


@pytest.mark.parametrize(
    'name, settings, told',
    [
        ('sac', dict(model=dict(num_quantiles=5)), 'model.num_quantiles: got 5, must be 1: .*policy tqc'),
        ('droq', dict(model=dict(num_quantiles=5)), 'model.num_quantiles: got 5, must be 1'),
        ('cql_continuous', dict(model=dict(num_quantiles=5)), 'model.num_quantiles: got 5, must be 1'),
        ('tqc', dict(model=dict(num_quantiles=1)), 'model.num_quantiles: got 1, must be at least 2; one alone is'),
        ('tqc', dict(learn=dict(algo=dict(drop_quantiles=25))), 'drop_quantiles: got 25, must be less than'),
        ('tqc', dict(learn=dict(algo=dict(alpha=0))), 'learn.algo.alpha: got 0, must be positive where'),
    ],
)
def test_settings_that_do_not_go_together_are_told_before_a_run(name, settings, told):
    with pytest.raises(ConfigError, match=told):
        compile_config(dict(env=dict(env_type='gym', env_id='Pendulum-v1'), policy=dict(policy_type=name, **settings)))


def make(name, fields, nstep=1, learn=None, algo=None, collect=None, model_dims=(3, 2), **cfg):
    torch.manual_seed(0)
    return create_policy(
        dict(
            policy_type=name,
            model=dict(obs_dim=model_dims[0], action_dim=model_dims[1], hidden_dim_list=[16]),
            learn=dict(learning_rate=1e-2, **(learn or {}), algo=dict(nstep=nstep, **(algo or {}))),
            collect=dict(algo=dict(nstep=nstep), **(collect or {})),
            **cfg,
        ),
        enable_field=fields,
    )


def batch(rows=4, **columns):
    g = torch.Generator().manual_seed(1)
    data = dict(
        obs=torch.randn(rows, 3, generator=g),
        next_obs=torch.randn(rows, 3, generator=g),
        action=torch.rand(rows, 2, generator=g) * 2 - 1,
        reward=torch.randn(rows, generator=g),
        done=torch.zeros(rows),
        weight=None,
    )
    return {**data, **columns}


def seeded(policy, function, *args):
    """The result of one of the policy's functions, with all of its random numbers chosen."""
    torch.manual_seed(3)
    policy._draws.on(policy._device).manual_seed(3)
    return function(*args)


def parameters(module):
    return torch.cat([p.detach().reshape(-1).clone() for p in module.parameters()])


def test_the_target_is_the_smaller_of_two_values_and_ends_with_the_episode(monkeypatch):
    policy = make('td3', ['learn'], algo=dict(target_noise_sigma=0.0, discount_factor=0.5))
    values = {True: [torch.tensor([4.0, 4.0]), torch.tensor([6.0, 2.0])], False: [torch.zeros(2), torch.ones(2)]}
    monkeypatch.setattr(policy, '_q_values', lambda forward, data: values[forward == policy._armor.target_forward])
    data = batch(2, reward=torch.tensor([1.0, 1.0]), done=torch.tensor([0.0, 1.0]))
    loss, info = policy._critic_loss(data)
    # targets 1 + 0.5 * 4 = 3 and 1; q1 = 0: errors 3 and 1; q2 = 1: errors 2 and 0
    assert loss.item() == (9 + 1) / 2 + (4 + 0) / 2
    assert info['td_error'].tolist() == [2.5, 0.5]


@pytest.mark.parametrize('name', TARGETS)
def test_a_time_limit_is_bootstrapped_and_an_end_is_not(name):
    policy = make(name, ['learn'])
    rows = dict(batch(2), reward=torch.zeros(2), done=torch.tensor([True, True]), truncated=torch.tensor([True, False]))
    rows.pop('weight')
    data = policy._data_preprocess_learn([{key: value[k] for key, value in rows.items()} for k in range(2)])
    assert data['done'].tolist() == [0.0, 1.0] and data['weight'] is None
    before = seeded(policy, policy._critic_loss, data)[1]['td_error']
    what_follows = policy._model.critic['v'] if name == 'implicit_q' else policy._armor.target_model.critic
    with torch.no_grad():
        for p in what_follows.parameters():
            p.add_(0.5)
    after = seeded(policy, policy._critic_loss, data)[1]['td_error']
    assert before[0] != after[0] and torch.equal(before[1], after[1])


@pytest.mark.parametrize('name', NAMES)
def test_importance_weights_scale_the_loss_and_priorities_are_the_errors(name):
    policy = make(name, ['learn'], use_priority=True)
    rows = batch()
    rows.pop('weight')
    data = policy._data_preprocess_learn(
        [{**{key: value[k] for key, value in rows.items()}, 'IS': torch.tensor(2.0)} for k in range(4)]
    )
    heavy, info = seeded(policy, policy._critic_loss, data)
    light, _ = seeded(policy, policy._critic_loss, {**data, 'weight': None})
    assert torch.allclose(heavy, 2 * light)
    priority = policy._forward_learn(data)['priority']
    assert priority.shape == (4,) and (priority >= 0).all() and info['td_error'].shape == (4,)


def test_the_actor_and_the_targets_move_with_every_second_update_only():
    policy = make('td3', ['learn'])
    parts = policy._model.actor, policy._model.critic, policy._armor.target_model
    moved = []
    for _ in range(4):
        before = [parameters(part) for part in parts]
        policy._forward_learn(batch())
        moved.append([not torch.equal(a, parameters(part)) for a, part in zip(before, parts)])
    assert moved == [[False, True, False], [True, True, True]] * 2


def test_targets_follow_by_theta():
    policy = make('ddpg', ['learn'], algo=dict(target_theta=0.25))
    before = parameters(policy._armor.target_model)
    policy._forward_learn(batch())
    expected = before + 0.25 * (parameters(policy._model) - before)
    assert torch.allclose(parameters(policy._armor.target_model), expected, atol=1e-7)


def test_smoothing_noise_is_clipped_and_the_action_stays_legal():
    policy = make('td3', ['learn'], algo=dict(target_noise_sigma=5.0, target_noise_clip=0.1))
    obs = torch.randn(500, 3)
    plain = policy._armor.target_forward({'obs': obs}, param={'mode': 'compute_action'})['action']
    noisy = policy._next_action(obs)
    shift = (noisy - plain).abs()
    assert 0.09 < shift.max() <= 0.1 + 1e-6 and noisy.abs().max() <= 1


def test_the_temperature_falls_while_entropy_is_above_its_target_and_rises_below():
    for target, direction in ((-100.0, -1), (100.0, 1)):
        policy = make('sac', ['learn'], algo=dict(target_entropy=target))
        log = policy._forward_learn(batch())
        assert (log['alpha'].item() - 1.0) * direction > 0, log


def test_a_fixed_temperature_stays():
    policy = make('sac', ['learn'], algo=dict(auto_alpha=False))
    log = policy._forward_learn(batch())
    assert log['alpha'].item() == pytest.approx(0.2) and 'alpha_loss' not in log


@pytest.mark.parametrize('name', NAMES)
def test_what_is_monitored_is_there(name):
    policy = make(name, ['learn'], learn=dict(grad_clip_norm=10.0))
    logs = {}
    for _ in range(20):
        logs.update(policy._forward_learn(batch()))
    assert all(logs[key] is not None for key in policy._monitor_vars_learn())


@pytest.mark.parametrize('name', NAMES)
def test_a_resumed_learner_goes_on_as_if_nothing_had_happened(name):
    first, second = make(name, ['learn']), make(name, ['learn'])
    for _ in range(3):
        first._forward_learn(batch())
    second._load_state_dict_learn(copy.deepcopy(first._state_dict_learn()))
    for _ in range(3):
        for policy in (first, second):
            torch.manual_seed(3)  # dropout draws from it
            policy._forward_learn(batch())
    for model in ('model', 'target_model')[: 1 if name == 'crossq' else 2]:
        states = [getattr(policy._armor, model).state_dict() for policy in (first, second)]
        assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


@pytest.mark.parametrize('name', NAMES)
def test_the_recorded_update_learns_the_same(name):
    eager, graphed = make(name, ['learn'], learn=dict(graph='off')), make(name, ['learn'], learn=dict(graph='ts'))
    for _ in range(5):
        for policy in (eager, graphed):
            torch.manual_seed(3)  # dropout draws from it
            policy._forward_learn(batch())
    assert torch.allclose(parameters(eager._model), parameters(graphed._model), atol=1e-6)
    assert all(update._graphed.eager_reason is None for update in graphed._updates.values())


def test_exactly_the_first_steps_are_random():
    policy = make('ddpg', ['collect', 'command'], collect=dict(random_steps=6, noise_sigma=0.0))
    with torch.no_grad():
        for p in policy._model.parameters():
            p.zero_()  # the actor itself would answer 0
    data = {'obs': torch.zeros(4, 3)}
    policy.set_setting('collect', policy._get_setting_collect({'envstep': 0}))
    seen = [policy._forward_collect([0, 1, 2, 3], data)['action'] for _ in range(3)]
    assert all((a.abs() > 0).all() and a.abs().max() <= 1 and a.shape == (4, 2) for a in seen[:2])
    assert not seen[2].any()
    assert [policy._get_setting_collect({'envstep': n})['random_left'] for n in (4, 8)] == [2, 0]


def test_the_evaluated_action_has_no_noise():
    for name in NAMES:
        policy = make(name, ['eval'])
        data = {'obs': torch.randn(4, 3)}
        first, second = (policy._forward_eval([0, 1, 2, 3], data)['action'] for _ in range(2))
        assert torch.equal(first, second) and first.abs().max() <= 1


# ---- discrete actions ----
DISCRETE = dict(
    policy=dict(learn=dict(train_step=4, learning_rate=3e-3, algo=dict(target_theta=0.05))),
    evaluator=dict(eval_freq=400),
    commander=dict(max_env_step=2000),
)


@pytest.mark.parametrize('env, best', [(TemptationEnv, 1.0), (ForbiddenEnv, 0.0)])
def test_discrete_sac_learns_and_keeps_to_what_is_legal(env, best):
    assert train('sac_discrete', env, DISCRETE).final_return == best


@pytest.mark.slow
@pytest.mark.parametrize(
    'broken',
    [no_bootstrap, lambda cls: uphill(cls, '_critic_loss'), lambda cls: uphill(cls, '_actor_loss')],
    ids=['no bootstrap', 'critic uphill', 'actor uphill'],
)
def test_the_proof_fails_for_a_broken_discrete_sac(broken):
    assert train(broken(POLICY_REGISTRY.get('sac_discrete')), TemptationEnv, DISCRETE).final_return < 0.5


def test_discrete_sac_takes_the_expectation_over_all_actions(monkeypatch):
    policy = make('sac_discrete', ['learn'], algo=dict(auto_alpha=False, alpha=1.0, discount_factor=0.5))
    half = torch.full((1, 2), 0.5)
    monkeypatch.setattr(policy, '_policy', lambda obs: (half, half.log()))
    values = {True: [torch.tensor([[1.0, 5.0]]), torch.tensor([[3.0, 3.0]])], False: [torch.tensor([[0.0, 1.0]])]}
    monkeypatch.setattr(policy, '_q_values', lambda forward, data: values[forward == policy._armor.target_forward])
    data = batch(1, action=torch.tensor([1]), reward=torch.tensor([1.0]))
    # min Q = (1, 3), so the value is 0.5 * 1 + 0.5 * 3 + log 2; target 1 + 0.5 * value; Q(s, a) = 1
    error = 1 + 0.5 * (2 + math.log(2)) - 1
    assert policy._critic_loss(data)[0].item() == pytest.approx(error**2)


def test_discrete_sac_forms_agree():
    manager = create_env_manager('base', TemptationEnv, [{}] * 3, {})
    manager.seed(0)
    policy = make('sac_discrete', ['collect'], model_dims=(5, 2))
    with manager:
        manager.launch()
        assert check_batched(policy, manager, steps=20) == 60
