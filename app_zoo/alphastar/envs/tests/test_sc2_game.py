"""StarCraft II by pysc2, against its mock: orders become pysc2's messages, and what it shows becomes arrays."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from app_zoo.alphastar.envs import SC2Game
from app_zoo.alphastar.envs.features import COLUMN, ENEMY, LAYERS, NEUTRAL, SELF, random_orders
from app_zoo.alphastar.envs.orders import NAMES, NUMBER, ORDERS, PARTS, PLACES, USES, empty_order
from app_zoo.alphastar.envs.sc2_process import ENVIRONMENT
from nervex.envs import Duels
from nervex.utils import ConfigError
from nervex.utils.errors import EnvError, ExtraMissingError
from nervex.worker.actor.env_manager import create_env_manager

SMALL = dict(mock=True, map_size=32, max_units=16, max_selected=4)
with_pysc2 = pytest.mark.skipif(importlib.util.find_spec('pysc2') is None, reason='needs nervex[alphastar]')

#: what pysc2 makes of an order of each type, by the first two own units at the last unit that is seen
_ASK = """
import json, sys
import numpy as np
from app_zoo.alphastar.envs.orders import NAMES, ORDERS
from app_zoo.alphastar.envs.sc2_process import Game
game = Game(dict(mock=True, map_name='Simple64', races=['zerg', 'terran'], game_loops=100, cells=32, units=16), 0)
views, _, _ = game.reset()
found = {}
for kind, name in enumerate(NAMES):
    order = np.array([kind, 0, 1, 1, 0, 16, 16, len(views[0]['units']) - 1, 5 * 32 + 9])
    game.step(np.stack([order, order]), np.array([True, False]), 1)
    mine, other = (str(message) for message in game.env.messages)
    function = game._pysc2.actions.RAW_FUNCTIONS[name]
    takes = [part.name for part in function.args]
    found[name] = dict(message=mine, other=other, takes=takes, ability=function.ability_id)
types = {kind for makers in ORDERS.values() for kind in makers}
found['unknown'] = [kind for kind in types if game._pysc2.units.get_unit_type(kind) is None]
found['tags'] = game.env.next_timestep[0].observation['raw_units'][:, 29].tolist()
found['rows'] = game._rows[0].tolist()
print(json.dumps(found))
"""


@pytest.fixture(scope='module')
def asked():
    path = os.pathsep.join(part or os.getcwd() for part in sys.path)
    env = {**os.environ, **ENVIRONMENT, 'PYTHONPATH': path}
    out = subprocess.run([sys.executable, '-c', _ASK], env=env, capture_output=True, text=True, check=True).stdout
    return json.loads(out.splitlines()[-1])


def started(num=2, **more):
    engine = Duels(SC2Game).create_vector_env([{**SMALL, **more}] * num)
    return engine, engine.start(list(range(num)))


@with_pysc2
def test_orders_have_the_parts_that_pysc2_says(asked):
    names = {'queued': 'queued', 'unit_tags': 'selected_units', 'target_unit_tag': 'target_unit'}
    for name in NAMES:
        takes = {names.get(part, 'target_location') for part in asked[name]['takes']}
        assert takes == {part for part, has in zip(PARTS[2:], USES[NUMBER[name], 2:]) if has}, name
    assert not asked['unknown'] and len(ORDERS) == 75


@with_pysc2
def test_orders_become_messages_about_the_units_that_were_meant(asked):
    tags, rows = asked['tags'], asked['rows']
    for name in NAMES[1:]:
        message, (_, _, _, _, at_unit, at_location) = asked[name]['message'], USES[NUMBER[name]]
        assert f'ability_id: {asked[name]["ability"]}\n' in message and 'queue_command: true' in message
        assert message.index(f'unit_tags: {tags[rows[1]]}') < message.index(f'unit_tags: {tags[rows[0]]}')
        assert (f'target_unit_tag: {tags[rows[-1]]}' in message) == at_unit
        assert ('target_world_space_pos' in message) == at_location
        assert asked[name]['other'] == ''  # who is not to move does nothing
    assert asked['no_op']['message'] == ''
    x, y = (float(asked['Move_pt']['message'].split(f'{axis}: ')[1].split()[0]) for axis in 'xy')
    assert 9 * 8 <= x < 10 * 8 and 256 - 6 * 8 <= y < 256 - 5 * 8  # cells of 8; the world's y points upwards


@with_pysc2
def test_what_is_shown_is_in_the_arrays():
    engine, seen = started(max_units=8)
    units = seen['entity_info'][0]
    assert units[:, COLUMN['alliance']].tolist() == [SELF] * 5 + [ENEMY, NEUTRAL, 0]  # one's own first
    assert units[:5, COLUMN['unit_type']].tolist() == [59, 84, 84, 62, 73] and seen['entity_num'][0] == 7
    possible = {NAMES[k] for k in seen['type_mask'][0].nonzero()[0]}
    assert {'Build_Pylon_pt', 'Train_Zealot_quick', 'Train_Probe_quick', 'Attack_unit'} <= possible
    assert not {'Train_Marine_quick', 'Effect_Blink_pt', 'Morph_Lair_quick'} & possible
    relative = seen['spatial_info'][0, LAYERS.index('player_relative')]
    y, x = units[:7, [COLUMN['y'], COLUMN['x']]].T
    assert (
        relative[y, x].tolist() == units[:7, COLUMN['alliance']].tolist()
        and seen['spatial_info'].sum() == 2 * relative.sum()
    )
    info = engine.env.info().obs_space
    assert all(seen[key].shape[1:] == shape for key, shape in info.shape.items())
    assert all(seen[key].dtype == value['dtype'] for key, value in info.value.items())
    engine.close()


@with_pysc2
def test_who_waits_longer_moves_less_often():
    game = SC2Game({**SMALL}, 1)
    game.begin(np.arange(1), [np.random.default_rng(0)])
    quick, slow = (empty_order(4, 16) for _ in range(2))
    quick[PLACES['delay']], slow[PLACES['delay']] = 1, 4  # 2 and 5 game loops
    moved = []
    for _ in range(7):
        moved.append(game.turns()[0].tolist())
        game.move(np.arange(1), np.stack([quick, slow])[None])
    # the quick one at 0, 2, 4, 6, 8, 10; the slow one at 0, 5, 10
    assert moved == [[True, True], *[[True, False]] * 2, [False, True], *[[True, False]] * 2, [True, True]]
    assert game.view(np.zeros(1, int), np.ones(1, int))['last_order'].tolist() == [[0, 4]]
    game.close()


@with_pysc2
def test_a_game_of_the_mock_is_a_draw_and_the_next_begins():
    engine, seen = started()
    rng, sizes, draws = np.random.default_rng(0), engine.env.game.sizes, 0
    for _ in range(30):
        answer = engine.exchange(random_orders(seen, sizes, rng))
        seen, draws = answer.obs, draws + answer.infos.get('draw', np.zeros(2)).sum()
        assert not answer.reward.any()
    assert draws >= 4
    engine.close()


@with_pysc2
def test_games_cannot_be_saved_in_the_middle():
    with create_env_manager('vector', Duels(SC2Game), [SMALL], {}) as manager:
        manager.launch()
        assert manager.state_dict() is None


@with_pysc2
def test_a_process_that_ends_or_fails_is_told_with_its_reason():
    game = SC2Game({**SMALL, 'mock': False}, 1)
    with pytest.raises(EnvError, match=r'its own traceback:\n(.|\n)*StarCraft'):
        game.begin(np.arange(1), [np.random.default_rng(0)])
    game = SC2Game({**SMALL}, 2)
    game.begin(np.arange(2), [np.random.default_rng(k) for k in range(2)])
    process = game._games[1]._process
    process.kill()
    process.wait()
    with pytest.raises(EnvError, match=r'ended with exit code -9'):
        game.move(np.arange(2), np.zeros((2, 2, 9), int))
    game.begin(np.arange(2), [np.random.default_rng(k) for k in range(2)])  # in new processes
    running = [each._process for each in game._games.values()]
    game.close()
    game.close()
    assert [each.returncode for each in running] == [0, 0]


@with_pysc2
def test_races_that_there_are_not_are_told():
    with pytest.raises(ConfigError, match=r"env\.races: got \['elves', 'zerg'\]"):
        SC2Game({'races': ['elves', 'zerg']})


def test_a_missing_package_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, 'pysc2', None)
    with pytest.raises(ExtraMissingError, match=r'pip install nervex\[alphastar\]'):
        SC2Game()
