"""Pendulum against Gymnasium's, step for step, and its own rules."""

import gymnasium
import numpy as np
import pytest

from app_zoo.classic_control.pendulum.envs import PendulumEnv
from nervex.envs import check_env


def test_every_step_equals_gymnasiums():
    ours, theirs = PendulumEnv(), gymnasium.make('Pendulum-v1').unwrapped
    theirs.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        obs = ours.reset()
        theirs.state = np.array(ours._state)
        assert np.abs(obs - theirs._get_obs()).max() < 1e-6
        for _ in range(200):
            action = rng.uniform(-3, 3, 1).astype(np.float32)
            theirs.state = np.array(ours._state)
            timestep = ours.step(action)
            obs, reward, _, _, _ = theirs.step(action)
            assert np.abs(timestep.obs - obs).max() < 1e-5 and timestep.reward[0] == pytest.approx(reward, abs=1e-5)


def test_ends_by_its_limit_only():
    env = PendulumEnv(dict(max_episode_steps=3))
    env.reset()
    timesteps = [env.step(np.zeros(1, np.float32)) for _ in range(3)]
    assert [t.done for t in timesteps] == [False, False, True]
    assert timesteps[2].info['truncated'] is True
    assert timesteps[2].info['final_eval_reward'] == pytest.approx(sum(float(t.reward[0]) for t in timesteps), abs=1e-4)
    with pytest.raises(RuntimeError, match=r'reset\(\)'):
        env.step(0.0)


def test_scaled_actions():
    plain, scaled = PendulumEnv(), PendulumEnv(dict(use_act_scale=True))
    for env in (plain, scaled):
        env.seed(1)
        env.reset()
    assert (plain.step([1.5]).obs == scaled.step([0.75]).obs).all()
    assert scaled.info().act_space.value['max'] == 1.0 and plain.info().act_space.value['max'] == 2.0


def test_one_step_by_hand():
    """Hanging sideways (pi/2) at rest, torque 2: speed (15 + 6) 0.05 = 1.05; cost (pi/2)^2 + 0.004."""
    env = PendulumEnv()
    env.reset()
    env._state = (np.pi / 2, 0.0)
    timestep = env.step([2.0])
    assert timestep.obs[2] == pytest.approx(1.05) and timestep.reward[0] == pytest.approx(-((np.pi / 2) ** 2) - 0.004)


def test_env_is_sound():
    assert check_env(PendulumEnv()) == []
