"""BitFlip: what a step does, how episodes end, and where its randomness comes from."""

import numpy as np
import pytest

from app_zoo.classic_control.bitflip.envs import BitFlipEnv


def started(n_bits=4, seed=0):
    env = BitFlipEnv(dict(n_bits=n_bits))
    env.seed(seed)
    return env, env.reset()


def test_flipping_every_wrong_bit_reaches_the_goal():
    env, obs = started(6)
    wrong = np.flatnonzero(obs[:6] != obs[6:])
    assert len(wrong)
    for bit in wrong[:-1]:
        step = env.step(bit)
        assert not step.done and step.reward.tolist() == [0.0] and step.obs[bit] == 1 - obs[bit]
    step = env.step(wrong[-1])
    assert step.done and step.reward.tolist() == [1.0]
    assert step.info == {'final_eval_reward': 1.0, 'truncated': False}


def test_an_episode_is_cut_after_as_many_steps_as_bits():
    env, obs = started(4)
    good = int(np.flatnonzero(obs[:4] == obs[4:])[0]) if (obs[:4] == obs[4:]).any() else 0
    steps = []
    for _ in range(4):
        steps.append(env.step(good))
        if steps[-1].done:
            break
    assert steps[-1].info == {'final_eval_reward': 0.0, 'truncated': True} and len(steps) == 4
    with pytest.raises(RuntimeError, match='reset'):
        env.step(0)


def test_observations_never_alias_what_a_later_step_writes():
    env, obs = started()
    first = obs.copy()
    env.step(0)
    assert np.array_equal(obs, first)


def test_no_episode_begins_at_its_goal():
    env, _ = started(1)
    assert all(len(set(env.reset().tolist())) == 2 for _ in range(20))


def test_seeds_repeat_and_leave_the_global_generator_alone():
    np.random.seed(3)
    expected = np.random.random()
    np.random.seed(3)
    a, b = started(seed=5), started(seed=5)
    assert np.array_equal(a[1], b[1]) and np.array_equal(a[0].reset(), b[0].reset())
    assert np.random.random() == expected
    fixed, first = started(seed=5)
    fixed.seed(5, dynamic_seed=False)
    assert np.array_equal(fixed.reset(), first) and np.array_equal(fixed.reset(), first)


@pytest.mark.parametrize('action', [-1, 4])
def test_an_action_is_a_bit(action):
    env, _ = started(4)
    with pytest.raises(ValueError, match=r'0 \.\.\. 3'):
        env.step(action)
