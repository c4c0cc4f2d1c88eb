"""Networks of teams beside those with a name of their own (qmix, coma, collaq, atoc)."""

from nervex.model.team.team_ac import TeamAC, ValueScale

__all__ = ['TeamAC', 'ValueScale']
