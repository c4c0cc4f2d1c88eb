"""Networks of teams beside those with a name of their own (qmix, coma, collaq, atoc)."""

from nervex.model.team.team_ac import TeamAC, TeamQAC, ValueScale

__all__ = ['TeamAC', 'TeamQAC', 'ValueScale']
