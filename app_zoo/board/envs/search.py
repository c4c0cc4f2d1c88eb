"""The rules of board games for policies that search."""

from __future__ import annotations

import numpy as np

from app_zoo.board.envs.boards import CONNECT_FOUR, TIC_TAC_TOE, Boards, Rules


class BoardRules:
    """
    Overview:
        The ``GameRules`` of a board game. A position is (2, cells) bools: stones of the side to move, and the other's.
    """

    def __init__(self, rules: Rules) -> None:
        self._boards = Boards(rules, 0)

    def _at(self, positions: np.ndarray) -> Boards:
        return self._boards.at(positions[:, 0], positions[:, 1])

    def positions(self, obs: np.ndarray) -> np.ndarray:
        """The stones on these boards, whether they come as vectors or as images."""
        stones = obs.reshape(len(obs), -1, self._boards.mine.shape[1])[:, :2]
        if ((stones != 0) & (stones != 1)).any():
            odd = stones[(stones != 0) & (stones != 1)][0]
            raise ValueError(
                f'{self._boards.rules.name}: a search reads boards of 0 and 1, got {odd:g} in one; '
                'leave observations as they are (env.manager.norm_obs=False)'
            )
        return stones != 0

    def observe(self, positions: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Boards in the shape of the env's observations, with the third channel if they have it."""
        planes = [positions.astype(np.float32)]
        if np.prod(shape) > np.prod(positions.shape[1:]):
            planes.append(self._at(positions).landing().reshape(len(positions), 1, positions.shape[2]))
        return np.concatenate(planes, 1).reshape(len(positions), *shape)

    def legal(self, positions: np.ndarray) -> np.ndarray:
        """Which actions are legal."""
        return self._at(positions).legal()

    def play(self, positions: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The boards after a move each, which moves have won, and which games are over."""
        boards = self._at(positions)
        won, full = boards.step(actions)
        return np.stack([boards.mine, boards.other], 1), won, won | full

    def symmetries(self, shape: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Boards mirrored; where stones do not fall, turned, too."""
        rules, order = self._boards.rules, self._boards._order
        grid = np.arange(rules.rows * rules.columns).reshape(rules.rows, rules.columns)
        turned = [grid] if rules.falls else [np.rot90(grid, k) for k in range(4)]
        found = []
        for cells in [one.ravel() for board in turned for one in (board, board[:, ::-1])][1:]:
            planes = np.arange(0, np.prod(shape), grid.size)[:, None] + cells
            actions = cells[: rules.columns] % rules.columns if rules.falls else np.argsort(order)[cells[order]]
            found.append((planes.ravel(), actions))
        return found


TIC_TAC_TOE_RULES = BoardRules(TIC_TAC_TOE)
CONNECT_FOUR_RULES = BoardRules(CONNECT_FOUR)
