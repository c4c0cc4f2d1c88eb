"""A battle as a picture: teams by colour, kinds by shape, health and shield as bars, who aims at whom as lines."""

from __future__ import annotations

import numpy as np

from app_zoo.smac.envs.battle import FIELD, Battles

GROUND, GRID, ALLY, ENEMY, FALLEN = (38, 48, 40), (46, 57, 48), (80, 160, 255), (240, 90, 80), (105, 105, 100)
HEALTH, SHIELD, EMPTY = (110, 220, 110), (150, 200, 255), (70, 70, 70)
ALLY_LINE, ENEMY_LINE, HEAL_LINE = (150, 195, 240), (235, 160, 140), (120, 235, 180)
SHAPES = {'marine': 'disc', 'marauder': 'square', 'medivac': 'cross', 'stalker': 'diamond', 'zealot': 'ring'}
VIEW = 24.0  # cells that are seen, around the middle of the field; who is farther out is drawn at the rim


def draw(battles: Battles, battle: int = 0, size: int = 512) -> np.ndarray:
    """
    Overview:
        One battle as it stands: the field, crosses where units fell, and at the top both teams unit by unit.
    Arguments:
        - size (:obj:`int`): pixels of each side
    Returns:
        - picture (:obj:`np.ndarray`): (size, size, 3) uint8
    """
    image = np.empty((size, size, 3), np.uint8)
    image[:] = GROUND
    cell = size / VIEW
    for line in range(0, size, max(int(4 * cell), 1)):
        image[line] = image[:, line] = GRID
    x, y = (
        np.clip(cell * (place[battle] - (FIELD - VIEW) / 2), 0.7 * cell, size - 0.7 * cell)
        for place in (battles.x, FIELD - battles.y)
    )
    alive, units = battles.alive[battle], battles.map.allies + battles.map.enemies
    colours = [ALLY if k < battles.allies else ENEMY for k in range(battles.size)]
    for k in np.flatnonzero(~alive):
        _mark(image, 'fallen', x[k], y[k], 0.35 * cell, FALLEN)
    for k in np.flatnonzero(alive):
        target = battles.target[battle, k]
        if target >= 0 and alive[target]:
            colour = HEAL_LINE if units[k].heals else ALLY_LINE if k < battles.allies else ENEMY_LINE
            _line(image, (x[k], y[k]), (x[target], y[target]), colour)
    for k in np.flatnonzero(alive):
        reach = max(units[k].radius, 0.45) * cell
        _mark(image, SHAPES[units[k].name], x[k], y[k], reach, colours[k])
        _bars(image, battles, battle, k, x[k], y[k] - reach - 5, reach)
    step = min(size / 2 / max(battles.allies, battles.enemies), 1.4 * cell)
    for k in range(battles.size):  # allies from the left, enemies from the right
        place = (k + 0.6) * step if k < battles.allies else size - (k - battles.allies + 0.6) * step
        _mark(image, SHAPES[units[k].name], place, 0.8 * cell, 0.35 * step, colours[k] if alive[k] else FALLEN)
        _bars(image, battles, battle, k, place, 0.8 * cell + 0.35 * step + 6, 0.4 * step)
    return image


def _mark(image: np.ndarray, shape: str, x: float, y: float, reach: float, colour: tuple[int, int, int]) -> None:
    """A unit: the pixels of its shape, looked for in the square around it."""
    top, left = (max(int(place - 1.2 * reach), 0) for place in (y, x))
    part = image[top : int(y + 1.2 * reach) + 2, left : int(x + 1.2 * reach) + 2]
    down, right = np.mgrid[: part.shape[0], : part.shape[1]]
    part[_inside(shape, (right + left - x) / reach, (down + top - y) / reach)] = colour


def _inside(shape: str, dx: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """Which points, in units of the radius, belong to a shape."""
    square = dx * dx + dy * dy
    if shape == 'square':
        return np.maximum(abs(dx), abs(dy)) <= 0.85
    if shape == 'diamond':
        return abs(dx) + abs(dy) <= 1.15
    if shape == 'cross':
        return (np.minimum(abs(dx), abs(dy)) <= 0.35) & (square <= 1)
    if shape == 'fallen':
        return (np.minimum(abs(dx - dy), abs(dx + dy)) <= 0.35) & (square <= 1)
    return (square <= 1) & (square >= 0.3) if shape == 'ring' else square <= 1


def _line(
    image: np.ndarray, start: tuple[float, float], end: tuple[float, float], colour: tuple[int, int, int]
) -> None:
    along = np.linspace(0, 1, len(image))
    columns, rows = (np.clip(a + (b - a) * along, 0, len(image) - 2).astype(int) for a, b in zip(start, end))
    image[rows, columns] = image[rows + 1, columns] = colour


def _bars(image: np.ndarray, battles: Battles, battle: int, unit: int, x: float, y: float, half: float) -> None:
    """What health is left, and above it what shield."""
    bars = [(battles.health, battles.max_health, HEALTH), (battles.shield, battles.max_shield, SHIELD)]
    for row, (now, most, colour) in enumerate(bars):
        if most[unit]:
            left, right, top = (max(round(float(v)), 0) for v in (x - half, x + half, y - 4 * row))
            image[top : top + 3, left:right] = EMPTY
            image[top : top + 3, left : int(left + (right - left) * now[battle, unit] / most[unit])] = colour
