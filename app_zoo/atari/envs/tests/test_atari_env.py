"""Atari games: frames against Gymnasium's preprocessing, who sees what, and what no game is."""

import importlib
import sys
from unittest.mock import Mock

import numpy as np
import pytest

pytest.importorskip('ale_py')
pytest.importorskip('cv2')

from app_zoo.atari.envs import AtariEnv
from nervex.envs import check_env
from nervex.envs.wrappers.atari import NoopReset
from nervex.utils import ConfigError, ExtraMissingError, UnknownNameError
from nervex.worker.actor.env_manager import create_env_manager

FIRE = 1


@pytest.mark.parametrize('seed', [3, 4])
@pytest.mark.parametrize('game', ['Pong', 'Breakout', 'Qbert'])
def test_frames_rewards_and_ends_are_those_of_gymnasium(game, seed):
    import gymnasium
    from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

    raw = gymnasium.make(f'ALE/{game}-v5', frameskip=1, repeat_action_probability=0.0)
    theirs = FrameStackObservation(AtariPreprocessing(raw, noop_max=30, frame_skip=4), 4)
    ours = AtariEnv(dict(env_id=game, role='evaluator'))
    seen, _ = theirs.reset(seed=seed)
    ours.info()
    waiting = next(layer for layer in ours._layers() if isinstance(layer, NoopReset))
    waiting._rng = Mock(integers=Mock(return_value=raw.unwrapped.ale.getEpisodeFrameNumber()))
    mine = ours.reset()
    fires = raw.unwrapped.get_action_meanings()[1] == 'FIRE'
    if fires:  # ours begins after the first press
        seen, *_ = theirs.step(FIRE)
    assert (mine[-1] == seen[-1]).all()
    rng, scored, waits, lives = np.random.default_rng(seed), 0.0, False, raw.unwrapped.ale.lives()
    for step in range(300):
        action = int(rng.integers(theirs.action_space.n))
        seen, reward, terminated, truncated, info = theirs.step(FIRE if waits else action)
        waits, lives = fires and info['lives'] < lives, info['lives']  # and a further life, too
        timestep = ours.step(action)
        assert timestep.reward[0] == reward and timestep.done == (terminated or truncated)
        scored += abs(reward)
        if timestep.done:  # whose frame is older in Gymnasium: it looks after the last two of four only
            break
        assert (timestep.obs[-1] == seen[-1]).all()
        assert (timestep.obs == seen).all() or step < 3  # the first stacks differ: ours begins after the press
    assert scored > 0 or game == 'Breakout'
    ours.close()


def test_collecting_sees_lives_and_signs_evaluating_whole_games_and_scores():
    totals = {}
    for role in ('actor', 'evaluator'):
        env = AtariEnv(dict(env_id='Breakout', role=role, max_frames=4000))
        env.reset(seed=1)
        rng, steps, rewards, done = np.random.default_rng(1), 0, [], False
        while not done:
            _, reward, done, info = env.step(int(rng.integers(4)))
            rewards.append(float(reward[0]))
            steps += 1
        totals[role] = steps, info
        env.close()
    assert totals['actor'][0] < totals['evaluator'][0]  # one life of five


def test_a_game_that_is_cut_off_is_over_also_for_who_collects():
    env = AtariEnv(dict(env_id='Boxing', role='actor', max_frames=40))
    for _ in range(3):
        env.reset()
        assert env.env.unwrapped.ale.getEpisodeFrameNumber() <= 30 + 4  # waiting, and the press of FIRE
        ends = [env.step(0)[2:] for _ in range(10)]
    assert [done for done, _ in ends] == [False] * 9 + [True] and ends[-1][1]['truncated']
    env.close()


def test_one_frame_is_a_stack_too_with_and_without_an_engine():
    game = dict(env_id='Boxing', frame_stack=1, frame_size=64)
    shapes = [create_env_manager(kind, AtariEnv, [game]).env_info().obs_space.shape for kind in ('base', 'vector')]
    assert shapes == [(1, 64, 64)] * 2


@pytest.mark.parametrize('engine', ['ale', 'envpool', 'envpool, asynchronous'])
def test_the_vectorised_games_have_the_same_roles_and_make_no_row_of_their_own(engine):
    kind, n, given = 'vector', 2, dict(env_id='Breakout', vector_backend=engine.split(',')[0])
    if engine != 'ale':
        pytest.importorskip('envpool')
    if 'asynchronous' in engine:
        kind, n = 'async_vector', 4
        given['vector_kwargs'] = dict(batch_size=2)
    cfgs = {role: [dict(role=role, **given)] * n for role in ('actor', 'evaluator')}
    for role, expected in (('actor', True), ('evaluator', False)):
        manager = create_env_manager(kind, AtariEnv, cfgs[role])
        manager.seed(0)
        manager.launch()
        rng, rows, ends = np.random.default_rng(0), 0, 0
        lengths = np.zeros(n, int)
        finished: list[int] = []
        for _ in range(200 * n):
            ids, _ = manager.observe()
            block = manager.advance(ids, rng.integers(0, 4, len(ids)))
            rows, ends = rows + len(block), ends + int(block.done.sum())
            lengths[np.asarray(block.env_id)] += 1
            for k in np.asarray(block.env_id)[np.asarray(block.done)]:
                finished.append(int(lengths[k]))
                lengths[k] = 0
        assert rows == sum(finished) + lengths.sum() and ends == len(finished) > 0
        short = np.mean(finished) < 100  # a life; a whole game of five takes longer
        assert short == expected, (role, finished)
        manager.close()


def play_breakout(steps, **game):
    """Blocks of an engine while nobody catches the ball."""
    cfg = dict(env_id='Breakout', noop_max=1, **game)
    with create_env_manager('vector', AtariEnv, [cfg] * 2) as manager:
        manager.seed(0)
        manager.launch()
        for _ in range(steps):
            ids, obs = manager.observe()
            yield obs[0], manager.advance(ids, np.zeros(len(ids), int))


def test_an_engine_goes_on_with_the_next_life_where_the_last_was_lost():
    lives, frames, ends, last = [], [], [], None
    for seen, block in play_breakout(125, vector_backend='ale', role='actor'):
        assert last is None or (seen == last).all()
        lives.append(int(block.info[0]['lives']))
        frames.append(int(block.info[0]['episode_frame_number']))
        ends += [len(lives)] if block.done[0] else []
        last = block.obs[0].copy() if block.done[0] and len(ends) < 5 else None
        assert not block.truncated.any()
    assert [lives[end - 1] for end in ends] == [4, 3, 2, 1, 5]  # FIRE throws in a ball, which falls in 23 steps
    assert (np.diff(frames)[: ends[3]] == 4).all()  # one game


@pytest.mark.parametrize('engine', ['ale', 'envpool'])
def test_the_engines_throw_in_the_ball_for_who_evaluates(engine):
    if engine != 'ale':
        pytest.importorskip('envpool')
    ends = [b.episode_length[0] for _, b in play_breakout(130, vector_backend=engine, role='evaluator') if b.done[0]]
    assert len(ends) == 1 and 110 <= ends[0] <= 130  # five balls


@pytest.mark.parametrize('engine', ['ale', 'envpool', None])
def test_frames_count_by_games_not_by_lives(engine):
    if engine == 'envpool':
        pytest.importorskip('envpool')
    given, ends = dict(role='actor', max_frames=160), []
    if engine is not None:
        blocks = (block for _, block in play_breakout(42, vector_backend=engine, **given))
        ends = [(int(b.episode_length[0]), bool(b.truncated[0])) for b in blocks if b.done[0]]
    else:
        env = AtariEnv(dict(env_id='Breakout', noop_max=1, **given))
        for _ in range(2):
            env.reset()
            steps, done = 0, False
            while not done:
                _, _, done, info = env.step(0)
                steps += 1
            ends.append((steps, info['truncated']))
        env.close()
    (life, cut), (rest, also_cut) = ends
    assert not cut and also_cut and life + rest in (39, 40)  # without an engine FIRE is pressed between them


def test_envpool_shows_the_same_and_its_resets_are_no_steps():
    pytest.importorskip('envpool')
    game = dict(env_id='Pong', noop_max=1, max_frames=4 * 12, vector_backend='envpool', role='evaluator')
    one = AtariEnv(game)
    one.reset(seed=0)
    manager = create_env_manager('vector', AtariEnv, [game] * 2)
    manager.seed(0)
    manager.launch()
    assert manager.env_info().obs_space.shape == one.info().obs_space.shape
    ends, steps = [], 0
    for step in range(25):
        ids, _ = manager.observe()
        block = manager.advance(ids, np.full(len(ids), 2 + step % 2))
        steps += len(block)
        ends += [step] * int(block.done.sum())
        assert (block.truncated == block.done).all() and not (block.done & (block.episode_length != 12)).any()
        if step < 4:  # the ball is not in play yet, so that all games are alike
            assert (block.obs[0][-1] == one.step(2 + step % 2).obs[-1]).all()
    assert ends == [11, 11, 23, 23] and steps == 2 * 25
    manager.close()
    one.close()


def test_an_engine_that_is_not_installed_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, 'envpool', None)
    with pytest.raises(ExtraMissingError, match=r'pip install "nervex\[envpool\]"'):
        AtariEnv.create_vector_env([dict(env_id='Pong', vector_backend='envpool')])


@pytest.mark.parametrize('made', [AtariEnv, lambda cfg: AtariEnv.create_vector_env([cfg])])
def test_a_game_that_is_none_is_named(made):
    with pytest.raises(UnknownNameError, match=r"'ALE/Pongg-v5'.*did you mean 'ALE/Pong-v5'"):
        made(dict(env_id='Pongg'))


@pytest.mark.parametrize('made', [AtariEnv, lambda cfg: AtariEnv.create_vector_env([cfg])])
def test_an_env_that_is_no_game_of_ale_is_refused(made):
    with pytest.raises(UnknownNameError, match=r"'CartPole-v1' is not; take env_type=gym"):
        made(dict(env_id='CartPole-v1'))


@pytest.mark.parametrize('given', [dict(wrappers=['frame_stack']), dict(make_kwargs=dict(mode=1))])
def test_what_only_single_games_take_is_refused_where_an_engine_steps_them(given):
    with pytest.raises(ConfigError, match=f'env.{next(iter(given))}: got '):
        AtariEnv.create_vector_env([dict(env_id='Pong', **given)])


def test_older_ids_are_the_same_game_and_are_named():
    for name in ('Pong-v4', 'PongNoFrameskip-v4', 'ale_py:ALE/Pong-v5'):
        assert AtariEnv.check_config(AtariEnv.complete_cfg(dict(env_id=name))) == []
    frames = [AtariEnv(dict(env_id=name)).reset(seed=3) for name in ('Pong', 'Pong-v4')]
    assert (frames[0] == frames[1]).all()
    with pytest.raises(UnknownNameError, match=r"did you mean 'Pong-v4'"):
        AtariEnv(dict(env_id='Pong-v5'))


def test_envpool_names_a_game_that_it_has_not():
    pytest.importorskip('envpool')
    with pytest.raises(UnknownNameError, match=r"EnvPool has no env 'Pongg-v5'; did you mean 'Pong-v5'"):
        AtariEnv.create_vector_env([dict(env_id='Pongg', vector_backend='envpool')])


def test_beside_other_mistakes_a_game_that_exists_is_none():
    assert AtariEnv.check_config(AtariEnv.complete_cfg(dict(env_id='Pong'))) == []
    [(name, text)] = AtariEnv.check_config(AtariEnv.complete_cfg(dict(env_id='Pongg')))
    assert name == 'env_id' and "did you mean 'ALE/Pong-v5'" in text


def test_it_keeps_the_rules_of_envs_and_can_draw():
    env = AtariEnv(dict(env_id='SpaceInvaders', render_mode='rgb_array', max_frames=400))
    assert env.info().obs_space.shape == (4, 84, 84) and env.info().act_space.value['n'] == 6
    check_env(env)
    env.reset(seed=0)
    assert env.render().shape == (210, 160, 3)
    env.close()


@pytest.mark.parametrize('name', ['dqn', 'rainbow', 'iqn', 'qrdqn', 'sqn', 'sac_discrete'])
def test_configs_with_a_buffer_of_steps_store_each_frame_once(name):
    config = importlib.import_module(f'app_zoo.atari.entry.atari_{name}_default_config').main_config
    assert config.replay_buffer.agent.frame_axis == 0
