"""A league in serial mode: a learner for each active player, in turn, and a resume that changes nothing."""

import json
import os
import sys
from pathlib import Path

import pytest
import yaml

from nervex.entry import arena, serial_pipeline
from nervex.entry import eval as evaluate
from nervex.run.folder import checkpoint_file
from nervex.run.launch import Passed, prepare_launch
from nervex.run.league_run import start_league
from nervex.utils import ConfigError, NothingThereError
from nervex.utils.file_helper import read_file
from nervex.utils.tests import quick_start
from nervex.worker.learner.checkpoints import load_checkpoint_file

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from run_contents import checkpoints, curves, same_models

HARNESS = Path(__file__).parent / 'kill_harness.py'
PHASE = dict(one_phase_step=8)


def config(**league):
    return dict(
        exp_name='run',
        env=dict(env_type='rock_paper_scissors', env_manager_type='vector', actor_env_num=4, evaluator_env_num=2),
        policy=dict(policy_type='ppo', model=dict(hidden_dim_list=[8]), learn=dict(batch_size=16, epochs=2)),
        replay_buffer={},
        actor=dict(n_sample=16),
        evaluator=dict(n_episode=2, eval_freq=8),
        learner=dict(hook=dict(log_show=dict(ext_args=dict(freq=4)))),
        commander=dict(
            commander_type='league',
            turn_rounds=2,
            max_train_iter=32,
            league=dict(
                active_players=dict(main_player=1, main_exploiter=1, league_exploiter=1),
                main_player=PHASE,
                main_exploiter=PHASE,
                league_exploiter=dict(mutate_prob=0.5, **PHASE),
                **league,
            ),
        ),
    )


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def contents(folder):
    players = sorted(Path(folder, 'players').iterdir())
    league = {path.name: read_file(str(path))['model'] for path in Path(folder, 'league').glob('*ckpt*')}
    return [curves(path) for path in players], {path.name: checkpoints(path) for path in players}, league


def test_every_player_learns_and_leaves_snapshots():
    result = serial_pipeline(config(), 0)
    assert result.train_iters == 32
    with start_league(prepare_launch(None, None, Passed(), resume='run')) as run:
        assert list(run.runs) == ['main_player_default_0', 'main_exploiter_default_0', 'league_exploiter_default_0']
        assert {one.learner.train_iter for one in run.runs.values()} == {32}
        past = [player.player_id for player in run.league.historical_players]
        assert len(past) >= 3 and all(os.path.exists(p.checkpoint_path) for p in run.league.historical_players)
        assert run.league.payoff.record('main_player_default_0', past[0])['games'] >= 0
        games = run.league.payoff.state_dict()['counts'][3]
        assert games.sum() > 20 and run.league.elo.ratings
    text = Path('run/log/commander/commander_logger.txt').read_text(encoding='utf-8')
    assert 'snapshot of main_exploiter_default_0' in text and 'begins anew' in text and ' almost surely' in text


def test_an_exploiter_begins_anew_from_the_first_weights():
    with start_league(prepare_launch(config(), 0)) as run:
        run.begin()
        first = read_file('run/league/first_default.pth.tar')['model']
        exploiter = run.runs['main_exploiter_default_0'].policy
        for _ in range(18):
            run.turn()
            text = Path('run/log/commander/commander_logger.txt').read_text(encoding='utf-8')
            if 'snapshot of main_exploiter' in text.splitlines()[-1] if text else False:
                assert same_models(exploiter.eval_mode.state_dict()['model'], first)
                break
        else:
            raise AssertionError('no snapshot')


def test_so_many_snapshots_are_kept_and_files_for_as_long_as_they_are_needed():
    cfg = config()
    cfg['commander']['snapshot_keep'] = 1
    with start_league(prepare_launch(cfg, 0)) as run:
        run.begin()
        for _ in range(24):
            run.turn()
        past = run.league.historical_players
        assert sorted(player.parent_id for player in past) == sorted(run.runs)
        for _ in range(4):
            run.save()
        met = set().union(*(one.commander.selfplay.met for one in run.runs.values()))
        needed = {player.player_id for player in past} | met
        files = {path.name for path in Path('run/league').glob('*_ckpt_*')}
        assert {os.path.basename(player.checkpoint_path) for player in past} <= files
        assert files <= {os.path.basename(run.home.file_of(name)) for name in needed}


def test_what_an_earlier_league_left_is_moved_aside():
    cfg = config()
    cfg['commander'].update(max_train_iter=8)
    serial_pipeline(cfg, 0)
    serial_pipeline(cfg, 1)
    for folder in ('run/league', 'run/league_1', 'run/log_1', 'run/players/main_player_default_0/log_1'):
        assert os.path.isdir(folder)


@pytest.mark.parametrize('turns', [1, 4, 7])
def test_killed_and_resumed_is_as_never_stopped(turns):
    serial_pipeline({**config(), 'exp_name': 'straight'}, 3)
    with start_league(prepare_launch({**config(), 'exp_name': 'killed'}, 3)) as run:
        run.begin()
        for k in range(turns + 3):
            if k == turns:
                run.save()
            run.turn()  # what comes behind the saved state is lost
    serial_pipeline(None, resume='killed')
    (straight, models, league), (killed, others, leagues) = contents('straight'), contents('killed')
    assert straight == killed and len(straight[0]) > 10
    assert all(same_models(models[name], others[name]) for name in models) and set(models) == set(others)
    assert same_models(league, leagues)


@pytest.mark.parametrize(
    'change, words',
    [
        (dict(league=dict(active_players=dict(main_playr=1))), r"active_players: .*'main_playr'.*mean 'main_player'"),
        (dict(league=dict(main_exploiter=PHASE)), r'league\.main_exploiter: is for players of a type that nobody is'),
        (dict(league=dict(naive_sp_player=dict(phase=1))), r'naive_sp_player\.phase: unknown setting'),
        (dict(league=dict(payoff=dict(decay=2))), r'league\.payoff\.decay: got 2'),
        (dict(league=dict(league_type='solitary')), r"league_type: unknown league 'solitary'.*one_vs_one, solo"),
        (dict(selfplay='pfsp'), r'commander\.selfplay: got .pfsp., must be None'),
    ],
)
def test_wrong_settings_are_told_before_anything_starts(change, words):
    with pytest.raises(ConfigError, match=words):
        serial_pipeline(config() | {'commander': dict(commander_type='league', **change)}, 0)
    assert not os.path.exists('run')


def test_a_league_needs_a_game_of_two_sides():
    cfg = config()
    cfg['env'].update(env_type='cartpole', env_manager_type='base')
    with pytest.raises(ConfigError, match='CartPoleEnv has one side'):
        serial_pipeline(cfg, 0)
    assert not os.path.exists('run')


def test_players_begin_with_a_checkpoint_which_must_fit_their_network():
    cfg = config()
    cfg['commander'].update(max_train_iter=8)
    serial_pipeline(cfg, 0)
    player = 'run/players/main_player_default_0'
    cfg = config(use_pretrain=True, use_pretrain_init_historical=True, pretrain_checkpoint_path=dict(default=player))
    with start_league(prepare_launch({**cfg, 'exp_name': 'next'}, 1)) as run:
        run.begin()
        begun = [one.learner.state_dict()['model'] for one in run.runs.values()]
        first = load_checkpoint_file(checkpoint_file(player))['model']
        assert all(same_models(first, model) for model in begun)
        (past,) = run.league.historical_players
        run.save()
    with start_league(prepare_launch(None, None, resume='next')) as run:
        (again,) = run.league.historical_players
        assert again.player_id == 'pretrain_default' and again.checkpoint_path == past.checkpoint_path
    cfg['policy']['model'] = dict(hidden_dim_list=[4])
    path = r'pretrain_checkpoint_path\.default: '
    with pytest.raises(
        ConfigError, match=path + '.*main_player_default_0 is nothing that a player can begin with.*size'
    ):
        serial_pipeline({**cfg, 'exp_name': 'other'}, 0)
    cfg['commander']['league']['pretrain_checkpoint_path'] = dict(default='nowhere')
    with pytest.raises(ConfigError, match=path + '.*nowhere: no such checkpoint'):
        serial_pipeline({**cfg, 'exp_name': 'other'}, 0)
    assert not os.path.exists('other')


def test_the_folder_of_a_league_is_no_checkpoint_and_a_player_of_it_goes_on_with_the_others_only():
    cfg = config()
    cfg['commander'].update(max_train_iter=8, turn_rounds=1)
    serial_pipeline(cfg, 0)
    player = 'run/players/main_player_default_0'
    with pytest.raises(NothingThereError, match=rf'run: holds a league; give one of its players: .*{player}'):
        evaluate(None, 0, load_path='run')
    with pytest.raises(ConfigError, match=r'main_player_default_0: is a player of a league .*--resume .*run'):
        serial_pipeline(None, resume=player)
    assert evaluate(None, 0, load_path=player, n_episode=4).returns.shape == (4,)
    assert arena([player, 'random'], 8).wins.sum() > 0


@pytest.mark.parametrize(
    'operations',
    [[90, 420, 1100], pytest.param(range(5, 1480, 17), marks=[pytest.mark.slow, pytest.mark.timeout(1800)])],
    ids=['some', 'many'],
)
def test_killed_at_a_file_operation_and_resumed_is_as_never_killed(operations):
    cfg = config()
    cfg['commander'].update(max_train_iter=24, snapshot_keep=2)
    cfg['learner']['resume'] = dict(interval_s=0.0, max_cost=None)
    Path('config.yaml').write_text(yaml.safe_dump(cfg), encoding='utf-8')
    command = [sys.executable, str(HARNESS), 'config.yaml', *map(str, operations)]
    done = quick_start.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop('operations') > max(operations) and found.pop('killed') == len(operations)
    assert not found
