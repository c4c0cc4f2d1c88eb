"""Games with the spaces of StarCraft II: pysc2's, and a drill without it."""

from app_zoo.alphastar.envs.drill import Drill
from app_zoo.alphastar.envs.sc2_game import SC2Game
from app_zoo.alphastar.envs.star_game import StarGame

__all__ = ['Drill', 'SC2Game', 'StarGame']
