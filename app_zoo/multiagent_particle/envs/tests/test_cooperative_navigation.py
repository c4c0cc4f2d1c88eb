"""Cooperative navigation is MPE's simple_spread, step by step."""

import numpy as np
import pytest

from app_zoo.multiagent_particle.envs import CooperativeNavigationEnv
from app_zoo.multiagent_particle.envs.navigation import Navigation
from nervex.envs import check_env
from nervex.worker.actor.env_manager import create_env_manager


@pytest.mark.parametrize('agents, ratio', [(1, 0.5), (2, 0.0), (3, 0.5), (5, 1.0)])
@pytest.mark.parametrize('continuous', [False, True])
def test_every_step_equals_mpe2(agents, ratio, continuous):
    simple_spread = pytest.importorskip('mpe2.simple_spread_v3', reason='pip install "nervex[mpe]"')
    rng = np.random.default_rng(7)
    world = Navigation(2, agents, ratio)
    world.reset(np.arange(2), [np.random.default_rng(seed) for seed in (3, 4)])
    theirs = []
    for seed in (3, 4):
        env = simple_spread.parallel_env(N=agents, local_ratio=ratio, max_cycles=50, continuous_actions=continuous)
        theirs.append((env, env.reset(seed=seed)[0]))
    for step in range(50):
        seen = world.obs()
        for team, (env, obs) in enumerate(theirs):
            assert np.array_equal(seen[team], np.stack([obs[a] for a in env.possible_agents])), step
        if continuous:
            five = rng.uniform(0, 1, (2, agents, 5)).astype(np.float32)
            pushes = five.astype(np.float32)
            actions = np.stack([pushes[..., 2] - pushes[..., 1], pushes[..., 4] - pushes[..., 3]], -1).astype(float)
        else:
            five = actions = rng.integers(0, 5, (2, agents))
        reward = world.step(actions)
        for team, (env, _) in enumerate(theirs):
            obs, rewards, _, _, _ = env.step({a: five[team, k] for k, a in enumerate(env.possible_agents)})
            theirs[team] = env, obs
            assert reward[team].tolist() == [rewards[a] for a in env.possible_agents]


def test_rewards_by_hand():
    world = Navigation(1, 2)
    world.marks[0] = [[0, 0], [1, 0]]
    world.place[0] = [[0, 0.3], [0, 0.5]]  # nearest to the marks: 0.3, sqrt(1.09); they touch (0.2 < 0.3)
    assert world.distances()[0].tolist() == pytest.approx([0.3, 1.09**0.5])
    assert world._reward()[0].tolist() == pytest.approx([-0.5 * (0.3 + 1.09**0.5) - 0.5] * 2)


EVERYTHING = {'agent_num': 5, 'observe_alone': True, 'observe_positions': True}


@pytest.mark.parametrize('settings', [{}, EVERYTHING, {'continuous': True}])
def test_it_is_a_sound_env(settings):
    assert check_env(CooperativeNavigationEnv(settings)) == []


def test_positions_are_those_of_the_world():
    env = CooperativeNavigationEnv({'observe_positions': True})
    env.seed(0)
    first = env.reset()['agent_position']
    timestep = env.step([2, 2, 2])
    assert first.shape == (3, 2) and first.dtype == np.float32
    assert np.allclose(timestep.obs['agent_position'], timestep.obs['agent_state'][:, 2:4])


def test_a_team_reward_is_the_sum_over_agents_and_each_has_its_own():
    totals = {}
    for kind in ('sum', 'mean', 'each'):
        env = CooperativeNavigationEnv({'team_reward': kind})
        env.seed(1)
        env.reset()
        while True:
            timestep = env.step([1, 2, 3])
            totals[kind] = totals.get(kind, 0) + timestep.reward
            if timestep.done:
                break
    assert timestep.info['truncated'] and totals['each'].shape == (3,)
    assert totals['sum'][0] == pytest.approx(totals['each'].sum()) == pytest.approx(3 * totals['mean'][0])


def test_alone_parts_leave_out_the_comrades():
    env = CooperativeNavigationEnv({'observe_alone': True})
    obs = env.reset()
    alone, padded = obs['agent_alone_state'], obs['agent_alone_padding_state']
    assert alone.shape == (3, 10) and np.array_equal(alone, obs['agent_state'][:, :10])
    assert padded.shape == obs['agent_state'].shape and not padded[:, 10:].any()


@pytest.mark.parametrize('action', [[0, 1], [0, 1, 5], [0.0, 1.0, 2.0], 3])
def test_a_wrong_action_is_refused_with_words(action):
    env = CooperativeNavigationEnv()
    env.reset()
    with pytest.raises(ValueError, match='3 ints from 0 to 4'):
        env.step(action)


@pytest.mark.parametrize('ends', [False, True])
@pytest.mark.parametrize('manager', ['base', 'vector'])
def test_the_limit_cuts_an_episode_or_ends_the_task(manager, ends):
    cfg = {'episode_limit': 3, 'limit_ends': ends}
    with create_env_manager(manager, CooperativeNavigationEnv, [cfg] * 2) as envs:
        envs.launch()
        for _ in range(3):
            steps = envs.step({i: np.zeros(3, np.int64) for i in range(2)})
        assert [bool(step.done) for step in steps.values()] == [True, True]
        assert [bool(step.info['truncated']) for step in steps.values()] == [not ends, not ends]
