"""From the league to the learners: AlphaStar's players on the drill, and on pysc2's mock where that is installed."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from nervex.config import read_config
from nervex.config.config import builtin_configs
from nervex.entry import arena, serial_pipeline
from nervex.entry.parallel_entry import parallel_pipeline
from nervex.run.launch import Passed, prepare_launch
from nervex.run.league_run import start_league
from nervex.utils.class_config import merge_config
from nervex.utils.file_helper import read_file

SHIPPED = read_config(builtin_configs()['alphastar_league'])
TINY = dict(width=8, core_dim=16, map_blocks=0, entity_layers=1, map_channels=4, key_dim=8)
PHASE = dict(one_phase_step=2)
SHORT = dict(
    exp_name='run',
    policy=dict(model=TINY, collect=dict(unroll_len=4, traj_len=4), learn=dict(batch_size=4)),
    actor=dict(n_sample=4),
    evaluator=dict(n_episode=1, eval_freq=100),
    commander=dict(
        turn_rounds=2,
        max_train_iter=8,
        league=dict(main_player=PHASE, main_exploiter=PHASE, league_exploiter=PHASE),
    ),
)
ON_DRILL = dict(actor_env_num=4, evaluator_env_num=1, map_size=8, max_units=6, max_selected=3, rounds=2)


def config(*more):
    cfg = merge_config(SHIPPED, SHORT)
    for part in more:
        cfg = merge_config(cfg, part)
    return cfg


def on_drill(*more):
    cfg = config(*more)
    shared = {key: cfg['env'][key] for key in ('import_names', 'env_manager_type', 'opponent_acts')}
    return {**cfg, 'env': dict(env_type='alphastar_drill', **shared, **ON_DRILL)}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def the_league_is_played():
    with start_league(prepare_launch(None, None, Passed(), resume='run')) as run:
        names = list(run.runs)
        past = {player.parent_id for player in run.league.historical_players}
        games = run.league.payoff.state_dict()['counts'][3].sum()
        assert {one.learner.train_iter for one in run.runs.values()} == {8}
    kinds = [name.rsplit('_default_', 1)[0] for name in names]
    assert kinds == ['main_player', 'main_exploiter', 'league_exploiter', 'league_exploiter']
    assert past == set(names) and games > 10
    text = Path('run/log/commander/commander_logger.txt').read_text(encoding='utf-8')
    assert 'snapshot of main_exploiter_default_0' in text and 'begins anew' in text


def test_a_league_with_a_memory_on_the_drill():
    result = serial_pipeline(on_drill(), 0)
    assert result.train_iters == 8
    the_league_is_played()
    main, exploiter = (f'run/players/{name}_default_0' for name in ('main_player', 'main_exploiter'))
    table = arena([main, exploiter, 'random'], 4)
    assert (table.wins + table.wins.T + table.draws == 4 * (1 - np.eye(3))).all()


@pytest.mark.slow
def test_a_league_on_the_drill_resumes_exactly():
    whole = serial_pipeline(on_drill(dict(exp_name='whole')), 0)
    serial_pipeline(on_drill(dict(exp_name='parts', commander=dict(max_train_iter=4))), 0)
    parts = serial_pipeline(None, resume='parts', overrides=('commander.max_train_iter=8',))
    one, two = (read_file(result.checkpoint)['model'] for result in (whole, parts))
    assert all((value == two[key]).all() for key, value in one.items())


@pytest.mark.slow
def test_a_league_on_the_drill_in_parallel_mode():
    cfg = {**on_drill(), 'parallel': dict(carrier='inline', actor_num=2, save_s=1e-6)}
    assert parallel_pipeline(cfg, 0).train_iters == 8
    past = {path.name.split('_ckpt_')[0] for path in Path('run/league').glob('*_ckpt_*')}
    assert len(past) == 4


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec('pysc2') is None, reason='needs nervex[alphastar]')
def test_a_league_on_the_mock_of_pysc2():
    result = serial_pipeline(config(dict(env=dict(actor_env_num=1, max_units=8, max_selected=2))), 0)
    assert result.train_iters == 8 and result.win_rate == 0  # all games are draws
    the_league_is_played()
