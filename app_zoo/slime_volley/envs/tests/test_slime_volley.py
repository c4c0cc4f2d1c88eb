"""Slime volleyball: the package's game step by step, its player, what is seen and drawn."""

import json

import numpy as np
import pytest

from app_zoo.board.envs import ConnectFour
from app_zoo.slime_volley.envs import SlimeVolley
from app_zoo.slime_volley.envs.slime_volley import JUMP, WALK
from nervex.envs.duel import Duels

BUTTONS = [[int(walk < 0), int(walk > 0), int(jump)] for walk, jump in zip(WALK, JUMP)]


class Serves:
    """In place of the package's generator: our serves."""

    def __init__(self, serves):
        self.left = serves.ravel().tolist()

    def uniform(self, low, high):
        return self.left.pop(0)


def package_game(ours, row):
    slimevolley = pytest.importorskip('slimevolleygym.slimevolley', reason='pip install nervex[slime]')
    env = slimevolley.SlimeVolleyEnv()
    env.game = slimevolley.Game(Serves(np.concatenate([np.zeros((1, 2)), ours.serves[row]])))
    env.game.reset()
    return env


@pytest.mark.parametrize('left, right', [('random', 'random'), ('builtin', 'random'), ('builtin', 'builtin')])
def test_it_is_the_packages_game_step_by_step(left, right):
    pytest.importorskip('slimevolleygym.slimevolley', reason='pip install nervex[slime]')
    from slimevolleygym.slimevolley import BaselinePolicy

    num, rng, frames = 4, np.random.default_rng(3), 1 if left == 'random' else 2
    ours, rows = SlimeVolley({'frames': frames}, num), np.arange(num)
    ours.begin(rows, [np.random.default_rng(k) for k in range(num)])
    games = [package_game(ours, row) for row in rows]
    nets = [[BaselinePolicy(), BaselinePolicy()] for _ in rows]
    points = 0
    for _ in range(1500 // frames):
        seen, players = ours.seen()['observation'], zip((left, right), (0, 1))
        joint = np.stack([ours.players[name](ours, rows, rows * 0 + side, rng) for name, side in players], 1)
        paid, over = ours.move(rows, joint)
        for row, env in enumerate(games):
            sides = env.game.agent_left, env.game.agent_right
            assert (np.array([agent.getObservation() for agent in sides], np.float32) == seen[row]).all()
            total, done = 0, False
            for _ in range(frames):
                buttons = [
                    nets[row][k].predict(sides[k].getObservation()) if name == 'builtin' else BUTTONS[joint[row, k]]
                    for k, name in enumerate((left, right))
                ]
                if not done:
                    _, reward, done, _ = env.step(*buttons[::-1])
                    total += reward
            assert paid[row].tolist() == [-total, total] and over[row] == done
            points += abs(total)
        ours.begin(over.nonzero()[0], [np.random.default_rng()] * num)
        for row in over.nonzero()[0]:
            games[row], nets[row] = package_game(ours, row), [BaselinePolicy(), BaselinePolicy()]
    assert points > (20 if 'random' in (left, right) else -1)


def test_a_point_is_told_to_both_sides_and_five_end_the_game():
    game = SlimeVolley({}, 2)
    game.begin(np.arange(2), [np.random.default_rng(0)] * 2)
    game.serves[:] = [15.0, 10.0]  # to the right
    game._serve(np.arange(2))
    stay, total, steps = np.array([[0, 5], [0, 5]]), np.zeros(2), 0  # the right one stands at the wall
    while True:
        paid, over = game.move(np.arange(2), stay)
        total += paid[0]
        steps += 1
        assert over[0] == (game.lives[0, 1] == 0)
        if over[0]:
            break
    assert total.tolist() == [5, -5] and 150 < steps < 1000
    with pytest.raises(ValueError, match='an action is an int from 0 to 5, got'):
        game.move(np.arange(2), stay + 1)


def test_both_sides_see_the_same_game_from_the_right():
    game = SlimeVolley({}, 1)
    game.begin(np.arange(1), [np.random.default_rng(0)])
    seen = game.seen()['observation'][0]
    np.testing.assert_allclose(seen[:, [0, 1, 4, 5, 8, 9]], [[1.2, 0.15, 0, 1.2, 1.2, 0.15]] * 2, atol=1e-6)
    assert seen[0, 6] == -seen[1, 6] and seen[0, 7] == seen[1, 7] > 0
    image = game.render()
    assert image.shape == (200, 480, 3) and image.dtype == np.uint8
    assert (image[80 - 3 : 80 + 3, 237:243] == (217, 79, 0)).all()  # the ball, at 12 above the middle


def test_a_duel_draws_itself_and_a_board_says_that_it_does_not(tmp_path):
    duel = Duels(SlimeVolley)({})
    duel.reset(seed=0)
    assert (duel.render() == duel.game.render()).all() and duel.metadata['render_fps'] == 50
    with pytest.raises(NotImplementedError, match='ConnectFour cannot save replays'):
        Duels(ConnectFour)({}).enable_save_replay(str(tmp_path))


def test_games_go_on_from_their_state():
    engines = [Duels(SlimeVolley).create_vector_env([{}] * 3) for _ in '12']
    for k, engine in enumerate(engines):
        engine.start([k] * 3)
    rng = np.random.default_rng(0)
    for _ in range(100):
        engines[0].exchange(rng.integers(0, 6, 3))
    engines[1].load_state_dict(json.loads(json.dumps(engines[0].state_dict())))
    for _ in range(600):
        actions = rng.integers(0, 6, 3)
        first, second = (engine.exchange(actions) for engine in engines)
        assert (first.obs['observation'] == second.obs['observation']).all() and (first.reward == second.reward).all()
