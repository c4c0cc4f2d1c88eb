"""CartPole against Gymnasium's, step for step, and its own rules."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from app_zoo.classic_control.cartpole.envs import CartPoleEnv
from nervex.envs import check_env


def test_every_step_equals_gymnasiums():
    ours, theirs = CartPoleEnv(), gymnasium.make('CartPole-v1').unwrapped
    ours.seed(0)
    theirs.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        ours.reset()
        theirs.state, theirs.steps_beyond_terminated = np.array(ours._state), None
        for _ in range(200):
            action = int(rng.integers(2))
            timestep = ours.step(action)
            obs, reward, terminated, _, _ = theirs.step(action)
            assert np.abs(timestep.obs - obs).max() < 1e-6 and timestep.reward[0] == reward
            assert timestep.done == terminated
            if terminated:
                break


def test_time_limit_of_200_is_no_terminal_state():
    env = CartPoleEnv()
    env.reset()
    for step in range(200):
        _, _, angle, angle_dot = env._state
        timestep = env.step(int(angle + 0.3 * angle_dot > 0))  # a controller that holds the pole
        assert timestep.done == (step == 199)
    assert timestep.info == {'final_eval_reward': 200.0, 'truncated': True}
    with pytest.raises(RuntimeError, match=r'reset\(\)'):
        env.step(0)


def test_falling_is_terminal():
    env = CartPoleEnv()
    env.reset()
    while not (timestep := env.step(1)).done:
        pass
    assert timestep.info['truncated'] is False and timestep.info['final_eval_reward'] < 20


def test_one_step_by_hand():
    """At rest, pushed right by 10: angle_acc -9.09/(0.5 (4/3 - 0.1/1.1)) = -14.634, x_acc 9.09 + 0.665 = 9.756."""
    env = CartPoleEnv()
    env.reset()
    env._state = (0.0, 0.0, 0.0, 0.0)
    obs = env.step(1).obs
    assert obs == pytest.approx([0.0, 0.02 * 9.75609756, 0.0, 0.02 * -14.63414634], abs=1e-6)


@pytest.mark.parametrize('action', [np.array(1), np.int64(1), 1, np.array([1])[0]])
def test_actions_of_any_integer_type(action):
    env = CartPoleEnv()
    env.reset()
    assert env.step(action).obs[1] > 0.1


def test_bad_action_is_refused():
    env = CartPoleEnv()
    env.reset()
    with pytest.raises(ValueError, match=r'0 \(left\) or 1 \(right\), got 2'):
        env.step(2)


def test_fixed_and_dynamic_seeds():
    env = CartPoleEnv()
    env.seed(3, dynamic_seed=False)
    assert (env.reset() == env.reset()).all()
    env.seed(3)
    first, second = env.reset(), env.reset()
    assert (first != second).any()
    env.seed(3)
    assert (env.reset() == first).all()


def test_env_is_sound():
    assert check_env(CartPoleEnv()) == []


def test_needs_no_gym():
    code = 'import sys, app_zoo.classic_control.cartpole.envs as e; e.CartPoleEnv().reset(); print(*sys.modules)'
    loaded = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout.split()
    assert 'numpy' in loaded and not {'gym', 'gymnasium', 'torch'} & set(loaded)
