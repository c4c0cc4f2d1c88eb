"""Envs of other packages by their id; each test needs its package."""

import os

import numpy as np
import pytest

from nervex.entry.video import _prepare_headless
from nervex.envs import GymEnv, check_env
from nervex.utils import ConfigError, ExtraMissingError
from nervex.worker.actor.env_manager import create_env_manager

IDS = [
    ('Box2D', 'LunarLander-v3', {}),
    ('Box2D', 'LunarLander-v3', dict(make_kwargs=dict(continuous=True))),
    ('Box2D', 'BipedalWalker-v3', dict(use_act_scale=True)),
    ('mujoco', 'HalfCheetah-v5', {}),
    ('mujoco', 'Hopper-v5', dict(use_act_scale=True)),
    ('gymnasium_robotics', 'PointMaze_UMaze-v3', dict(flatten_obs=True)),
    ('dm_control', 'dm_control/cartpole-balance-v0', dict(flatten_obs=True)),
    ('minigrid', 'MiniGrid-Empty-5x5-v0', {}),
    ('highway_env', 'highway-fast-v0', {}),
    ('highway_env', 'parking-v0', dict(flatten_obs=True)),
    ('highway_env', 'parking-v0', {}),
    ('ale_py', 'ALE/Pong-v5', {}),
]


def drive(manager, steps):
    """Random actions; answers how many rows came and how many episodes ended. Rows are those of the ids asked for."""
    rng, rows, ends = np.random.default_rng(0), 0, 0
    space = manager.env_info().act_space
    while rows < steps:
        ids, _ = manager.observe()
        if space.value['kind'] == 'continuous':
            actions = rng.uniform(space.value['min'], space.value['max'], (len(ids), *space.shape)).astype(np.float32)
        else:
            actions = rng.integers(0, space.value['n'], len(ids))
        block = manager.advance(ids, actions)
        rows, ends = rows + len(block), ends + int(block.done.sum())
        assert np.isfinite(block.reward).all() and len(block.reward) == len(block.env_id)
    return rows, ends


@pytest.mark.parametrize('package,env_id,cfg', IDS)
def test_ids_of_other_packages_need_no_class(package, env_id, cfg):
    pytest.importorskip(package)
    problems = check_env(GymEnv(dict(env_id=env_id, max_episode_steps=15, **cfg)), steps=40)
    assert problems == []


@pytest.mark.parametrize('package,env_id,cfg', IDS)
def test_they_run_in_a_subprocess(package, env_id, cfg):
    pytest.importorskip(package)
    cfgs = [dict(env_id=env_id, max_episode_steps=10, **cfg)] * 2
    with create_env_manager('sync_subprocess', GymEnv, cfgs) as manager:
        manager.seed(0)
        manager.launch()
        rows, ends = drive(manager, 50)
        assert rows >= 50 and ends >= 4 and manager.faults.total == 0


@pytest.mark.parametrize('kind', ['base', 'sync_subprocess', 'thread'])
def test_real_old_gym_in_managers(kind):
    pytest.importorskip('gym')
    with create_env_manager(kind, GymEnv, [dict(env_id='CartPole-v1', package='gym')] * 2) as manager:
        manager.seed(0)
        manager.launch()
        assert drive(manager, 200)[1] >= 4 and manager.faults.total == 0


@pytest.mark.parametrize('env_id', ['CartPole-v1', 'Pendulum-v1'])
def test_envpool(env_id):
    pytest.importorskip('envpool')
    cfg = dict(env_id=env_id, vector_backend='envpool', max_episode_steps=20)
    with create_env_manager('vector', GymEnv, [cfg] * 4) as manager:
        manager.seed(3)
        manager.launch()
        first = manager.observe()[1].copy()
        assert drive(manager, 300)[1] >= 12
        manager.reset()
        assert (manager.observe()[1] != first).any()
        manager.seed(3)
        manager.reset()
        assert (manager.observe()[1] == first).all()


@pytest.mark.parametrize(
    'env_id,given,shape',
    [
        ('FrozenLake-v1', {}, (16,)),
        ('FrozenLake-v1', dict(one_hot_obs=False), ()),
        ('Catch-v0', dict(flatten_obs=True), (50,)),
        ('CheetahRun-v1', dict(flatten_obs=True), (17,)),
    ],
)
def test_observations_of_envpool_are_turned_into_those_of_the_config(env_id, given, shape):
    pytest.importorskip('envpool')
    cfg = dict(env_id=env_id, vector_backend='envpool', **given)
    with create_env_manager('vector', GymEnv, [cfg] * 2) as manager:
        manager.launch()
        assert manager.observe()[1].shape == (2, *shape) and manager.env_info().obs_space.shape == shape


@pytest.mark.parametrize('size', [1, 2, 4])
def test_envpool_answers_with_the_first_of_its_envs(size):
    pytest.importorskip('envpool')
    cfg = dict(
        env_id='CartPole-v1', vector_backend='envpool', max_episode_steps=20, vector_kwargs=dict(batch_size=size)
    )
    with create_env_manager('async_vector', GymEnv, [cfg] * 4) as manager:
        manager.seed(3)
        manager.launch()
        first = manager.observe()[1].copy()
        lengths, ends = np.zeros(4, int), 0
        for _ in range(400 // size):
            ids, obs = manager.observe()
            block = manager.advance(ids, (obs[:, 2] > 0).astype(np.int64))
            lengths[block.env_id] += 1
            for k in np.flatnonzero(block.done).tolist():
                i, ends = int(block.env_id[k]), ends + 1
                assert block.episode_length[k] == lengths[i] == block.episode_return[k] <= 20  # a reward of 1 a step
                lengths[i] = 0
        assert ends >= 10
        manager.reset()
        assert (manager.observe()[1] != first).any()
        manager.seed(3)
        manager.reset()
        assert (manager.observe()[1] == first).all()


def test_a_batch_of_envpool_divides_its_envs():
    pytest.importorskip('envpool')
    cfg = dict(env_id='CartPole-v1', vector_backend='envpool', vector_kwargs=dict(batch_size=3))
    with pytest.raises(ConfigError, match='batch_size: got 3, must be a number that divides the number of envs, 4'):
        create_env_manager('async_vector', GymEnv, [cfg] * 4).launch()
    with create_env_manager('async_vector', GymEnv, [cfg] * 2) as manager:  # more than there are: all of them
        manager.launch()
        assert len(manager.advance(manager.observe()[0], np.zeros(2, np.int64))) == 2


def test_envpool_and_gymnasium_step_alike():
    """The same state and actions give the same states: CartPole's rules are the same in both."""
    pytest.importorskip('envpool')
    cfg = dict(env_id='CartPole-v1', vector_backend='envpool', max_episode_steps=500)
    with create_env_manager('vector', GymEnv, [cfg] * 3) as manager:
        manager.seed(0)
        manager.launch()
        twins = [GymEnv(dict(env_id='CartPole-v1')) for _ in range(3)]
        for twin, row in zip(twins, manager.observe()[1]):
            twin.reset()
            twin.env.unwrapped.state = row.astype(np.float64)
        for t in range(8):
            block = manager.advance(manager.all_ids, np.array([t % 2, 1, 0]))
            expected = [twin.step(a) for twin, a in zip(twins, (t % 2, 1, 0))]
            assert np.allclose(block.obs, [e.obs for e in expected], atol=1e-4)
            assert block.done.tolist() == [e.done for e in expected]
            if block.done.any():
                break


@pytest.mark.parametrize('mode', ['SameStep', 'NextStep'])
def test_ale_vector_env(mode):
    """Ends are cut by the time limit; the last observation of an episode is its own, not the next one's first."""
    pytest.importorskip('ale_py')
    cfg = dict(env_id='ALE/Pong-v5', max_episode_steps=12, vector_kwargs=dict(autoreset_mode=mode, noop_max=1))
    with create_env_manager('vector', GymEnv, [cfg] * 3) as manager:
        manager.seed(0)
        manager.launch()
        assert manager.env_info().obs_space.shape == (4, 84, 84)
        lengths = []
        for t in range(40):
            ids, obs = manager.observe()
            assert obs.dtype == np.uint8 and obs.shape[1:] == (4, 84, 84)
            block = manager.advance(ids, np.full(len(ids), 2 + t % 2))
            for k in np.flatnonzero(block.done):
                lengths.append(int(block.episode_length[k]))
                assert block.truncated[k]
                # three of its four frames were there one step before
                row = np.flatnonzero(ids == block.env_id[k])[0]
                assert (block.obs[k][:3] == obs[row][1:]).all()
        assert len(lengths) >= 6 and set(lengths) <= {12, 13}


def test_an_id_of_ale_is_the_same_game_where_its_engine_plays_it(monkeypatch):
    vector_env = pytest.importorskip('ale_py.vector_env')
    made, maker = {}, vector_env.AtariVectorEnv
    noting = lambda *args, **kwargs: made.update(kwargs) or maker(*args, **kwargs)  # noqa: E731
    monkeypatch.setattr(vector_env, 'AtariVectorEnv', noting)
    GymEnv.create_vector_env([dict(env_id='ALE/Pong-v5', vector_kwargs=dict(repeat_action_probability=0.1))]).close()
    assert made['reward_clipping'] is False and made['repeat_action_probability'] == 0.1
    GymEnv.create_vector_env([dict(env_id='ALE/Pong-v5', make_kwargs=dict(full_action_space=True))]).close()
    assert made['repeat_action_probability'] == 0.25 and made['full_action_space'] and made['frameskip'] == 4


def test_pettingzoo_in_every_kind_of_process():
    pytest.importorskip('mpe2')
    from mpe2 import simple_spread_v3

    from nervex.envs import PettingZooEnv

    def env_fn(cfg):
        return PettingZooEnv(simple_spread_v3.parallel_env(N=3, max_cycles=7))

    for kind in ('base', 'sync_subprocess'):
        with create_env_manager(kind, env_fn, [{}] * 2) as manager:
            manager.launch()
            ends = 0
            for _ in range(20):
                ids, _ = manager.observe()
                block = manager.advance(ids, np.zeros((len(ids), 3), np.int64))
                ends += int(block.done.sum())
            assert ends == 4 and block.obs is not None and manager.faults.total == 0


def test_mujoco_draws_without_a_screen(monkeypatch, tmp_path):
    pytest.importorskip('mujoco')
    for name in ('MUJOCO_GL', 'DISPLAY', 'WAYLAND_DISPLAY'):
        monkeypatch.delenv(name, raising=False)
    found = {'EGL': 'libEGL.so.1', 'OSMesa': 'libOSMesa.so.8'}
    monkeypatch.setattr('ctypes.util.find_library', found.get)
    env = GymEnv(dict(env_id='Hopper-v5', render_mode='rgb_array'))
    env.info()
    assert os.environ['MUJOCO_GL'] == 'egl'
    env.close()
    monkeypatch.setenv('MUJOCO_GL', 'glfw')  # what a user has chosen stays
    GymEnv(dict(env_id='Hopper-v5', render_mode='rgb_array')).info()
    assert os.environ['MUJOCO_GL'] == 'glfw'
    monkeypatch.delenv('MUJOCO_GL')
    del found['EGL']
    _prepare_headless()  # as for films
    assert os.environ['MUJOCO_GL'] == 'osmesa'
    found.clear()
    with pytest.raises(ExtraMissingError, match='MUJOCO_GL=osmesa: this machine has no OSMesa: apt-get install libosm'):
        GymEnv(dict(env_id='Hopper-v5')).info()  # also who does not draw: MuJoCo loads it at its import
    monkeypatch.delenv('MUJOCO_GL')
    with pytest.raises(ExtraMissingError, match='apt-get install libegl1, or libosmesa6'):
        GymEnv(dict(env_id='Hopper-v5', render_mode='rgb_array')).info()
    GymEnv(dict(env_id='Hopper-v5')).info()  # who does not draw needs neither


def test_the_camera_goes_with_a_body_that_walks(monkeypatch):
    pytest.importorskip('mujoco')
    monkeypatch.setenv('MUJOCO_GL', 'glfw')  # nothing is drawn

    def camera(**make_kwargs):
        env = GymEnv(dict(env_id='HalfCheetah-v5', render_mode='rgb_array', make_kwargs=make_kwargs))
        try:
            return env.env.unwrapped.mujoco_renderer.camera_id
        finally:
            env.close()

    assert camera() == camera(camera_id=0) == camera(camera_name='track') == 0  # the only one of the model
    assert camera(camera_name='none') == camera(camera_id=-1) == -1  # free, as who makes the env wants it
