import random
import time

import numpy as np
import pytest
import torch
from gymnasium import spaces
from rich.console import Console

from app_zoo.classic_control.cartpole.envs import CartPoleEnv
from nervex.run.defaults import config_for
from nervex.run.probe import probe
from nervex.run.tests.own_envs import Reach, ReachByNumber, Unbounded
from nervex.utils import ConfigError, EnvError


class Mute(Reach):
    """Pays nothing, never ends, and shows large numbers."""

    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Box(-1e4, 1e4, (2,), np.float32)

    def _obs(self):
        return np.array([5000.0, -5000.0], np.float32)

    def step(self, action):
        return self._obs(), 0.0, False, False, {}


class Broken(Mute):
    """Shows what is no number."""

    def _obs(self):
        return np.full(2, np.nan, np.float32)


class Slow(Mute):
    """A tenth of a second a step."""

    def step(self, action):
        time.sleep(0.1)
        return super().step(action)


def test_it_says_what_the_env_is_and_what_the_policy_makes_of_it():
    seen = probe(config_for('ppo', 'CartPole-v1'))
    assert seen.title == 'CartPole-v1 by ppo' and seen.steps_per_s > 100 and len(seen.returns) == 20
    assert seen.lines['sees'] == '4 numbers of float32, scaled by mean and variance'
    assert seen.lines['does'] == 'one of 2 actions' and 'at most 500 steps' in seen.lines['env']
    assert seen.lines['run'].startswith('200,000 env steps') and seen.lines['run'].endswith('ends at 475')
    # actor and critic: 4 x 64 + 64 and 64 x 64 + 64 each; heads 64 x 2 + 2 and 64 x 1 + 1
    assert seen.parameters == 2 * (320 + 4160) + 130 + 65 and f'{seen.parameters:,}' in seen.lines['net']
    assert seen.notes == []
    assert len(str(seen).splitlines()) == 10


def test_the_panel_has_all_of_it():
    console = Console(width=120, record=True, file=open('/dev/null', 'w'))  # noqa: SIM115
    console.print(probe(config_for('sac', ReachByNumber)))
    text = console.export_text()
    assert "1 number, stretched to the env's bounds" in text and 'SACModel' in text


@pytest.mark.parametrize('policy, env', [('dqn', 'FrozenLake-v1'), ('sac', 'Pendulum-v1'), ('ppo', Reach)])
def test_it_leaves_all_random_states_untouched(policy, env):
    cfg = config_for(policy, env)
    torch.manual_seed(3), np.random.seed(3), random.seed(3)
    drawn = torch.rand(4).tolist(), np.random.random(4).tolist(), random.random()
    torch.manual_seed(3), np.random.seed(3), random.seed(3)
    probe(cfg)
    assert drawn == (torch.rand(4).tolist(), np.random.random(4).tolist(), random.random())


def test_it_names_what_may_not_work():
    notes = '\n'.join(probe(config_for('dqn', Mute), seconds=0.2).notes)
    assert 'no reward in' in notes and 'no episode ended' in notes and 'norm_obs=True would scale them' in notes
    assert 'no bounds' in '\n'.join(probe(config_for('ppo', Unbounded), seconds=0.05).notes)


def test_a_slow_env_is_left_soon():
    start = time.monotonic()
    seen = probe(config_for('dqn', Slow), seconds=0.25)
    assert time.monotonic() - start < 2.0 and seen.steps_per_s < 11


def test_an_env_of_which_a_process_can_have_one_is_looked_at_in_another(monkeypatch):
    monkeypatch.setattr(CartPoleEnv, 'one_a_process', True, raising=False)
    seen = probe(config_for('dqn', 'cartpole'), seconds=0.05)
    assert '(subprocess)' in seen.lines['env'] and seen.steps_per_s > 0


def test_what_cannot_run_is_the_error_of_the_run():
    cfg = config_for('dqn', 'CartPole-v1')
    cfg.policy.policy_type = 'sac'
    with pytest.raises(ConfigError):
        probe(cfg)
    with pytest.raises(EnvError, match='has nan in it'):
        probe(config_for('dqn', Broken))
