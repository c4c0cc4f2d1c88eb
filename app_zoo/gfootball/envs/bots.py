"""Players by rule: what one would do, from the raw observation alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from app_zoo.gfootball.envs.engine import ACTIONS
from app_zoo.gfootball.envs.picture import TALL

GOAL = np.array([1.0, 0.0])
SHOOT, CLOSE, AIMED = 0.2, 0.08, 0.85  # distances in half lengths of the field; cosine to the target of a pass
WING, FROM_WING, KEEPER = np.array([0.9, -0.3]), 0.244, 0.186  # of the winger: where he turns, shoots, is slow
_RUNS = ('left', 'top_left', 'top', 'top_right', 'right', 'bottom_right', 'bottom', 'bottom_left')
_ANGLES = np.pi * (1 - np.arange(8) / 4)  # of the runs; the engine's y goes downwards
_WAYS = np.stack([np.cos(_ANGLES), -np.sin(_ANGLES)], 1)
_LASTING = (*_RUNS, 'sprint', 'dribble')
_SCALE = np.array([1.0, TALL])

Bot = Callable[[dict[str, Any], int], int]


def attacker(raw: dict[str, Any], player: int) -> int:
    """
    Overview:
        With the ball: sprint to the goal, shoot where it is near, and pass to a comrade who is freer where somebody
        stands in the way. Without: keep up with a comrade who has it, else go for it.
    Arguments:
        - player (:obj:`int`): row of the left team
    Returns:
        - action (:obj:`int`): index into ``ACTIONS``
    """
    place, ball = raw['left_team'][player] * _SCALE, raw['ball'][:2] * _SCALE
    if raw['ball_owned_team'] != 0:
        return run(ball + 5 * raw['ball_direction'][:2] * _SCALE - place)
    if raw['ball_owned_player'] != player:
        return run(np.array([min(ball[0] + 0.1, 0.9), place[1]]) - place)
    if not _lasting(raw, player, 'sprint'):
        return ACTIONS.index('sprint')
    foes = raw['right_team'] * _SCALE
    if np.linalg.norm(GOAL - place) < SHOOT:
        return ACTIONS.index('shot')
    if _pressed(place, foes):
        mate = _freest(raw['left_team'] * _SCALE, player, foes)
        if mate is not None:
            way, facing = mate - place, raw['left_team_direction'][player] * _SCALE
            turned = way @ facing >= AIMED * np.linalg.norm(way) * np.linalg.norm(facing)
            return ACTIONS.index('short_pass') if turned else run(way)
    return run(GOAL - place)


def winger(raw: dict[str, Any], player: int) -> int:
    """
    Overview:
        An attacker who goes round the defence: he sprints along the left wing, cuts in beside the goal, slowly where
        the keeper is near, and shoots at the far post. Made for ``academy_3_vs_1_with_keeper``.
    """
    place = raw['left_team'][player] * _SCALE
    if raw['ball_owned_team'] != 0 or raw['ball_owned_player'] != player:
        return attacker(raw, player)
    if np.linalg.norm(GOAL - place) < FROM_WING:
        far = 'bottom_right' if place[1] < 0 else 'top_right'
        return ACTIONS.index('shot' if _lasting(raw, player, far) else far)
    slow = np.linalg.norm(raw['right_team'][0] * _SCALE - place) < KEEPER
    if slow == _lasting(raw, player, 'sprint'):
        return ACTIONS.index('release_sprint' if slow else 'sprint')
    return run((GOAL if place[0] > WING[0] else WING) - place)


def builtin(raw: dict[str, Any], player: int) -> int:
    """The engine's own player; the env needs ``builtin_ai=True``."""
    return ACTIONS.index('builtin_ai')


def run(way: np.ndarray) -> int:
    """The action that runs this way."""
    return ACTIONS.index(_RUNS[int((_WAYS @ way).argmax())])


def _lasting(raw: dict[str, Any], player: int, action: str) -> bool:
    """Whether the player still does what he was once told: runs and sprints last."""
    acting = list(raw['left_agent_controlled_player']).index(player)
    return bool(raw['left_agent_sticky_actions'][acting][_LASTING.index(action)])


def _pressed(place: np.ndarray, foes: np.ndarray) -> bool:
    """Whether somebody is near, between the player and the goal."""
    ahead = (foes - place) @ (GOAL - place) > 0
    return bool((ahead & (np.linalg.norm(foes - place, axis=1) < CLOSE)).any())


def _freest(team: np.ndarray, player: int, foes: np.ndarray) -> np.ndarray | None:
    """Of the comrades whom a pass would reach (near, not far behind, no foe on the way) the one nearest to the goal."""
    place = team[player]
    best, least = None, np.inf
    for k, mate in enumerate(team):
        away = np.linalg.norm(mate - place)
        if k in (0, player) or not 0.05 < away < 0.6 or mate[0] < place[0] - 0.15:
            continue
        t = np.clip((foes - place) @ (mate - place) / away**2, 0, 1)[:, None]
        lane = np.linalg.norm(place + t * (mate - place) - foes, axis=1).min()
        to_goal = float(np.linalg.norm(GOAL - mate))
        if lane > 0.06 and to_goal < least:
            best, least = mate, to_goal
    return best


BOTS: dict[str, Bot] = {'attacker': attacker, 'winger': winger, 'builtin': builtin}
