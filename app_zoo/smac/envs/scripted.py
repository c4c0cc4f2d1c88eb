"""Play by rule, to compare learned play with: random legal actions, and everybody on the nearest enemy."""

from __future__ import annotations

import numpy as np

from app_zoo.smac.envs.battle import EAST, FIRST_TARGET, NORTH, SOUTH, WEST, Battles


def random_actions(battles: Battles, generator: np.random.Generator) -> np.ndarray:
    """One legal action for each ally, all of them equally likely: (num, allies)."""
    mask = battles.available()
    return (generator.random(mask.shape) * mask).argmax(-1)


def nearest_actions(battles: Battles) -> np.ndarray:
    """
    Overview:
        Attack the nearest enemy that may be chosen, else go to where the nearest one is. Healers heal the most hurt
        comrade in reach, else go to the fighting ones.
    Shapes:
        - actions (:obj:`np.ndarray`): :math:`(num, allies)` int
    """
    mask, distance, allies = battles.available(), battles.distances(), battles.allies
    alive = battles.alive
    actions = np.empty((battles.num, allies), np.int64)
    for ally in range(allies):
        choice = battles.choices(ally)
        legal = mask[:, ally, FIRST_TARGET : FIRST_TARGET + len(choice)]
        if battles.heals[ally]:
            hurt = 1 - battles.health[:, choice] / battles.max_health[choice]
            wish = np.where(legal & (hurt > 0), hurt, -1.0)
            goal = choice
        else:
            wish = np.where(legal, 100.0 - distance[:, ally, choice], -1.0)
            goal = np.arange(allies, battles.size)
        near = np.where(alive[:, goal], distance[:, ally, goal], np.inf).argmin(1)
        walk = _towards(battles, ally, goal[near], mask[:, ally])
        actions[:, ally] = np.where(wish.max(1) >= 0, FIRST_TARGET + wish.argmax(1), walk)
    return actions


def _towards(battles: Battles, ally: int, goal: np.ndarray, legal: np.ndarray) -> np.ndarray:
    """The move that leads most directly to the unit ``goal`` of each battle; no-op for the dead."""
    rows = np.arange(battles.num)
    dx = battles.x[rows, goal] - battles.x[:, ally]
    dy = battles.y[rows, goal] - battles.y[:, ally]
    along = np.where(dx > 0, EAST, WEST)
    across = np.where(dy > 0, NORTH, SOUTH)
    move = np.where(np.abs(dx) >= np.abs(dy), along, across)
    return np.where(legal[rows, move], move, legal.argmax(1))
