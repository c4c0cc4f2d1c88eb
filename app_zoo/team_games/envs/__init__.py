"""Small exact games of a team."""

from app_zoo.team_games.envs.team_games import MatrixGame, RelayGame, TwoStepGame

__all__ = ['MatrixGame', 'RelayGame', 'TwoStepGame']
