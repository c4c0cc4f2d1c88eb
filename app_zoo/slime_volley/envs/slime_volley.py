"""Slime volleyball, one against one."""

from __future__ import annotations

from functools import cache

import numpy as np

from app_zoo.slime_volley.envs import court
from nervex.envs import TwoSidedEnv
from nervex.utils.declare import setting, settings
from nervex.utils.errors import ConfigError

#: nothing, forward, forward and jump, jump, backward and jump, backward
WALK, JUMP = np.array([0, -1, -1, 0, 1, 1]), np.array([0, 0, 1, 1, 1, 0])
#: by walk and jump
ACTION_OF = np.array([[0, 3], [5, 4], [1, 2]])
LIVES, HELD, FRAMES = 5, 30, 3000


@cache
def _builtin_net() -> tuple[np.ndarray, np.ndarray]:
    """Weights (7, 15) and bias (7, ) of the package's own player."""
    try:
        from slimevolleygym.slimevolley import BaselinePolicy
    except ImportError as error:
        text = "env.opponent: player 'builtin' has the weights of slimevolleygym: pip install nervex[slime]"
        raise ConfigError([text]) from error
    net = BaselinePolicy()
    return net.weight, net.bias


def builtin_player(game: SlimeVolley, rows: np.ndarray, sides: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The package's own player, a small recurrent net that evolved; it chooses in each frame, so the game asks it."""
    game.builtin[rows, sides] = True
    return np.zeros(len(rows), np.int64)


class SlimeVolley(TwoSidedEnv):
    """
    Overview:
        Two slimes, a ball and a fence. A side sees itself, the ball and the other, places and speeds, as if it stood on
        the right. 1 for a point, -1 for one of the other; a game ends with five points, or is cut after 3,000 frames.
        The physics are those of slimevolleygym. ``builtin`` forgets when a game begins.
    """

    config = settings(frames=setting(1, 'int >= 1', 'that an action lasts; builtin chooses in each of them'))
    seen_shape, action_num = (12,), len(WALK)
    players = {**TwoSidedEnv.players, 'builtin': builtin_player}  # type: ignore[dict-item]

    def __init__(self, cfg: dict | None = None, num: int = 1) -> None:
        super().__init__(cfg, num)
        if 'builtin' in (self._cfg.opponent, self._cfg.evaluator_opponent):
            _builtin_net()  # tells at the start if it is not there
        self.limit, self.render_fps = -(-FRAMES // self._cfg.frames), 50 / self._cfg.frames
        self.slimes, self.ball = np.zeros((num, 2, 4)), np.zeros((num, 5))
        self.lives, self.held = np.zeros((num, 2), np.int64), np.zeros(num, np.int64)
        self.serves, self.served = np.zeros((num, 2 * LIVES, 2)), np.zeros(num, np.int64)
        self.seen_sides = np.zeros((num, 2, 12))  # when a point is made, players see what they saw before
        self.builtin, self.thoughts = (
            np.zeros((num, 2), bool),
            np.zeros((num, 2, 7)),
        )  # where it plays, and what it has in mind

    def begin(self, which: np.ndarray, generators: list[np.random.Generator]) -> None:
        drawn = np.stack([generators[row].random((2 * LIVES, 2)) for row in which]) if len(which) else self.serves[:0]
        self.serves[which] = [-20, 10] + np.array([40, 15]) * drawn
        self.served[which], self.lives[which], self.builtin[which], self.thoughts[which] = 0, LIVES, False, 0
        self.slimes[which] = np.array([-court.SIZE / 4, court.GROUND, 0, 0]) * [[1, 1, 1, 1], [-1, 1, 1, 1]]
        self._serve(which)
        self.seen_sides[which] = court.seen_by(self.slimes[which], self.ball[which])

    def _serve(self, rows: np.ndarray) -> None:
        vx, vy = self.serves[rows, self.served[rows]].T
        nil = np.zeros(len(rows))
        self.ball[rows] = np.stack([nil, nil + court.SIZE / 4, vx, vy, nil], 1)
        self.held[rows] = HELD
        self.served[rows] += 1

    def move(self, rows: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if (wrong := (actions < 0) | (actions >= self.action_num)).any():
            raise ValueError(f'{self!r}: an action is an int from 0 to 5, got {actions[wrong.any(1)][0].tolist()}')
        paid, over, left = np.zeros((len(rows), 2), np.float32), np.zeros(len(rows), bool), np.arange(len(rows))
        for _ in range(self._cfg.frames):
            points, over[left] = self._frame(rows[left], self._chosen(rows[left], actions[left]))
            paid[left] += points
            left = left[~over[left]]
        return paid, over

    def _chosen(self, rows: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The actions of a frame: where ``builtin`` plays, its own."""
        which, sides = self.builtin[rows].nonzero()
        if not len(which):
            return actions
        (weight, bias), at = _builtin_net(), (rows[which], sides)
        before = np.concatenate([self.seen_sides[at][:, :8] / 10.0, self.thoughts[at]], 1)
        self.thoughts[at] = after = np.tanh(before @ weight.T + bias)
        forward, backward, jump = (after[:, :3] > 0.75).T.astype(np.int64)
        actions = actions.copy()
        actions[which, sides] = ACTION_OF[backward - forward, jump]
        return actions

    def _frame(self, rows: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slimes, ball, flying = self.slimes[rows], self.ball[rows], self.held[rows] == 0
        court.run_players(slimes, WALK[actions], JUMP[actions])
        self.held[rows] -= ~flying
        court.fly(ball, flying)
        for side in (0, 1):
            court.bounce(ball, slimes[:, side], court.PLAYER)
        court.bounce(ball, np.broadcast_to([0, court.FENCE_TOP, 0, 0], (len(rows), 4)), court.STUB)
        fallen = court.edges(ball)
        self.slimes[rows], self.ball[rows] = slimes, ball
        point = fallen != 0
        self.seen_sides[rows[~point]] = court.seen_by(slimes[~point], ball[~point])
        self._serve(rows[point])
        self.lives[rows[point], (fallen[point] + 1) // 2] -= 1
        return np.stack([fallen, -fallen], 1).astype(np.float32), (self.lives[rows] == 0).any(1)

    def turns(self) -> np.ndarray:
        return np.ones((self.num, 2), bool)

    def view(self, rows: np.ndarray, sides: np.ndarray) -> dict[str, np.ndarray]:
        seen = (self.seen_sides[rows, sides] / 10.0).astype(np.float32)
        return {'observation': seen, 'action_mask': np.ones((len(rows), self.action_num), np.float32)}

    def render(self) -> np.ndarray:
        """The first game: uint8, 200 x 480 x 3."""
        return court.picture(self.slimes[0], self.ball[0], self.lives[0])
