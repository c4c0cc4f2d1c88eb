"""Every env of nervex has what a Gymnasium env has, and can be given to Gymnasium's wrappers."""

import gymnasium
import numpy as np
import pytest

from app_zoo.classic_control.bitflip.envs import BitFlipEnv
from app_zoo.classic_control.cartpole.envs import CartPoleEnv
from app_zoo.classic_control.pendulum.envs import PendulumEnv
from app_zoo.multiagent_particle.envs import CooperativeNavigationEnv
from app_zoo.smac.envs import SMACEnv
from nervex.envs import GymEnv
from nervex.utils import tree


def gym_cartpole(cfg=None):
    return GymEnv(dict(env_id='CartPole-v1', make_kwargs={'render_mode': 'rgb_array'}))


ENVS = [CartPoleEnv, PendulumEnv, BitFlipEnv, SMACEnv, CooperativeNavigationEnv, gym_cartpole]


def first(env, **kwargs):
    return np.concatenate([leaf.ravel() for leaf in tree.leaves(env.reset(**kwargs))]).tolist()


@pytest.mark.parametrize('make', [e for e in ENVS if e is not SMACEnv])  # its battles all begin alike
def test_reset_takes_a_seed_and_goes_on_from_it(make):
    env, other = make({}), make({})
    begun = [first(env, seed=7), first(env), first(env)]
    assert [first(other, seed=7), first(other), first(other)] == begun and begun[0] != begun[1]
    other.seed(7)
    assert first(other) == begun[0] == first(env, seed=7) != first(env, seed=8)
    env.seed(7, dynamic_seed=False)
    assert first(env) == first(env) == begun[0]


@pytest.mark.parametrize('make', ENVS)
def test_what_a_gymnasium_env_has(make):
    if make is gym_cartpole:
        pytest.importorskip('pygame', reason='pip install "nervex[video]"')
    with make({}) as env:
        env.reset(seed=1)
        assert env.metadata['render_modes'] and env.metadata['render_fps'] > 0
        picture = env.render()
        assert picture.dtype == np.uint8 and picture.shape[2] == 3
        assert env.unwrapped is not None and (env.spec is None or env.spec.id == 'CartPole-v1')


@pytest.mark.parametrize('make', [CartPoleEnv, BitFlipEnv, PendulumEnv, gym_cartpole])
def test_an_action_of_one_number_may_be_an_array(make):
    one, other = make({}), make({})
    assert first(one, seed=3) == first(other, seed=3)
    assert (one.step(np.array([1])).obs == other.step(1).obs).all()


def test_gymnasium_wrappers_take_the_view_of_an_env():
    view = gymnasium.wrappers.RecordEpisodeStatistics(
        gymnasium.wrappers.TimeLimit(CartPoleEnv().as_gymnasium(), max_episode_steps=3)
    )
    obs, _ = view.reset(seed=7)
    assert obs.tolist() == CartPoleEnv().reset(seed=7).tolist()
    steps = [view.step(action) for action in (0, 1, 0)]
    assert [s[3] for s in steps] == [False, False, True] and steps[-1][4]['episode']['r'] == 3.0
    assert GymEnv(view).reset(seed=7).tolist() == obs.tolist()


def test_an_end_of_time_is_truncated_in_the_view():
    view = PendulumEnv(dict(max_episode_steps=2)).as_gymnasium()
    view.reset(seed=0)
    assert [view.step(np.zeros(1))[2:4] for _ in range(2)] == [(False, False), (False, True)]
