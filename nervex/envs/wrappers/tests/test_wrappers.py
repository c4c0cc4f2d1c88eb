"""Wrappers of Gym objects, on a small fake game whose frames and rewards are known."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from nervex.envs import GymEnv
from nervex.envs.wrappers import (
    ActionRepeat,
    ClipReward,
    EpisodicLife,
    FireReset,
    FrameStack,
    MaxAndSkip,
    NoopReset,
    ScaledFloat,
    TimeLimit,
    WarpFrame,
    wrap,
    wrap_atari,
)


class Game:
    """Frame t is full of t (mod 256); reward -3 a step; a life is lost every ``life`` steps, three lives a game."""

    observation_space = Box(0, 255, (210, 160, 3), np.uint8)
    action_space = Discrete(3)
    metadata = {}

    def __init__(self, life=10, meanings=('NOOP', 'FIRE', 'UP')):
        self.life, self.meanings, self.resets, self.actions, self.steps = life, list(meanings), 0, [], 0
        self.ale = self

    @property
    def unwrapped(self):
        return self

    def lives(self):
        return 3 - self.steps // self.life

    def get_action_meanings(self):
        return self.meanings

    def reset(self, *, seed=None, options=None):
        self.resets, self.steps = self.resets + 1, 0
        return self._frame(), {}

    def step(self, action):
        self.steps += 1
        self.actions.append(action)
        return self._frame(), -3.0, self.lives() == 0, False, {}

    def _frame(self):
        return np.full((210, 160, 3), self.steps % 256, np.uint8)


def test_noop_reset_waits_one_to_thirty_steps_and_repeats_by_seed():
    game = Game(life=1000)
    env = NoopReset(game)
    waits = []
    for seed in (None, None, 5, None, 5, None):
        obs, _ = env.reset(seed=seed)
        waits.append(game.steps)
        assert 1 <= game.steps <= 30 and obs[0, 0, 0] == game.steps and set(game.actions) == {0}
    assert waits[2:4] == waits[4:6]


def test_noop_reset_begins_again_when_the_game_ends_meanwhile():
    env = NoopReset(Game(life=1), noop_max=30)  # over after 3 steps
    for _ in range(5):
        env.reset()
        assert env.unwrapped.lives() > 0


def test_an_action_is_repeated_until_the_end_and_its_last_observation_seen():
    game = Game(life=5)
    env = wrap(game, [dict(type='action_repeat', times=4)])
    env.reset()
    obs, reward, terminated, _, _ = env.step(2)
    assert reward == -12 and obs[0, 0, 0] == 4 and game.actions == [2] * 4 and not terminated
    game.steps = 14
    _, reward, terminated, _, _ = env.step(1)
    assert terminated and reward == -3 and game.actions == [2] * 4 + [1]
    with pytest.raises(ValueError, match='times must be >= 1, got 0'):
        ActionRepeat(game, 0)


def test_max_and_skip_sums_rewards_and_takes_the_brighter_of_two_frames():
    game = Game(life=5)
    env = MaxAndSkip(game, 4)
    env.reset()
    obs, reward, terminated, _, _ = env.step(2)
    assert reward == -12 and obs[0, 0, 0] == 4 and game.actions == [2] * 4 and not terminated
    game.steps = 13  # two steps until the end: only two rewards
    obs, reward, terminated, _, _ = env.step(2)
    assert terminated and reward == -6 and obs[0, 0, 0] == 15


def test_max_and_skip_with_one_step_left():
    game = Game(life=5)
    env = MaxAndSkip(game, 4)
    env.reset()
    game.steps = 14
    obs, reward, terminated, _, _ = env.step(0)
    assert terminated and reward == -3 and obs[0, 0, 0] == 15


def test_episodic_life_ends_at_each_life_but_resets_only_at_game_over():
    game = Game(life=3)
    env = EpisodicLife(game)
    env.reset()
    lengths = []
    for _ in range(4):
        steps, ended = 0, False
        while not ended:
            _, _, ended, _, _ = env.step(2)
            steps += 1
        lengths.append(steps)
        env.reset()
    assert lengths == [3, 2, 2, 3] and game.resets == 2  # a reset in mid-game is one step without action


def test_an_episode_that_ended_otherwise_than_by_a_life_is_followed_by_another_game():
    game = Game(life=3)
    env = EpisodicLife(game)
    env.reset()
    for steps in (2, 1):  # a time limit from outside, in the first life and behind it
        for _ in range(steps):
            env.step(2)
        env.reset()
        assert game.steps == 0
    assert game.resets == 3


@pytest.mark.parametrize('meanings,fired', [(('NOOP', 'FIRE', 'UP'), [1]), (('NOOP', 'UP', 'DOWN'), [])])
def test_fire_reset_fires_only_where_there_is_fire(meanings, fired):
    game = Game(meanings=meanings)
    FireReset(game).reset()
    assert game.actions == fired


@pytest.mark.parametrize(
    'meanings,actions', [(('NOOP', 'FIRE', 'UP'), [1, 2, 2, 1, 2, 2, 1, 2]), (('NOOP', 'UP', 'DOWN'), [2] * 7)]
)
def test_the_first_action_of_a_further_life_is_fire_where_there_is_fire(meanings, actions):
    game = Game(life=3, meanings=meanings)
    env = FireReset(game)
    for _ in range(2):  # a new game's is pressed by its reset
        env.reset()
        for _ in range(7):
            env.step(2)
    assert game.actions == actions * 2


def test_who_collects_begins_a_further_life_with_one_press_of_fire():
    pytest.importorskip('cv2')
    game = Game(life=12)
    env = wrap_atari(game, 'actor', noop_max=1)
    env.reset(seed=0)
    while not env.step(2)[2]:
        pass
    game.actions.clear()
    env.reset()
    assert game.actions == [1] * 4 and game.resets == 1


def test_a_game_is_cut_off_with_all_of_its_lives():
    pytest.importorskip('cv2')
    game = Game(life=12)  # FIRE, 2 steps of 4 frames; FIRE for the first of 3 steps; FIRE as the sixth, and the seventh
    env = wrap_atari(game, 'actor', noop_max=1, max_steps=7)
    ends = []
    for _ in range(2):
        for _ in range(3):
            env.reset(seed=None)
            ended = cut = steps = 0
            while not (ended or cut):
                *_, ended, cut, _ = env.step(2)
                steps += 1
            ends.append((steps, bool(ended), bool(cut)))
    assert ends == [(2, True, False), (2, True, False), (1, False, True)] * 2 and game.resets == 2


def test_warp_frame_is_grey_and_84():
    pytest.importorskip('cv2')
    env = WarpFrame(Game())
    obs, _ = env.reset()
    assert obs.shape == (84, 84) == env.observation_space.shape and obs.dtype == np.uint8
    assert abs(int(env.step(0)[0][3, 3]) - 1) <= 1


def test_clip_reward_keeps_the_true_return():
    env = ClipReward(Game(life=1))
    env.reset()
    answers = [env.step(0) for _ in range(3)]
    assert [a[1] for a in answers] == [-1.0, -1.0, -1.0]
    assert answers[2][4] == {'final_eval_reward': -9.0} and answers[0][4] == {}


def test_frame_stack_is_oldest_first_and_starts_with_copies():
    env = FrameStack(Game(), 4)
    obs, _ = env.reset()
    assert obs.shape == (4, 210, 160, 3) == env.observation_space.shape and (obs == 0).all()
    for _ in range(2):
        obs = env.step(0)[0]
    assert obs[:, 0, 0, 0].tolist() == [0, 0, 1, 2]
    assert env.reset()[0][:, 0, 0, 0].tolist() == [0, 0, 0, 0]


def test_scaled_float():
    env = ScaledFloat(Game())
    env.reset()
    obs = env.step(0)[0]
    assert obs.dtype == np.float32 and obs[0, 0, 0] == np.float32(1 / 255) and env.observation_space.high.max() == 1


def test_time_limit_is_truncation_unless_the_game_ends_in_the_same_step():
    env = TimeLimit(Game(life=10), 4)
    env.reset()
    assert [env.step(0)[2:4] for _ in range(4)] == [(False, False)] * 3 + [(False, True)]
    env = TimeLimit(Game(life=1), 3)
    env.reset()
    assert [env.step(0)[2:4] for _ in range(3)][2] == (True, False)
    with pytest.raises(ValueError, match='max_episode_steps'):
        TimeLimit(Game(), 0)


def test_wrap_atari_for_actors_and_evaluators():
    pytest.importorskip('cv2')
    actor, evaluator = wrap_atari(Game(life=8), 'actor'), wrap_atari(Game(life=8), 'evaluator')
    assert actor.observation_space.shape == (4, 84, 84)
    totals = {}
    for name, env in (('actor', actor), ('evaluator', evaluator)):
        env.reset(seed=0)
        ended, rewards = False, []
        while not ended:
            _, reward, ended, _, info = env.step(2)
            rewards.append(reward)
        totals[name] = (set(rewards), sum(rewards), info.get('final_eval_reward'))
    assert totals['actor'][0] == {-1.0} and totals['actor'][2] < totals['actor'][1]
    assert min(totals['evaluator'][0]) == -12.0 and totals['evaluator'][2] is None  # whole game, true rewards


def test_wrappers_in_a_config():
    specs = [
        dict(type='time_limit', max_episode_steps=5),
        dict(type='clip_reward', only='actor'),
        lambda env: FrameStack(env, 2),
    ]
    env = GymEnv(dict(env_id='Pendulum-v1', wrappers=specs, role='actor'))
    assert env.info().obs_space.shape == (2, 3)
    env.reset()
    for _ in range(5):
        timestep = env.step([0.5])
    assert timestep.done and timestep.info['truncated'] and timestep.info['final_eval_reward'] not in (0.0, -5.0)
    assert timestep.reward.tolist() == [-1.0]
    actors, evaluators = (
        f({'env_id': 'Pendulum-v1', 'actor_env_num': 2, 'evaluator_env_num': 1})
        for f in (GymEnv.create_actor_env_cfg, GymEnv.create_evaluator_env_cfg)
    )
    assert [c['role'] for c in actors + evaluators] == ['actor', 'actor', 'evaluator']


@pytest.mark.parametrize(
    'spec,error,match',
    [
        ('frame_stak', KeyError, "did you mean 'frame_stack'"),
        (3, TypeError, 'env.wrappers'),
        ({'n': 2}, TypeError, "'type'"),
        ({'type': 'frame_stack', 'only': 'learner'}, ValueError, 'only='),
    ],
)
def test_bad_wrappers_are_named(spec, error, match):
    with pytest.raises(error, match=match):
        wrap(Game(), [spec])
