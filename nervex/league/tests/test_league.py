"""Players and leagues: who is met how often, snapshots, states, faults."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import torch

from nervex.config.league import one_vs_one_league_default_config, solo_league_default_config
from nervex.league import (
    BattleSharedPayoff,
    HistoricalPlayer,
    LeagueExploiter,
    LeagueWrapper,
    MainExploiter,
    MainPlayer,
    NaiveSpPlayer,
    OneVsOneLeague,
    create_league,
    pfsp,
)
from nervex.league.algorithm import draw
from nervex.league.player import Roster
from nervex.league.settings import complete_league
from nervex.utils import ConfigError
from nervex.utils.tests import quick_start


class Field:
    """Players around a payoff whose win rates a test sets."""

    def __init__(self):
        self.payoff = BattleSharedPayoff({'min_win_rate_games': 1, 'decay': 1.0})
        self.roster = Roster(self.payoff)
        self.generator = np.random.default_rng(0)

    def active(self, cls, name, **cfg):
        player = cls(cfg, 'default', self.payoff, f'{name}.pth.tar', name, generator=self.generator)
        return self._enter(player)

    def past(self, parent, step):
        name = f'{parent}_{step}'
        return self._enter(HistoricalPlayer({}, 'default', self.payoff, f'{name}.pth', name, step, parent_id=parent))

    def _enter(self, player):
        self.payoff.add_player(player)
        self.roster.add(player)
        if hasattr(player, 'join'):
            player.join(self.roster)
        return player

    def won(self, home, away, wins, games=10):
        self.payoff.update({'player_id': (home, away), 'result': ['wins'] * wins + ['losses'] * (games - wins)})


def met(player, draws=4000):
    counts = Counter()
    for _ in range(draws):
        job = player.get_job()
        counts[job['branch'], job['opponent'].player_id] += 1
    return {key: count / draws for key, count in counts.items()}


def test_a_main_player_meets_whom_the_paper_says():
    field = Field()
    main = field.active(MainPlayer, 'm')
    field.past('m', 1), field.past('m', 2)
    field.won('m', 'm_1', 9), field.won('m', 'm_2', 8)
    seen = met(main)
    weights = (1 - 0.9) ** 2, (1 - 0.8) ** 2  # pfsp over all snapshots: 0.2, 0.8
    assert seen['pfsp', 'm_1'] == pytest.approx(0.5 * weights[0] / sum(weights), abs=0.03)
    assert seen['pfsp', 'm_2'] == pytest.approx(0.5 * weights[1] / sum(weights), abs=0.03)
    # nobody is forgotten (rates fall towards the newest) and no exploiter is there: verification is self-play
    assert seen['sp', 'm'] == pytest.approx(0.35, abs=0.03)
    assert seen['verification', 'm'] == pytest.approx(0.15, abs=0.03)


def test_verification_meets_exploiters_and_what_was_forgotten():
    field = Field()
    main = field.active(MainPlayer, 'm', branch_probs=dict(pfsp=0.0, sp=0.0, verification=1.0))
    field.active(MainExploiter, 'e')
    field.past('e', 5), field.past('m', 1), field.past('m', 2), field.past('m', 3)
    field.won('m', 'e_5', 2)
    assert met(main, 50) == {('verification', 'e_5'): 1.0}
    field.won('m', 'e_5', 60, 60)  # the exploiter is beaten now
    for name, wins in (('m_1', 5), ('m_2', 8), ('m_3', 6)):
        field.won('m', name, wins)
    seen = met(main)
    assert set(seen) == {('verification', 'm_1'), ('verification', 'm_2')}  # m_3, the newest, is not learned yet
    assert seen['verification', 'm_1'] == pytest.approx(0.25 / (0.25 + 0.04), abs=0.03)


def test_self_play_against_a_main_player_that_is_too_strong_meets_its_past():
    field = Field()
    main = field.active(MainPlayer, 'm', branch_probs=dict(pfsp=0.0, sp=1.0, verification=0.0))
    field.active(MainPlayer, 'n')
    field.past('n', 1), field.past('n', 2)
    field.won('m', 'n', 1), field.won('m', 'n_1', 5), field.won('m', 'n_2', 9)
    seen = met(main)
    assert seen['sp', 'm'] == pytest.approx(0.5, abs=0.03) and ('sp', 'n') not in seen
    assert seen['sp', 'n_1'] == pytest.approx(0.5 * 0.25 / 0.34, abs=0.03)  # variance: .25, .09


def test_exploiters_meet_whom_the_paper_says():
    field = Field()
    field.active(MainPlayer, 'm')
    exploiter, league = field.active(MainExploiter, 'e'), field.active(LeagueExploiter, 'l')
    field.past('m', 1)
    assert met(exploiter, 200) == {('main_players', 'm'): 1.0}
    field.won('e', 'm', 1)
    seen = met(exploiter)
    assert seen['main_players', 'm_1'] == pytest.approx(0.5, abs=0.03)
    assert met(league, 200) == {('pfsp', 'm_1'): 1.0}
    info = {'reset_checkpoint_path': 'origin'}
    assert exploiter.mutate(info) == 'origin'
    resets = [league.mutate(info) for _ in range(4000)]
    assert resets.count('origin') / 4000 == pytest.approx(0.25, abs=0.03) and resets.count(None) > 0


def test_a_player_is_trained_enough_after_two_phases_or_once_it_beats_everybody():
    field = Field()
    player = field.active(NaiveSpPlayer, 'p', one_phase_step=100, strong_win_rate=0.7)
    field.past('p', 0)
    field.won('p', 'p_0', 8)
    player.total_agent_step = 99
    assert not player.is_trained_enough()
    player.total_agent_step = 100
    assert player.is_trained_enough() and not player.is_trained_enough()
    field.won('p', 'p_0', 0)  # now 8 of 20
    player.total_agent_step = 250
    assert not player.is_trained_enough()
    player.total_agent_step = 300
    assert player.is_trained_enough()


def test_settings_of_players_are_checked():
    field = Field()
    with pytest.raises(ValueError, match='must sum to 1'):
        field.active(NaiveSpPlayer, 'p', branch_probs=dict(pfsp=0.5, sp=0.6))
    with pytest.raises(ValueError, match="'pfsp'"):
        field.active(NaiveSpPlayer, 'q', branch_probs=dict(pfps=1.0, pfsp=0.0, sp=0.0))


@pytest.mark.parametrize(
    'probs, text',
    [
        ({'pfps': 1.0}, "main_player.branch_probs: unknown branch of MainPlayer 'pfps'; did you mean 'pfsp'"),
        ({'pfsp': 1.0}, "main_player.branch_probs: got {'pfsp': 1.0, 'sp': 0.35, 'verification': 0.15}, must sum to 1"),
        ({'pfsp': -1}, 'main_player.branch_probs.pfsp: got -1, must be a number in'),
    ],
)
def test_branches_are_checked_with_the_config(probs, text):
    with pytest.raises(ConfigError, match=re.escape(text)):
        complete_league(OneVsOneLeague, {'active_players': {'main_player': 1}, 'main_player': {'branch_probs': probs}})


def test_eval_difficulties_rise():
    player = Field().active(NaiveSpPlayer, 'p', eval_opponent_difficulty=['weak', 'strong'])
    assert player.get_job(eval_flag=True)['opponent'] == 'weak'
    assert player.increment_eval_difficulty() and not player.increment_eval_difficulty()
    assert player.get_job(eval_flag=True)['opponent'] == 'strong'


def league(folder, **more):
    cfg = dict(one_vs_one_league_default_config.league)
    for kind in cfg['active_players'] if 'active_players' in more else ():
        del cfg[kind]  # sections of types that nobody is are refused
    origin = os.path.join(folder, 'origin.pth.tar')
    torch.save({'w': torch.zeros(1)}, origin)
    cfg.update(path_policy=str(folder), use_pretrain=True, pretrain_checkpoint_path={'default': origin}, **more)
    return create_league(cfg, seed=3)


def play(one, rounds, generator):
    for _ in range(rounds):
        job = one.get_job_info()
        result = [[str(generator.choice(['wins', 'losses', 'draws']))] for _ in range(3)]
        assert one.finish_job({**job, 'result': result})
        player = one.player(job['launch_player'])
        one.update_active_player({'player_id': player.player_id, 'train_step': player.total_agent_step + 500})
        torch.save({'w': torch.tensor([float(player.total_agent_step)])}, player.checkpoint_path)
        one.judge_snapshot(player.player_id)


def test_a_league_grows_by_snapshots_with_files_of_their_own(tmp_path):
    one = league(tmp_path)
    play(one, 40, np.random.default_rng(0))
    assert len(one.historical_players) >= 3
    for snapshot in one.historical_players:
        step = float(torch.load(snapshot.checkpoint_path, weights_only=True)['w'])
        assert step == snapshot.total_agent_step and snapshot.player_id.startswith(snapshot.parent_id)
        assert snapshot.player_id in one.payoff and snapshot.player_id in one.elo.ratings


def test_a_job_counts_once_and_a_player_has_no_more_than_it_may(tmp_path):
    one = league(tmp_path, max_active_player_job=2)
    name = one.active_players_ids[0]
    first, second = one.get_job_info(name), one.get_job_info(name)
    assert one.get_job_info(name) is None and first['job_id'] != second['job_id']
    assert one.get_job_info(name, eval_flag=True)['player_id'] == [name, 'default']
    assert one.finish_job({**first, 'result': ['wins']}) and not one.finish_job({**first, 'result': ['wins']})
    assert not one.finish_job({'job_id': 'unknown', 'player_id': first['player_id'], 'result': ['wins']})
    assert one.get_job_info(name) is not None
    assert len(one.reopen_jobs()) == 2 and one.get_job_info(name) is not None


def test_a_loaded_league_goes_on_exactly(tmp_path):
    one = league(tmp_path)
    play(one, 25, np.random.default_rng(1))
    one.save(str(tmp_path))
    again = league(tmp_path)
    assert again.load(str(tmp_path)) and not again.load(str(tmp_path / 'nowhere'))
    traces = []
    for each in (one, again):
        generator = np.random.default_rng(2)
        jobs = []
        for _ in range(30):
            job = each.get_job_info()
            jobs.append((job['job_id'], tuple(job['player_id']), job['branch']))
            each.finish_job({**job, 'result': [str(generator.choice(['wins', 'losses']))]})
        traces.append(
            (jobs, each.elo.ratings, each.true_skill.skills, each.payoff[each.payoff.players, each.payoff.players])
        )
    assert traces[0][:3] == traces[1][:3] and np.array_equal(traces[0][3], traces[1][3])


def test_another_league_or_version_is_refused(tmp_path):
    one = league(tmp_path)
    state = one.state_dict()
    with pytest.raises(ValueError, match='version 2'):
        one.load_state_dict({**state, 'version': 2})
    other = league(tmp_path, active_players=dict(naive_sp_player=1))
    with pytest.raises(ValueError, match='resume it with the settings'):
        other.load_state_dict(state)


def test_mistakes_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"league.pathpolicy.*'path_policy'"):
        create_league(dict(pathpolicy='x'))
    with pytest.raises(ConfigError, match='mutate_prob: got 2'):
        league(tmp_path, league_exploiter=dict(mutate_prob=2))
    with pytest.raises(ConfigError, match=r"main_playr.*mean 'main_player'"):
        league(tmp_path, active_players=dict(main_playr=1))
    with pytest.raises(ConfigError, match='active_players: historical_player does not learn'):
        league(tmp_path, active_players=dict(historical_player=1))
    with pytest.raises(ConfigError, match='main_exploiter: is for players of a type that nobody is'):
        league(tmp_path, active_players=dict(main_player=1), main_exploiter=dict(one_phase_step=5))
    with pytest.raises(ValueError, match=r'no checkpoint for the categories \[.default.\]'):
        create_league(dict(use_pretrain=True))
    with pytest.raises(KeyError, match='one_vs_one'):
        create_league(dict(league_type='one_vs_on'))
    with pytest.raises(KeyError, match='main_player_default_0'):
        league(tmp_path).get_job_info('main_player_default_1')


def test_a_solo_league_and_the_wrapper():
    one = LeagueWrapper(solo_league_default_config.league)
    job = one.call('get_job_info')
    assert job['player_id'] == ['solo_active_player_default_0'] and job['agent_num'] == 1
    assert one.call('finish_job', {**job, 'result': [10.0, 20.0]})
    assert one.league.payoff['solo_active_player_default_0'] == 15
    with pytest.raises(ValueError, match='judge_snapshot'):
        one.call('payoff')


KILLED = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np
from test_league import league, play
one, generator = league({folder!r}), np.random.default_rng(0)
print('ready', flush=True)
while True:
    play(one, 1, generator)
    one.save({folder!r})
"""


def test_kill_at_any_moment_leaves_a_league_that_loads(tmp_path):
    rng = np.random.default_rng(0)
    for attempt in range(3):
        code = KILLED.format(tests=os.path.dirname(__file__), folder=str(tmp_path))
        process = quick_start.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE)
        process.stdout.readline()
        try:
            process.wait(timeout=float(rng.uniform(0.05, 0.5)))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        one = league(tmp_path)
        if not one.load(str(tmp_path)):
            assert attempt == 0
            continue
        assert all(torch.load(p.checkpoint_path, weights_only=True) for p in one.historical_players)
        assert set(one.payoff.players) == {p.player_id for p in one._roster.players}


def test_pfsp_against_the_past_finds_the_equilibrium_that_self_play_circles():
    """Rock-paper-scissors: best responses to the latest opponent cycle; to a pool drawn by pfsp they average out."""
    payoff = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])

    def exploitability(pool):
        average = np.bincount(pool, minlength=3) / len(pool)
        return (payoff @ average).max()

    latest, pool, generator = [0], [0], np.random.default_rng(0)
    for _ in range(300):
        latest.append(int(payoff[:, latest[-1]].argmax()))
        scores = payoff @ np.bincount(pool, minlength=3)  # the response to the whole pool
        rates = np.array([(payoff[pool[-1], other] + 1) / 2 for other in pool])
        rival = pool[draw(pfsp(rates), generator)]
        pool.append(int((scores + 1e-3 * payoff[:, rival]).argmax()))
    assert exploitability(pool) <= 0.05
    assert max(exploitability(latest[k : k + 1]) for k in range(290, 300)) == 1


def test_a_retired_snapshot_is_met_no_more():
    settings = {
        'active_players': {'naive_sp_player': 1},
        'naive_sp_player': {'branch_probs': dict(sp=0.0, pfsp=0.0, pool=1.0)},
    }
    one = create_league(settings, seed=0)
    player = one.active_players[0]
    for step in (1, 2, 3):
        player.total_agent_step = step
        one.admit(player.snapshot())
    assert {player.get_job()['opponent'].total_agent_step for _ in range(60)} == {1, 2, 3}
    one.retire(one.historical_players[1])
    assert {player.get_job()['opponent'].total_agent_step for _ in range(60)} == {1, 3}
    assert not one.record({'player_id': (player.player_id, f'{player.player_id}_2'), 'result': 'wins'})
    assert one.record({'player_id': (player.player_id, f'{player.player_id}_3'), 'result': 'wins'})
