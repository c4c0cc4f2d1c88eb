"""An id of Gymnasium means the same env whether its envs are single or one that is vectorised."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from nervex.envs import GymEnv
from nervex.utils.errors import ConfigError
from nervex.worker.actor.env_manager import BaseEnvManager, VectorEnvManager

KINDS = (BaseEnvManager, VectorEnvManager)


class Drawn(gymnasium.Env):
    """Episodes of one to three steps; an observation tells the episode's draw, the step and the last action."""

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.draw, self.length, self.steps = *self.np_random.integers(1, (10**6, 4)).tolist(), 0
        return self.seen(0), {'begun': True}

    def step(self, action):
        self.steps += 1
        over = self.steps >= self.length
        info = {'is_success': self.draw % 2 == 0, 'last': {'draw': self.draw}} if over else {'steps': self.steps}
        return self.seen(action), float(action), over and self.length != 2, over and self.length == 2, info

    def seen(self, action):
        return np.float32([self.draw, self.steps, action])


gymnasium.register('Drawn-v0', entry_point=Drawn)


def rows_of(cls, cfg=None, steps=12, num=2):
    """What each env answers to the same actions: (observation, next, reward, done, truncated, info) of each step."""
    rows, actions = [[] for _ in range(num)], np.random.default_rng(0).integers(4, size=(steps, num))
    with cls(GymEnv, [cfg or dict(env_id='Drawn-v0')] * num) as manager:
        manager.seed(3)
        manager.launch()
        for action in actions:
            ids, obs = manager.observe()
            before, block = obs.tolist(), manager.advance(ids, action)
            told = before, block.obs.tolist(), block.reward.tolist(), block.done.tolist(), block.truncated.tolist()
            for i, row in enumerate(zip(*told, block.info)):
                rows[i].append(row)
    return rows


def test_infos_are_those_of_the_step_also_where_it_ends_an_episode():
    single, vectorised = (rows_of(cls) for cls in KINDS)
    assert single == vectorised
    ends = [row[-1] for rows in vectorised for row in rows if row[3]]
    assert len(ends) > 5 and all('is_success' in info and info['last']['draw'] > 0 for info in ends)


def draws_of(cls, events, num=2, steps=40, **manager_cfg):
    """The draws of the episodes of each env, '-' between those before and behind each event: step -> what is done."""
    seen, cfg = [[] for _ in range(num)], dict(retry_waiting_time=0.0, max_retry=5, **manager_cfg)
    with cls(GymEnv, [dict(env_id='Drawn-v0')] * num, manager_cfg=cfg) as manager:
        manager.seed(3)
        manager.launch()
        for t in range(steps):
            if t in events:
                events[t](manager)
                seen = [[*row, '-'] for row in seen]
            ids, obs = manager.observe()
            for i, (draw, step, _) in zip(ids, obs.tolist()):
                seen[i] += [draw] if step == 0 else []
            manager.advance(ids, np.zeros(len(ids), np.int64))
    return seen


@pytest.mark.parametrize('cls', KINDS)
def test_a_reset_goes_on_with_other_episodes_and_a_seed_begins_them_again(cls):
    for row in draws_of(cls, {10: lambda m: m.reset(), 20: lambda m: (m.seed(3), m.reset())}):
        first, second, third = ' '.join(map(str, row)).split(' - ')
        assert not set(first.split()) & set(second.split())
        assert first.startswith(third[: len(first)]) or third.startswith(first)


@pytest.mark.parametrize('cls', KINDS)
def test_envs_that_were_restarted_do_not_play_the_same_episodes_again(cls, monkeypatch):
    true_step, calls = Drawn.step, []

    def step(self, action):
        calls.append(1)
        if len(calls) in (21, 41):
            raise RuntimeError('broken')
        return true_step(self, action)

    monkeypatch.setattr(Drawn, 'step', step)
    for row in draws_of(cls, {}):
        assert len(row) > 10 and len(set(row)) == len(row)


class Negative(gymnasium.RewardWrapper):
    def reward(self, reward):
        return -reward


@pytest.mark.parametrize(
    'cfg',
    [
        dict(env_id='Drawn-v0', wrappers=[dict(type='action_repeat', times=2), 'frame_stack']),
        dict(env_id='Drawn-v0', wrappers=[Negative, dict(type='time_limit', max_episode_steps=2)]),
        dict(env_id='Drawn-v0', wrappers=[dict(type=Negative, only='evaluator')], role='actor'),
        dict(env_id='Drawn-v0', max_episode_steps=2, wrappers=['clip_reward']),
        dict(env_fn=Drawn, max_episode_steps=1),
    ],
)
def test_wrappers_time_limits_and_functions_make_the_same_envs(cfg):
    single, vectorised = (rows_of(cls, cfg) for cls in KINDS)
    assert single == vectorised


def test_wrappers_are_put_around_the_single_envs_of_an_id_that_is_vectorised():
    cfg = dict(env_id='CartPole-v1', wrappers=['frame_stack'])
    with VectorEnvManager(GymEnv, [cfg] * 2) as manager:
        manager.launch()
        assert manager.observe()[1].shape == (2, 4, 4)


@pytest.mark.parametrize('given', [dict(wrappers=['clip_reward']), dict(env_fn=Drawn, env_id=None)])
def test_what_a_foreign_engine_cannot_do_is_refused(given):
    cfg = dict(env_id='CartPole-v1', vector_backend='envpool', **{k: v for k, v in given.items() if k != 'env_id'})
    with pytest.raises(ConfigError, match=f'env.{next(iter(given))}: got .*by vector_backend envpool'):
        VectorEnvManager(GymEnv, [{**cfg, **given}]).launch()
