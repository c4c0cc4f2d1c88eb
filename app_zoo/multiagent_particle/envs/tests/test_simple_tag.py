"""Hunters as a team, and prey that flees by rule."""

import numpy as np
import pytest

from app_zoo.multiagent_particle.envs import SimpleTagEnv
from nervex.envs import check_env

pytest.importorskip('mpe2', reason='pip install "nervex[mpe]"')


@pytest.mark.parametrize('more', [{}, dict(agent_num=2, prey_num=2, obstacle_num=1), dict(continuous=True)])
def test_only_the_hunters_are_the_team(more):
    env = SimpleTagEnv(dict(episode_limit=6, **more))
    assert check_env(env, steps=40) == []
    hunters, others = more.get('agent_num', 3), more.get('agent_num', 3) + more.get('prey_num', 1) - 1
    width = 4 + 2 * more.get('obstacle_num', 2) + 2 * others + 2 * more.get('prey_num', 1)
    assert env.info().obs_space.shape['agent_state'] == (hunters, width)


def world(env):
    return env._env.unwrapped.world


def test_a_touch_pays_ten():
    env = SimpleTagEnv()
    env.seed(0)
    env.reset()
    hunter, *_, prey = world(env).agents
    hunter.state.p_pos = prey.state.p_pos + 0.01
    assert env.step([0, 0, 0]).reward.tolist() == [10.0]


@pytest.mark.parametrize('kind, loss', [('each', [0.5, 0.25]), ('sum', [0.75]), ('mean', [0.375])])
def test_shaping_costs_distance_and_is_in_no_score(kind, loss):
    env = SimpleTagEnv(dict(agent_num=2, obstacle_num=0, shaping=0.5, team_reward=kind, episode_limit=1))
    env.reset()
    first, second, prey = world(env).agents
    first.state.p_pos, second.state.p_pos = np.array([1.0, 0.0]), np.array([0.0, -0.5])
    prey.state.p_pos, prey.movable = np.zeros(2), False
    timestep = env.step([0, 0])
    assert timestep.reward.tolist() == pytest.approx([-part for part in loss], abs=1e-6)
    assert timestep.info['final_eval_reward'] == 0.0


@pytest.mark.parametrize(
    'prey, hunter, chosen',
    [
        ((0.0, 0.0), (-0.5, 0.1), 2),  # from the left: to the right
        ((0.0, 0.0), (0.1, 0.5), 3),  # from above: down
        ((0.88, 0.0), (0.5, 0.0), 1),  # at the rim it turns back, though to the hunter
    ],
)
def test_prey_runs_from_the_nearest_hunter_and_from_the_rim(prey, hunter, chosen):
    env = SimpleTagEnv(dict(agent_num=1, obstacle_num=0))
    env.reset()
    seen = np.array([0, 0, *prey, *(np.array(hunter) - prey)], np.float32)
    assert env._act_of('agent_0', seen) == chosen


def mean_return(prey, episodes=40):
    """Of hunters that all go straight to the prey."""
    env, returns = SimpleTagEnv(dict(prey=prey)), []
    env.seed(0)
    for _ in range(episodes):
        obs, done = env.reset(), False
        while not done:
            apart = obs['agent_state'][:, 12:14]  # behind speed, place, two obstacles and two comrades
            axis = np.abs(apart).argmax(1)
            obs, _, done, info = env.step(1 + 2 * axis + (apart[np.arange(3), axis] > 0))
        returns.append(info['final_eval_reward'])
    return np.mean(returns)


def test_fleeing_helps():
    assert mean_return('flees') < mean_return('random')


def test_prey_that_cannot_see_all_hunters_is_refused():
    with pytest.raises(ValueError, match=r"num_agent_neighbors hides hunters.*env\.prey='random'"):
        SimpleTagEnv(dict(make_kwargs=dict(num_agent_neighbors=1)))
