"""A league in parallel mode, all of it in this process: jobs, snapshots, deaths, a resume."""

import os
import random
from dataclasses import replace

import pytest

from nervex.entry.parallel_entry import parallel_pipeline
from nervex.entry.serial_entry import serial_pipeline
from nervex.parallel.blocks import Header
from nervex.parallel.carrier import InlineCarrier
from nervex.parallel.league_run import ParallelLeague
from nervex.parallel.tests.running import build_parallel
from nervex.run.launch import prepare_launch
from nervex.utils import CheckpointError, ConfigError
from nervex.utils.file_helper import read_file

NAMES = ['main_player_default_0', 'main_exploiter_default_0', 'league_exploiter_default_0']


def config(folder, policy='ppo', **commander):
    phase = dict(one_phase_step=8)
    learn = dict(ppo=dict(batch_size=16, epochs=2), dqn=dict(batch_size=16, train_step=2))[policy]
    return dict(
        exp_name=str(folder),
        env=dict(env_type='rock_paper_scissors', env_manager_type='vector', actor_env_num=4, evaluator_env_num=2),
        policy=dict(policy_type=policy, model=dict(hidden_dim_list=[8]), learn=learn),
        actor=dict(n_sample=16),
        evaluator=dict(n_episode=2, eval_freq=16),
        learner=dict(resume=dict(max_cost=None)),  # saves are due however slow the disk is
        commander=dict(
            commander_type='league',
            turn_rounds=2,
            max_train_iter=48,
            league=dict(
                active_players=dict(main_player=1, main_exploiter=1, league_exploiter=1),
                main_player=phase,
                main_exploiter=phase,
                league_exploiter=dict(mutate_prob=0.5, **phase),
                payoff=dict(decay=1.0),
            ),
            **commander,
        ),
        parallel=dict(carrier='inline', actor_num=2, save_s=1e-6),
    )


def games_of(run):
    """Games in the payoff; of a player against itself there are none in both directions."""
    counts = run.home.league.payoff.state_dict()['counts'][3]
    return round(float(counts.sum() + counts.diagonal().sum()) / 2)


def recorded(run):
    return sum(player.book.games for player in run.players)


def whole(run):
    """Everything that the league and its newest saved state know of is there, and nothing is counted twice."""
    for player in run.home.league.historical_players:
        assert read_file(player.checkpoint_path)['last_iter'] == player.total_agent_step
    assert games_of(run) == recorded(run) > 0
    assert not any(player.doubles for player in run.players)
    assert not [name for name in os.listdir(run.home.path) if name.endswith('.tmp')]


def go(run, until, steps=20000):
    for _ in range(steps):
        if until() or not run.going_on():
            return
        run.step(0.1)
    raise AssertionError('it did not come to that')


@pytest.fixture
def start(tmp_path):
    """Begin a league; it is closed at the end."""
    runs = []

    def begin(cfg=None, resume=None):
        run = ParallelLeague(prepare_launch(cfg, 0, resume=resume), InlineCarrier())
        runs.append(run)
        run.begin()
        return run

    yield begin
    for run in runs:
        run.__exit__(None, None, None)


@pytest.mark.parametrize('policy', ['ppo', 'dqn'])
def test_every_player_learns_and_leaves_snapshots(tmp_path, start, policy):
    run = start(config(tmp_path, policy))
    go(run, lambda: False)
    run.final_evaluation()
    result = run.finish()
    assert result.train_iters >= 48 and [player.name for player in run.players] == NAMES
    assert all(player.run.tally.train_iter >= 48 for player in run.players)
    league = run.home.league
    assert {player.parent_id for player in league.historical_players} == set(NAMES) and league.elo.ratings
    whole(run)
    text = (tmp_path / 'log' / 'commander' / 'commander_logger.txt').read_text(encoding='utf-8')
    assert 'snapshot of main_exploiter_default_0' in text and 'begins anew' in text


def test_whatever_dies_the_league_goes_on_and_counts_nothing_twice(tmp_path, start):
    run, chance, kills = start(config(tmp_path)), random.Random(0), 0
    steps = iter(range(10**6))

    def over():
        nonlocal kills
        if next(steps) % 25 == 24 and kills < 12:
            slot = chance.choice([slot for player in run.players for slot in player.run.roster.slots if slot.ready])
            run.carrier.kill(slot.handle)
            kills += 1
        return False

    go(run, over)
    assert kills == 12 and sum(player.run.roster.restarts for player in run.players) >= 10
    assert all(player.run.tally.train_iter >= 48 and not player.run.tally.doubles for player in run.players)
    whole(run)
    run.finish()
    whole(run)


def test_a_block_that_comes_twice_counts_once(tmp_path, start):
    player = start(config(tmp_path)).players[0]
    games = [(NAMES[1], 'wins'), (NAMES[1], 'draws'), ('random', 'wins')]  # the last one takes no part
    header = Header(0, 7, 3, 'task', 0, 0, rows=8, steps=8, seconds=0.1, nbytes=10, games=games, met=[NAMES[1]])
    for _ in range(2):
        player.record(header)
    assert player.book.games == 2 and player.doubles == 1 and player.met == {NAMES[1]}
    counts = player._league.payoff.record(NAMES[0], NAMES[1])
    assert counts == {'wins': 1.0, 'draws': 1.0, 'losses': 0.0, 'games': 2.0}
    player.record(replace(header, seq=4))
    assert player.book.games == 4 and player._league.payoff.record(NAMES[1], NAMES[0])['losses'] == 2


def test_an_abandoned_league_goes_on_from_its_newest_states(tmp_path, start):
    run = start(config(tmp_path))
    go(run, lambda: len(run.home.league.historical_players) >= 4)
    run.save()
    past = [player.player_id for player in run.home.league.historical_players]
    counted, resets = recorded(run), [player.reset for player in run.players]
    run.__exit__(None, None, None)  # as a process that ends at once: nobody saves any more
    again = start(None, resume=str(tmp_path))
    assert [player.player_id for player in again.home.league.historical_players] == past
    assert recorded(again) == games_of(again) == counted and [player.reset for player in again.players] == resets
    go(again, lambda: False)
    assert all(player.run.tally.train_iter >= 48 for player in again.players)
    whole(again)
    assert recorded(again) > counted


def test_a_player_begins_anew_and_blocks_by_its_older_weights_are_left_out(tmp_path, start):
    run = start(config(tmp_path))
    exploiter = run.players[1]
    go(run, lambda: exploiter.reset is not None)
    slot, coordinator = exploiter.run.roster.of('learner')[0], exploiter.run.coordinator
    run.carrier.kill(slot.handle)  # it may die before it has done so
    go(run, lambda: exploiter.reset is None)
    assert not coordinator.paused and coordinator._oldest == coordinator.version + 1
    first = read_file(os.path.join(run.home.path, 'first_default.pth.tar'))['model']
    weights = slot.handle.host._role.learner.state_dict()['model']
    assert all((weights[name] == value).all() for name, value in first.items())
    go(run, lambda: coordinator.version >= coordinator._oldest)
    assert all(header.version >= coordinator._oldest for header, _ in exploiter.run.pace.waiting)


def test_so_many_snapshots_are_kept_and_files_for_as_long_as_they_are_needed(tmp_path, start):
    cfg = config(tmp_path, snapshot_keep=2)
    run = start(cfg)
    go(run, lambda: False)
    league = run.home.league
    assert all(sum(p.parent_id == name for p in league.historical_players) == 2 for name in NAMES)
    for _ in range(4):
        run.save()
    files = {name for name in os.listdir(run.home.path) if '_ckpt_' in name}
    needed = {os.path.basename(player.checkpoint_path) for player in league.historical_players}
    met = {os.path.basename(run.home.file_of(name)) for player in run.players for name in player.met}
    assert needed <= files <= needed | met
    assert games_of(run) < recorded(run), 'those of players that have left are forgotten'


def test_what_makes_no_sense_is_told_before_anything_starts(tmp_path):
    cfg = config(tmp_path / 'a')
    cfg['parallel']['learner_num'] = 2
    with pytest.raises(ConfigError, match=r'parallel\.learner_num: got 2, but each player of a league has one'):
        parallel_pipeline(cfg, 0)
    cfg = config(tmp_path / 'a')
    cfg['env'].update(env_type='cartpole', env_manager_type='base')
    with pytest.raises(ConfigError, match='CartPoleEnv has one side'):
        parallel_pipeline(cfg, 0)
    assert not os.path.exists(tmp_path / 'a')


def test_a_league_is_resumed_in_its_own_mode(tmp_path):
    for one, other, word in (
        (serial_pipeline, parallel_pipeline, 'serial'),
        (parallel_pipeline, serial_pipeline, 'parallel'),
    ):
        cfg = config(tmp_path / word)
        cfg['commander']['max_train_iter'] = 4
        one(cfg, 0)
        with pytest.raises(CheckpointError, match=f"was stopped in {word} mode; resume it with '-m {word}'"):
            other(None, resume=str(tmp_path / word), overrides=('commander.max_train_iter=8',))


def selfplay(folder, **commander):
    cfg = config(folder)
    cfg['commander'] = dict(selfplay='pfsp', snapshot_freq=8, snapshot_keep=3, max_train_iter=64, **commander)
    return cfg


def test_self_play_against_snapshots_that_the_learner_writes(tmp_path):
    with build_parallel(selfplay(tmp_path), 0, carrier=InlineCarrier()) as run:
        run.begin()
        rivalry, killed = run.commander.selfplay, set()
        while run.going_on():
            run.step(0.1)
            for name, update in (('learner0', 20), ('actor0', 30), ('actor1', 40)):
                slot = next(slot for slot in run.roster.slots if slot.name == name)
                if name not in killed and run.tally.train_iter >= update and slot.ready:
                    run.roster.carrier.kill(slot.handle)
                    killed.add(name)
        names = [player.player_id for player in rivalry.book.league.historical_players]
        run.finish()
        steps = [int(name.rpartition('_')[2]) for name in names]
        assert len(killed) == 3 == run.roster.restarts == len(names) and steps == sorted(set(steps)) and steps[-1] > 48
        for name, step in zip(names, steps):
            assert read_file(rivalry.book.file_of(name))['last_iter'] == step
        counts = rivalry.book.league.payoff.state_dict()['counts'][3]
        assert counts.sum() > 0 and not rivalry.doubles and rivalry.book._games > 500
        assert len(os.listdir(tmp_path / 'snapshots')) < 8
    cfg = dict(overrides=('commander.max_train_iter=72',), resume=str(tmp_path))
    with build_parallel(None, None, carrier=InlineCarrier(), **cfg) as run:
        run.begin()
        book = run.commander.selfplay.book
        go(run, lambda: run.tally.blocks > 0)
        known = [player.player_id for player in book.league.historical_players]
        assert set(known) & set(names) and all(os.path.exists(book.file_of(name)) for name in known)
        go(run, lambda: False)
        assert run.tally.train_iter >= 72


def test_a_serial_run_of_self_play_goes_on_in_parallel_mode(tmp_path):
    cfg = selfplay(tmp_path)
    cfg['commander']['max_train_iter'] = 16
    serial_pipeline(cfg, 0)
    more = dict(overrides=('commander.max_train_iter=40',), resume=str(tmp_path))
    with build_parallel(None, None, carrier=InlineCarrier(), **more) as run:
        run.begin()
        go(run, lambda: False)
        book = run.commander.selfplay.book
        assert run.tally.train_iter >= 40 and len(book.league.historical_players) == 3
        assert len(book.league.elo.ratings) == 4
