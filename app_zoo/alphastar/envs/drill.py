"""A drill with the spaces of StarCraft II and without the game: be quick to see which order is the right one."""

from __future__ import annotations

import numpy as np

from app_zoo.alphastar.envs.features import COLUMN, ENEMY, LAYERS, NEUTRAL, PLAYER, SELF, UNIT, scalars, view_of
from app_zoo.alphastar.envs.orders import NUMBER, PLACES
from app_zoo.alphastar.envs.star_game import StarGame
from nervex.utils import ENV_REGISTRY
from nervex.utils.declare import setting, settings

_OWN, _ENEMY = (73, 74), (48, 51)  # zealot and stalker, marine and marauder
_RICH = 500  # minerals with which one moves
_NEED = 3  # own units and enemies that there are at least, of either kind


@ENV_REGISTRY.register('alphastar_drill')
class Drill(StarGame):
    """
    Overview:
        ``rounds`` times both sides look at a scene of their own and give an order. Who has minerals is to move
        (``Move_pt``) to the neutral mark on the minimap, who has none is to attack (``Attack_unit``) the weakest enemy;
        by exactly those own units whose weapons have cooled down. An order of the right type is worth 0.2, with the
        right units 0.4 more, at the right target 0.4 more (a location: less with the distance). The side that is paid
        more wins.
    """

    config = settings(rounds=setting(8, 'int >= 1', 'orders that each side gives in a game'))

    def __init__(self, cfg: dict | None = None, num: int = 1) -> None:
        super().__init__(cfg, num)
        if min(self.sizes.units // 2, self.sizes.selected) < _NEED:
            text = (
                f'a drill has up to {_NEED} units of either side, got {self._cfg.max_units}, {self._cfg.max_selected}'
            )
            raise ValueError(f'env.max_units, env.max_selected: {text}')
        self.limit = self._cfg.rounds + 1
        self._round, self._rngs = np.zeros(num, np.int64), [np.random.default_rng() for _ in range(num)]
        shape, cells = (num, 2), self.sizes.cells
        self.units = np.zeros((*shape, self.sizes.units, len(UNIT)), np.int16)
        self.count, self.rich = np.zeros(shape, np.int64), np.zeros(shape, bool)
        self.mark, self.weakest = np.zeros((*shape, 2), np.int64), np.zeros(shape, np.int64)
        self.ready = np.zeros((*shape, self.sizes.units), bool)
        self.map = np.zeros((*shape, len(LAYERS), cells, cells), np.uint8)
        self.last = np.zeros((*shape, 2), np.int16)

    # ---- the game
    def begin(self, which: np.ndarray, generators: list[np.random.Generator]) -> None:
        self._round[which], self.last[which] = 0, 0
        for row in which.tolist():  # who comes to the next scene draws from a generator of its own
            self._rngs[row] = np.random.default_rng(int(generators[row].integers(2**63)))
        self._scenes(which)

    def move(self, rows: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        kind = actions[..., PLACES['action_type']]
        wanted = np.where(self.rich[rows], NUMBER['Move_pt'], NUMBER['Attack_unit'])
        selected = np.zeros((len(rows), 2, self.sizes.units + 1), bool)
        np.put_along_axis(selected, actions[..., PLACES['selected_units']], True, 2)
        units = (selected[..., :-1] == self.ready[rows]).all(2)
        place = np.stack(np.divmod(actions[..., PLACES['target_location']], self.sizes.cells), -1)
        far = np.abs(place - self.mark[rows]).max(-1) / (self.sizes.cells / 2)
        hit = actions[..., PLACES['target_unit']] == self.weakest[rows]
        at = np.where(self.rich[rows], np.maximum(1 - far, 0), hit)
        paid = np.where(kind == wanted, 0.2 + 0.4 * units + 0.4 * at, 0).astype(np.float32)
        self.last[rows] = actions[..., :2]
        self._round[rows] += 1
        self._scenes(rows)
        return paid, self._round[rows] == self._cfg.rounds

    def turns(self) -> np.ndarray:
        return np.ones((self.num, 2), bool)

    def view(self, rows: np.ndarray, sides: np.ndarray) -> dict[str, np.ndarray]:
        player = np.zeros((len(rows), len(PLAYER)))
        player[:, 0] = self.rich[rows, sides] * _RICH
        race = np.full(len(rows), 3)
        scalar = scalars(player, self._round[rows] * 22.4, race, race)
        seen = (part[rows, sides] for part in (self.map, self.units, self.count, self.last))
        return view_of(scalar, *seen)

    # ---- scenes
    def _scenes(self, rows: np.ndarray) -> None:
        """New scenes for both sides of these rows."""
        n, cells = len(rows), self.sizes.cells
        shape = (n, 2, 2 * _NEED)
        chance = np.array([self._rngs[row].random((2, 2 * _NEED, 4)) for row in rows.tolist()]).reshape(*shape, 4)
        place = np.arange(2 * _NEED)
        own = np.floor(chance[..., 0, 3] * _NEED).astype(int) + 1
        count = own + np.floor(chance[..., 1, 3] * _NEED).astype(int) + 1
        mine, there = place < own[..., None], place < count[..., None]
        ready = mine & (chance[..., 2] < 0.5)
        ready[..., 0] |= ~ready.any(-1)
        weakest = own + np.floor(chance[..., 2, 3] * (count - own)).astype(int)
        location = np.floor(chance[..., :2] * cells).astype(int)
        units = np.zeros((*shape, len(UNIT)), np.int16)
        second = (chance[..., 2] * 10 % 1 < 0.5).astype(int)
        columns = {
            'unit_type': np.where(mine, np.array(_OWN)[second], np.array(_ENEMY)[second]),
            'alliance': np.where(mine, SELF, ENEMY),
            'health_ratio': np.where(place == weakest[..., None], 60, 255),
            'build_progress': 100,
            'x': location[..., 1],
            'y': location[..., 0],
            'weapon_cooldown': np.where(mine & ~ready, 10, 0),
        }
        for name, column in columns.items():
            units[..., COLUMN[name]] = column * there
        self.units[rows] = 0
        self.units[rows, :, : 2 * _NEED] = units
        self.ready[rows] = False
        self.ready[rows, :, : 2 * _NEED] = ready
        self.count[rows], self.weakest[rows] = count, weakest
        self.rich[rows] = chance[..., 3, 3] < 0.5
        self.mark[rows] = mark = np.floor(chance[..., 4:6, 3] * cells).astype(int)
        self._draw(rows, units[..., COLUMN['alliance']], location, mark)

    def _draw(self, rows: np.ndarray, alliance: np.ndarray, location: np.ndarray, mark: np.ndarray) -> None:
        """Minimaps with the units and the mark."""
        maps = np.zeros((len(rows), 2, *self.map.shape[2:]), np.uint8)
        for layer in ('visibility_map', 'pathable', 'buildable'):
            maps[:, :, LAYERS.index(layer)] = 2 if layer == 'visibility_map' else 1
        row, side, place = np.nonzero(alliance)
        relative = LAYERS.index('player_relative')
        y, x = location[row, side, place].T
        maps[row, side, relative, y, x] = alliance[row, side, place]
        row, side = np.indices(mark.shape[:2])
        maps[row, side, relative, mark[..., 0], mark[..., 1]] = NEUTRAL
        self.map[rows] = maps
