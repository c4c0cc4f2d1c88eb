"""
One game of StarCraft II, or of pysc2's mock of it, in a process of its own.

pysc2 needs protobuf's Python implementation, which a process chooses once and for all, and an older ``random.shuffle``;
so it is loaded here, and nowhere else. Whoever starts the process sets ``ENVIRONMENT``, and runs ``serve``.
"""

from __future__ import annotations

import importlib
import random
import sys
import traceback
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

import numpy as np

from app_zoo.alphastar.envs.features import ENEMY, LAYERS, PLAYER, SELF, UNIT
from app_zoo.alphastar.envs.orders import NAMES, PLACES, USES

ENVIRONMENT = {'PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION': 'python', 'PYGAME_HIDE_SUPPORT_PROMPT': '1'}
_MODULES = (
    'absl.flags pysc2.env.mock_sc2_env pysc2.env.sc2_env pysc2.lib.actions pysc2.lib.features pysc2.lib.units '
    'pysc2.tests.dummy_observation s2clientprotocol.common_pb2'
)
#: what the mock shows of either side: types, and where they are on a map of 256 x 256
_SHOWN = {SELF: ((59, 60, 60), (84, 40, 50), (84, 45, 70), (62, 90, 60), (73, 100, 100)), ENEMY: ((48, 150, 160),)}
_NEUTRAL = ((483, 30, 30),)


def load_pysc2() -> SimpleNamespace:
    """The modules of pysc2 that a game needs."""
    shuffle = random.shuffle

    def with_second_argument(x: list, _: Any = None) -> None:  # which Python 3.11 has no more
        shuffle(x)

    random.shuffle = with_second_argument  # type: ignore[assignment]
    try:
        found = {name.rpartition('.')[2]: importlib.import_module(name) for name in _MODULES.split()}
    finally:
        random.shuffle = shuffle
    found['flags'].FLAGS(sys.argv[:1])  # none are given
    return SimpleNamespace(**found)


def _mock(pysc2: SimpleNamespace) -> type:
    class Mock(pysc2.mock_sc2_env.SC2TestEnv):  # type: ignore[misc, name-defined]
        """pysc2's mock, with units to be ordered about; orders become pysc2's own messages, and change nothing."""

        def _default_observation(self, obs_spec: Any, agent_index: int) -> Any:
            shown = [(3, 16, *unit) for unit in _NEUTRAL]
            shown += [(side, 1 if side == SELF else 2, *unit) for side, units in _SHOWN.items() for unit in units]
            units = [
                pysc2.dummy_observation.FeatureUnit(
                    kind, side, owner, pysc2.common_pb2.Point(x=x, y=y, z=0), 1.0, 50, 100, True
                )
                for side, owner, kind, x, y in shown
            ]
            built = pysc2.dummy_observation.Builder(obs_spec).game_loop(0).feature_units(units).build()
            for tag, unit in enumerate(built.observation.raw_data.units):
                unit.tag = 1000 + tag
            seen, column = self._features[agent_index].transform_obs(built), pysc2.features.FeatureUnit
            x, y, side = np.asarray(seen['raw_units'])[:, [column.x, column.y, column.alliance]].T
            seen['feature_minimap'].player_relative[y, x] = side
            return seen

        def step(self, actions: list, step_mul: int | None = None) -> Any:
            self.messages = [
                None if action is None else features.transform_action(one.observation, action, skip_available=True)
                for features, one, action in zip(self._features, self.next_timestep, actions)
            ]
            return super().step(actions, step_mul)

    return Mock


class Game:
    """
    Overview:
        A game in arrays.
    Arguments:
        - cfg (:obj:`dict`): ``mock``, ``map_name``, ``races``, ``game_loops`` (of a game at most), ``cells``, ``units``
        - seed (:obj:`int`): of the game
    """

    def __init__(self, cfg: dict, seed: int) -> None:
        self._pysc2, self._cfg = load_pysc2(), cfg
        sc2_env, features, actions = self._pysc2.sc2_env, self._pysc2.features, self._pysc2.actions
        size = features.Dimensions(screen=cfg['cells'], minimap=cfg['cells'])
        space = dict(action_space=actions.ActionSpace.RAW, raw_resolution=cfg['cells'])
        seen = features.AgentInterfaceFormat(feature_dimensions=size, use_raw_units=True, use_raw_actions=True, **space)
        make = _mock(self._pysc2) if cfg['mock'] else sc2_env.SC2Env
        self.env = make(
            map_name=cfg['map_name'],
            players=[sc2_env.Agent(sc2_env.Race[race]) for race in cfg['races']],
            agent_interface_format=[seen, seen],
            game_steps_per_episode=cfg['game_loops'],
            score_index=-1,  # won or lost
            random_seed=seed,
            ensure_available_actions=False,
        )
        self._player = [features.Player[name] for name in PLAYER]
        self._unit = [features.FeatureUnit[name] for name in UNIT]
        self._layers = [features.MinimapFeatures._fields.index(name) for name in LAYERS]
        self._rows: list[np.ndarray] = []  # of pysc2's units, in the order in which each side sees them

    def reset(self) -> tuple[list[dict], list[float], bool]:
        """Begin a game."""
        return self._told(self.env.reset())

    def step(self, orders: np.ndarray, moves: np.ndarray, loops: int) -> tuple[list[dict], list[float], bool]:
        """Orders of the sides that move; then so many game loops: what both see, are paid, and whether that was all."""
        calls = [self.call(side, orders[side] if moves[side] else None) for side in (0, 1)]
        return self._told(self.env.step(calls, step_mul=loops))

    def call(self, side: int, order: np.ndarray | None) -> Any:
        """An order as pysc2 takes it; one to or at units that are not there is none."""
        actions, rows = self._pysc2.actions, self._rows[side]
        nothing = actions.FunctionCall(actions.RAW_FUNCTIONS.no_op.id, [])
        if order is None:
            return nothing
        kind, target, location = (
            int(order[PLACES[part]]) for part in ('action_type', 'target_unit', 'target_location')
        )
        _, _, _, selects, at_unit, at_location = USES[kind]
        selected = [int(rows[unit]) for unit in order[PLACES['selected_units']] if unit < len(rows)]
        if not selects or not selected or (at_unit and target >= len(rows)):
            return nothing
        arguments: list[list[int]] = [[int(order[PLACES['queued']])], selected]
        if at_unit:
            arguments.append([int(rows[target])])
        if at_location:
            y, x = divmod(location, self._cfg['cells'])
            arguments.append([x, y])
        return actions.FunctionCall(actions.RAW_FUNCTIONS[NAMES[kind]].id, arguments)

    def _told(self, timesteps: Any) -> tuple[list[dict], list[float], bool]:
        views, self._rows = [], []
        for timestep in timesteps:
            units = np.asarray(timestep.observation['raw_units']).reshape(-1, len(self._pysc2.features.FeatureUnit))
            alliance = units[:, self._pysc2.features.FeatureUnit.alliance]
            first = np.select([alliance == SELF, alliance == ENEMY], [0, 1], 2)
            self._rows.append(np.argsort(first, kind='stable')[: self._cfg['units']])
            views.append(
                {
                    'player': np.asarray(timestep.observation['player'])[self._player],
                    'game_loop': int(np.asarray(timestep.observation['game_loop'])[0]),
                    'units': units[self._rows[-1]][:, self._unit].clip(-(2**15), 2**15 - 1).astype(np.int16),
                    'map': np.asarray(timestep.observation['feature_minimap'])[self._layers].astype(np.uint8),
                }
            )
        return views, [float(timestep.reward) for timestep in timesteps], bool(timesteps[0].last())


def serve() -> None:
    """Answer calls (method, arguments) on the pipe that the command line names until it is closed; errors as text."""
    pipe, game = Connection(int(sys.argv[1])), None
    while True:
        try:
            method, arguments = pipe.recv()
        except (EOFError, ConnectionResetError):
            break
        try:
            if method == 'begin':
                game = Game(*arguments) if game is None else game
                answer: Any = game.reset()
            else:
                answer = game.step(*arguments)  # type: ignore[union-attr]
        except Exception:
            answer = traceback.format_exc()
        pipe.send(answer)
    if game is not None and hasattr(game.env, 'close'):
        game.env.close()
