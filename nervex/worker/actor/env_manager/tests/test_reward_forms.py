"""A reward may come as any one number: Python's, NumPy's, in an array or a list."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from nervex.utils.errors import EnvError
from nervex.worker.actor.env_manager.tests.managers import build

FORMS = [
    2,
    2.0,
    True,
    np.float32(2),
    np.float64(2),
    np.int8(2),
    np.array(2.0),
    np.array([2.0]),
    np.array([[2]]),
    [2.0],
    (2,),
]


class Paying(gymnasium.Env):
    """Episodes of ``length`` steps that give the same reward; with ``dict_obs`` it is not stepped directly."""

    def __init__(self, reward, dict_obs, shape, length=2):
        box = spaces.Box(0, 9, shape, np.float32)
        self.observation_space, self.action_space = spaces.Dict({'x': box}) if dict_obs else box, spaces.Discrete(2)
        self.reward, self.dict_obs, self.shape, self.length, self.steps = reward, dict_obs, shape, length, 0

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return self._obs(), {}

    def step(self, action):
        self.steps += 1
        return self._obs(), self.reward, self.steps == self.length, False, {}

    def _obs(self):
        obs = np.full(self.shape, self.steps, np.float32)
        return {'x': obs} if self.dict_obs else obs


def make(cfg):
    return Paying(**cfg)


@pytest.mark.parametrize('dict_obs,shape', [(False, (3,)), (False, (2, 2)), (True, (3,))])
def test_every_form_of_one_number_is_a_reward(single_kind, dict_obs, shape):
    cfgs = [dict(reward=reward, dict_obs=dict_obs, shape=shape) for reward in FORMS]
    with build(single_kind, cfgs, env=make, wait_num=len(cfgs), step_wait_timeout=10) as manager:
        for done in (False, True):
            timesteps = manager.step(dict.fromkeys(manager.ready_obs, 1))
            for i, reward in enumerate(FORMS):
                value = 1.0 if reward is True else 2.0
                assert timesteps[i].reward.tolist() == [value] and timesteps[i].done is done, reward
                assert not done or timesteps[i].info['final_eval_reward'] == 2 * value
        assert manager.faults.total == 0


@pytest.mark.parametrize('reward', [np.float16(40_000), np.float32(2**24 + 2), np.array([[2**24 + 2]], np.float32)])
def test_returns_are_summed_in_full_whatever_kind_of_number_a_reward_is(single_kind, reward):
    cfg = dict(reward=reward, dict_obs=False, shape=(3,), length=3)
    with build(single_kind, [cfg], env=make) as manager:
        for _ in range(3):
            timestep = manager.step({0: 1})[0]
        assert timestep.info['final_eval_reward'] == 3 * float(np.sum(reward))  # float16 ends at 65504
        assert manager.faults.total == 0


@pytest.mark.parametrize('reward', [np.array([1.0, 2.0]), [], 'much', None])
@pytest.mark.parametrize('shape', [(3,), (2, 2)])
def test_what_is_not_one_number_is_refused(reward, shape):
    cfg = dict(reward=reward, dict_obs=False, shape=shape)
    with build('base', [cfg], env=make, max_retry=0) as manager, pytest.raises(EnvError, match='reward'):
        manager.step({0: 1})
