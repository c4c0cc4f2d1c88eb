"""Orders in parts, what a side sees, and the drill."""

import numpy as np
import pytest

from app_zoo.alphastar.envs import Drill
from app_zoo.alphastar.envs.features import COLUMN, ENEMY, LAYERS, NEUTRAL, PLAYER, SELF, random_orders
from app_zoo.alphastar.envs.orders import NAMES, NUMBER, OBEYS, PARTS, PLACES, USES, empty_order, possible
from nervex.envs import Duels
from nervex.worker.actor.env_manager import create_env_manager

SMALL = dict(map_size=16, max_units=8, max_selected=4)


def started(num=4, **more):
    engine = Duels(Drill).create_vector_env([{**SMALL, **more}] * num)
    return engine, engine.start(list(range(num)))


def right_orders(game, sides):
    """The order that is worth 1 in each row."""
    rows = np.arange(game.num)
    orders = np.tile(empty_order(game.sizes.selected, game.sizes.units), (game.num, 1))
    orders[:, PLACES['action_type']] = np.where(game.rich[rows, sides], NUMBER['Move_pt'], NUMBER['Attack_unit'])
    for row in rows:
        ready = game.ready[row, sides[row]].nonzero()[0]
        orders[row, 3 : 3 + len(ready)] = ready[::-1]  # in which order does not matter
    orders[:, PLACES['target_unit']] = game.weakest[rows, sides]
    mark = game.mark[rows, sides]
    orders[:, PLACES['target_location']] = mark[:, 0] * game.sizes.cells + mark[:, 1]
    return orders


def test_a_name_says_which_parts_an_order_has():
    parts = {name: [part for part, has in zip(PARTS, USES[NUMBER[name]]) if has] for name in NAMES}
    assert parts['no_op'] == ['action_type', 'delay']
    assert parts['Stop_quick'] == ['action_type', 'delay', 'queued', 'selected_units']
    assert parts['Move_pt'] == ['action_type', 'delay', 'queued', 'selected_units', 'target_location']
    assert parts['Build_Refinery_pt'] == parts['Attack_unit'] == [*parts['Stop_quick'], 'target_unit']


def test_only_who_can_obey_makes_an_order_possible():
    types = np.array([[84, 48, 0], [84, 48, 0]])  # a probe and a marine; in the second row only the marine is one's own
    found = possible(types, np.array([[True, True, False], [False, True, False]]))
    stim, pylon, move = (NUMBER[name] for name in ('Effect_Stim_quick', 'Build_Pylon_pt', 'Move_pt'))
    assert found[:, [0, stim, pylon, move]].tolist() == [[1, 1, 1, 1], [1, 1, 0, 1]]
    assert not possible(types, np.zeros((2, 3), bool))[:, 1:].any()
    assert OBEYS[84, pylon] and not OBEYS[48, pylon] and not OBEYS[84, 0]


def test_a_scene_shows_what_the_right_order_depends_on():
    engine, seen = started(32)
    game, rows = engine.env.game, np.arange(32)
    side, units = engine.env.side, seen['entity_info']
    count, alliance = seen['entity_num'][:, 0], units[..., COLUMN['alliance']]
    assert ((alliance > 0).sum(1) == count).all() and (seen['target_mask'].sum(1) == count).all()
    assert ((alliance == SELF) == (seen['select_mask'] > 0)).all() and (alliance == ENEMY).any(1).all()
    health = np.where(alliance == ENEMY, units[..., COLUMN['health_ratio']], 1000)
    assert (health.argmin(1) == game.weakest[rows, side]).all()
    cold = (alliance == SELF) & (units[..., COLUMN['weapon_cooldown']] == 0)
    assert (cold == game.ready[rows, side]).all() and cold.any(1).all()
    assert ((seen['scalar_info'][:, PLAYER.index('minerals')] > 0) == game.rich[rows, side]).all()
    relative = seen['spatial_info'][:, LAYERS.index('player_relative')]
    y, x = game.mark[rows, side].T
    assert (relative[rows, y, x] == NEUTRAL).all() and ((relative == NEUTRAL).sum((1, 2)) == 1).all()


def test_right_orders_are_paid_in_full_and_win():
    engine, _ = started(8, rounds=2)
    for _ in range(2):
        answer = engine.exchange(right_orders(engine.env.game, engine.env.side))
        assert answer.reward.tolist() == [1.0] * 8
    assert answer.terminated.all() and answer.infos['win'].tolist() == [1.0] * 8


@pytest.mark.parametrize(
    'change, rich, paid',
    [
        ({'action_type': NUMBER['Attack_pt']}, None, 0.0),
        ({'selected_units': 8}, None, 0.6),  # nobody: 0.2 and 0.4 for the target
        ({'target_unit': 7}, False, 0.6),
        ({'target_unit': 7}, True, 1.0),  # is no part of a move
        ({'queued': 1, 'delay': 5}, None, 1.0),
    ],
)
def test_what_is_wrong_is_not_paid(change, rich, paid):
    game = Drill(SMALL, 64)
    game.begin(np.arange(64), [np.random.default_rng(k) for k in range(64)])
    orders = np.stack([right_orders(game, np.full(64, side)) for side in (0, 1)], 1)
    for part, value in change.items():
        orders[..., PLACES[part]] = value
    which = np.full((64, 2), True) if rich is None else game.rich == rich
    rewards, _ = game.move(np.arange(64), orders)
    assert rewards[which].tolist() == [np.float32(paid)] * which.sum()


def test_a_location_is_paid_by_its_distance():
    game = Drill(SMALL, 1)
    game.begin(np.arange(1), [np.random.default_rng(0)])
    game.rich[:] = True
    game.mark[:] = (3, 4)
    orders = np.stack([right_orders(game, np.full(1, side)) for side in (0, 1)], 1)
    orders[0, 1, PLACES['target_location']] = 3 * 16 + 6  # 2 cells off, a quarter of half the map
    assert game.move(np.arange(1), orders)[0].tolist() == [[1.0, pytest.approx(0.2 + 0.4 + 0.4 * 0.75)]]


def test_random_orders_could_be_obeyed():
    engine, seen = started(64)
    rng, game = np.random.default_rng(0), engine.env.game
    for _ in range(20):
        orders = random_orders(seen, game.sizes, rng)
        kind, selected = orders[:, 0], orders[:, PLACES['selected_units']]
        assert (np.take_along_axis(seen['type_mask'], kind[:, None], 1) == 1).all()
        assert (orders >= 0).all() and (orders < game.action_num).all()
        own = np.pad(seen['select_mask'], ((0, 0), (0, 1)), constant_values=1)
        assert np.take_along_axis(own, selected, 1).all()
        some = (selected < game.sizes.units).any(1)
        assert (some == USES[kind, PARTS.index('selected_units')]).all()
        ends = np.sort(selected, 1)
        assert ((ends[:, 1:] != ends[:, :-1]) | (ends[:, 1:] == game.sizes.units)).all()  # nobody twice
        seen = engine.exchange(orders).obs


def test_orders_and_views_go_through_env_managers():
    rows = {}
    for kind in ('base', 'vector', 'sync_subprocess'):
        with create_env_manager(kind, Duels(Drill), [SMALL] * 2, {}) as manager:
            manager.seed(3)
            manager.launch()
            rng, sizes, found = np.random.default_rng(1), Drill(SMALL).sizes, []
            for _ in range(3):
                ready = manager.ready_obs
                seen = {key: np.stack([ready[k][key] for k in range(2)]) for key in ready[0]}
                found.append(seen)
                manager.step(dict(enumerate(random_orders(seen, sizes, rng))))
        rows[kind] = found
    for base, vector, process in zip(*rows.values()):
        for key, part in base.items():
            assert part.dtype == vector[key].dtype == process[key].dtype and part.shape == vector[key].shape
            assert (part == process[key]).all()  # in one vectorised env the opponents' chance is another


def test_the_same_seed_gives_the_same_games():
    views = []
    for _ in range(2):
        engine, seen = started(3)
        rng = np.random.default_rng(5)
        for _ in range(10):
            seen = engine.exchange(random_orders(seen, engine.env.game.sizes, rng)).obs
        views.append(seen)
    assert all((views[0][key] == views[1][key]).all() for key in views[0])


def test_a_saved_game_goes_on_as_it_would_have():
    engine, seen = started(3)
    orders = random_orders(seen, engine.env.game.sizes, np.random.default_rng(0))
    engine.exchange(orders)
    state = engine.state_dict()
    other, _ = started(3)
    other.load_state_dict(state)
    for _ in range(9):  # beyond the end of the game
        one, two = (each.exchange(orders) for each in (engine, other))
        assert all((one.obs[key] == two.obs[key]).all() for key in one.obs) and (one.reward == two.reward).all()


def test_sizes_that_do_not_fit_are_told():
    with pytest.raises(ValueError, match=r'env.map_size: got 18, must be a multiple of 4'):
        Drill({**SMALL, 'map_size': 18})
    with pytest.raises(ValueError, match=r'env.max_units, env.max_selected: .* got 8, 2'):
        Drill({**SMALL, 'max_selected': 2})
