"""Games with the spaces of StarCraft II: pysc2's, and a drill without it."""

from app_zoo.alphastar.envs.drill import Drill
from app_zoo.alphastar.envs.star_game import StarGame

__all__ = ['Drill', 'StarGame']
