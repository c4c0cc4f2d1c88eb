"""Players against each other, and a person at the terminal."""

import os
import pty
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from app_zoo.board.envs import TicTacToe
from nervex.entry import arena, serial_pipeline
from nervex.entry.arena_entry import play, play_human
from nervex.entry.cli import cli
from nervex.envs import Rivals
from nervex.utils import ConfigError
from nervex.utils.tests import quick_start

TIC_TAC_TOE = dict(
    env=dict(env_type='tic_tac_toe', env_manager_type='vector', actor_env_num=4, evaluator_env_num=2),
    policy=dict(policy_type='ppo', model=dict(hidden_dim_list=[8]), learn=dict(batch_size=16, epochs=1)),
    replay_buffer={},
    actor=dict(n_sample=32),
    evaluator=dict(n_episode=2, eval_freq=1000),
    commander=dict(max_env_step=32, selfplay='latest'),
)


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp('arena')
    serial_pipeline({**TIC_TAC_TOE, 'exp_name': str(folder / 'run')}, 0)
    return str(folder / 'run')


def test_the_perfect_player_is_above_the_random_one():
    result = arena(['perfect', 'random', 'nervex.envs.two_sided:random_player'], 40, 0, TIC_TAC_TOE)
    assert result.wins[1, 0] == result.wins[2, 0] == 0 and result.wins[0, 1] > 25
    assert (result.wins + result.wins.T + result.draws)[~np.eye(3, dtype=bool)].tolist() == [40] * 6
    assert result.elo[0] > result.high[1:].max() and (result.low <= result.elo).all() and abs(result.elo.sum()) < 1e-6
    assert result.different > 35 and '1 perfect' in result.table()
    told: list[str] = []
    players = ['perfect', 'random', 'nervex.envs.two_sided:random_player']
    again = arena(players, 40, 0, TIC_TAC_TOE, told=told.append)
    assert (again.wins == result.wins).all()
    won, drawn = again.wins[0, 1], again.draws[0, 1]
    assert told[0] == f'pair 1 of 3: perfect against random: {won} won, {drawn} drawn, 0 lost' and len(told) == 3


def test_players_change_sides_from_game_to_game():
    class Stubborn(Rivals):
        """Takes the first free cell; notes on which side."""

        def act(self, name, game, rows, sides, rng):
            self.sides = [*getattr(self, 'sides', []), *sides.tolist()]
            return game.view(rows, sides)['action_mask'].argmax(1)

    first, second = Stubborn(), Stubborn()
    results, different = play(TicTacToe, {}, (first, second), 4, np.random.default_rng(0))
    assert results.tolist() == [1, -1, 1, -1]  # 0 2 4 against 1 3 5, then 6: a diagonal for who begins
    assert different == 2 and first.sides.count(0) == 2 * 4 and second.sides.count(0) == 2 * 4


def test_a_cross_table_of_runs_and_names(run):
    done = CliRunner().invoke(cli, ['-m', 'arena', run, 'random', 'perfect', '--episodes', '10', '-s', '1'])
    assert done.exit_code == 0, done.output
    assert '10 games of each pair' in done.output and '1 run' in done.output and '3 perfect' in done.output
    assert 'sampled' in CliRunner().invoke(cli, ['-m', 'arena', run, run, '--episodes', '10']).output


def test_an_opponent_on_the_command_line(run):
    done = CliRunner().invoke(cli, ['-m', 'eval', '--load', run, '--opponent', 'perfect', '--episodes', '4'])
    assert done.exit_code == 0 and 'win rate: 0.00' in done.output, done.output


@pytest.mark.parametrize(
    'players, words',
    [
        (['random'], 'got 1 players'),
        (['random', 'perfect'], 'give a config'),
    ],
)
def test_who_cannot_play_is_told_why(players, words):
    with pytest.raises(ConfigError, match=words):
        arena(players)
    with pytest.raises(ConfigError, match='has one side'):
        arena(['a', 'b'], cfg='cartpole_dqn')


def test_two_players_with_memories_of_different_sizes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, size in (('small', 4), ('large', 8)):
        policy = dict(policy_type='ppo_recurrent', model=dict(hidden_dim_list=[size]), collect=dict(unroll_len=4))
        serial_pipeline({**TIC_TAC_TOE, 'policy': policy, 'exp_name': name}, 0)
    result = arena(['small', 'large'], 10, 0)
    assert result.wins.sum() + result.draws[0, 1] == 10 and result.different == 2  # greedy: one game for each beginner


@pytest.mark.parametrize('game_type', ['tic_tac_toe', 'connect_four'])
def test_a_person_plays_at_the_terminal(game_type, tmp_path):
    run = str(tmp_path / 'run')
    serial_pipeline({**TIC_TAC_TOE, 'env': {**TIC_TAC_TOE['env'], 'env_type': game_type}, 'exp_name': run}, 0)
    ours, theirs = pty.openpty()
    command = [sys.executable, '-m', 'nervex.entry.cli', '-m', 'eval', '--load', run, '--opponent', 'human', '-s', '0']
    start = quick_start.Popen if game_type == 'tic_tac_toe' else subprocess.Popen
    game = start(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text, answered = '', 0
    while True:
        try:
            text += os.read(ours, 1024).decode()
        except OSError:  # the other end is closed
            break
        if text.rstrip().endswith('):') and text.count('your move') > answered:
            answered = text.count('your move')
            legal = text.rpartition('your move (')[2].partition(')')[0].split(', ')
            os.write(ours, f'{"x" if answered == 1 else legal[0]}\n'.encode())
    assert game.wait() == 0, text
    assert "'x' is no legal move" in text and 'you are O' in text and '1 games: you' in text
    assert any(end in text for end in ('you win', 'you lose', 'a draw'))


def test_a_person_needs_a_game_that_shows_itself():
    cfg = {'env': {'env_type': 'rock_paper_scissors'}, 'policy': {'policy_type': 'ppo'}}
    with pytest.raises(ConfigError, match=r"got 'human', but RockPaperScissors does not show itself as text"):
        play_human(cfg, 'none')
