"""``policy.learn.optimizer``: what steps, with what eps, and how it is saved."""

import pytest
import torch

from nervex.config import compile_config
from nervex.entry import serial_pipeline
from nervex.policy import create_policy
from nervex.policy.tests.test_combinations import NAMES, kinds_of
from nervex.torch_utils import Adam, RMSprop
from nervex.utils import POLICY_REGISTRY, ConfigError

BY_HAND = ['dqn_vanilla', 'ppo_vanilla']
WITHOUT = dict(env=dict(env_type='gym', env_id='CartPole-v1'), actor=dict(n_sample=8))


def make(name, **learn):
    torch.manual_seed(0)
    kinds = kinds_of(POLICY_REGISTRY.get(name))
    model = dict(obs_dim=4, action_dim=3 if 'discrete' in kinds else 2)
    if 'team' in kinds:
        model.update(agent_num=2, global_obs_dim=6, **({'alone_obs_dim': 2} if name == 'collaQ' else {}))
    elif 'team_continuous' in kinds:
        model.update(n_agent=2)
    return create_policy(dict(policy_type=name, model=model, learn=learn), enable_field=['learn'])


def optimizers(policy):
    return [part for key, part in policy._learn_parts().items() if key.startswith('optimizer') and 'alpha' not in key]


@pytest.mark.parametrize('name', [name for name in NAMES if name not in BY_HAND])
def test_the_optimizer_of_every_policy_is_the_one_that_was_named(name):
    for chosen, kind, default in (('rmsprop', RMSprop, 1e-8), ('adam', Adam, 1e-8), ('adamw', Adam, 1e-8)):
        found = optimizers(make(name, optimizer=chosen, optimizer_eps=None, optimizer_beta=None))
        assert found and all(type(one) is kind and one.param_groups[0]['eps'] == default for one in found)
        decoupled = {getattr(one, '_decoupled', False) for one in found}
        assert decoupled == {chosen == 'adamw'}
    assert all(one.param_groups[0]['eps'] == 0.02 for one in optimizers(make(name, optimizer_eps=0.02)))


def test_impala_has_the_optimizer_of_its_paper():
    (one,) = optimizers(make('impala'))
    assert type(one) is RMSprop and one.param_groups[0]['eps'] == 1e-3


@pytest.mark.parametrize('name', BY_HAND)
def test_policies_by_hand_refuse_another_one(name):
    with pytest.raises(ConfigError, match=r'policy.learn.optimizer: got .rmsprop.'):
        compile_config({**WITHOUT, 'policy': dict(policy_type=name, learn=dict(optimizer='rmsprop'))})


def test_a_wrong_name_is_answered_by_the_right_ones():
    with pytest.raises(ConfigError, match=r'policy.learn.optimizer: got .rmsprob., .*rmsprop'):
        compile_config({**WITHOUT, 'policy': dict(policy_type='a2c', learn=dict(optimizer='rmsprob'))})


def test_a_resumed_learner_goes_on_as_if_nothing_had_happened():
    torch.manual_seed(1)
    data = dict(obs=torch.randn(8, 4), action=torch.randint(3, (8,)), adv=torch.randn(8), return_=torch.randn(8))
    data['weight'] = None
    one, other = (make('a2c', optimizer='rmsprop', optimizer_eps=1e-3) for _ in range(2))
    for _ in range(3):
        one._forward_learn(data)
    other._load_state_dict_learn(one._state_dict_learn())
    for policy in (one, other):
        policy._forward_learn(data)
    assert all(torch.equal(a, b) for a, b in zip(one._model.parameters(), other._model.parameters()))


@pytest.mark.parametrize('name', [name for name in NAMES if name not in BY_HAND])
def test_every_step_size_follows_the_schedule(name):
    policy = make(name, learning_rate_schedule='linear', learning_rate_end=0.2)
    found = [part for key, part in policy._learn_parts().items() if key.startswith('optimizer')]
    rates = [one.param_groups[0]['lr'] for one in found]
    for progress, part in ((0.0, 1.0), (0.25, 0.8), (1.0, 0.2), (0.5, 0.6)):
        policy.learn_mode.set_setting('learn', policy._get_setting_learn({'progress': progress}))
        assert [one.param_groups[0]['lr'] for one in found] == pytest.approx([rate * part for rate in rates])
        assert policy._lr_part == pytest.approx(part)


def test_the_cosine_is_half_way_in_the_middle_and_flat_at_the_ends():
    policy = make('ppo', learning_rate_schedule='cosine', learning_rate=2.0)
    parts = [policy._get_setting_learn({'progress': done / 4})['lr_part'] for done in range(5)]
    assert parts == pytest.approx([1, (2 + 2**0.5) / 4, 0.5, (2 - 2**0.5) / 4, 0], abs=1e-12)


def test_a_constant_rate_is_not_touched():
    assert make('ppo')._get_setting_learn({'progress': 0.5}) == {}


def rate_of(result):
    return torch.load(result.checkpoint, weights_only=False)['optimizer']['param_groups'][0]['lr']


def test_a_run_ends_with_the_step_size_that_its_schedule_says_and_resumes_with_it(tmp_path):
    config = dict(
        env=dict(env_type='gym', env_id='CartPole-v1', actor_env_num=2, evaluator_env_num=1),
        policy=dict(
            policy_type='a2c',
            model=dict(hidden_dim_list=[8]),
            learn=dict(learning_rate_schedule='linear', learning_rate=0.01),
        ),
        actor=dict(n_sample=16),
        evaluator=dict(n_episode=1, eval_freq=1000),
        commander=dict(max_env_step=64),
        exp_name=str(tmp_path / 'run'),
    )
    whole = serial_pipeline(config, seed=0)
    assert rate_of(whole) == pytest.approx(0.01 * 0.25)  # three of four rounds were done before the last
    longer = {**config, 'commander': dict(max_env_step=128)}
    resumed = serial_pipeline(longer, seed=0, resume=str(tmp_path / 'run'))
    assert rate_of(resumed) == pytest.approx(0.01 * 0.125)
