"""The games pay what their tables say, and pass the checks of an env."""

import collections
import itertools

import numpy as np
import pytest

from app_zoo.team_games.envs import MatrixGame, RelayGame, TwoStepGame
from nervex.envs import check_env


def played(env, *actions):
    env.reset(seed=0)
    steps = [env.step(np.array(action)) for action in actions]
    assert [step.done for step in steps] == [False] * (len(steps) - 1) + [True]
    assert steps[-1].info['final_eval_reward'] == sum(float(step.reward[0]) for step in steps)
    return steps[-1].info['final_eval_reward']


@pytest.mark.parametrize('second, paid', [((0, 0), 0), ((0, 1), 1), ((1, 0), 1), ((1, 1), 8)])
def test_two_step_game_pays_by_the_chosen_table(second, paid):
    assert played(TwoStepGame(), (0, 1), second) == 7
    assert played(TwoStepGame(), (1, 0), second) == paid


def test_only_the_first_agent_chooses_the_table():
    env = TwoStepGame()
    env.reset()
    assert env.step(np.array([0, 1])).obs['global_state'].tolist() == [0, 1, 0]


def test_matrix_games_pay_by_their_tables():
    climbing = [[played(MatrixGame({}), (row, column)) for column in range(3)] for row in range(3)]
    assert climbing == [[11, -30, 0], [-30, 7, 6], [0, 0, 5]]
    assert played(MatrixGame({'payoff': 'penalty'}), (2, 2)) == 10
    with pytest.raises(ValueError, match='did you mean'):
        MatrixGame({'payoff': 'climbin'})


@pytest.mark.parametrize('wait', [0, 2])
@pytest.mark.parametrize('seed', range(3))
def test_relay_pays_for_the_bit_that_the_first_agent_saw(wait, seed):
    env = RelayGame({'wait': wait})
    views = [env.reset(seed=seed)['agent_state']]
    bit = int(views[0][0, :2].argmax())
    steps = [env.step(np.array([bit, 0]))] + [env.step(np.array([1 - bit, bit])) for _ in range(wait + 2)]
    views += [step.obs['agent_state'] for step in steps]
    assert not views[0][1, :2].any() and views[1][1, bit] == 1  # the message comes one step later, to the other one
    assert not any(view[:, :2].any() for view in views[2:-1])
    assert [view[1, 3] for view in views[:-1]] == [0] * (wait + 2) + [1]  # when to answer
    assert [float(step.reward[0]) for step in steps] == [0.0] * (wait + 2) + [1.0] and steps[-1].done


def relay_by_tables(wait):
    """The best mean return over both bits of agents that look at the present observation alone, by trying them all."""
    env = RelayGame({'wait': wait})

    def play(bit, tables):
        env.reset()
        env._bit, total, done = bit, 0.0, False
        views = env._view()[0]
        while not done:
            actions = [tables[agent][tuple(views[agent])] for agent in range(2)]
            obs, reward, done, _ = env.step(np.array(actions))
            views, total = obs['agent_state'], total + float(reward[0])
        return total

    seen = [set(), set()]
    for bit, said in itertools.product(range(2), range(2)):
        always = [collections.defaultdict(lambda said=said: said) for _ in range(2)]
        play(bit, always)
        for agent in range(2):
            seen[agent] |= set(always[agent])
    tables = [
        [dict(zip(views, actions)) for actions in itertools.product(range(2), repeat=len(views))] for views in seen
    ]
    return max(np.mean([play(bit, pair) for bit in range(2)]) for pair in itertools.product(*tables))


@pytest.mark.parametrize('wait', [0, 2])
def test_relay_is_left_to_chance_without_a_memory(wait):
    assert relay_by_tables(wait) == 0.5


@pytest.mark.parametrize('env', [TwoStepGame, MatrixGame, RelayGame])
def test_checked(env):
    assert not check_env(env({}))


def test_wrong_action_is_named():
    env = TwoStepGame()
    env.reset()
    with pytest.raises(ValueError, match='2 ints from 0 to 1'):
        env.step(np.array([0, 2]))
