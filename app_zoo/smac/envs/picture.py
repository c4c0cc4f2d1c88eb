"""A battle as a picture: teams by colour, kinds by shape, health and shield as bars, who aims at whom as lines."""

from __future__ import annotations

import numpy as np

from app_zoo.smac.envs.battle import FIELD, Battles

GROUND, ALLY, ENEMY = (38, 48, 40), (80, 160, 255), (240, 90, 80)
HEALTH, SHIELD, EMPTY, LINE, HEAL_LINE = (
    (110, 220, 110),
    (150, 200, 255),
    (70, 70, 70),
    (235, 215, 120),
    (120, 235, 180),
)
SHAPES = {'marine': 'disc', 'marauder': 'square', 'medivac': 'cross', 'stalker': 'diamond', 'zealot': 'ring'}


def draw(battles: Battles, battle: int = 0, size: int = 512) -> np.ndarray:
    """
    Overview:
        One battle as it stands.
    Arguments:
        - size (:obj:`int`): pixels of each side
    Returns:
        - picture (:obj:`np.ndarray`): (size, size, 3) uint8
    """
    image = np.empty((size, size, 3), np.uint8)
    image[:] = GROUND
    cell = size / FIELD
    image[:: max(int(4 * cell), 1)] = image[:, :: max(int(4 * cell), 1)] = (46, 57, 48)
    down, right = np.mgrid[:size, :size]
    x, y = battles.x[battle] * cell, size - battles.y[battle] * cell
    alive = battles.alive[battle]
    units = battles.map.allies + battles.map.enemies
    for k in np.flatnonzero(alive):
        target = battles.target[battle, k]
        if target >= 0 and alive[target]:
            along = np.linspace(0, 1, size // 4)
            rows = np.clip(y[k] + (y[target] - y[k]) * along, 0, size - 1).astype(int)
            columns = np.clip(x[k] + (x[target] - x[k]) * along, 0, size - 1).astype(int)
            image[rows, columns] = HEAL_LINE if units[k].heals else LINE
    for k in np.flatnonzero(alive):
        reach = max(units[k].radius, 0.45) * cell
        inside = _shape(SHAPES[units[k].name], (right - x[k]) / reach, (down - y[k]) / reach)
        image[inside] = ALLY if k < battles.allies else ENEMY
        top = y[k] - reach - 4
        _bar(image, x[k], top, reach, battles.health[battle, k] / battles.max_health[k], HEALTH)
        if battles.max_shield[k]:
            _bar(image, x[k], top - 4, reach, battles.shield[battle, k] / battles.max_shield[k], SHIELD)
    return image


def _shape(name: str, dx: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """Pixels of a unit, in units of its radius."""
    square = dx * dx + dy * dy
    if name == 'square':
        return np.maximum(abs(dx), abs(dy)) <= 0.85
    if name == 'diamond':
        return abs(dx) + abs(dy) <= 1.15
    if name == 'cross':
        return (np.minimum(abs(dx), abs(dy)) <= 0.35) & (square <= 1)
    return (square <= 1) & (square >= 0.3) if name == 'ring' else square <= 1


def _bar(image: np.ndarray, x: float, y: float, half: float, share: float, colour: tuple[int, int, int]) -> None:
    left, right, top = (round(float(v)) for v in (x - half, x + half, y))
    if 0 <= top < len(image) - 2:
        image[top : top + 2, max(left, 0) : max(right, 0)] = EMPTY
        image[top : top + 2, max(left, 0) : max(int(left + (right - left) * share), 0)] = colour
