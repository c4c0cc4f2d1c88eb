"""A policy declares what an exact resume puts back; what it forgets to declare is an error and no silent loss."""

import copy

import numpy as np
import pytest
import torch

from app_zoo.classic_control.cartpole.envs import CartPoleEnv
from nervex.armor import Armor
from nervex.policy.dqn import DQNPolicy
from nervex.policy.tests.learning import BASE
from nervex.policy.tests.test_off_policy_ac import PROOF
from nervex.policy.tests.toy_control import DepositEnv
from nervex.run.build import build_serial
from nervex.run.state import save_state
from nervex.utils import ConfigError
from nervex.utils.class_config import merge_config
from nervex.utils.part_state import put_back, state_of


class Wind:
    """A part of a user's policy with a generator of its own."""

    def __init__(self):
        self._rng = np.random.default_rng(3)

    def blow(self):
        return float(self._rng.normal())

    def state_dict(self):
        return {'rng': self._rng.bit_generator.state}

    def load_state_dict(self, state):
        self._rng.bit_generator.state = state['rng']


class WindyPolicy(DQNPolicy):
    def _init_learn(self):
        super()._init_learn()
        self._wind, self._chance, self._gusts = Wind(), torch.Generator().manual_seed(5), 0

    def gust(self):
        self._gusts += 1
        return self._wind.blow(), torch.rand(1, generator=self._chance).item(), self._gusts


class DeclaredPolicy(WindyPolicy):
    resume_parts = ('_wind', '_chance', '_gusts')


def config(policy_type, cfg, **rest):
    return merge_config(
        merge_config(BASE, cfg), dict(env={}, exp_name='run', policy=dict(policy_type=policy_type), **rest)
    )


CARTPOLE = (CartPoleEnv, [{}] * 2, [{}])


def build(cls, **kwargs):
    return build_serial(config('dqn', {}), 0, CARTPOLE, policy=cls, **kwargs)


def test_the_declared_parts_of_a_users_policy_go_on_where_they_were():
    with build(DeclaredPolicy) as run:
        run.policy.gust()
        save_state(run)
        straight = run.policy.gust()
    with build(DeclaredPolicy, resume='run') as run:
        assert run.policy.gust() == straight


def test_what_the_bases_declare_counts_too():
    with build(DeclaredPolicy) as run:
        assert {'_wind', '_armor', '_collect_armor', '_eval_armor'} <= set(run.policy.run_state_dict())


def test_an_undeclared_generator_is_told_before_the_run_begins(tmp_path):
    with pytest.raises(ConfigError, match=r"WindyPolicy\._chance has .*resume_parts = \('_chance',\)") as error:
        build(WindyPolicy)
    assert any('WindyPolicy._wind' in problem for problem in error.value.problems)


def test_an_undeclared_armor_is_told(tmp_path):
    class OneMore(DQNPolicy):
        def _init_collect(self):
            super()._init_collect()
            self._other_armor = Armor(self._model)

    with pytest.raises(ConfigError, match=r'OneMore\._other_armor'):
        build(OneMore)


def test_a_part_without_a_state_says_what_it_needs():
    class Forgetful:
        pass

    with pytest.raises(TypeError, match=r'Forgetful: .*state_dict\(\) and load_state_dict'):
        state_of(Forgetful())


def test_generators_numbers_and_objects_are_put_back():
    class Owner:
        torch, numpy, count, wind = torch.Generator(), np.random.default_rng(), 3, Wind()

    owner = Owner()
    states = {name: copy.deepcopy(state_of(getattr(owner, name))) for name in ('torch', 'numpy', 'count', 'wind')}
    first = torch.rand(1, generator=owner.torch), owner.numpy.random(), owner.wind.blow()
    owner.count = 9
    for name, state in states.items():
        put_back(owner, name, state)
    assert owner.count == 3
    assert (torch.rand(1, generator=owner.torch), owner.numpy.random(), owner.wind.blow()) == first


def test_random_steps_at_the_beginning_go_on_exactly():
    def actions(run, rounds):
        taken = []
        for _ in range(rounds):
            run.commander.step()
            data, _ = run.actor.generate_data(run.learner.train_iter)
            taken.append(torch.as_tensor(np.asarray(data['action'])).clone())
        return torch.cat(taken)

    cfg, setting = config('sac', PROOF, actor=dict(n_sample=8)), (DepositEnv, [{}] * 2, [{}])
    with build_serial(cfg, 0, setting) as run:
        actions(run, 3)
        save_state(run)
        straight = actions(run, 3)
    with build_serial(cfg, 0, setting, resume='run') as run:
        assert torch.equal(actions(run, 3), straight)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
