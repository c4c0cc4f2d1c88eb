"""A PettingZoo parallel env as one env."""

import numpy as np
import pytest
from gymnasium import spaces

from nervex.envs import PettingZooEnv, check_env
from nervex.worker.actor.env_manager import BaseEnvManager


class Duel:
    """Agents a (sees 2 numbers, 2 actions) and b (sees 3, 4 actions); a leaves after step 2, b after step 4."""

    possible_agents = ['a', 'b']
    metadata = {}

    def __init__(self, truncate=False, state=True):
        self.truncate, self.received, self.agents = truncate, [], []
        self.state_space = spaces.Box(0, 9, (1,)) if state else None

    def observation_space(self, agent):
        return spaces.Box(-1, 9, (2 if agent == 'a' else 3,))

    def action_space(self, agent):
        return spaces.Discrete(2 if agent == 'a' else 4)

    def reset(self, seed=None, options=None):
        self.t, self.agents, self.seed_seen = 0, ['a', 'b'], seed
        return self._obs(), {a: {} for a in self.agents}

    def step(self, actions):
        self.t += 1
        self.received.append(actions)
        playing = list(self.agents)
        ended = {'a': self.t >= 2, 'b': self.t >= 4}
        obs = self._obs()
        self.agents = [a for a in playing if not ended[a]]
        flags, no = {a: ended[a] for a in playing}, dict.fromkeys(playing, False)
        rewards = {a: 1.0 if a == 'a' else 3.0 for a in playing}
        return obs, rewards, no if self.truncate else flags, flags if self.truncate else no, {a: {} for a in playing}

    def state(self):
        return np.array([self.t])

    def close(self):
        pass

    def _obs(self):
        return {a: np.full(self.observation_space(a).shape, self.t, np.float32) for a in self.agents}


def test_agents_are_rows():
    env = PettingZooEnv(Duel())
    info = env.info()
    assert info.agent_num == 2 and info.act_space.value['n'] == (2, 4) and info.act_space.shape == (2,)
    assert info.obs_space.shape == {'agent_state': (2, 3), 'agent_alive': (2,), 'global_state': (1,)}
    obs = env.reset()
    assert obs['agent_state'].tolist() == [[0, 0, 0], [0, 0, 0]] and obs['agent_alive'].tolist() == [1, 1]
    timestep = env.step(np.array([1, 3]))
    assert timestep.obs['agent_state'].tolist() == [[1, 1, 0], [1, 1, 1]]  # what a does not see is 0
    assert timestep.reward.tolist() == [2.0] and not timestep.done and timestep.obs['global_state'].tolist() == [1.0]


@pytest.mark.parametrize('truncate', [False, True])
def test_agent_that_has_left(truncate):
    inner = Duel(truncate)
    env = PettingZooEnv(inner)
    env.reset()
    timesteps = [env.step(np.array([1, 2])) for _ in range(4)]
    assert inner.received == [{'a': 1, 'b': 2}] * 2 + [{'b': 2}] * 2
    assert [t.obs['agent_alive'].tolist() for t in timesteps] == [[1, 1], [0, 1], [0, 1], [0, 0]]
    assert timesteps[2].obs['agent_state'][0].tolist() == [0, 0, 0]
    assert [t.reward.tolist() for t in timesteps] == [[2.0], [2.0], [1.5], [1.5]]
    assert [t.done for t in timesteps] == [False] * 3 + [True]
    assert timesteps[3].info == {'final_eval_reward': 7.0, 'truncated': truncate}
    with pytest.raises(RuntimeError, match=r'reset\(\)'):
        env.step(np.array([1, 2]))


def test_reward_of_each_agent():
    env = PettingZooEnv(dict(env_fn=Duel, team_reward=False))
    env.reset()
    assert env.info().rew_space.shape == (2,) and env.step([0, 0]).reward.tolist() == [1.0, 3.0]


def test_sound_and_in_a_manager():
    assert check_env(PettingZooEnv(Duel())) == []
    with BaseEnvManager(PettingZooEnv, [dict(env_fn=Duel)] * 2) as manager:
        manager.seed(4)
        manager.launch()
        for _ in range(4):
            block = manager.advance(manager.all_ids, np.zeros((2, 2), np.int64))
        assert block.done.all() and block.obs['agent_state'].shape == (2, 2, 3)
        assert manager.observe()[1]['agent_state'].max() == 0


def test_fixed_seed_comes_every_time():
    inner = Duel()
    env = PettingZooEnv(inner)
    env.seed(5, dynamic_seed=False)
    env.reset()
    env.reset()
    assert inner.seed_seen == 5
    env.seed(6)
    env.reset()
    env.reset()
    assert inner.seed_seen is None


def test_real_one():
    pytest.importorskip('mpe2')
    env = PettingZooEnv(dict(env_id='mpe2.simple_spread_v3', make_kwargs=dict(N=3, max_cycles=5)))
    assert check_env(env) == [] and env.info().obs_space.shape['global_state'] == (54,)


def test_package_that_is_missing():
    with pytest.raises(ImportError, match=r'nervex\[pettingzoo\]'):
        PettingZooEnv(dict(env_id='no_such_package.env_v1')).reset()
    with pytest.raises(ValueError, match='env_id'):
        PettingZooEnv({}).reset()
