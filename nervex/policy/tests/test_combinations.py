"""Every policy with every feature: it trains, or an error in words names the setting. And what the docs say of it."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from app_zoo.board.envs import TicTacToe
from nervex.entry import serial_pipeline
from nervex.envs import EnvElementInfo
from nervex.envs.duel import BothSides
from nervex.policy.suits import check_env
from nervex.policy.tests.learning import train
from nervex.policy.tests.toy_control import DepositEnv
from nervex.policy.tests.toy_envs import AimEnv, ForbiddenEnv, PairEnv, ReachEnv, SwitchesEnv, TemptationEnv, box
from nervex.utils import MODEL_REGISTRY, POLICY_REGISTRY, ConfigError
from nervex.utils.declare import declared_config


class BothBoards(BothSides):
    """A game whose rules are known, as the learner meets it."""

    def __init__(self, cfg=None, num=1):
        super().__init__(TicTacToe({'opponent': 'self'}, num))


NAMES = sorted(name for name, home in POLICY_REGISTRY.query_details().items() if home.startswith('nervex.policy.'))
SINGLE = {'discrete': TemptationEnv, 'multi_discrete': SwitchesEnv, 'continuous': DepositEnv}
KINDS = {**SINGLE, 'team': PairEnv, 'team_continuous': AimEnv}
#: feature -> env (None: one that suits), settings, and the setting that an error names
FEATURES = {
    'use_priority': (None, dict(use_priority=True), 'policy.use_priority'),
    'nstep': (None, dict(learn=dict(algo=dict(nstep=3))), 'policy.learn.algo.nstep'),
    'action mask': (ForbiddenEnv, {}, 'policy.policy_type'),
    **{kind: (env, {}, 'policy.policy_type') for kind, env in KINDS.items()},
}
PAGE = Path(__file__).parents[3] / 'docs' / 'en' / 'policies.md'


def kinds_of(cls):
    return tuple(SINGLE) if cls.action_kinds is None else cls.action_kinds


def is_served(name, feature):
    cls = POLICY_REGISTRY.get(name)
    if feature == 'use_priority':
        return cls.no_priority is None and not declared_config(cls)['on_policy']
    if feature == 'nstep':
        return cls.no_nstep is None
    if feature == 'action mask':
        return cls.takes_action_mask and 'discrete' in kinds_of(cls)
    return feature in kinds_of(cls)


@pytest.mark.parametrize('feature', FEATURES)
@pytest.mark.parametrize('name', NAMES)
def test_a_combination_trains_or_the_error_names_the_setting(name, feature):
    env, settings, path = FEATURES[feature]
    env = env or {**KINDS, 'game': BothBoards}[kinds_of(POLICY_REGISTRY.get(name))[0]]
    few = dict(evaluator=dict(n_episode=1, eval_freq=1000), commander=dict(max_train_iter=2), actor=dict(n_sample=32))
    if is_served(name, feature):
        assert train(name, env, dict(policy=settings, **few)).train_iters >= 2
        return
    with pytest.raises(ConfigError) as error:
        train(name, env, dict(policy=settings, **few))
    text = str(error.value)
    assert path in text and len(text) > 60  # more than 'wrong'


def test_the_error_tells_who_can():
    with pytest.raises(ConfigError) as error:
        check_env(POLICY_REGISTRY.get('dqn_vanilla'), ForbiddenEnv().info())
    others = re.search(r'take one of (.*)', str(error.value)).group(1).split(', ')
    assert 'dqn' in others and 'ppo' in others and 'ppo_vanilla' not in others and 'ddpg' not in others
    for name in others:
        check_env(POLICY_REGISTRY.get(name), ForbiddenEnv().info())


def test_the_page_of_policies_says_the_same():
    rows = [[cell.strip() for cell in line.split('|')[1:-1]] for line in PAGE.read_text('utf-8').splitlines()]
    table = {row[0].strip('`'): row[1:] for row in rows if len(row) == 9 and row[0].startswith('`')}
    assert sorted(table) == NAMES
    for name, row in table.items():
        expected = ['yes' if is_served(name, feature) else 'no' for feature in (*KINDS, 'action mask')]
        assert row[:6] == expected, name
        assert row[6:] == ['yes' if is_served(name, f) else 'no' for f in ('use_priority', 'nstep')], name


CONTINUOUS = [name for name in NAMES if 'continuous' in kinds_of(POLICY_REGISTRY.get(name))]


class FarEnv(ReachEnv):
    act_space = box((2,), [0.0, -1.0], [5.0, 1.0])


class BoardEnv(ReachEnv):
    act_space = box((2, 2), -1.0, 1.0)


class ParcelEnv(TemptationEnv):
    obs_space = EnvElementInfo({'a': (5,), 'b': (1,)}, {})


@pytest.mark.parametrize('name', CONTINUOUS)
def test_continuous_actions_of_other_bounds_are_refused_with_the_setting_that_scales_them(name):
    with pytest.raises(ConfigError, match=r'env.use_act_scale: .*\[0 -1, 5 1\].*; set env.use_act_scale=True'):
        train(name, FarEnv, {})
    with pytest.raises(ConfigError, match=r'shape \(2, 2\).* one row of numbers; .* shape \(4, \)'):
        train(name, BoardEnv, {})


@pytest.mark.parametrize('bound, warns', [(1.0, False), (2.0, True), (float('inf'), False)])
def test_wider_bounds_are_a_warning_and_no_bounds_are_fine(bound, warns, caplog):
    class WideEnv(ReachEnv):
        act_space = box((1,), -bound, bound)

    check_env(POLICY_REGISTRY.get('sac'), WideEnv().info())
    assert ('use_act_scale' in caplog.text) == warns


@pytest.mark.parametrize('name', ['dqn', 'ppo', 'r2d2'])
def test_a_dict_of_observations_is_refused_with_a_remedy(name):
    with pytest.raises(ConfigError, match=r'policy.model.obs_dim: .* dict of a, b, .* env.flatten_obs=True'):
        train(name, ParcelEnv, {})


class DictNet(torch.nn.Module):
    """A network of one's own for a dict of observations: logits and values."""

    def __init__(self, action_dim):
        super().__init__()
        self.body, self.logit, self.value = torch.nn.Linear(6, 8), torch.nn.Linear(8, action_dim), torch.nn.Linear(8, 1)

    def forward(self, data):
        h = torch.relu(self.body(torch.cat([data['obs']['a'], data['obs']['b']], -1)))
        return {'logit': self.logit(h), 'value': self.value(h).squeeze(-1)}


class SmallQAC(torch.nn.Module):
    """Actor and critic of one's own, without the settings that the default model has."""

    def __init__(self, obs_dim, action_dim):
        super().__init__()
        self.actor, self.critic = torch.nn.Linear(obs_dim, action_dim), torch.nn.Linear(obs_dim + action_dim, 1)

    def forward(self, data, mode):
        if mode == 'compute_action':
            return {'action': torch.tanh(self.actor(data['obs']))}
        return {'q_value': self.critic(torch.cat([data['obs'], data['action']], -1)).squeeze(-1)}


class TwoPartsEnv(TemptationEnv):
    obs_space = EnvElementInfo({'a': (5,), 'b': (1,)}, {})

    def _begin(self):
        return self._parts(super()._begin())

    def _act(self, action):
        obs, reward, ended = super()._act(action)
        return self._parts(obs), reward, ended

    def _parts(self, obs):
        return {'a': obs, 'b': np.ones(1, np.float32)}


FEW = dict(evaluator=dict(n_episode=1, eval_freq=1000), commander=dict(max_train_iter=3), actor=dict(n_sample=32))


@pytest.mark.parametrize('name', ['dqn', 'dqn_vanilla', 'a2c', 'ppo', 'ppo_vanilla', 'impala', 'cql', 'il'])
def test_a_network_of_ones_own_may_take_a_dict(name, monkeypatch):
    monkeypatch.setitem(MODEL_REGISTRY._entries, 'dict_net', DictNet)
    cfg = dict(policy=dict(policy_type=name, model=dict(model_type='dict_net')), env={}, **FEW)
    assert serial_pipeline(cfg, 0, env_setting=(TwoPartsEnv, [{}] * 2, [{}])).train_iters >= 3


@pytest.mark.parametrize('name', ['ddpg', 'td3', 'td3_bc'])
def test_a_network_of_ones_own_needs_no_settings_of_the_default_one(name, monkeypatch):
    monkeypatch.setitem(MODEL_REGISTRY._entries, 'small_qac', SmallQAC)
    cfg = dict(policy=dict(policy_type=name, model=dict(model_type='small_qac')), env={}, **FEW)
    assert serial_pipeline(cfg, 0, env_setting=(DepositEnv, [{}] * 2, [{}])).train_iters == 3
    cfg['policy'] = dict(policy_type=name)
    assert serial_pipeline(cfg, 0, env_setting=(DepositEnv, [{}] * 2, [{}]), model_type=SmallQAC).train_iters == 3
