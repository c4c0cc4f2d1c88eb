"""
The physics of slime volleyball for many games at once, in NumPy: what slimevolleygym computes, step by step (tested).

Lengths are those of the game; side 0 is on the left, side 1 on the right. Columns of the ball: x, y, vx, vy and the x
before its last move; of the players (games, 2, 4): x, y, vx, vy.
"""

from __future__ import annotations

import numpy as np

SIZE, GROUND, FENCE, FENCE_TOP = 48.0, 1.5, 1.0, 3.5
BALL, PLAYER, STUB = 0.5, 1.5, 0.5  # radii
DT, GRAVITY, NUDGE = 1 / 30.0, -9.8 * 2 * 1.5, 0.1
WALK, JUMP, FASTEST = 10 * 1.75, 10 * 1.35, 15 * 1.5
AWAY = np.array([-1.0, 1.0])  # from the fence, for each side


def run_players(players: np.ndarray, walk: np.ndarray, jump: np.ndarray) -> None:
    """Move the players: ``walk`` (games, 2) is 1 backward, -1 forward, 0; ``jump`` whether they would."""
    x, y, vx, vy = (players[:, :, k] for k in range(4))
    vy += GRAVITY * DT
    vy[:] = np.where(y <= GROUND + NUDGE * DT, jump * JUMP, vy)
    vx[:] = walk * WALK * AWAY
    x += vx * DT
    y += vy * DT
    landed = y <= GROUND
    y[landed], vy[landed] = GROUND, 0
    for end, out in (
        (FENCE / 2 + PLAYER, x * AWAY <= FENCE / 2 + PLAYER),
        (SIZE / 2 - PLAYER, x * AWAY >= SIZE / 2 - PLAYER),
    ):
        vx[out] = 0
        x[:] = np.where(out, AWAY * end, x)


def fly(ball: np.ndarray, flying: np.ndarray) -> None:
    """Move the balls that are not held."""
    x, y, vx, vy = ball[flying, :4].T
    vy = vy + GRAVITY * DT
    square = vx * vx + vy * vy
    fast, speed = square > FASTEST * FASTEST, np.sqrt(square)
    vx, vy = (np.where(fast, v / speed * FASTEST, v) for v in (vx, vy))
    ball[flying] = np.stack([x + vx * DT, y + vy * DT, vx, vy, x], 1)


def bounce(ball: np.ndarray, other: np.ndarray, radius: float) -> None:
    """Throw balls back from what they touch: ``other`` (games, 4), of this radius."""
    reach = (BALL + radius) * (BALL + radius)

    def touching(rows: np.ndarray) -> np.ndarray:
        dx, dy = other[rows, 0] - ball[rows, 0], other[rows, 1] - ball[rows, 1]
        return rows[reach > dx * dx + dy * dy]

    hit = touching(np.arange(len(ball)))
    if not len(hit):
        return
    towards = ball[hit, :2] - other[hit, :2]
    normal = towards / np.sqrt(towards[:, 0] * towards[:, 0] + towards[:, 1] * towards[:, 1])[:, None]
    out, left = np.zeros_like(ball[:, :2]), hit
    out[hit] = normal * NUDGE
    while len(left):
        ball[left, :2] += out[left]
        left = touching(left)
    u = ball[hit, 2:4] - other[hit, 2:4]
    along = u[:, 0] * normal[:, 0] + u[:, 1] * normal[:, 1]
    ball[hit, 2:4] = u - normal * (along * 2.0)[:, None] + other[hit, 2:4]


def edges(ball: np.ndarray) -> np.ndarray:
    """Throw balls back from the walls; answers -1 where one fell to the ground on the left, 1 on the right, else 0."""
    x, y, vx, vy, before = ball.T
    _turn(x, vx, x <= BALL - SIZE / 2, BALL - SIZE / 2 + NUDGE * DT)
    _turn(x, vx, x >= SIZE / 2 - BALL, SIZE / 2 - BALL - NUDGE * DT)
    fallen = np.where(y <= BALL + GROUND, np.where(x <= 0, -1, 1), 0)
    _turn(y, vy, y >= SIZE - BALL, SIZE - BALL - NUDGE * DT)
    near, low = FENCE / 2 + BALL, y <= FENCE_TOP
    _turn(x, vx, (x <= near) & (before > near) & low, near + NUDGE * DT)
    _turn(x, vx, (x >= -near) & (before < -near) & low, -near - NUDGE * DT)
    return fallen


def _turn(place: np.ndarray, speed: np.ndarray, where: np.ndarray, to: float) -> None:
    speed[where] *= -1
    place[where] = to


def seen_by(players: np.ndarray, ball: np.ndarray) -> np.ndarray:
    """What each side sees, as if it stood on the right: itself, the ball, the other; (games, 2, 12)."""
    mirror = np.stack([AWAY, [1.0, 1.0]] * 2, 1)  # of x, y, vx, vy, for each side
    balls = ball[:, None, :4] * mirror
    return np.concatenate([players * mirror, balls, players[:, ::-1] * (-mirror * [1, -1, 1, -1])], 2)


def picture(players: np.ndarray, ball: np.ndarray, lives: np.ndarray) -> np.ndarray:
    """One game: uint8, 200 x 480 x 3."""
    scale, height, width = 10, 200, 480
    down, right = np.mgrid[:height, :width]
    x, y = right / scale - SIZE / 2, (height - down) / scale
    image = np.full((height, width, 3), (11, 16, 19), np.uint8)
    image[(abs(x) <= FENCE / 2) & (y <= FENCE_TOP)] = (102, 56, 35)
    image[x**2 + (y - FENCE_TOP) ** 2 <= STUB**2] = (102, 56, 35)
    for player, away, left, colour in zip(players, AWAY, lives, ((35, 93, 188), (255, 236, 0))):
        image[((x - player[0]) ** 2 + (y - player[1]) ** 2 <= PLAYER**2) & (y >= player[1])] = colour
        for k in range(1, int(left)):
            image[(x - away * (SIZE / 2 + 0.5 - k * 2)) ** 2 + (y - 18.5) ** 2 <= 0.25] = (102, 56, 35)
    image[(x - ball[0]) ** 2 + (y - ball[1]) ** 2 <= BALL**2] = (217, 79, 0)
    image[y <= GROUND] = (116, 114, 117)
    return image
