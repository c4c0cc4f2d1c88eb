"""The field as a picture, from above."""

from __future__ import annotations

from typing import Any

import numpy as np

from nervex.utils.drawing import Canvas, Color

GRASS, LINE, WHITE = (62, 122, 62), (170, 200, 170), (255, 255, 255)
OURS, THEIRS, MARK = (60, 110, 235), (225, 75, 60), (255, 215, 70)
TALL = 83.6 / 54.4  # a unit of y is so many of x, both in metres
LONG, WIDE, EDGE = 1.0, 0.42, 1.08  # half of the field, and what is seen of it
GOAL, AREA, ARC = 0.044, (0.7, 0.24), 0.17


def draw(raw: dict[str, Any], width: int = 640) -> np.ndarray:
    """
    Overview:
        One moment of a game: our team in blue, the other one in red, a yellow ring around who is controlled; the ball
        is the larger the higher it is.
    Returns:
        - picture (:obj:`np.ndarray`): uint8, height x width x 3
    """
    high = TALL * WIDE + EDGE - LONG
    canvas = Canvas((width, int(width * high / EDGE)), (-EDGE, EDGE), (-high, high), GRASS)
    wide, area = TALL * WIDE, TALL * AREA[1]
    for side in (-1, 1):
        _line(canvas, [(0, wide), (side, wide), (side, -wide), (0, -wide)])
        _line(canvas, [(side, area), (side * AREA[0], area), (side * AREA[0], -area), (side, -area)])
        canvas.segment((side, TALL * GOAL), (side, -TALL * GOAL), 0.02, WHITE)
    _line(canvas, [(0, wide), (0, -wide)])
    _line(canvas, [(ARC * np.cos(angle), ARC * np.sin(angle)) for angle in np.linspace(0, 2 * np.pi, 25)])
    controlled = {int(player) for player in raw['left_agent_controlled_player']}
    for team, colour in (('right_team', THEIRS), ('left_team', OURS)):
        for k, (x, y) in enumerate(raw[team].tolist()):
            if team == 'left_team' and k in controlled:
                canvas.disc((x, -TALL * y), 0.032, MARK)  # the engine's y goes downwards
            canvas.disc((x, -TALL * y), 0.023, colour)
    x, y, height = raw['ball'].tolist()
    canvas.disc((x, -TALL * y), 0.011 + 0.006 * min(max(height, 0.0), 3.0), WHITE)
    return canvas.pixels


def _line(canvas: Canvas, points: list[tuple[float, float]], colour: Color = LINE) -> None:
    canvas.line(points, 0.007, colour)
