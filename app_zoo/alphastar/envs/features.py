"""What a side sees: numbers, a minimap and the units, in arrays of fixed sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from app_zoo.alphastar.envs.orders import DELAYS, NAMES, OBEYS, PLACES, possible
from nervex.envs.common import EnvElementInfo
from nervex.envs.spaces import choices_info, reward_info


def _names(text: str) -> list[str]:
    return text.split()


#: pysc2's names of what is told of a player, of the layers of the minimap, and of a unit
PLAYER = _names(
    'minerals vespene food_used food_cap food_army food_workers idle_worker_count army_count warp_gate_count '
    'larva_count'
)
LAYERS = _names('height_map visibility_map creep player_relative alerts pathable buildable')
UNIT = _names(
    'unit_type alliance health shield energy health_ratio shield_ratio energy_ratio build_progress x y cloak '
    'is_powered hallucination is_in_cargo cargo_space_taken mineral_contents vespene_contents assigned_harvesters '
    'ideal_harvesters weapon_cooldown order_length order_id_0 attack_upgrade_level armor_upgrade_level '
    'shield_upgrade_level'
)
COLUMN = {name: k for k, name in enumerate(UNIT)}
SELF, NEUTRAL, ENEMY = 1, 3, 4  # of ``alliance``
RACES = 4  # terran, zerg, protoss, random
SCALARS = len(PLAYER) + 1 + 2 * RACES
_MINUTES = 22.4 * 60  # game loops


@dataclass(frozen=True)
class Sizes:
    """Units that are seen at most, units that an order selects at most, and the edge of the (square) map in cells."""

    units: int
    selected: int
    cells: int

    @property
    def choices(self) -> tuple[int, ...]:
        """Choices of each place of an order; one more than there are units: nobody (any more)."""
        selected = (self.units + 1,) * self.selected
        return (len(NAMES), DELAYS, 2, *selected, self.units, self.cells**2)

    def act_space(self) -> EnvElementInfo:
        """The description of an order."""
        return choices_info(self.choices)

    def obs_space(self) -> EnvElementInfo:
        """The description of what a side sees."""
        ends: dict[str, tuple[tuple[int, ...], Any, float, float]] = {
            'scalar_info': ((SCALARS,), np.float32, 0, 100),
            'last_order': ((2,), np.int16, 0, max(len(NAMES), DELAYS) - 1),
            'spatial_info': ((len(LAYERS), self.cells, self.cells), np.uint8, 0, 255),
            'entity_info': ((self.units, len(UNIT)), np.int16, -(2**15), 2**15 - 1),
            'entity_num': ((1,), np.int16, 0, self.units),
            'type_mask': ((len(NAMES),), np.uint8, 0, 1),
            'select_mask': ((self.units,), np.uint8, 0, 1),
            'target_mask': ((self.units,), np.uint8, 0, 1),
        }
        shapes = {key: shape for key, (shape, *_) in ends.items()}
        values = {key: reward_info(low, high, dtype=dtype).value for key, (_, dtype, low, high) in ends.items()}
        return EnvElementInfo(shapes, values)


def scalars(player: np.ndarray, game_loop: np.ndarray, home: np.ndarray, away: np.ndarray) -> np.ndarray:
    """
    Overview:
        The numbers of a player on a scale that is easy to learn from: log(1 + x), the time in tens of minutes, the
        races one-hot.
    Shapes:
        - player: :math:`(B, len(PLAYER))`; game_loop, home, away (races from 1): :math:`(B, )`
        - result: :math:`(B, SCALARS)`
    """
    races = np.eye(RACES)
    time = game_loop[:, None] / (10 * _MINUTES)
    return np.concatenate([np.log1p(player), time, races[home - 1], races[away - 1]], 1).astype(np.float32)


def view_of(
    scalar: np.ndarray, spatial: np.ndarray, units: np.ndarray, count: np.ndarray, last: np.ndarray
) -> dict[str, np.ndarray]:
    """
    Overview:
        What sides see, with the masks of the parts of their orders: types that somebody can obey, units that are one's
        own, and units that there are.
    Shapes:
        - scalar :math:`(B, SCALARS)`, spatial :math:`(B, layers, M, M)`, units :math:`(B, N, len(UNIT))`, count
          :math:`(B, )`, last :math:`(B, 2)`
    """
    there = np.arange(units.shape[1]) < count[:, None]
    own = there & (units[..., COLUMN['alliance']] == SELF)
    return {
        'scalar_info': scalar,
        'last_order': last.astype(np.int16),
        'spatial_info': spatial,
        'entity_info': units,
        'entity_num': count[:, None].astype(np.int16),
        'type_mask': possible(units[..., COLUMN['unit_type']], own).astype(np.uint8),
        'select_mask': own.astype(np.uint8),
        'target_mask': there.astype(np.uint8),
    }


def random_orders(seen: dict[str, np.ndarray], sizes: Sizes, rng: np.random.Generator) -> np.ndarray:
    """Orders that could be obeyed, one a row of what is seen: type and parts are equally likely, up to all units."""
    rows = np.arange(len(seen['type_mask']))

    def drawn(mask: np.ndarray) -> np.ndarray:
        return (rng.random(mask.shape) * mask).argmax(-1)

    orders = rng.integers(np.broadcast_to(sizes.choices, (len(rows), len(sizes.choices))))
    orders[:, PLACES['action_type']] = kind = drawn(seen['type_mask'])
    able = OBEYS[seen['entity_info'][..., COLUMN['unit_type']], kind[:, None]] & (seen['select_mask'] > 0)
    shuffled = np.argsort(np.where(able, rng.random(able.shape), 2.0), 1)[:, : sizes.selected]
    most = np.minimum(able.sum(1), sizes.selected)
    chosen = np.arange(sizes.selected)[: shuffled.shape[1]] < rng.integers(1, np.maximum(most, 1) + 1)[:, None]
    selected = np.full((len(rows), sizes.selected), sizes.units)
    selected[:, : shuffled.shape[1]] = np.where(chosen & (most > 0)[:, None], shuffled, sizes.units)
    orders[:, PLACES['selected_units']] = selected
    orders[:, PLACES['target_unit']] = drawn(seen['target_mask'])
    return orders
