"""Gymnasium ids, Gymnasium objects and old gym objects behind GymEnv."""

import pickle
import sys
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from nervex.envs import BaseEnv, BaseEnvTimestep, GymEnv, check_env, get_vec_env_setting, gym_env
from nervex.utils import UnknownNameError
from nervex.utils.errors import ExtraMissingError
from nervex.worker.actor.env_manager import BaseEnvManager, VectorEnvManager

BUILT_IN = [
    'CartPole-v0',
    'CartPole-v1',
    'Acrobot-v1',
    'MountainCar-v0',
    'MountainCarContinuous-v0',
    'Pendulum-v1',
    'Blackjack-v1',
    'FrozenLake-v1',
    'CliffWalking-v1',
]
TAXI = next(name for name in gymnasium.registry if name.startswith('Taxi-'))


@pytest.mark.parametrize('env_id', [*BUILT_IN, TAXI])
def test_ids_need_no_class(env_id):
    env = GymEnv(dict(env_id=env_id, max_episode_steps=20))
    assert check_env(env, steps=60) == []


def test_unknown_id_names_the_nearest():
    with pytest.raises(UnknownNameError, match=r"'CartPol-v1'; did you mean 'CartPole-v1'\?"):
        GymEnv(dict(env_id='CartPol-v1')).reset()
    with pytest.raises(ValueError, match='env_id'):
        GymEnv({})


def test_time_limit_of_the_registration_is_truncation():
    env = GymEnv(dict(env_id='Pendulum-v1'))
    env.reset()
    timesteps = [env.step(np.zeros(1, np.float32)) for _ in range(200)]
    assert [t.done for t in timesteps] == [False] * 199 + [True]
    assert timesteps[-1].info['truncated'] is True
    total = sum(float(t.reward[0]) for t in timesteps)
    assert timesteps[-1].info['final_eval_reward'] == pytest.approx(total)
    with pytest.raises(RuntimeError, match=r'reset\(\)'):
        env.step(np.zeros(1, np.float32))


def test_terminal_state_at_the_limit_is_terminal():
    env = GymEnv(dict(env_id='CartPole-v1', max_episode_steps=9))
    env.seed(0)
    env.reset()
    while not (timestep := env.step(1)).done:  # falls in step 9 or 10 when pushed one way
        pass
    assert timestep.info['truncated'] in (True, False) and isinstance(timestep.info['truncated'], bool)
    fell = abs(env.env.unwrapped.state[2]) > 12 * np.pi / 180
    assert timestep.info['truncated'] == (not fell)


def test_same_steps_as_gymnasium_itself():
    ours, theirs = GymEnv(dict(env_id='CartPole-v1')), gymnasium.make('CartPole-v1')
    ours.seed(7)
    assert (ours.reset() == theirs.reset(seed=7)[0]).all()
    rng = np.random.default_rng(0)
    for _ in range(300):
        action = int(rng.integers(2))
        timestep, (obs, reward, terminated, truncated, _) = ours.step(action), theirs.step(action)
        assert (timestep.obs == obs).all() and timestep.reward.tolist() == [reward]
        assert timestep.reward.dtype == np.float32 and timestep.reward.shape == (1,)
        assert timestep.done == (terminated or truncated)
        if timestep.done:
            assert (ours.reset() == theirs.reset()[0]).all()  # a dynamic seed goes on with the generator


def test_fixed_seed_begins_every_episode_alike():
    env = GymEnv(dict(env_id='CartPole-v1'))
    env.seed(3, dynamic_seed=False)
    assert (env.reset() == env.reset()).all()
    env.seed(3)
    assert (env.reset() != env.reset()).any()


class OldEnv:
    """gym 0.21: seed(), reset() -> obs, step() -> 4 values."""

    observation_space, action_space = spaces.Box(-1, 1, (2,)), spaces.Discrete(2)

    def __init__(self, limit_flag=True):
        self.limit_flag, self.seeded = limit_flag, []

    def seed(self, seed=None):
        self.seeded.append(seed)

    def reset(self):
        self.t = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.t += 1
        done = self.t == 3
        info = {'TimeLimit.truncated': True} if done and self.limit_flag else {}
        return np.full(2, self.t / 4, np.float32), 1.0, done, info


class MiddleEnv(OldEnv):
    """gym 0.26: reset(seed=...) -> (obs, info), step() -> 5 values."""

    def reset(self, *, seed=None, options=None):
        self.seeded.append(seed)
        return super().reset(), {}

    def step(self, action):
        obs, reward, done, _ = super().step(action)
        return obs, reward, done and not self.limit_flag, done and self.limit_flag, {}


@pytest.mark.parametrize('cls', [OldEnv, MiddleEnv])
@pytest.mark.parametrize('limit_flag', [True, False])
def test_old_gym_objects(cls, limit_flag):
    inner = cls(limit_flag)
    env = GymEnv(inner)
    env.seed(11)
    assert env.reset().tolist() == [0.0, 0.0] and 11 in inner.seeded
    timesteps = [env.step(1) for _ in range(3)]
    assert [t.done for t in timesteps] == [False, False, True]
    assert timesteps[2].info['truncated'] is limit_flag and timesteps[2].info['final_eval_reward'] == 3.0
    assert timesteps[2].obs.tolist() == [0.75, 0.75]


def test_old_gym_objects_in_a_manager():
    with BaseEnvManager(lambda cfg: OldEnv(cfg['flag']), [dict(flag=True), dict(flag=False)]) as manager:
        manager.seed(5)
        manager.launch()
        for _ in range(3):
            block = manager.advance(manager.all_ids, np.zeros(2, np.int64))
        assert block.done.all() and block.truncated.tolist() == [True, False]


def test_real_old_gym():
    pytest.importorskip('gym')
    env = GymEnv(dict(env_id='CartPole-v1', package='gym'))
    assert check_env(env, steps=100) == []
    env.seed(0)
    first = env.reset()
    assert first.shape == (4,) and (env.reset() != first).any()


def test_tuple_observation_is_not_taken_for_obs_and_info():
    class Pair(MiddleEnv):
        observation_space = spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 1, (1,))])

        def reset(self, *, seed=None, options=None):
            super().reset()
            return (1, np.zeros(1, np.float32)), {}

        def step(self, action):
            return ((0, np.ones(1, np.float32)), *super().step(action)[1:])

    env = GymEnv(Pair())
    assert env.reset()['0'].tolist() == [0.0, 1.0] and env.step(0).obs['1'].tolist() == [1.0]


def test_setting_from_a_config():
    cfg = dict(env_type='gym', env_id='CartPole-v1', actor_env_num=3, evaluator_env_num=2)
    before = repr(cfg)
    env_fn, actors, evaluators = get_vec_env_setting(cfg)
    assert env_fn is GymEnv and len(actors) == 3 and len(evaluators) == 2 and repr(cfg) == before
    assert [c['role'] for c in actors + evaluators] == ['actor'] * 3 + ['evaluator'] * 2


def test_both_ways_of_stepping_give_the_same_numbers():
    """Managers call a plain Gymnasium env directly; a subclass is called by its step."""

    class Through(GymEnv):
        def step(self, action):
            return super().step(action)

    rows = []
    for cls in (GymEnv, Through):
        with BaseEnvManager(cls, [dict(env_id='CartPole-v1', max_episode_steps=12)] * 2) as manager:
            manager.seed(0)
            manager.launch()
            found = []
            for t in range(60):
                block = manager.advance(manager.all_ids, np.array([t % 2, 1]))
                found += [
                    block.obs.copy(),
                    block.reward.copy(),
                    block.done.copy(),
                    block.truncated.copy(),
                    manager.observe()[1].copy(),
                    block.episode_return[block.done],
                ]
            rows.append(found)
    assert all((a == b).all() for a, b in zip(*rows)) and any(d.any() for d in rows[0][2::6])


def test_wrong_observation_of_a_plain_env_is_noticed():
    class Liar(gymnasium.Env):
        observation_space, action_space = spaces.Box(-1, 1, (2,)), spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            self.t = 0
            return np.zeros(2, np.float32), {}

        def step(self, action):
            self.t += 1
            answers = [np.zeros(2), np.zeros(1, np.float32)]  # float64 is converted; one number is not spread
            return answers[self.t - 1], 1.0, False, False, {}

    with BaseEnvManager(lambda cfg: Liar(), [{}]) as manager:
        manager.launch()
        assert len(manager.advance(manager.all_ids, np.array([0]))) == 1 and manager.faults.total == 0
        block = manager.advance(manager.all_ids, np.array([0]))
        assert block.abnormal == (0,) and 'shape (2,), got (1,)' in manager.faults.recent[0].text


def test_pickled_in_mid_episode_goes_on_alike():
    env = GymEnv(dict(env_id=TAXI))
    env.seed(1)
    env.reset()
    twin = pickle.loads(pickle.dumps(env))
    for action in (0, 1, 2, 3):
        assert (env.step(action).obs == twin.step(action).obs).all()


VECTORISED = [('CartPole-v1', 'gymnasium'), ('Pendulum-v1', 'auto'), ('Blackjack-v1', 'auto')]


@pytest.mark.parametrize('env_id,backend', VECTORISED)
def test_vectorised_gymnasium(env_id, backend):
    cfgs = [dict(env_id=env_id, vector_backend=backend, max_episode_steps=15)] * 3
    with VectorEnvManager(GymEnv, cfgs) as manager:
        manager.seed(0)
        manager.launch()
        totals, ends = np.zeros(3), 0
        for _ in range(40):
            ids, obs = manager.observe()
            leaf = next(iter(obs.values())) if isinstance(obs, dict) else obs
            assert len(leaf) == len(ids) > 0
            shape = (len(ids), 1) if env_id == 'Pendulum-v1' else (len(ids),)
            block = manager.advance(ids, np.ones(shape, np.float32 if env_id == 'Pendulum-v1' else np.int64))
            totals[block.env_id] += block.reward
            for k in np.flatnonzero(block.done):
                assert block.episode_return[k] == pytest.approx(totals[block.env_id[k]], rel=1e-5)
                assert block.truncated[k] == (env_id == 'Pendulum-v1')
                totals[block.env_id[k]], ends = 0.0, ends + 1
        assert ends >= 3


def test_unknown_vector_backend():
    with (
        pytest.raises(ValueError, match="did you mean 'envpool'"),
        VectorEnvManager(GymEnv, [dict(env_id='CartPole-v1', vector_backend='envpol')]) as manager,
    ):
        manager.launch()


def test_deprecated_version_names_the_present_one():
    with pytest.raises(UnknownNameError, match=f"did you mean '{TAXI}'"):
        GymEnv(dict(env_id='Taxi-v1')).reset()


def test_base_env_is_a_context_manager_with_spaces():
    with GymEnv(dict(env_id='Pendulum-v1')) as env:
        assert isinstance(env, BaseEnv) and env.action_space == spaces.Box(-2, 2, (1,))
        env.reset()
        assert isinstance(env.step([0.0]), BaseEnvTimestep)


@pytest.mark.parametrize(
    'cfg, warns',
    [
        ({'env_id': 'CliffWalking-v1'}, True),
        ({'env_id': 'CliffWalking-v1', 'max_episode_steps': 50}, False),
        ({'env_id': 'CliffWalking-v1', 'wrappers': [{'type': 'time_limit', 'max_episode_steps': 9}]}, False),
        ({'env_id': 'CartPole-v1'}, False),
    ],
)
def test_an_env_without_a_time_limit_is_told_once(caplog, cfg, warns):
    gym_env._warn_of_no_limit.cache_clear()
    for _ in range(2):
        GymEnv(cfg).info()
    assert ['no time limit' in record.getMessage() for record in caplog.records] == [True] * warns


LIMITS = [
    (dict(config={'duration': 40}), True),
    (dict(config={'duration': None}), False),
    (dict(config='one'), False),
    (dict(_env=SimpleNamespace(_step_limit=1000.0)), True),
    (dict(_env=SimpleNamespace(_step_limit=np.inf)), False),
]


@pytest.mark.parametrize('inside, limited', LIMITS)
def test_a_limit_of_highway_env_and_of_dm_control_is_seen(inside, limited):
    made = SimpleNamespace(unwrapped=SimpleNamespace(**inside), spec=SimpleNamespace(kwargs={}))
    assert gym_env.limits_itself(made, []) is limited


@pytest.mark.parametrize(
    'env_id, package, extra',
    [('dm_control/cartpole-balance-v0', 'shimmy', 'dm_control'), ('MiniGrid-Nowhere-v0', 'minigrid', 'minigrid')],
)
def test_a_suite_that_is_not_installed_is_named_with_its_extra(monkeypatch, env_id, package, extra):
    for name in [name for name in sys.modules if name.split('.')[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(gymnasium, 'registry', {})
    with pytest.raises(ExtraMissingError, match=rf'pip install "nervex\[{extra}\]"'):
        GymEnv(dict(env_id=env_id)).info()


def test_a_package_that_a_picture_needs_is_named_with_its_extra():
    def render():
        raise gymnasium.error.DependencyNotInstalled('pygame is not installed')

    env = GymEnv(dict(env_id='CartPole-v1'))
    env.reset()
    env.env.render = render
    with pytest.raises(ExtraMissingError, match=r'nervex\[video\].*pygame is not installed'):
        env.render()
