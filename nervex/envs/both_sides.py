"""A game of two sides that move in turn as an env of one player who plays both."""

from __future__ import annotations

from typing import Any

import numpy as np

from nervex.envs.array_env import ArrayEnv
from nervex.envs.env.base_env import BaseEnvInfo
from nervex.envs.two_sided import TwoSidedEnv


class BothSides(ArrayEnv):
    """
    Overview:
        Each step is that of the side to move, sees what it sees and is paid what it is paid; then the other side is to
        move. What follows a step is good for the other side, so that returns alternate in sign: a policy learns here
        with a negative discount factor. All moves of a game become samples.
    Arguments:
        - game (:obj:`TwoSidedEnv`): the games; RuntimeError where sides do not alternate, or rewards are not opposite
    """

    def __init__(self, game: TwoSidedEnv) -> None:
        super().__init__(game._cfg, game.num)
        self.game, self.limit, self.side = game, game.limit, np.zeros(game.num, np.int64)

    def begin(self, which: np.ndarray, generators: list[np.random.Generator]) -> None:
        """Begin games."""
        self.game.begin(which, generators)
        self._turn(which)

    def _turn(self, rows: np.ndarray) -> None:
        turns = self.game.turns()[rows]
        if (turns.sum(1) != 1).any():
            raise RuntimeError(f"{self.game!r}: both sides move at once, which env.opponent 'self' does not know")
        self.side[rows] = turns.argmax(1)

    def act(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One move in each game."""
        rows, side = np.arange(self.num), self.side.copy()
        joint = np.zeros((self.num, 2, *np.shape(actions)[1:]), np.int64)
        joint[rows, side] = actions
        reward, over = self.game.move(rows, joint)
        self._turn(rows[~over])
        if (self.side == side)[~over].any() or reward.sum(1).any():
            text = 'its sides do not alternate' if not reward.sum(1).any() else 'rewards of the sides are not opposite'
            raise RuntimeError(f"{self.game!r}: {text}, so that env.opponent 'self' would learn wrong returns")
        return reward[rows, side], over

    def seen(self) -> dict[str, np.ndarray]:
        """What the sides to move see."""
        return self.game.view(np.arange(self.num), self.side)

    def info(self) -> BaseEnvInfo:
        """That of one side."""
        return self.game.info()._replace(agent_num=1, sides=1)

    def render(self) -> Any:
        """The picture of the first game."""
        return self.game.render()

    def close(self) -> None:
        """Free what is held; may be called twice."""
        self.game.close()

    def __repr__(self) -> str:
        return f'BothSides({self.game!r})'
