"""Matrix games of two sides."""

from app_zoo.matrix_games.envs.matrix_games import RockPaperScissors, exploitability

__all__ = ['RockPaperScissors', 'exploitability']
