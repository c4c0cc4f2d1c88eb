"""Traffic lights: nets and traffic without SUMO, the env where it is installed."""

import importlib.util
import itertools
import tempfile

import numpy as np
import pytest

from app_zoo.sumo.envs import SumoEnv
from app_zoo.sumo.envs.nets import NETS, read_net, traffic, write_routes
from nervex.entry import serial_pipeline
from nervex.envs import check_env
from nervex.utils import ConfigError
from nervex.worker.actor.env_manager import create_env_manager


def test_a_net_tells_who_has_green_when():
    net = read_net(NETS['wj1'])
    (crossing,) = net.crossings
    assert crossing.greens == ['GGGggrrrrrGGGggrrrrr', 'rrrrrGGGggrrrrrGGGgg']
    north_south = np.array([lane.startswith(('top', 'bottom')) for lane in crossing.lanes])
    assert len(crossing.lanes) == len(crossing.leaving) == 8
    assert (crossing.served[0] == north_south).all() and (crossing.served[1] == ~north_south).all()
    assert sorted(net.ways) == ['bottom0A0', 'left0A0', 'right0A0', 'top0A0']
    assert net.length[crossing.lanes[0]] == 189.6
    three = read_net(NETS['wj3'])
    assert [c.name for c in three.crossings] == ['A0', 'B0', 'C0'] and len(three.ways) == 8


def test_a_net_without_lights_is_refused(tmp_path):
    path = tmp_path / 'road.net.xml'
    path.write_text('<net><edge id="a" from="x" to="y"><lane id="a_0" length="9" shape="0,0 9,0"/></edge></net>')
    with pytest.raises(ValueError, match=r'no traffic light with two green phases'):
        read_net(path)


def road(name, ends, lanes='all'):
    """An edge of a net file, with a lane for each of the kinds of users that are named."""
    rows = ''.join(
        f'<lane id="{name}_{k}" allow="{kind}" length="50" shape="0,0 9,{k}"/>' for k, kind in enumerate(lanes.split())
    )
    return f'<edge id="{name}" from="{ends[0]}" to="{ends[1]}">{rows}</edge>'


def link(before, after, index, lane=0, turn='s'):
    tl = '' if index is None else f'tl="T" linkIndex="{index}"'
    return f'<connection from="{before}" to="{after}" fromLane="{lane}" toLane="{lane}" dir="{turn}" {tl}/>'


LIGHTS = '<tlLogic id="T"><phase state="Gr"/><phase state="yr"/><phase state="rG"/></tlLogic>'


def test_ways_of_cars_are_those_that_the_net_connects(tmp_path):
    path = tmp_path / 'own.net.xml'
    walks = '<edge id=":M_w0" function="walkingarea"><lane id=":M_w0_0" allow="pedestrian" shape="0,0 1,1"/></edge>'
    roads = [
        road('E1', 'wM', 'pedestrian all'),
        road('-E1', 'Mw'),
        road('E2', 'Mx'),
        road('E2.9', 'xe'),
        road('E3', 'sM'),
    ]
    turns = [
        link('E1', 'E2', 0, lane=1),
        link('E3', '-E1', 1),
        link('E2', 'E2.9', None),
        link('-E1', 'E1', None, turn='t'),
    ]
    roads += [road('E4', 'ab'), walks]  # is connected with nothing
    text = ''.join([*roads, *turns, link(':M_w0', ':M_c0', 1), LIGHTS])
    text = text.replace('to="E2" fromLane="1" toLane="1"', 'to="E2" fromLane="1" toLane="0"')
    path.write_text(f'<net>{text}</net>')
    net = read_net(path)
    assert net.ways == {'E1': ['E2.9'], 'E3': ['-E1']}
    assert net.crossings[0].lanes == ['E1_1', 'E3_0'] and net.crossings[0].leaving == ['E2_0', '-E1_0']
    assert set(net.length) == {'E1_1', '-E1_0', 'E2_0', 'E2.9_0', 'E3_0', 'E4_0'}
    cars = list(traffic(net, np.random.default_rng(0), 900, 0.0, 100, 1000))
    assert {(entry, way) for _, entry, way in cars} == {('E1', 'E2.9'), ('E3', '-E1')}


def test_a_net_without_a_way_for_cars_is_refused(tmp_path):
    path = tmp_path / 'ring.net.xml'
    path.write_text(f'<net>{road("a", "MM")}{road("b", "MM")}{link("a", "b", 0)}{link("b", "a", 1)}{LIGHTS}</net>')
    with pytest.raises(ValueError, match=r'ring\.net\.xml: no way for cars.*attach-length'):
        read_net(path)


def test_a_file_that_is_no_net_is_refused(tmp_path):
    path = tmp_path / 'own.net.xml'
    path.write_text('hello')
    with pytest.raises(ValueError, match=r'own\.net\.xml: no net, which is an XML file'):
        read_net(path)
    with pytest.raises(ConfigError, match='there is no such file'):
        SumoEnv({'net': str(tmp_path)})


def test_cars_come_as_often_as_was_asked_for_and_do_not_turn_round(tmp_path):
    net = read_net(NETS['wj1'])
    cars = list(traffic(net, np.random.default_rng(0), per_hour=900, uneven=0.0, change_s=100, seconds=36_000))
    for entry in net.ways:  # 9,000 are expected, with a deviation of 95
        assert abs(sum(road == entry for _, road, _ in cars) - 9_000) < 400
    assert all(a[0] <= b[0] for a, b in itertools.pairwise(cars))
    assert all(entry[: entry.index('A0')] not in way for _, entry, way in cars)
    even, uneven = (
        [len(list(traffic(net, np.random.default_rng(k), 900, share, 1000, 1000))) for k in range(40)]
        for share in (0.0, 1.0)
    )
    assert np.std(uneven) > 3 * np.std(even)
    assert write_routes(tmp_path / 'x.rou.xml', iter(cars[:3])) == [second for second, _, _ in cars[:3]]
    assert (tmp_path / 'x.rou.xml').read_text().count('<trip ') == 3


@pytest.mark.parametrize(
    'cfg, words',
    [
        (dict(net='wj2'), r"'wj2'.*did you mean 'wj"),
        (dict(yellow_s=10), r'env\.yellow_s: 10 must be less than env.step_s, 5'),
    ],
)
def test_what_cannot_be_is_said(cfg, words):
    with pytest.raises(ConfigError, match=words):
        SumoEnv(cfg)


@pytest.mark.parametrize(
    'kind, manager, words',
    [
        ('base', {}, r"env_manager_type: got 'base', but a process can have one SumoEnv; take 'subprocess'"),
        ('thread', {}, "got 'thread'"),
        ('subprocess', dict(envs_per_worker=2), r'env\.manager: a process can have one SumoEnv; leave envs_per_worker'),
    ],
)
def test_several_simulations_in_a_process_are_refused_before_a_run_begins(kind, manager, words):
    with pytest.raises(ConfigError, match=words):
        create_env_manager(kind, SumoEnv, [{}, {}], manager)


def test_sumo_that_is_missing_is_said_before_a_run_begins(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, 'find_spec', lambda name, *more: None if name == 'libsumo' else find(name, *more)
    )
    with pytest.raises(ConfigError, match=r"env sumo needs the package 'libsumo': pip install 'nervex\[sumo\]'"):
        serial_pipeline('sumo_wj1_dqn', seed=0)


# ---- with SUMO
@pytest.fixture
def make():
    pytest.importorskip('libsumo')
    made = []

    def of(**cfg):
        made.append(SumoEnv(cfg))
        return made[-1]

    yield of
    for env in made:
        env.close()


def play(env, seed, rule):
    """Rewards and observations of an episode, and its last info."""
    seen, rewards, step = [env.reset(seed=seed)], [], 0
    while True:
        obs, reward, done, info = env.step(rule(step))
        seen.append(obs)
        rewards.append(float(reward[0]))
        if done:
            return np.array(seen), rewards, info
        step += 1


def test_an_episode_is_its_seed_and_ends_with_what_happened(make):
    env = make(episode_s=300, step_s=10)
    other, first, again = (play(env, seed, lambda step: step // 3 % 2) for seed in (6, 5, 5))
    assert (first[0] == again[0]).all() and first[1] == again[1] and first[2] == again[2]
    assert first[1] != other[1]
    info = first[2]
    assert len(first[1]) == 30 and info['truncated'] and info['final_eval_reward'] == pytest.approx(sum(first[1]))
    assert 0 < info['arrived'] < len(env._starts) and info['mean_wait'] > 0
    there = env._sumo.vehicle.getIDCount() + len(env._sumo.simulation.getPendingVehicles())
    assert env._arrived + there == (env._starts <= 299).sum()  # nobody is lost


def test_an_episode_leaves_no_file_for_whoever_kills_its_process(make, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    env = make(episode_s=600, step_s=50)
    for seed in (0, 1):
        env.reset(seed=seed)
        assert not list(tmp_path.iterdir())
    info = [env.step(step % 2).info for step in range(12)][-1]
    assert info['arrived'] > 200  # also of the cars that SUMO reads later: it begins with those of 200 s


def test_yellow_comes_before_another_phase_only(make):
    env = make(step_s=5, yellow_s=2)
    env.reset(seed=0)
    lit, simulate = [], env._simulate
    lights = env._sumo.trafficlight
    env._simulate = lambda: (lit.append(lights.getRedYellowGreenState('A0')), simulate())[1]
    for phase in (0, 1):
        env.step(phase)
    first, second = env.net.crossings[0].greens
    assert lit == [first] * 5 + ['yyyyyrrrrryyyyyrrrrr'] * 2 + [second] * 3
    assert env.phase == [1]


def test_a_phase_makes_way_after_its_longest_time(make):
    env = make(step_s=5, longest_s=10)
    env.reset(seed=0)
    phases = [(env.step(0), env.phase[0])[1] for _ in range(7)]
    assert phases == [0, 0, 1, 0, 0, 0, 1]  # the first for 10 s; after yellow, 2 + 5 + 5 s


def test_the_queue_is_what_the_simulation_counts(make):
    env = make(episode_s=100, step_s=2, yellow_s=1)
    env.reset(seed=1)
    for _ in range(30):
        env.step(0)
    stood = [sum(q.sum() for q in env.queues())]
    simulate = env._simulate
    env._simulate = lambda: (simulate(), stood.append(sum(q.sum() for q in env.queues())))[0]
    reward = env.step(0).reward
    assert stood[-1] > 5 and reward[0] == pytest.approx(-np.mean(stood[1:]) / 8)  # of 8 lanes


def test_cells_tell_where_the_cars_of_a_lane_are(make):
    env = make(cells=3, per_hour=900, step_s=2, yellow_s=1)
    env.reset(seed=1)
    for _ in range(40):
        seen = env.step(0).obs
    cells = seen[3:].reshape(8, 3, 3)  # lane; cars, standing, slowness; cell
    lanes, vehicle, room = env.net.crossings[0].lanes, env._sumo.vehicle, 189.6 / 3 / 7.5
    assert (cells[:, 1].sum(1) * room).round(3).tolist() == env._halting(lanes).tolist()
    full = 0
    for lane, (cars, _, slowness) in zip(lanes, cells):
        for k in range(3):
            inside = [
                car
                for car in env._sumo.lane.getLastStepVehicleIDs(lane)
                if k * 63.2 <= 189.6 - vehicle.getLanePosition(car) < (k + 1) * 63.2
            ]
            assert cars[k] == pytest.approx(len(inside) / room)
            speeds = [vehicle.getSpeed(car) / 13.89 for car in inside]
            assert slowness[k] == pytest.approx(1 - np.mean(np.minimum(speeds, 1)) if inside else 0.0, abs=1e-5)
            full += bool(inside)
    assert full > 6 and sum(env.standing().values()) == env._halting(lanes).sum()


@pytest.mark.parametrize('name', ['queue', 'wait', 'delay', 'pressure'])
def test_every_reward_is_better_when_cars_may_go(make, name):
    weights = {**dict.fromkeys(('queue', 'wait', 'delay', 'pressure'), 0.0), name: 1.0}
    env = make(episode_s=300, rewards=weights)
    turns, never = (play(env, 3, rule)[2]['final_eval_reward'] for rule in (lambda step: step // 2 % 2, lambda step: 0))
    assert never < turns < 0


def test_three_crossings_are_switched_one_by_one(make):
    env = make(net='wj3', episode_s=60)
    env.reset(seed=0)
    obs = env.step(np.array([0, 1, 0])).obs
    assert (
        obs.shape == (3 * (2 + 1 + 3 * 4 * 8),)
        and env.phase == [0, 1, 0]
        and [list(q.shape) for q in env.queues()] == [[2]] * 3
    )
    with pytest.raises(ValueError, match=r'must be a phase for each crossing, of \[2, 2, 2\]'):
        env.step(np.array([0, 2, 0]))
    picture = env.render()
    assert picture.dtype == np.uint8 and picture.shape[0] < picture.shape[1] == 900


def test_a_second_simulation_in_a_process_is_refused(make):
    env, second = make(), make()
    env.reset(seed=0)
    with pytest.raises(ConfigError, match=r'one simulation a process.*take subprocess'):
        second.reset(seed=0)
    env.close()
    second.reset(seed=0)


def test_it_keeps_the_rules_of_envs(make):
    check_env(make(episode_s=50))
