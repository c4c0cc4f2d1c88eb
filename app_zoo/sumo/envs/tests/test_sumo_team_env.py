"""Crossings as a team: who sees whom without SUMO, the env where it is installed."""

from dataclasses import replace

import numpy as np
import pytest

from app_zoo.sumo.envs import SumoEnv, SumoTeamEnv
from app_zoo.sumo.envs.nets import NETS, read_net
from app_zoo.sumo.envs.sumo_team_env import neighbours, side_of
from nervex.envs import check_env

EAST, NORTH, WEST, SOUTH = range(4)


@pytest.mark.parametrize('there, side', [((9, 1), EAST), ((-1, 9), NORTH), ((-9, -1), WEST), ((1, -9), SOUTH)])
def test_a_side_is_the_nearest_of_four(there, side):
    assert side_of(np.array(there)) == side


def test_neighbours_are_crossings_from_which_a_road_leads_here():
    assert neighbours(read_net(NETS['wj3'])) == [{EAST: 1}, {EAST: 2, WEST: 0}, {WEST: 1}]
    assert neighbours(read_net(NETS['wj1'])) == [{}]


def row_of_two(tmp_path, *links):
    """Crossings 'a' and, 300 m to the east, 'b'; from a to b by the roads ab1, ab2 and ab3, back by ba."""
    lanes = {'wa': (-200, 0, 0, 0), 'sa': (0, -200, 0, 0), 'ab1': (0, 0, 100, 0), 'ab2': (100, 0, 200, 0)}
    lanes |= {'ab3': (200, 0, 300, 0), 'sb': (300, -200, 300, 0), 'be': (300, 0, 500, 0), 'ba': (300, 0, 0, 0)}
    lanes |= {'aw': (0, 0, -200, 0), 'nm': (100, 200, 100, 0)}
    roads = [
        f'<edge id="{name}" from="{name}0" to="{name}1"><lane id="{name}_0" length="9" shape="{x},{y} {u},{v}"/></edge>'
        for name, (x, y, u, v) in lanes.items()
    ]
    lit = ['wa ab1 tl="a"', 'sa ab1 tl="a"', 'ba aw tl="a"', 'ab3 be tl="b"', 'sb be tl="b"', 'sb ba tl="b"']
    joined = [
        '<connection from="{}" to="{}" fromLane="0" toLane="0" {} linkIndex="{}"/>'.format(
            *(*link.split(), '')[:3], k % 3
        )
        for k, link in enumerate([*lit, *links])
    ]
    logic = '<phase state="GGr"/><phase state="rrG"/>'
    lights = [f'<tlLogic id="{name}" programID="{k}">{logic}</tlLogic>' for k in (0, 1) for name in 'ab']
    path = tmp_path / 'row.net.xml'
    path.write_text('\n'.join(['<net>', *roads, *joined, *lights, '</net>']))
    return read_net(path)


def test_a_road_in_pieces_leads_here_too(tmp_path):
    net = row_of_two(tmp_path, 'ab1 ab2', 'ab2 ab3')
    assert [crossing.name for crossing in net.crossings] == ['a', 'b']  # whose lights have two programs
    assert neighbours(net) == [{EAST: 1}, {WEST: 0}]


def test_a_road_that_others_flow_into_on_the_way_is_another_one(tmp_path):
    assert neighbours(row_of_two(tmp_path, 'ab1 ab2', 'ab2 ab3', 'nm ab2')) == [{EAST: 1}, {}]
    assert neighbours(row_of_two(tmp_path, 'ab1 ab2', 'nm ab3')) == [{EAST: 1}, {}]


def test_a_ring_before_a_crossing_ends(tmp_path):
    assert neighbours(row_of_two(tmp_path, 'ab2 ab3', 'ab3 ab2', 'nm ab1')) == [{EAST: 1}, {}]


def test_the_nearest_of_two_on_a_side_is_the_neighbour(tmp_path):
    net = row_of_two(tmp_path, 'ab1 ab2', 'ab2 ab3')
    a, b = net.crossings
    far = replace(a, name='c', lanes=['be_0'])  # 900 m to the west of a, with the same roads to it as a
    net.shape['be_0'] = np.array([[300, 0], [-900.0, 0]])
    assert neighbours(replace(net, crossings=[a, b, far]))[1] == {WEST: 0}
    assert neighbours(replace(net, crossings=[far, b, a]))[1] == {WEST: 2}


def test_every_agent_has_its_lanes_in_the_same_order():
    env = SumoTeamEnv({'net': 'wj3'})
    for k, crossing in enumerate(env.net.crossings):
        places = (env._order[k][3::12] - 3) // 12  # after two phases and how long; 12 numbers a lane
        ends = np.array(
            [env.net.shape[crossing.lanes[place]][0] - env.net.shape[crossing.lanes[place]][-1] for place in places]
        )
        assert [side_of(end) for end in ends] == [EAST, EAST, NORTH, NORTH, WEST, WEST, SOUTH, SOUTH]
        assert crossing.served[1][places].tolist() == [True, True, False, False] * 2  # the second phase: east and west
        assert sorted(env._order[k]) == list(range(99))


# ---- with SUMO
@pytest.fixture
def make():
    pytest.importorskip('libsumo')
    made = []

    def of(kind=SumoTeamEnv, **cfg):
        made.append(kind({'net': 'wj3', 'episode_s': 200, 'per_hour': 600, **cfg}))
        return made[-1]

    yield of
    for env in made:
        env.close()


def play(env):
    """What two turns a crossing later is seen, the rewards and the last info."""
    seen, rewards = [env.reset(seed=4)], []
    for step in range(40):
        timestep = env.step(np.array([step // 2, step // 3, step // 4]) % 2)
        seen.append(timestep.obs)
        rewards.append(timestep.reward)
    assert timestep.done
    return seen, np.array(rewards), timestep.info


def test_it_is_sumo_env_told_by_crossing(make):
    whole = make(SumoEnv)
    flat, reward, info = play(whole)
    whole.close()
    team, rewards, team_info = play(make())
    assert np.array_equal([obs['global_state'] for obs in team], flat) and team_info == info
    assert (
        rewards.shape == (40, 3) and np.allclose(rewards.mean(1), reward[:, 0]) and (np.ptp(rewards, axis=1) > 0).any()
    )


def test_an_agent_sees_itself_first_and_its_neighbours_by_their_sides(make):
    env = make()
    seen, _, _ = play(env)
    left, middle, right = seen[-1]['agent_state'].reshape(3, 3, 99)  # itself, east, west
    whole = seen[-1]['global_state'].reshape(3, 99)
    for k, row in enumerate((left, middle, right)):
        assert np.array_equal(row[0], whole[k][env._order[k]]) and row[0].any()
    assert np.array_equal(left[1], middle[0]) and not left[2].any()
    assert np.array_equal(middle[1], right[0]) and np.array_equal(middle[2], left[0])
    assert np.array_equal(right[2], middle[0]) and not right[1].any()


def test_a_phase_cannot_be_chosen_after_its_longest_time(make):
    env = make(longest_s=10)
    obs, masks, phases = env.reset(seed=0), [], []
    for _ in range(6):
        obs = env.step(obs['action_mask'].argmax(1)).obs  # the first that is legal
        masks.append(obs['action_mask'][1].tolist())
        phases.append(env.phase[1])
    assert phases == [0, 0, 1, 0, 0, 0]  # 10 s; 2 s after yellow; 2, 7, 12 s
    assert masks == [[1, 1], [0, 1], [1, 1], [1, 1], [1, 1], [0, 1]]


def test_it_keeps_the_rules_of_envs(make):
    check_env(make(episode_s=50))
