"""The state of an env without pickle: exact, and nothing in it leads anywhere."""

import json

import numpy as np
import pytest

from app_zoo.classic_control.bitflip.envs.bitflip_env import BitFlipEnv
from app_zoo.classic_control.cartpole.envs.cartpole_env import CartPoleEnv
from app_zoo.classic_control.pendulum.envs.pendulum_env import PendulumEnv
from app_zoo.multiagent_particle.envs.cooperative_navigation_env import CooperativeNavigationEnv
from app_zoo.smac.envs.smac_env import SMACEnv
from nervex.envs.env.plain_state import decode, encode
from nervex.envs.gym_env import GymEnv
from nervex.utils import tree
from nervex.worker.actor.env_manager import BaseEnvManager

GYM = ['CartPole-v1', 'Acrobot-v1', 'MountainCar-v0', 'MountainCarContinuous-v0', 'Pendulum-v1']
ENVS = [
    CartPoleEnv,
    PendulumEnv,
    BitFlipEnv,
    CooperativeNavigationEnv,
    lambda: CooperativeNavigationEnv(dict(team_reward='each', observe_alone=True)),
    lambda: SMACEnv(dict(map_name='MMM')),
    *(lambda env_id=env_id: GymEnv(dict(env_id=env_id)) for env_id in GYM),
    lambda: GymEnv(dict(env_id='CartPole-v1', wrappers=[dict(type='time_limit', max_episode_steps=9)])),
]


def play(env, rng, obs, steps):
    """What an env answers, with whatever episodes begin in these steps."""
    seen = []
    for _ in range(steps):
        if isinstance(obs, dict) and isinstance(env, SMACEnv):
            action = np.array([rng.choice(np.flatnonzero(mask)) for mask in obs['action_mask']])
        elif isinstance(env, CooperativeNavigationEnv):
            action = rng.integers(0, 5, env.world.agents)
        else:
            value = env.info().act_space.value
            action = (
                int(rng.integers(value['n']))
                if 'n' in value
                else rng.uniform(-1, 1, env.info().act_space.shape).astype(np.float32)
            )
        obs, reward, done, info = env.step(action)
        if done:
            obs = env.reset()
        seen.append((obs, reward, done, info))
    return obs, seen


MUJOCO = ['Ant-v5', 'HalfCheetah-v5', 'Hopper-v5', 'InvertedPendulum-v5']


@pytest.mark.parametrize('env_id', MUJOCO)
def test_mujoco_goes_on_bit_for_bit(env_id):
    pytest.importorskip('mujoco')
    test_an_env_goes_on_in_another_one_bit_for_bit(lambda: GymEnv(dict(env_id=env_id)))


def test_an_env_that_pickle_would_make_anew_is_not_saved():
    pytest.importorskip('Box2D')
    with BaseEnvManager(lambda cfg: GymEnv(cfg), [dict(env_id='LunarLander-v3')]) as manager:
        manager.launch()
        assert manager.state_dict() is None


@pytest.mark.parametrize('make', ENVS)
def test_an_env_goes_on_in_another_one_bit_for_bit(make):
    env, other = make(), make()
    env.seed(3)
    other.seed(4)
    other.reset()
    obs, _ = play(env, np.random.default_rng(0), env.reset(), 33)
    other.load_state_dict(json.loads(json.dumps(env.state_dict())))
    (_, a), (_, b) = (play(e, np.random.default_rng(1), obs, 60) for e in (env, other))
    assert all(np.array_equal(x, y) for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True))


def test_what_has_more_to_it_than_plain_values_says_so():
    shared = np.zeros(2)
    for value in (
        object(),
        {1, 2},
        np.array(['a']),
        [shared, shared],
        '../x',
        np.zeros((2, 3)).T,
        np.random.RandomState(0),
    ):
        with pytest.raises(TypeError):
            encode(value, set())


def test_kinds_come_back_as_they_were():
    value = {'a': [1, 2.5, None, True, 'x'], 'b': (np.float32(2), {3: np.arange(4, dtype=np.uint8)}), 'c': 2**100}
    back = decode(json.loads(json.dumps(encode(value, set()))))
    assert repr(back) == repr(value) and back['b'][0].dtype == np.float32 and back['b'][1][3].flags.writeable


@pytest.mark.parametrize(
    'state', [{'__class__': 1}, {'step': 1}, {'_film': '/etc/x'}, {'x': {'__array__': ['O', [1], '']}}]
)
def test_a_state_cannot_do_harm(state):
    with pytest.raises((TypeError, ValueError)):
        CartPoleEnv().load_state_dict(state)
