"""A PettingZoo parallel env as one env."""

import importlib
import pickle
import sys

import numpy as np
import pytest
from gymnasium import spaces

from app_zoo.multiagent_particle.envs import CooperativeNavigationEnv
from nervex.entry.video import _drawable
from nervex.envs import PettingZooEnv, check_env
from nervex.utils import tree
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
    assert info.agent_num == 2 and info.act_space.value['n'] == (4, 4) and info.act_space.shape == (2,)
    shapes = {'agent_state': (2, 3), 'global_state': (1,), 'agent_alive': (2,), 'action_mask': (2, 4)}
    assert info.obs_space.shape == shapes
    obs = env.reset()
    assert obs['agent_state'].tolist() == [[0, 0, 0], [0, 0, 0]] and obs['agent_alive'].tolist() == [1, 1]
    assert obs['action_mask'].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]  # a has two actions
    timestep = env.step(np.array([1, 3]))
    assert timestep.obs['agent_state'].tolist() == [[1, 1, 0], [1, 1, 1]]  # what a does not see is 0
    assert timestep.reward.tolist() == [4.0] and not timestep.done and timestep.obs['global_state'].tolist() == [1.0]


@pytest.mark.parametrize('truncate', [False, True])
def test_agent_that_has_left(truncate):
    inner = Duel(truncate)
    env = PettingZooEnv(inner)
    env.reset()
    timesteps = [env.step(np.array([1, 2])) for _ in range(4)]
    assert inner.received == [{'a': 1, 'b': 2}] * 2 + [{'b': 2}] * 2
    left = [0, 1] if truncate else [0, 0]  # whom a limit ends has a next step to be valued
    assert [t.obs['agent_alive'].tolist() for t in timesteps] == [[1, 1], [0, 1], [0, 1], left]
    for timestep in timesteps[1:3]:
        assert timestep.obs['agent_state'].tolist() == [[0, 0, 0], [timestep.obs['global_state'][0]] * 3]
        assert timestep.obs['action_mask'].tolist() == [[1, 0, 0, 0], [1, 1, 1, 1]]
    assert timesteps[3].obs['action_mask'].tolist() == [[1, 0, 0, 0], [1, 1, 1, 1] if truncate else [1, 0, 0, 0]]
    assert [t.reward.tolist() for t in timesteps] == [[4.0], [4.0], [3.0], [3.0]]
    assert [t.done for t in timesteps] == [False] * 3 + [True]
    assert timesteps[3].info == {'final_eval_reward': 14.0, 'truncated': truncate}
    with pytest.raises(RuntimeError, match=r'reset\(\)'):
        env.step(np.array([1, 2]))


@pytest.mark.parametrize('kind, first, last', [('sum', [4.0], [3.0]), ('mean', [2.0], [1.5]), ('each', [1, 3], [0, 3])])
def test_rewards_of_the_team_and_of_each(kind, first, last):
    env = PettingZooEnv(dict(env_fn=Duel, team_reward=kind))
    env.reset()
    rewards = [env.step([0, 0]).reward for _ in range(4)]
    assert env.info().rew_space.shape == rewards[0].shape == (len(first),)
    assert rewards[0].tolist() == first and rewards[3].tolist() == last


def test_what_is_done_after_ones_end_is_nobodys_reward():
    class Late(Duel):
        def step(self, actions):
            obs, _, *rest = super().step(actions)
            return obs, {'a': 5.0, 'b': 1.0}, *rest

    env = PettingZooEnv(Late())
    env.reset()
    assert [env.step([0, 0]).reward.tolist() for _ in range(4)] == [[6.0], [6.0], [1.0], [1.0]]


def test_the_state_is_what_all_see_where_the_env_has_none():
    for env in (PettingZooEnv(Duel(state=False)), PettingZooEnv(dict(env_fn=Duel, use_global_state=False))):
        env.reset()
        assert env.info().obs_space.shape['global_state'] == (5,)
        assert env.step([0, 0]).obs['global_state'].tolist() == [1.0] * 5
        env.step([0, 0])
        assert env.step([0, 0]).obs['global_state'].tolist() == [0, 0, 3, 3, 3]


def test_a_team_may_be_some_of_the_agents_and_the_others_act_at_random_by_the_seed():
    def received(seed):
        inner = Duel()
        env = PettingZooEnv(inner)
        env._cfg.team = ['a']
        env.seed(seed)
        obs = env.reset()
        assert obs['agent_state'].shape == (1, 2) and env.info().agent_num == 1
        steps = [env.step([1]) for _ in range(2)]
        assert [step.done for step in steps] == [False, True] and [float(s.reward[0]) for s in steps] == [1, 1]
        return [actions['b'] for actions in inner.received]

    assert received(3) == received(3) and len({tuple(received(seed)) for seed in range(8)}) > 1
    with pytest.raises(ValueError, match=r"env.team: got \['c'\].* a, b"):
        PettingZooEnv(dict(env_fn=Duel, team=['c'])).info()


class Pushers(Duel):
    """Box actions: of two numbers in [0, 2], and of one in [-4, 4]."""

    def action_space(self, agent):
        return spaces.Box(0, 2, (2,)) if agent == 'a' else spaces.Box(-4, 4, (1,))


@pytest.mark.parametrize('scaled', [False, True])
def test_continuous_agents_of_different_sizes(scaled):
    inner = Pushers()
    env = PettingZooEnv(dict(env_fn=lambda: inner, use_act_scale=scaled))
    act = env.info().act_space
    ends = [[[-1, -1]] * 2, [[1, 1]] * 2] if scaled else [[[0, 0], [-4, -1]], [[2, 2], [4, 1]]]
    assert act.shape == (2, 2) and [act.value['min'].tolist(), act.value['max'].tolist()] == ends
    assert 'action_mask' not in env.reset()
    env.step(np.array([[0.5, 1.0], [-0.5, 9.0]]))
    given = {agent: action.tolist() for agent, action in inner.received[0].items()}
    assert given == ({'a': [1.5, 2.0], 'b': [-2.0]} if scaled else {'a': [0.5, 1.0], 'b': [-0.5]})
    with pytest.raises(ValueError, match=r'an array of shape \(2, 2\) \(a, b\)'):
        env.step(np.zeros(2))


class Masked(Duel):
    """Says which actions are legal, in its observations or in the infos."""

    def __init__(self, where, mask=(0, 1)):
        super().__init__()
        self.where, self.mask = where, np.array(mask, np.int8)

    def observation_space(self, agent):
        seen = super().observation_space(agent)
        if self.where == 'obs' and agent == 'a':
            return spaces.Dict(observation=seen, action_mask=spaces.Box(0, 1, (2,), np.int8))
        return seen

    def _obs(self):
        obs = {a: np.full(2 + (a == 'b'), self.t, np.float32) for a in self.agents}
        return {**obs, 'a': {'observation': obs['a'], 'action_mask': self.mask}} if self.where == 'obs' else obs

    def reset(self, seed=None, options=None):
        obs, _ = super().reset(seed, options)
        return obs, {'a': {'action_mask': self.mask} if self.where == 'info' else {}, 'b': {}}


@pytest.mark.parametrize('where', ['obs', 'info'])
def test_masks_of_the_env_are_kept_to(where):
    env = PettingZooEnv(Masked(where))
    obs = env.reset()
    assert obs['agent_state'].shape == (2, 3)
    assert obs['action_mask'].tolist() == [[0, 1, 0, 0], [1, 1, 1, 1]]
    with pytest.raises(ValueError, match=r"Masked.*agent 'a' may not take action 0; legal are \[1\]"):
        env.step([0, 0])
    with pytest.raises(ValueError, match=r"agent 'b' may not take action 4"):
        env.step([1, 4])
    for mask, words in (((0, 0), "agent 'a' has no legal action"), ((1, 1, 1), "'a': its action_mask has 3 entries")):
        with pytest.raises(ValueError, match=words):
            PettingZooEnv(Masked(where, mask)).reset()


class Odd(Duel):
    """A Duel with a part exchanged."""

    def __init__(self, **parts):
        super().__init__()
        self.parts = parts

    def action_space(self, agent):
        return self.parts.get('act', {}).get(agent) or super().action_space(agent)

    def observation_space(self, agent):
        return self.parts.get('see', {}).get(agent) or super().observation_space(agent)

    def _obs(self):
        obs = {a: Duel.observation_space(self, a).sample() for a in self.agents}
        return {**obs, **self.parts.get('obs', {})} if self.t else obs

    def step(self, actions):
        answer = super().step(actions)
        self.agents = self.parts.get('agents', self.agents)
        for agent in self.parts.get('silent', ()):
            answer[0].pop(agent)
        return answer

    def state(self):
        return np.zeros(self.parts.get('state', 1))


IMAGE = spaces.Box(0, 255, (8, 8, 3), np.uint8)
WRONG = [
    (
        dict(act={'b': spaces.Box(-1, 1, (2,))}),
        TypeError,
        'all agents of a team act alike, but a has Discrete.*b has B',
    ),
    (dict(act={'b': spaces.MultiDiscrete([2, 2])}), TypeError, "agent 'b' acts by MultiDiscrete"),
    (dict(see={'b': IMAGE}), TypeError, "agent 'b' sees an image.*env.flatten_obs=True"),
    (dict(obs={'b': np.zeros(5)}), ValueError, "agent 'b' sees 5 numbers, but its space is Box"),
    (dict(agents=['a', 'c']), ValueError, r"\['c'\] play, but possible_agents are \['a', 'b'\]"),
    (dict(silent=['b']), ValueError, "agent 'b' plays, but no observation came"),
    (dict(state=2), ValueError, r'state\(\) gave \(2,\), but .*env.use_global_state=False'),
]


@pytest.mark.parametrize('parts, error, words', WRONG)
def test_what_no_team_can_have_is_named(parts, error, words):
    env = PettingZooEnv(Odd(**parts))
    with pytest.raises(error, match='Odd.*' + words):
        env.reset()
        env.step([0, 0])


@pytest.mark.parametrize('action', [[0], [0, 0, 0], [0.0, 1.0], 0])
def test_an_action_of_another_number_of_agents_is_refused(action):
    env = PettingZooEnv(Duel())
    env.reset()
    with pytest.raises(ValueError, match=r'2 ints, one an agent \(a, b\)'):
        env.step(action)


def test_images_are_made_flat_on_request():
    env = PettingZooEnv(dict(env_fn=lambda: Odd(see={'b': IMAGE}), flatten_obs=True))
    assert env.info().obs_space.shape['agent_state'] == (2, 192)


class InTurn:
    """An AEC env."""

    def __init__(self, parallelizable):
        self.metadata = {'is_parallelizable': parallelizable, 'name': 'turns'}

    def agent_iter(self):
        return iter(())


def test_agents_that_must_act_in_turn_are_refused():
    with pytest.raises(TypeError, match=r'act in turn \(AEC\).*is_parallelizable'):
        PettingZooEnv(InTurn(False)).reset()
    pytest.importorskip('pettingzoo', reason='pip install "nervex[pettingzoo]"')
    with pytest.raises(TypeError, match='act in turn'):
        PettingZooEnv(dict(env_id='pettingzoo.classic.tictactoe_v3')).reset()


def test_an_aec_env_that_may_is_stepped_in_parallel():
    pytest.importorskip('pettingzoo', reason='pip install "nervex[pettingzoo]"')
    by_hand, by_id = (PettingZooEnv(dict(env_id='pettingzoo.classic.rps_v2', **more)) for more in ({}, {}))
    by_hand._make = lambda: importlib.import_module('pettingzoo.classic.rps_v2').env()  # not its parallel_env
    for env in (by_hand, by_id):
        assert check_env(env, steps=50) == []
    seen = [[env.reset(seed=1), *(env.step([0, 1]).reward for _ in range(3))] for env in (by_hand, by_id)]
    assert seen[0][1:] == seen[1][1:]


def test_it_goes_on_from_a_pickle_unless_pickle_makes_it_anew():
    env = PettingZooEnv(Duel())
    env.reset()
    env.step([0, 0])
    again = pickle.loads(pickle.dumps(env))
    first, second = env.step([1, 1]), again.step([1, 1])
    assert first.done == second.done and tree.map(np.ndarray.tolist, first.obs) == tree.map(
        np.ndarray.tolist, second.obs
    )
    with pytest.raises(TypeError, match='pickle'):
        env.state_dict()


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


MPE = 'pip install "nervex[mpe]"'


@pytest.mark.parametrize(
    'name, shapes',
    [
        ('simple_spread_v3', ((3, 18), 54, 5)),
        ('simple_tag_v3', ((4, 16), 62, 5)),
        ('simple_speaker_listener_v4', ((2, 11), 14, 5)),
        ('simple_reference_v3', ((2, 21), 42, 50)),
    ],
)
@pytest.mark.parametrize('continuous', [False, True])
def test_particle_worlds(name, shapes, continuous):
    pytest.importorskip('mpe2', reason=MPE)
    make = dict(max_cycles=5, continuous_actions=continuous)
    env = PettingZooEnv(dict(env_id=f'mpe2.{name}', make_kwargs=make))
    shape = env.info().obs_space.shape
    assert (shape['agent_state'], shape['global_state'][0]) == shapes[:2]
    assert continuous or env.info().act_space.value['n'] == (shapes[2],) * shapes[0][0]
    assert check_env(env, steps=60) == []


def test_simple_spread_is_cooperative_navigation():
    """The same seeds, the same episodes: observations, states, rewards and ends."""
    pytest.importorskip('mpe2', reason=MPE)
    ours = CooperativeNavigationEnv({'episode_limit': 7})
    theirs = PettingZooEnv(dict(env_id='mpe2.simple_spread_v3', make_kwargs=dict(max_cycles=7)))
    rng = np.random.default_rng(0)
    for env in (ours, theirs):
        env.seed(5)
    for _ in range(2):
        first, second = ours.reset(), theirs.reset()
        done = False
        while not done:
            assert all(np.array_equal(first[name], second[name]) for name in first)
            action = rng.integers(0, 5, 3)
            (first, reward, done, info), (second, their_reward, their_done, their_info) = (
                env.step(action) for env in (ours, theirs)
            )
            assert reward[0] == pytest.approx(their_reward[0], rel=1e-6) and done == their_done
        assert info['truncated'] and their_info['truncated'] and second['agent_alive'].tolist() == [1, 1, 1]
        assert info['final_eval_reward'] == pytest.approx(their_info['final_eval_reward'], rel=1e-5)


def test_particle_worlds_draw_themselves():
    pytest.importorskip('mpe2', reason=MPE)
    env = PettingZooEnv(dict(env_id='mpe2.simple_v3', make_kwargs=dict(render_mode='rgb_array')))
    env.reset()
    assert env.render().shape == (700, 700, 3)
    with pytest.raises(NotImplementedError, match='anew'):
        env.state_dict()


@pytest.mark.parametrize('way', ['eval', 'replay'])
def test_videos_need_no_render_mode_in_the_config(way, tmp_path):
    pytest.importorskip('mpe2', reason=MPE)
    cfg = dict(env_id='mpe2.simple_v3', make_kwargs=dict(max_cycles=3))
    if way == 'eval':
        env = _drawable(PettingZooEnv, cfg)
    else:
        pytest.importorskip('imageio_ffmpeg', reason='pip install "nervex[video]"')
        env = PettingZooEnv(cfg)
        env.enable_save_replay(str(tmp_path))
    env.reset()
    assert env.render().shape == (700, 700, 3)
    while not env.step(np.array([1])).done:
        pass
    env.close()
    assert way == 'eval' or [path.suffix for path in tmp_path.iterdir()] == ['.mp4']


def test_a_name_that_its_package_does_not_have():
    pytest.importorskip('mpe2', reason=MPE)
    with pytest.raises(ImportError, match=r"did you mean 'mpe2\.simple_spread_v3'"):
        PettingZooEnv(dict(env_id='mpe2.simple_spread_v2')).reset()


def test_a_package_that_an_env_needs_is_named(monkeypatch):
    pytest.importorskip('pettingzoo', reason='pip install "nervex[pettingzoo]"')
    monkeypatch.setitem(sys.modules, 'pymunk', None)
    with pytest.raises(ImportError, match=r'pistonball_v6.*pymunk.*install the package that it needs'):
        PettingZooEnv(dict(env_id='pettingzoo.butterfly.pistonball_v6')).reset()


def test_package_that_is_missing():
    with pytest.raises(ImportError, match=r'nervex\[pettingzoo\]'):
        PettingZooEnv(dict(env_id='no_such_package.env_v1')).reset()
    with pytest.raises(ValueError, match='env_id'):
        PettingZooEnv({}).reset()
    with pytest.raises(ValueError, match='neither parallel_env nor env'):
        PettingZooEnv(dict(env_id='json.decoder')).reset()
