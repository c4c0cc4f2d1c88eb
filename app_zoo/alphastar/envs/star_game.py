"""What the games of this folder share: sides that give orders, and see numbers, a minimap and units."""

from __future__ import annotations

import numpy as np

from app_zoo.alphastar.envs.features import Sizes, random_orders
from nervex.envs import TwoSidedEnv
from nervex.envs.env.base_env import BaseEnvInfo
from nervex.envs.spaces import reward_info
from nervex.utils.declare import setting, settings


def random_player(game: StarGame, rows: np.ndarray, sides: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Orders that could be obeyed, all types and parts equally likely."""
    return random_orders(game.view(rows, sides), game.sizes, rng)


class StarGame(TwoSidedEnv):
    """
    Overview:
        A game of two sides whose action is an order: a vector of ints with a place for each part, see ``PLACES`` in
        ``orders.py``. What a side sees is a dict of arrays of fixed sizes, see ``features.py``.
    """

    config = settings(
        max_units=setting(64, 'int >= 2', 'units that a side sees at most'),
        max_selected=setting(8, 'int >= 1', 'units that an order selects at most'),
        map_size=setting(32, 'int >= 8', 'edge of the minimap and of the grid of locations, a multiple of 4'),
    )
    players = {'random': random_player}
    state_constants: tuple[str, ...] = ('sizes', 'action_num')

    def __init__(self, cfg: dict | None = None, num: int = 1) -> None:
        super().__init__(cfg, num)
        if self._cfg.map_size % 4:
            raise ValueError(f'env.map_size: got {self._cfg.map_size}, must be a multiple of 4')
        self.sizes = Sizes(self._cfg.max_units, self._cfg.max_selected, self._cfg.map_size)
        self.action_num = self.sizes.choices

    def info(self) -> BaseEnvInfo:
        """The spaces of one side."""
        return BaseEnvInfo(2, self.sizes.obs_space(), self.sizes.act_space(), reward_info(), sides=2)
