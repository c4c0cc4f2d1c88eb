"""check_env says what is wrong, all of it, and nothing else."""

import random
import re

import numpy as np
import pytest
import torch

from app_zoo.classic_control.cartpole.envs import CartPoleEnv
from app_zoo.smac.envs import SMACEnv
from nervex.envs import BaseEnvTimestep, check_env
from nervex.envs.tests.fakes import FaultyTeam, GlobalSeedEnv


class Sound(CartPoleEnv):
    """Plays through step(), so that the classes below can spoil it."""

    def step(self, action):
        return super().step(action)


def spoiled(**changes):
    """A class whose timesteps have these fields replaced."""

    class Spoiled(Sound):
        def step(self, action):
            timestep = super().step(action)
            return timestep._replace(**{k: f(timestep) for k, f in changes.items()})

    return Spoiled


def test_sound_env_has_no_problems():
    assert check_env(Sound()) == [] and check_env(Sound) == []


@pytest.mark.parametrize(
    'env,words',
    [
        (spoiled(reward=lambda t: 1.0), ['reward must be a float32 array of shape (1, ), got float']),
        (spoiled(reward=lambda t: None), ['the reward must be a number, got None']),
        (spoiled(reward=lambda t: t.reward * np.nan), ['the reward is nan']),
        (spoiled(done=lambda t: None), ['done must be a bool, got None']),
        (spoiled(done=lambda t: np.bool_(t.done)), ['done must be a Python bool']),
        (spoiled(info=lambda t: None), ['info must be a dict, got NoneType']),
        (spoiled(info=lambda t: {}), ["must have 'final_eval_reward'"]),
        (spoiled(info=lambda t: {'final_eval_reward': np.ones(1)}), ['as a Python number']),
        (spoiled(info=lambda t: {'final_eval_reward': 1.0, 'TimeLimit.truncated': True}), ["reads 'truncated'"]),
        (spoiled(obs=lambda t: t.obs.astype(np.float64)), ['gives float64']),
        (spoiled(obs=lambda t: t.obs[:3]), ['shape (3,), but info() says (4,)']),
        (spoiled(obs=lambda t: t.obs * np.nan), ['observation with NaN']),
        (spoiled(obs=lambda t: 'text'), ['observations differ in form']),
    ],
)
def test_wrong_timesteps(env, words):
    problems = check_env(env())
    for word in words:
        assert any(word in p for p in problems), problems


def test_everything_is_said_in_one_pass():
    env = spoiled(
        reward=lambda t: 1.0, done=lambda t: int(t.done), info=lambda t: {}, obs=lambda t: t.obs.astype(np.float64)
    )
    problems = check_env(env())
    assert len(problems) >= 4
    for word in ('reward', 'done', 'final_eval_reward', 'float64'):
        assert sum(word in p for p in problems) >= 1


class NoSeed(Sound):
    def seed(self, seed):
        self._rng = np.random.default_rng(seed)


class NotReproducible(Sound):
    def seed(self, seed, dynamic_seed=True):
        self._rng = np.random.default_rng()


class NeverFixed(Sound):
    def seed(self, seed, dynamic_seed=True):
        super().seed(seed)


class SharedObs(Sound):
    def step(self, action):
        timestep = super().step(action)
        self._kept = getattr(self, '_kept', np.zeros(4, np.float32))
        self._kept[:] = timestep.obs
        return timestep._replace(obs=self._kept)


class TupleReset(Sound):
    def reset(self, **kwargs):
        return super().reset(), {}


class Endless(Sound):
    def step(self, action):
        return BaseEnvTimestep(np.zeros(4, np.float32), np.zeros(1, np.float32), False, {})


class UsesRandom(Sound):
    def step(self, action):
        random.random()
        return super().step(action)


class UsesTorch(Sound):
    def reset(self, **kwargs):
        torch.rand(1)
        return super().reset()


class Raises(Sound):
    def step(self, action):
        raise ZeroDivisionError('by design')


class WrongSpace(Sound):
    def info(self):
        info = super().info()
        return info._replace(act_space=info.act_space._replace(shape=(1,)))


class ClosesOnce(Sound):
    def close(self):
        del self._limit


@pytest.mark.parametrize(
    'env,word',
    [
        (NoSeed, 'must take (seed, dynamic_seed=True)'),
        (NotReproducible, 'the same seed gives different episodes'),
        (NeverFixed, 'every episode must begin alike'),
        (SharedObs, 'changed by the next step(): return a copy'),
        (TupleReset, 'returns (obs, info)'),
        (Endless, 'no episode ended'),
        (UsesRandom, 'global generator of random'),
        (UsesTorch, 'global generator of torch'),
        (GlobalSeedEnv, 'global generator of NumPy'),
        (Raises, 'step() raises ZeroDivisionError: by design'),
        (WrongSpace, 'has the shape (2, ), got (1,)'),
        (ClosesOnce, 'close() must work a second time'),
    ],
)
def test_other_faults(env, word):
    problems = check_env(env())
    assert any(word in p for p in problems), problems


def test_global_generators_are_as_before():
    np.random.seed(1)
    random.seed(1)
    expected = (np.random.random(), random.random())
    np.random.seed(1)
    random.seed(1)
    check_env(GlobalSeedEnv())
    check_env(UsesRandom())
    assert (np.random.random(), random.random()) == expected


def test_what_is_no_env():
    assert 'is no env' in check_env(3)[0]

    class Half:
        def info(self):
            return None

    assert any('no method reset()' in p for p in check_env(Half()))

    class Needs(Sound):
        def __init__(self, cfg):
            super().__init__(cfg)
            _ = cfg['level']

    assert 'settings need defaults' in check_env(Needs)[0]


@pytest.mark.parametrize('blocked', [False, True])
def test_only_legal_actions_are_played_and_a_mask_without_any_is_named(blocked):
    class Blocked(SMACEnv):
        def seen(self):
            seen = super().seen()
            return {**seen, 'action_mask': seen['action_mask'] * (not blocked)}

    problems = check_env(Blocked({'map_name': '3m'}))  # which refuses actions that are not legal
    assert problems == [] if not blocked else any('no legal action for agent 0' in p for p in problems), problems


TEAM_FAULTS = {
    'three': r'agent_state of the observation has shape \(3, 3\), but info\(\) says \(2, 3\)',
    'stuck': 'no legal action for agent 1',
    'uneven': r'agent_state of the observation must be one array .* row 1 has shape \(4,\), row 0 \(3,\)',
    'mask': r'action_mask has shape \(2, 5\), must be \(2, 2\)',
    'actions': r'act_space is multi_discrete of shape \(3,\), must be .* an action for each of the 2 agents',
    'rewards': r'rew_space has shape \(3,\), must be \(1, \), of the team, or \(2, \)',
    'count': r'agent_state has shape \(2, 3\); its first axis must be the 4 agents',
}


def test_a_sound_team_has_no_problem():
    assert check_env(FaultyTeam({})) == []


@pytest.mark.parametrize('wrong', TEAM_FAULTS)
def test_what_is_wrong_with_a_team_is_said(wrong):
    problems = check_env(FaultyTeam({'wrong': wrong}))
    assert any(re.search(TEAM_FAULTS[wrong], text) for text in problems), problems
