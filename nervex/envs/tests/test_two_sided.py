"""Games of two sides, and duels: what one side sees, is paid and is told."""

import itertools
import json

import numpy as np
import pytest

from app_zoo.board.envs import ConnectFour, TicTacToe
from app_zoo.matrix_games.envs import RockPaperScissors
from nervex.envs import Duel, Duels, PettingZooGame, Rivals, TwoSidedEnv
from nervex.utils import ConfigError
from nervex.worker.actor.env_manager import create_env_manager


class Countdown(TwoSidedEnv):
    """Take one or two of five sticks in turn; who takes the last one wins 1, the other loses 1."""

    seen_shape, action_num, limit = (1,), 2, 10

    def __init__(self, cfg=None, num=1):
        super().__init__(cfg, num)
        self.left, self.mover = np.zeros(num, int), np.zeros(num, int)

    def begin(self, which, generators):
        self.left[which], self.mover[which] = 5, 0

    def move(self, rows, actions):
        side, place = self.mover[rows], np.arange(len(rows))
        self.left[rows] -= actions[place, side] + 1
        over, rewards = self.left[rows] <= 0, np.zeros((len(rows), 2), np.float32)
        rewards[place[over], side[over]], rewards[place[over], 1 - side[over]] = 1, -1
        self.mover[rows] = 1 - side
        return rewards, over

    def turns(self):
        return np.arange(2) == self.mover[:, None]

    def view(self, rows, sides):
        legal = np.stack([np.ones(len(rows)), self.left[rows] != 1], 1).astype(np.float32)
        return {'observation': self.left[rows, None].astype(np.float32), 'action_mask': legal}


class Noted(Rivals):
    """Always takes one stick; notes who asks for what."""

    def __init__(self, *names):
        super().__init__()
        self.names, self.asked, self.told, self.given = names, [], [], 0

    def choose(self, count):
        chosen = [self.names[(self.given + k) % len(self.names)] for k in range(count)]
        self.given += count
        return chosen

    def act(self, name, game, rows, sides, rng):
        self.asked.append((name, rows.tolist()))
        return np.zeros(len(rows), int)

    def ended(self, names, results):
        self.told += zip(names, results)


def started(num, *names):
    rivals = Noted(*names or ('one',))
    engine = Duels(Countdown, rivals).create_vector_env([{}] * num)
    return rivals, engine, engine.start(list(range(num)))


def test_a_step_is_the_own_move_and_the_opponents():
    _, engine, seen = started(2)
    assert seen['observation'].ravel().tolist() == [5, 4]  # in row 1 the opponent has moved first
    answer = engine.exchange(np.array([0, 1]))  # 5 - 1 - 1 and 4 - 2 - 1
    assert answer.obs['observation'].ravel().tolist() == [3, 1] and answer.reward.tolist() == [0, 0]
    assert answer.obs['action_mask'].tolist() == [[1, 1], [1, 0]]


def test_a_game_that_the_opponent_ends_ends_with_its_reward():
    rivals, engine, _ = started(1)
    engine.exchange(np.array([0]))
    answer = engine.exchange(np.array([1]))  # 3 - 2, and the opponent takes the last one
    assert answer.reward.tolist() == [-1] and answer.terminated.tolist() == [True]
    assert answer.infos['win'].tolist() == [0] and answer.infos['draw'].tolist() == [0]
    assert rivals.told == [('one', 'losses')]


def test_sides_change_from_game_to_game():
    _, engine, _ = started(2)
    begun = []
    for _ in range(40):
        answer = engine.exchange(np.zeros(2, int))
        begun += [(k, float(answer.obs['observation'][k, 0])) for k in answer.terminated.nonzero()[0]]
    for row in (0, 1):  # 5 sticks: first to move; 4: second
        first = [left for k, left in begun if k == row]
        assert all(a != b for a, b in itertools.pairwise(first)) and len(first) > 10


def test_rows_with_the_same_opponent_are_one_batch_for_it():
    rivals, engine, _ = started(4, 'a', 'b')
    rivals.asked.clear()
    engine.exchange(np.zeros(4, int))
    assert rivals.asked == [('a', [0, 2]), ('b', [1, 3])]


def test_sides_that_choose_at_once_choose_once():
    duel = Duels(RockPaperScissors, Rivals('biased'))({'rounds': 2}, 2)
    duel.begin(np.arange(2), [np.random.default_rng(0), np.random.default_rng(1)])
    reward, over = duel.act(np.array([0, 1]))
    both = duel.seen()['observation'].reshape(2, 2, 3)
    assert not over.any() and both[:, 0].tolist() == [[1, 0, 0], [0, 1, 0]]
    theirs = both[:, 1].argmax(1)
    assert reward.tolist() == [[0, -1, 1][theirs[0]], [1, 0, -1][theirs[1]]]
    assert duel.act(np.array([0, 0]))[1].all()


def test_two_duels_of_one_seed_are_the_same_and_a_state_goes_on():
    def play(engine, steps, rng):
        seen = engine.env.seen()
        for _ in range(steps):
            actions = (rng.random(seen['action_mask'].shape) * seen['action_mask']).argmax(1)
            seen = engine.exchange(actions).obs
        return seen['observation'].tolist(), engine.env.side.tolist()

    made = [Duels(TicTacToe).create_vector_env([{}] * 3) for _ in range(3)]
    for engine in made[:2]:
        engine.start([5, 6, 7])
    first, second = (play(engine, 9, np.random.default_rng(1)) for engine in made[:2])
    assert first == second
    made[2].start([0, 0, 0])
    made[2].load_state_dict(json.loads(json.dumps(made[0].state_dict())))
    assert play(made[0], 9, np.random.default_rng(2)) == play(made[2], 9, np.random.default_rng(2))


@pytest.mark.parametrize('manager', ['vector', 'base', 'subprocess'])
def test_players_by_rule_are_met_in_every_manager(manager):
    with create_env_manager(manager, Duels(TicTacToe), [{'opponent': 'perfect'}] * 2, {}) as envs:
        envs.seed(0)
        envs.launch()
        signs = []
        for _ in range(25):
            ids, obs = envs.observe()
            step = envs.advance(ids, obs['action_mask'].argmax(1))
            signs += step.reward[step.done].ravel().tolist()
    assert len(signs) > 5 and max(signs) <= 0


def test_what_nobody_may_do_is_refused_with_words():
    duel = Duels(TicTacToe)({}, 1)
    duel.reset(seed=0)
    duel.step(4)
    with pytest.raises(ValueError, match='tic_tac_toe: game 0: action 4 is not legal; legal are'):
        duel.step(4)
    with pytest.raises(ConfigError, match=r"env\.opponent: .*'perfct'.*did you mean 'perfect'"):
        Duels(TicTacToe)({'opponent': 'perfct'}, 1).reset(seed=1)
    with pytest.raises(TypeError, match='two agents with the same Discrete actions'):
        pytest.importorskip('mpe2')
        PettingZooGame({'env_id': 'mpe2.simple_spread_v3'})


@pytest.mark.parametrize('game, module', [(TicTacToe, 'tictactoe_v3'), (ConnectFour, 'connect_four_v3')])
def test_pettingzoos_env_is_the_same_game(game, module):
    pytest.importorskip('pygame')
    theirs = PettingZooGame({'env_id': f'pettingzoo.classic.{module}'}, 3)
    ours, rng, over = game({}, 3), np.random.default_rng(0), np.ones(3, bool)
    ended = 0
    for _ in range(60):
        for one in (ours, theirs):
            one.begin(over.nonzero()[0], [np.random.default_rng(k) for k in range(3)])
        mine, his = ours.seen(), theirs.seen()
        assert mine['to_move'].tolist() == his['to_move'].tolist()
        assert (mine['action_mask'][mine['to_move']] == his['action_mask'][his['to_move']]).all()
        assert mine['observation'].sum() == his['observation'].sum()
        legal = mine['action_mask']
        actions = (rng.random(legal.shape) * legal).argmax(2)
        (paid, over), (his_paid, his_over) = ours.act(actions), theirs.act(actions)
        assert paid.tolist() == his_paid.tolist() and over.tolist() == his_over.tolist()
        ended += over.sum()
    assert ended > 5


def test_pettingzoo_games_go_on_from_their_state():
    pytest.importorskip('pygame')
    for module in ('tictactoe_v3', 'rps_v2'):
        engines = [
            Duels(PettingZooGame).create_vector_env([{'env_id': f'pettingzoo.classic.{module}'}] * 2) for _ in '12'
        ]
        for k, engine in enumerate(engines):
            engine.start([k, k])
        seen = engines[0].exchange(engines[0].env.seen()['action_mask'].argmax(1)).obs
        engines[1].load_state_dict(json.loads(json.dumps(engines[0].state_dict())))
        for _ in range(8):
            actions = seen['action_mask'].argmax(1)
            first, second = (engine.exchange(actions) for engine in engines)
            seen = first.obs
            assert (seen['observation'] == second.obs['observation']).all() and (first.reward == second.reward).all()


def test_a_duel_is_an_env_of_one_side():
    duel = Duels(ConnectFour)({'flatten_obs': False})
    info = duel.info()
    assert isinstance(duel, Duel) and (info.sides, info.agent_num) == (1, 1)
    assert ConnectFour({}).info().sides == 2
    assert duel.reset(seed=0)['observation'].shape == info.obs_space.shape['observation'] == (2, 6, 7)
    while not (step := duel.step(int(duel.seen()['action_mask'][0].argmax()))).done:
        pass
    assert step.info['final_eval_reward'] == step.reward[0] == 2 * step.info['win'] + step.info['draw'] - 1


class Pairs(Countdown):
    """The same, with an action of two parts, of which only the first counts."""

    action_num = (2, 5)

    def move(self, rows, actions):
        self.given = actions.copy()
        return super().move(rows, actions[..., 0])


def test_actions_may_have_parts():
    class Two(Noted):
        def act(self, name, game, rows, sides, rng):
            return np.full((len(rows), 2), (0, 4))

    engine = Duels(Pairs, Two('one')).create_vector_env([{}] * 2)
    engine.start([0, 1])
    answer = engine.exchange(np.array([[0, 3], [1, 2]]))  # 5 - 1 - 1 and 4 - 2 - 1
    assert answer.obs['observation'].ravel().tolist() == [3, 1]
    assert engine.env.game.given.tolist() == [[[0, 3], [0, 4]], [[0, 4], [1, 2]]]


def test_one_player_of_both_sides_sees_and_is_paid_as_the_side_to_move():
    env = Duels(TicTacToe)({'opponent': 'self'})
    obs = env.reset(seed=0)
    for action, mine, other in ((0, 0, 0), (3, 0, 1), (1, 1, 1), (4, 1, 2)):  # what is there before the move
        assert (obs['observation'][:9].sum(), obs['observation'][9:].sum()) == (mine, other)
        obs, reward, done, _ = env.step(action)
        assert reward == 0 and not done
    step = env.step(2)  # 0, 1, 2 against 3, 4: the first column
    assert step.reward == 1 and step.done
    with pytest.raises(RuntimeError, match='both sides move at once'):
        Duels(RockPaperScissors)({'opponent': 'self'}).reset(seed=0)
    with pytest.raises(ConfigError, match=r'env\.evaluator_opponent: missing'):
        TicTacToe.create_evaluator_env_cfg({'opponent': 'self', 'evaluator_env_num': 1})


def test_games_of_one_player_go_on_from_their_state():
    engines = [Duels(ConnectFour).create_vector_env([{'opponent': 'self', 'random_moves': 6}] * 3) for _ in '12']
    for k, engine in enumerate(engines):
        engine.start([k] * 3)
    seen = engines[0].exchange(engines[0].env.seen()['action_mask'].argmax(1)).obs
    engines[1].load_state_dict(json.loads(json.dumps(engines[0].state_dict())))
    for _ in range(30):
        actions = seen['action_mask'].argmax(1)
        first, second = (engine.exchange(actions) for engine in engines)
        seen = first.obs
        assert (seen['observation'] == second.obs['observation']).all() and (first.reward == second.reward).all()
