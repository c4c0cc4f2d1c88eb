"""The search against a slow recursion, its rules against the envs', and what it finds in positions."""

import numpy as np
import pytest

from app_zoo.board.envs import CONNECT_FOUR, TIC_TAC_TOE, Boards
from app_zoo.board.envs.search import CONNECT_FOUR_RULES, TIC_TAC_TOE_RULES
from nervex.policy.tree_search import TreeSearch, halving_plan

GAMES = {'tic_tac_toe': (TIC_TAC_TOE_RULES, TIC_TAC_TOE), 'connect_four': (CONNECT_FOUR_RULES, CONNECT_FOUR)}
SHAPE = {'tic_tac_toe': (2, 3, 3), 'connect_four': (2, 6, 7)}


def some_positions(name, games, moves, seed=0):
    """Positions of games by chance that are not over."""
    rules, sizes = GAMES[name]
    rng, boards = np.random.default_rng(seed), Boards(sizes, games)
    for _ in range(moves):
        won, full = boards.step((rng.random(boards.legal().shape) * boards.legal()).argmax(1))
        boards.reset(np.flatnonzero(won | full))
    return rules.positions(boards.obs())


def fake_net(actions, seed=0):
    """Logits and values that depend on the position and nothing else."""
    rng = np.random.default_rng(seed)
    weights, last = rng.normal(size=(200, actions)), rng.normal(size=200)

    def evaluate(positions):
        x = positions.reshape(len(positions), -1).astype(np.float32)
        size = x.shape[1]
        return (x @ weights[:size]).astype(np.float32), np.tanh(x @ last[:size]).astype(np.float32)

    return evaluate


class SlowSearch:
    """One game, a dict a node, by the paper's formulas."""

    def __init__(self, rules, evaluate, simulations, considered, c_visit, c_scale):
        self.rules, self.evaluate, self.simulations = rules, evaluate, simulations
        self.considered, self.c_visit, self.c_scale = considered, c_visit, c_scale

    def node(self, position):
        logits, value = self.evaluate(position[None])
        legal = [a for a in range(logits.shape[1]) if self.rules.legal(position[None])[0, a]]
        stats = {a: dict(logit=float(logits[0, a]), visits=0, total=0.0, child=None) for a in legal}
        return dict(position=position, value=float(value[0]), actions=stats, over=False)

    def sigma(self, node):
        actions = node['actions']
        weights = {a: np.exp(s['logit'] - max(t['logit'] for t in actions.values())) for a, s in actions.items()}
        tried = [a for a, s in actions.items() if s['visits']]
        mixed, count = node['value'], sum(s['visits'] for s in actions.values())
        if tried:
            mean = sum(weights[a] * actions[a]['total'] / actions[a]['visits'] for a in tried)
            mixed = (node['value'] + count * mean / sum(weights[a] for a in tried)) / (1 + count)
        most = max(s['visits'] for s in actions.values())
        values = {a: s['total'] / s['visits'] if s['visits'] else mixed for a, s in actions.items()}
        return {a: self.c_scale * (self.c_visit + most) * value for a, value in values.items()}, values

    def improved(self, node):
        bonus, values = self.sigma(node)
        scores = {a: s['logit'] + bonus[a] for a, s in node['actions'].items()}
        powers = {a: np.exp(score - max(scores.values())) for a, score in scores.items()}
        return {a: power / sum(powers.values()) for a, power in powers.items()}, values

    def go_down(self, node, action):
        """The value of an action for who takes it, found by one more simulation."""
        stats = node['actions'][action]
        if stats['child'] is None:
            position, won, over = (part[0] for part in self.rules.play(node['position'][None], np.array([action])))
            stats['child'] = dict(over=True, value=-float(won)) if over else self.node(position)
            value = -stats['child']['value']
        elif stats['child']['over']:
            value = -stats['child']['value']
        else:
            child = stats['child']
            policy, _ = self.improved(child)
            count = sum(s['visits'] for s in child['actions'].values())
            ahead = {a: policy[a] - s['visits'] / (1 + count) for a, s in child['actions'].items()}
            value = -self.go_down(child, max(ahead, key=ahead.get))
        stats['visits'] += 1
        stats['total'] += value
        return value

    def __call__(self, position, noise):
        root = self.node(position)
        actions = root['actions']
        plan = halving_plan(min(len(actions), self.considered), self.simulations)
        for due in plan:
            bonus, _ = self.sigma(root)
            scores = {a: s['logit'] + noise[a] + bonus[a] for a, s in actions.items() if s['visits'] == due}
            self.go_down(root, max(scores, key=scores.get))
        policy, values = self.improved(root)
        bonus, _ = self.sigma(root)
        most = max(s['visits'] for s in actions.values())
        final = {a: s['logit'] + noise[a] + bonus[a] for a, s in actions.items() if s['visits'] == most}
        return root, policy, sum(policy[a] * values[a] for a in policy), max(final, key=final.get)


@pytest.mark.parametrize('name, moves', [('tic_tac_toe', 3), ('connect_four', 6), ('connect_four', 30)])
@pytest.mark.parametrize('simulations, considered', [(1, 16), (7, 16), (40, 16), (40, 3)])
def test_the_search_is_the_slow_recursion(name, moves, simulations, considered):
    rules, sizes = GAMES[name]
    positions, evaluate = some_positions(name, 6, moves), fake_net(sizes.actions)
    noise = np.random.default_rng(1).gumbel(size=(6, sizes.actions)).astype(np.float32)
    found = TreeSearch(rules, simulations, considered, 20.0, 0.05)(positions, evaluate, noise)
    slow = SlowSearch(rules, evaluate, simulations, considered, 20.0, 0.05)
    for k in range(6):
        root, policy, value, action = slow(positions[k], noise[k])
        assert found.visits[k].sum() == simulations and found.action[k] == action
        for a in range(sizes.actions):
            assert found.visits[k, a] == (root['actions'][a]['visits'] if a in root['actions'] else 0)
            assert found.policy[k, a] == pytest.approx(policy.get(a, 0.0), abs=1e-5)
        assert found.value[k] == pytest.approx(value, abs=1e-5)


def test_a_plan_tries_all_and_then_the_better_half():
    assert halving_plan(1, 3) == [0, 1, 2]
    assert halving_plan(2, 6) == [0, 0, 1, 1, 2, 2]
    # 16 simulations, 4 actions: two rounds of 8: all four twice, then the two best four times
    assert halving_plan(4, 16) == [0] * 4 + [1] * 4 + [2, 2, 3, 3, 4, 4, 5, 5]
    assert halving_plan(7, 3) == [0, 0, 0]  # not all of them can be tried


@pytest.mark.parametrize('name', GAMES)
def test_games_alone_and_together_are_searched_alike(name):
    rules, sizes = GAMES[name]
    positions, evaluate = some_positions(name, 5, 4), fake_net(sizes.actions)
    search = TreeSearch(rules, 25)
    together = search(positions, evaluate)
    for k in range(5):
        alone = search(positions[k : k + 1], evaluate)
        assert np.array_equal(alone.visits[0], together.visits[k]) and alone.action[0] == together.action[k]


@pytest.mark.parametrize('name', GAMES)
def test_an_illegal_move_is_never_tried(name):
    rules, sizes = GAMES[name]
    positions = some_positions(name, 200, 5 if name == 'tic_tac_toe' else 30)
    noise = np.random.default_rng(0).gumbel(size=(200, sizes.actions)).astype(np.float32)

    def wishes(leaves):  # the illegal ones above all
        return np.where(rules.legal(leaves), 0, 50).astype(np.float32), np.zeros(len(leaves), np.float32)

    found, legal = TreeSearch(rules, 20)(positions, wishes, noise), rules.legal(positions)
    assert not legal.all()
    assert (found.policy[~legal] == 0).all() and (found.visits[~legal] == 0).all()
    assert legal[np.arange(200), found.action].all()


def untrained(actions):
    return lambda leaves: (np.zeros((len(leaves), actions), np.float32), np.zeros(len(leaves), np.float32))


def after(name, *moves):
    rules, sizes = GAMES[name]
    boards = Boards(sizes, 1)
    for move in moves:
        boards.step(np.array([move]))
    return rules.positions(boards.obs())


@pytest.mark.parametrize(
    'what, moves, action, value, simulations',
    [
        ('takes a win', (3, 0, 3, 1, 3, 6), 3, 1.0, 16),
        ('stops a threat', (0, 3, 1, 3, 6, 3), 3, 0.0, 400),
        # two in the middle of an empty row with both ends free: a third one makes two threats
        ('wins in three', (2, 2, 3, 3), None, 1.0, 1500),
    ],
)
def test_an_untrained_search_in_connect_four(what, moves, action, value, simulations):
    found = TreeSearch(CONNECT_FOUR_RULES, simulations, c_scale=0.5)(after('connect_four', *moves), untrained(7))
    if action is None:
        assert found.action[0] in (1, 4) and found.value[0] > 0.8
    else:
        assert found.action[0] == action and abs(found.value[0] - value) < 0.35


@pytest.mark.parametrize('name', GAMES)
@pytest.mark.parametrize('planes', [2, 3])
def test_the_rules_are_those_of_the_env(name, planes):
    from app_zoo.board.envs import ConnectFour, TicTacToe

    made = {'tic_tac_toe': TicTacToe, 'connect_four': ConnectFour}[name]
    rules, rng = GAMES[name][0], np.random.default_rng(0)
    for flat in (True, False):
        game = made({'flatten_obs': flat, 'show_legal': planes == 3}, 8)
        rows, over = np.arange(8), np.zeros(8, bool)
        game.begin(rows, list(rng.spawn(8)))
        while len(rows := rows[~over[rows]]):
            side = game.turns()[rows].argmax(1)
            seen = game.view(rows, side)
            positions = rules.positions(seen['observation'])
            assert np.array_equal(rules.observe(positions, game.seen_shape), seen['observation'])
            assert np.array_equal(rules.legal(positions), seen['action_mask'] > 0)
            actions = (rng.random(seen['action_mask'].shape) * seen['action_mask']).argmax(1)
            before = positions.copy()
            following, won, ended = rules.play(positions, actions)
            assert np.array_equal(positions, before)
            joint = np.zeros((len(rows), 2), int)
            joint[np.arange(len(rows)), side] = actions
            paid, over[rows] = game.move(rows, joint)
            assert np.array_equal(won, paid[np.arange(len(rows)), side] == 1) and np.array_equal(ended, over[rows])
            on = ~ended
            seen = game.view(rows[on], 1 - side[on])
            assert np.array_equal(rules.observe(following[on], game.seen_shape), seen['observation'])


@pytest.mark.parametrize('name, count', [('tic_tac_toe', 7), ('connect_four', 1)])
def test_a_symmetry_and_a_move_may_change_places(name, count):
    rules = GAMES[name][0]
    shape = (3, *SHAPE[name][1:])
    positions = some_positions(name, 50, 4)
    found = rules.symmetries(shape)
    assert len(found) == count and len({p.tobytes() for p, _ in found}) == count
    obs = rules.observe(positions, shape).reshape(50, -1)
    for p, q in found:
        turned = rules.positions(obs[:, p].reshape(50, *shape))
        assert np.array_equal(rules.observe(turned, shape).reshape(50, -1), obs[:, p])
        assert np.array_equal(rules.legal(turned), rules.legal(positions)[:, q])
        actions = rules.legal(turned).argmax(1)
        one, won, over = rules.play(turned, actions)
        other, also_won, also_over = rules.play(positions, q[actions])
        assert np.array_equal(
            rules.observe(one, shape).reshape(50, -1), rules.observe(other, shape).reshape(50, -1)[:, p]
        )
        assert np.array_equal(won, also_won) and np.array_equal(over, also_over)


def test_scaled_boards_are_refused():
    with pytest.raises(ValueError, match=r'got 0.5 in one; .*norm_obs=False'):
        TIC_TAC_TOE_RULES.positions(np.full((1, 18), 0.5, np.float32))
