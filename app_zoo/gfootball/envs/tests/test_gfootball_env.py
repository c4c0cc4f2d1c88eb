"""Football: on recorded episodes of the real engine, and on the engine itself where it is installed."""

import importlib.util

import numpy as np
import pytest

from app_zoo.gfootball.entry import bot as bot_entry
from app_zoo.gfootball.envs import GFootballEnv, features, gfootball_env
from app_zoo.gfootball.envs.bots import attacker, run, winger
from app_zoo.gfootball.envs.engine import ACTIONS
from app_zoo.gfootball.envs.tests.trace import TRACES, Replay
from nervex.data import TrajectoryDataset
from nervex.entry import offline_pipeline, serial_pipeline
from nervex.envs import check_env
from nervex.utils import ConfigError

FEW = ('env.env_manager_type=base', 'env.actor_env_num=2', 'env.evaluator_env_num=1', 'evaluator.n_episode=1')


@pytest.fixture(params=['replay', 'engine'])
def engine(request, monkeypatch):
    """The recorded engine and the real one, under the same tests."""
    if request.param == 'engine':
        pytest.importorskip('gfootball')
    else:
        monkeypatch.setattr(gfootball_env, 'Engine', Replay)
    return request.param


def make(name, **cfg):
    scenario, controlled, _ = TRACES[name]
    return GFootballEnv({'scenario': scenario, 'controlled': controlled, **cfg})


def held(name):
    return Replay(*TRACES[name][:2]).held


@pytest.mark.parametrize('name', TRACES)
def test_what_is_seen_and_paid_is_what_gfootballs_own_wrappers_make(name):
    held, raws = Replay(*TRACES[name][:2]), []
    for told in [None, *held.held['actions'].tolist()]:
        raws.append(held.reset(np.random.default_rng(0)) if told is None else held.step(told)[0])
    checkpoints = features.Checkpoints(TRACES[name][1])
    assert len(raws) == len(held.held['vectors']) > 10
    for step, raw in enumerate(raws):
        assert (features.vectors(raw) == held.held['vectors'][step]).all()
        assert (np.moveaxis(features.planes(raw), 0, 2) == held.held['maps'][step][0]).all()
        if step:
            score = int(held.held['scored'][step - 1])
            shaped = checkpoints.rewards(raw, score) + score
            assert shaped == pytest.approx(held.held['shaped'][step - 1], abs=1e-6)


@pytest.mark.parametrize('name', TRACES)
def test_recorded_actions_lead_to_the_recorded_goal(engine, name):
    _, controlled, seed = TRACES[name]
    recorded, env = held(name), make(name, rewards='scoring,checkpoints', team_reward='each')
    obs = env.reset(seed=seed)
    for step, action in enumerate(recorded['actions']):
        seen = obs['agent_state'] if controlled > 1 else obs[None]
        assert seen == pytest.approx(recorded['vectors'][step], abs=1e-4)
        obs, reward, done, info = env.step(action if controlled > 1 else int(action[0]))
        assert reward == pytest.approx(recorded['shaped'][step], abs=1e-6)
    made = int((recorded['scored'] == 1).sum())
    assert done and info == dict(final_eval_reward=float(made), truncated=False, goals=made, conceded=0, win=made > 0)
    with pytest.raises(RuntimeError, match=r'reset\(\)'):
        env.step(action)
    env.close()


@pytest.mark.parametrize(
    'name, cfg',
    [
        ('one', {}),
        ('one', dict(representation='extracted', frame_stack=4)),
        ('team', dict(rewards='scoring,checkpoints')),
        ('team', dict(team_reward='each', builtin_ai=True)),
    ],
)
def test_it_keeps_the_rules_of_envs(engine, name, cfg):
    assert check_env(make(name, **cfg), steps=450 if engine == 'engine' else 80) == []


def test_a_team_sees_itself_marked_and_pictures_are_stacked(engine):
    env = make('team')
    obs = env.reset(seed=0)
    active = env.raw['left_agent_controlled_player']
    marks = slice(97, 108)
    assert obs['agent_state'][:, marks].argmax(1).tolist() == active and obs['global_state'][marks].sum() == 3
    assert obs['action_mask'].shape == (3, 19) and env.info().act_space.value['n'] == (19,) * 3
    env.close()
    env = make('one', representation='extracted', frame_stack=2)
    first, second = env.reset(seed=0), env.step(5).obs
    assert first.shape == (8, 72, 96) and (first[:4] == first[4:]).all() and (second[:4] == first[4:]).all()
    picture = env.render()
    assert picture.dtype == np.uint8 and picture.shape[1] == 640
    env.close()


@pytest.mark.parametrize(
    'cfg, words',
    [
        (dict(representation='extracted', controlled=3), r"'extracted', but a team sees vectors: 'simple115'"),
        (dict(frame_stack=4), r'env\.frame_stack: is for pictures'),
    ],
)
def test_what_cannot_be_is_said(cfg, words):
    with pytest.raises(ValueError, match=words):
        GFootballEnv(cfg)


@pytest.mark.parametrize('action', [19, -1, 1.0, [1, 2]])
def test_an_action_that_is_none_is_refused(monkeypatch, action):
    monkeypatch.setattr(gfootball_env, 'Engine', Replay)
    env = make('one')
    env.reset(seed=0)
    with pytest.raises(ValueError, match='an action is an int from 0 to 18'):
        env.step(action)


def test_the_engine_that_is_missing_is_said_before_a_run_begins(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, 'find_spec', lambda name, *more: None if name == 'gfootball' else find(name, *more)
    )
    with pytest.raises(ConfigError, match=r"needs the package 'gfootball'.*app_zoo/gfootball/install\.sh"):
        serial_pipeline('gfootball_empty_goal_close_ppo', seed=0)


# ---- the scripted player
def field(place=(0.0, 0.0), foes=((1.0, 0.0),), mates=(), **raw):
    team = np.array([(-1.0, 0.0), place, *mates])
    base = dict(ball=np.array([*place, 0.0]), ball_direction=np.zeros(3), ball_owned_team=0, ball_owned_player=1)
    moves = dict(left_team_direction=np.tile([0.01, 0.0], (len(team), 1)))
    lasting = dict(left_agent_controlled_player=[1], left_agent_sticky_actions=[np.array([0] * 8 + [1, 0])])
    return {**base, **moves, **lasting, 'left_team': team, 'right_team': np.array(foes), **raw}


@pytest.mark.parametrize(
    'raw, action',
    [
        (field((0.0, 0.0)), 'right'),
        (field((0.5, 0.4)), 'top_right'),
        (field((0.9, 0.1)), 'shot'),
        (field(left_agent_sticky_actions=[np.array([0] * 9 + [1])]), 'sprint'),
        (field((0.5, 0.0), foes=[(0.56, 0.0)], mates=[(0.5, 0.2)]), 'bottom'),  # turns to whom it will pass
        (field((0.5, 0.0), foes=[(0.53, 0.045)], mates=[(0.8, 0.0)]), 'short_pass'),
        (field((0.5, 0.0), foes=[(0.56, 0.0)]), 'right'),  # nobody is there
        (field(ball=np.array([-0.5, 0.0, 0.0]), ball_owned_team=-1), 'left'),
        (field(ball=np.array([0.0, -0.3, 0.0]), ball_owned_team=1), 'top'),
        (field((0.2, 0.0), mates=[(0.6, 0.2)], ball=np.array([0.6, 0.2, 0.0]), ball_owned_player=2), 'right'),
    ],
)
def test_the_scripted_player_does_what_it_should(raw, action):
    assert ACTIONS[attacker(raw, 1)] == action


def lasting(*numbers):
    return dict(left_agent_sticky_actions=[np.isin(np.arange(10), numbers).astype(np.uint8)])


@pytest.mark.parametrize(
    'raw, action',
    [
        (field((0.6, 0.0), **lasting()), 'sprint'),
        (field((0.6, 0.0)), 'top_right'),  # to the wing
        (field((0.95, -0.18)), 'bottom'),  # and from there to the goal
        (field((0.92, -0.18), foes=[(0.99, -0.12)]), 'release_sprint'),
        (field((0.92, -0.18), foes=[(0.99, -0.12)], **lasting()), 'bottom'),
        (field((0.95, -0.1)), 'bottom_right'),  # aims at the far post
        (field((0.95, -0.1), **lasting(5, 8)), 'shot'),
        (field((0.95, 0.1), **lasting(3, 8)), 'shot'),
        (field(ball=np.array([-0.5, 0.0, 0.0]), ball_owned_team=-1), 'left'),
    ],
)
def test_the_winger_goes_round(raw, action):
    assert ACTIONS[winger(raw, 1)] == action


def test_every_direction_is_an_action_of_its_own():
    ways = [(-1, 0), (-1, -1), (0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1)]
    assert [run(np.array(way)) for way in ways] == list(range(1, 9))


def test_its_episodes_are_imitated(engine, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    few = '2' if engine == 'engine' else '12'
    bot_entry.main(['--episodes', few, '--out', 'bot', '--won', '--seed', '0'])
    assert '1.00 goals an episode, 100% won' in capsys.readouterr().out
    data = TrajectoryDataset('bot', seed=0)
    assert len(data.lengths) == int(few) and data.episode(0)['obs'].shape[1] == 115
    over = (*FEW, 'env.scenario=academy_empty_goal_close', 'commander.max_train_iter=20', 'policy.learn.batch_size=16')
    result = offline_pipeline('gfootball_il', 'bot', seed=0, overrides=over)
    assert result.train_iters >= 20 and result.env_steps == 0


@pytest.mark.parametrize('name', ['gfootball_empty_goal_close_ppo', 'gfootball_3_vs_1_with_keeper_mappo'])
def test_a_config_learns_on_recorded_episodes(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gfootball_env, 'Engine', Replay)
    few = ('actor.n_sample=32', 'policy.learn.batch_size=16') if name.endswith('_ppo') and 'mappo' not in name else ()
    few = few or ('actor.n_episode=2', 'policy.learn.batch_size=2')
    result = serial_pipeline(name, seed=0, overrides=(*FEW, *few, 'commander.max_train_iter=2'))
    assert result.train_iters >= 2 and result.env_steps > 0
