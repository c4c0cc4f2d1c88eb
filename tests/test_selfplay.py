"""Self-play in serial mode: snapshots, opponents, ratings, and a resume that changes nothing."""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from nervex.data import Batch
from nervex.entry import eval as evaluate
from nervex.entry import serial_pipeline
from nervex.run.build import build_serial
from nervex.utils import ConfigError
from nervex.utils.tests import quick_start

HARNESS = Path(__file__).parent / 'kill_harness.py'


def config(**commander):
    """Some games of tic-tac-toe."""
    return dict(
        exp_name='run',
        env=dict(env_type='tic_tac_toe', env_manager_type='vector', actor_env_num=4, evaluator_env_num=2),
        policy=dict(
            policy_type='dqn',
            model=dict(hidden_dim_list=[16]),
            learn=dict(train_step=4, batch_size=8),
            command=dict(eps=dict(type='linear', start=0.9, end=0.1, decay=50)),
        ),
        replay_buffer=dict(agent=dict(meta_maxlen=1000)),
        actor=dict(n_sample=8),
        evaluator=dict(n_episode=2, eval_freq=60, stop_val=None),
        learner=dict(resume=dict(interval_s=0.0, max_cost=None), hook=dict(log_show=dict(ext_args=dict(freq=10)))),
        commander=dict(selfplay='pfsp', snapshot_freq=8, snapshot_keep=3, max_env_step=240, **commander),
    )


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def snapshots():
    return sorted(path.name for path in Path('run/snapshots').iterdir())


@pytest.mark.parametrize('operations', [range(190, 700, 170), pytest.param(range(1, 701), marks=pytest.mark.slow)])
def test_killed_at_a_file_operation_and_resumed_is_as_never_killed(operations):
    Path('config.yaml').write_text(yaml.safe_dump(config()), encoding='utf-8')
    command = [sys.executable, str(HARNESS), 'config.yaml', *map(str, operations)]
    done = quick_start.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop('operations') > 700 and found.pop('killed') == len(operations)
    assert not found
    rows = list(csv.DictReader(Path('straight/log/commander/selfplay.csv').read_text(encoding='utf-8').splitlines()))
    assert [int(row['train_iter']) for row in rows] == list(range(8, 113, 8)) and int(rows[-1]['games']) > 20


MEMORIES = {
    'ppo_recurrent': dict(policy_type='ppo_recurrent', model=dict(hidden_dim_list=[8]), collect=dict(unroll_len=4)),
    'r2d2': dict(
        policy_type='r2d2',
        model=dict(hidden_dim_list=[8], lstm_type='gru'),
        learn=dict(batch_size=4, algo=dict(burnin_step=2, nstep=2)),
        collect=dict(unroll_len=4),
    ),
}


@pytest.mark.parametrize('policy', MEMORIES)
def test_opponents_with_a_memory_are_resumed_as_never_killed(policy):
    cfg = {**config(), 'policy': MEMORIES[policy], 'actor': dict(n_sample=16)}
    cfg['commander'].update(snapshot_freq=2, max_env_step=320)
    Path('config.yaml').write_text(yaml.safe_dump(cfg), encoding='utf-8')
    command = [sys.executable, str(HARNESS), 'config.yaml', '250', '350']
    done = quick_start.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop('operations') > 400 and found.pop('killed') == 2
    assert not found


@pytest.mark.parametrize('policy', MEMORIES)
def test_an_opponent_remembers_each_game_from_its_beginning(policy):
    from app_zoo.board.envs import TicTacToe
    from nervex.envs import Duel
    from nervex.run.build import load_policy
    from nervex.run.opponents import Opponents

    cfg = {**config(), 'policy': MEMORIES[policy], 'actor': dict(n_sample=16), 'commander': dict(max_env_step=32)}
    serial_pipeline(cfg, 0)
    duel = Duel(TicTacToe({}, 3), Opponents(TicTacToe, 'run'))
    alone, seen, acted = load_policy('run'), [], []

    def watched(name, game, rows, sides, rng):
        actions = Opponents.act(duel.rivals, name, game, rows, sides, rng)
        if 1 in rows:
            k = rows.tolist().index(1)
            seen.append(({n: part[k] for n, part in game.view(rows, sides).items()}, int(duel._games[1])))
            acted.append(int(actions[k]))
        return actions

    duel.rivals.act = watched
    duel.begin(np.arange(3), [np.random.default_rng(0)] * 3)
    rng = np.random.default_rng(1)
    for _ in range(12):
        legal = duel.seen()['action_mask']
        over = duel.act((rng.random(legal.shape) * legal).argmax(1))[1]
        duel.begin(over.nonzero()[0], [np.random.default_rng(0)] * 3)
    expected, before = [], None
    for obs, number in seen:
        if number != before:
            alone.eval_mode.reset([0])
        before = number
        _, data = alone.eval_mode.data_preprocess({0: obs})
        expected.append(int(alone.eval_mode.forward([0], data)['action'][0]))
    assert acted == expected and len({number for _, number in seen}) > 2
    saved = {n: duel.game.__dict__[n] for n in ('memory', 'fresh')}
    assert saved['memory'] and not saved['fresh'].all()


def test_only_so_many_snapshots_are_kept_and_as_many_files_as_a_resume_may_need():
    with build_serial(config(), 0) as run:
        selfplay = run.commander.selfplay
        for _ in range(30):
            run.commander.step()
            run.collect()
            for batch in run.batches():
                run.train(batch)
        names = [player.player_id for player in selfplay.league.historical_players]
        assert [int(name.rpartition('_')[2]) for name in names] == [96, 104, 112]
        assert set(selfplay.league.payoff.players) == {'naive_sp_player_default_0', *names}
        assert len(snapshots()) == 15  # no state was saved, so that all are needed by the next resume
        run.commander.state_dict()
        assert len(snapshots()) == len({*names, *(next(iter(selfplay.duels)).met)}) < 8


def test_the_newest_one_is_met_where_the_config_says_latest():
    with build_serial({**config(), 'commander': dict(selfplay='latest', snapshot_freq=4)}, 0) as run:
        assert run.commander.selfplay.choose(2) == ['random'] * 2  # there is no snapshot yet
        for _ in range(3):
            run.commander.step()
            run.collect()
            for batch in run.batches():
                run.train(batch)
        assert run.commander.selfplay.choose(2) == ['naive_sp_player_default_0_8'] * 2


def test_a_snapshot_acts_as_the_learner_did_then():
    from app_zoo.board.envs import TicTacToe

    with build_serial(config(), 0) as run:
        run.commander.step()
        (name,) = [player.player_id for player in run.commander.selfplay.league.historical_players]
        game = TicTacToe({}, 5)
        game.begin(np.arange(5), [])
        game.move(np.arange(5), np.stack([np.arange(5)] * 2, 1))
        view = (np.arange(5), np.ones(5, int))
        action = run.commander.selfplay.act(name, game, *view, np.random.default_rng(0))
        _, data = run.policy.eval_mode.data_preprocess(
            {k: {n: p[k] for n, p in game.view(*view).items()} for k in range(5)}
        )
        assert action.tolist() == run.policy.eval_mode.forward(list(range(5)), data)['action'].tolist()


def test_a_resume_keeps_to_the_opponents(caplog):
    serial_pipeline(config(), 0)
    for change in ('commander.selfplay=pool', 'commander.snapshot_freq=9'):
        with pytest.raises(ConfigError, match='was started with'):
            serial_pipeline(config(), resume='run', overrides=(change,))


def test_an_opponent_may_be_a_run_a_name_or_a_function():
    serial_pipeline(config(), 0)
    for opponent in ('run', 'perfect', 'nervex.envs.two_sided:random_player'):
        result = evaluate(None, 0, load_path='run', n_episode=6, overrides=(f'env.evaluator_opponent={opponent}',))
        assert set(result.returns) <= {-1, 0, 1} and result.win_rate == (result.returns > 0).mean()
    for manager in ('base', 'subprocess'):
        overrides = ('env.evaluator_opponent=run', f'env.env_manager_type={manager}')
        assert len(evaluate(None, 0, load_path='run', n_episode=6, overrides=overrides).returns) == 6


@pytest.mark.parametrize(
    'change, words',
    [
        (
            dict(env=dict(env_type='cartpole', env_manager_type='base')),
            r'commander\.selfplay: got .pfsp., but CartPoleEnv has one side',
        ),
        (dict(env=dict(env_manager_type='subprocess')), r"env\.env_manager_type: got 'subprocess'.*take 'vector'"),
        (dict(env=dict(evaluator_opponent='perfct')), r"env\.opponent: .*perfct.*did you mean 'perfect'"),
        (dict(commander=dict(selfplay='best')), r'commander\.selfplay'),
    ],
)
def test_what_makes_no_sense_is_told_at_the_start(change, words):
    cfg = config()
    for section, settings in change.items():
        cfg[section].update(settings)
    with pytest.raises(ConfigError, match=words):
        serial_pipeline(cfg, 0)


def test_a_checkpoint_of_another_game_is_no_opponent():
    serial_pipeline(config(), 0)
    cfg = config()
    cfg['env'].update(env_type='connect_four', evaluator_opponent='run')
    with pytest.raises(ConfigError, match=r'its policy does not fit ConnectFour'):
        serial_pipeline({**cfg, 'exp_name': 'other'}, 0)


def test_opponents_may_act_at_random_now_and_then():
    from app_zoo.board.envs import TicTacToe
    from nervex.run.opponents import Opponents

    serial_pipeline(config(), 0)
    game, rows = TicTacToe({}, 400), np.arange(400)
    game.begin(rows, [])
    acted = [
        Opponents(TicTacToe, 'run', acts, eps).act('checkpoint', game, rows, rows * 0, np.random.default_rng(0))
        for acts, eps in (('greedy', 0.0), ('greedy', 0.5), ('sampled', 0.0))
    ]
    greedy, half, sampled = (np.bincount(actions, minlength=9) for actions in acted)
    assert greedy.max() == 400 and 190 < half.max() < 260 and (half > 10).all() and (sampled > 5).all()


def test_paper_is_found_against_a_player_that_likes_rock():
    cfg = dict(
        exp_name='run',
        env=dict(env_type='rock_paper_scissors', env_manager_type='vector', actor_env_num=64, evaluator_env_num=50),
        policy=dict(policy_type='ppo', model=dict(hidden_dim_list=[8]), learn=dict(batch_size=256, learning_rate=1e-2)),
        actor=dict(n_sample=512),
        evaluator=dict(n_episode=1000, eval_freq=1000),
        commander=dict(max_env_step=8000),
    )
    cfg['env']['opponent'] = 'biased'
    assert serial_pipeline(cfg, 0).final_return == pytest.approx(0.25, abs=0.08)  # paper: 0.5 - 0.25


@pytest.mark.slow
@pytest.mark.parametrize('seed', [0, 1, 2])
def test_tic_tac_toe_is_learned_by_self_play(seed):
    result = serial_pipeline('tic_tac_toe_dqn', seed)
    assert result.solved  # in 200 games none is lost to the perfect player


def test_values_alternate_where_one_policy_plays_both_sides():
    cfg = config()
    cfg['commander'] = dict(max_env_step=64)
    cfg['env'].update(opponent='self', evaluator_opponent='perfect')
    cfg['policy'].update(
        policy_type='ppo', command={}, learn=dict(batch_size=8, algo=dict(discount_factor=-0.5, gae_lambda=1.0))
    )
    with build_serial(cfg, 0) as run:
        policy = run.policy
        reward, done = np.array([0.0, 0.0, 1.0], np.float32), np.array([False, False, True])
        columns = dict(value=np.zeros(3, np.float32), reward=reward, done=done, truncated=done & False)
        obs = {'observation': np.zeros((3, 18), np.float32), 'action_mask': np.ones((3, 9), np.float32)}
        traj = Batch.of({**columns, 'obs': obs, 'next_obs': obs, 'action': np.zeros(3, np.int64)})
        # the last mover wins: 1; before it the loser's move, -0.5 * 1; before that the winner's, -0.5 * -0.5
        assert policy._get_train_sample(traj)['return_'].tolist() == [0.25, -0.5, 1.0]
        run.collect()
    for change in ({'selfplay': 'latest'}, {}):
        changed = {**cfg, 'commander': {**cfg['commander'], **change}}
        if not change:
            changed['policy'] = {**cfg['policy'], 'learn': dict(batch_size=8, algo=dict(discount_factor=0.9))}
        with pytest.raises(ConfigError, match='the commander chooses opponents' if change else 'must be negative with'):
            serial_pipeline(changed, 0)


@pytest.mark.slow
@pytest.mark.parametrize('seed', [0, 1, 2])
def test_the_average_of_snapshots_of_kuhn_poker_is_hard_to_exploit(seed):
    from app_zoo.poker.entry.exploit import rows_of

    serial_pipeline('kuhn_poker_ppo', seed, overrides=('exp_name=run', 'commander.max_env_step=150_000'))
    first, *_, last = rows_of('run')
    assert first['average'] > 0.15 and last['average'] < 0.1  # uniform play: 0.458
