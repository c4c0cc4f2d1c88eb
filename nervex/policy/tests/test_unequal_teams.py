"""Teams whose agents see and can do different things, and of whom one leaves before the other."""

import numpy as np
import pytest
from gymnasium import spaces

from nervex.envs import PettingZooEnv
from nervex.policy.tests.learning import train
from nervex.policy.tests.test_maddpg import proof
from nervex.policy.tests.test_team_policies import OFF_POLICY, ON_POLICY


class Unequal:
    """
    Agent a sees 2 numbers and has 2 actions, or one number to choose, for two steps; b sees 4, has 4 actions or two
    numbers, and leaves after the first step. Each is shown what is right for it and earns 1 for it; numbers cost their
    mean squared distance. Best sum of returns 3.
    """

    possible_agents = ['a', 'b']
    metadata = {}
    sizes = {'a': 2, 'b': 4}
    state_space = None

    def __init__(self, continuous=False):
        self.continuous, self.agents, self.rng = continuous, [], np.random.default_rng(0)

    def observation_space(self, agent):
        return spaces.Box(0, 1, (self.sizes[agent],))

    def action_space(self, agent):
        size = self.sizes[agent]
        return spaces.Box(-1, 1, (size // 2,)) if self.continuous else spaces.Discrete(size)

    def reset(self, seed=None, options=None):
        self.rng = self.rng if seed is None else np.random.default_rng(seed)
        self.agents = ['a', 'b']
        return self._shown(), {agent: {} for agent in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        rewards = {agent: self._reward(agent, action) for agent, action in actions.items()}
        over = {agent: agent == 'b' or 'b' not in self.agents for agent in self.agents}
        obs, no = self._shown(), dict.fromkeys(self.agents, False)
        self.agents = [agent for agent in self.agents if not over[agent]]
        return obs, rewards, over, no, {agent: {} for agent in over}

    def close(self):
        pass

    def _shown(self):
        self.right = {agent: int(self.rng.integers(size)) for agent, size in self.sizes.items()}
        return {agent: np.eye(self.sizes[agent], dtype=np.float32)[self.right[agent]] for agent in self.agents}

    def _reward(self, agent, action):
        if not self.continuous:
            return float(action == self.right[agent])
        corners = {'a': [[-0.5], [0.5]], 'b': [[-0.5, -0.5], [-0.5, 0.5], [0.5, -0.5], [0.5, 0.5]]}
        return 1.0 - float(np.square(action - np.array(corners[agent][self.right[agent]])).mean())


class UnequalNumbers(Unequal):
    def __init__(self):
        super().__init__(continuous=True)


HOW = {'qmix': OFF_POLICY, 'iql': OFF_POLICY, 'mappo': ON_POLICY, 'maddpg': proof(False)}
#: returns by reward; to agents that learn by themselves from one reward the other one's part of it is noise
ENOUGH = {'sum': 2.9, 'each': 1.4, 'iql sum': 2.5}


@pytest.mark.parametrize('reward', ['sum', 'each'])
@pytest.mark.parametrize('name', HOW)
def test_they_learn(name, reward):
    enough = ENOUGH.get(f'{name} {reward}', ENOUGH[reward])
    cfg = {**HOW[name], 'evaluator': dict(n_episode=20, eval_freq=100, stop_val=enough)}
    cfg['policy'] = {**cfg['policy'], 'model': dict(hidden_dim_list=[32], lstm_type=None)}
    assert train(name, PettingZooEnv, cfg, env_cfg=dict(env_fn=Unequal, team_reward=reward)).solved


@pytest.mark.parametrize('name', ['mappo', 'maddpg'])
def test_they_learn_numbers(name):
    cfg = {**HOW[name], 'evaluator': dict(n_episode=20, eval_freq=100, stop_val=2.8)}
    cfg['policy'] = {**cfg['policy'], 'model': dict(hidden_dim_list=[32], lstm_type=None)}
    assert train(name, PettingZooEnv, cfg, env_cfg=dict(env_fn=UnequalNumbers)).solved
