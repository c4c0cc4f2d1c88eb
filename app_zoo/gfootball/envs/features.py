"""What is made of the engine's raw observation: numbers, planes, and the reward on the way to the goal."""

from __future__ import annotations

from typing import Any

import numpy as np

PLAYERS = 11  # of a team at most; who is not there is -1 everywhere
MODES = 7  # of the game: normal, kick-off, goal kick, free kick, corner, throw-in, penalty
SIZE = 4 * 2 * PLAYERS + 3 + 3 + 3 + PLAYERS + MODES
PLANES, HEIGHT, WIDTH = 4, 72, 96
_ACTIVE = 4 * 2 * PLAYERS + 9  # where it is said which player one is
_EDGE = np.array([1.0, 1 / 2.25])  # of the field in the planes

Raw = dict[str, Any]


def vectors(raw: Raw) -> np.ndarray:
    """
    Overview:
        What each controlled player sees, as gfootball's ``simple115v2``: places and directions of both teams (-1 where
        a team has fewer than eleven), the ball's, who has it (nobody, left, right), which player one is, and the mode
        of the game.
    Returns:
        - seen (:obj:`np.ndarray`): (controlled players, 115) float32
    """
    active = raw['left_agent_controlled_player']
    seen = np.tile(_shared(raw), (len(active), 1))
    seen[np.arange(len(active)), _ACTIVE + np.asarray(active)] = 1
    return seen


def state(raw: Raw) -> np.ndarray:
    """What a central critic sees: the same 115 numbers, with all of the controlled players marked."""
    seen = _shared(raw)
    seen[_ACTIVE + np.asarray(raw['left_agent_controlled_player'])] = 1
    return seen


def _shared(raw: Raw) -> np.ndarray:
    seen = np.zeros(SIZE, np.float32)
    for k, name in enumerate(('left_team', 'left_team_direction', 'right_team', 'right_team_direction')):
        part = seen[2 * PLAYERS * k : 2 * PLAYERS * (k + 1)]
        part[:] = -1
        part[: raw[name].size] = raw[name].ravel()
    rest = seen[8 * PLAYERS :]
    rest[:3], rest[3:6] = raw['ball'], raw['ball_direction']
    rest[6 + raw['ball_owned_team'] + 1] = 1
    rest[9 + PLAYERS + raw['game_mode']] = 1
    return seen


def planes(raw: Raw) -> np.ndarray:
    """
    Overview:
        What the first controlled player sees, as gfootball's ``extracted``: the field from above; 255 where somebody of
        the left team is, of the right team, the ball, oneself.
    Returns:
        - seen (:obj:`np.ndarray`): (4, 72, 96) uint8
    """
    seen = np.zeros((PLANES, HEIGHT, WIDTH), np.uint8)
    myself = raw['left_team'][raw['left_agent_controlled_player'][0]]
    for plane, points in zip(seen, (raw['left_team'], raw['right_team'], raw['ball'][None, :2], myself[None])):
        place = ((points + _EDGE) / (2 * _EDGE) * [WIDTH, HEIGHT]).astype(int)
        x, y = np.clip(place, 0, [WIDTH - 1, HEIGHT - 1]).T
        plane[y, x] = 255
    return seen


def small(frame: np.ndarray) -> np.ndarray:
    """What a camera sees, as gfootball's ``pixels``: (3, 72, 96) uint8."""
    import cv2  # is there where gfootball is

    return np.moveaxis(cv2.resize(frame, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA), 2, 0)


class Checkpoints:
    """
    Overview:
        A tenth of a goal for each of ten rings around the goal that a player with the ball enters first; for all that
        are left where a goal falls.
    """

    num, worth = 10, 0.1

    def __init__(self, players: int) -> None:
        self.collected = np.zeros(players, np.int64)

    def rewards(self, raw: Raw, score: float) -> np.ndarray:
        """Of a step, for each controlled player: (players, ) float32. ``score`` is 1 where the left team scored."""
        before = self.collected.copy()
        if score == 1:
            self.collected[:] = self.num
        elif raw['ball_owned_team'] == 0:
            distance = float(np.hypot(raw['ball'][0] - 1, raw['ball'][1]))
            entered = sum(distance <= 0.99 - 0.8 / (self.num - 1) * k for k in range(self.num))
            mine = np.asarray(raw['left_agent_controlled_player']) == raw['ball_owned_player']
            self.collected[mine] = np.maximum(self.collected[mine], entered)
        return ((self.collected - before) * self.worth).astype(np.float32)
