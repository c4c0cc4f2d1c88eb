"""The commander of a league: its settings."""

from typing import Any

from nervex.league.settings import LeagueSettings
from nervex.utils import COMMANDER_REGISTRY
from nervex.utils.declare import setting, settings
from nervex.worker.coordinator.base_serial_commander import BaseSerialCommander


@COMMANDER_REGISTRY.register('league')
class LeagueCommander(BaseSerialCommander):
    """
    Overview:
        ``commander_type: league``: a learner for each active player of a league; every game that begins meets whom the
        league says. In serial mode they take turns of ``turn_rounds`` rounds of collecting and learning, in parallel
        mode that is how often the others get to know what a player has learned. The limits of the run
        (``max_env_step``, ...) hold for each learner.
    """

    config = settings(
        commander_type='league',
        selfplay=setting(None, 'None', 'whom games are against is up to the league'),
        league=setting({}, LeagueSettings(), 'settings of the league, and a section for each type of its players'),
        turn_rounds=setting(10, 'int >= 1', 'rounds of the turn of a player, or between two of its checkpoints'),
    )
    many_learners = True

    @classmethod
    def learners(cls, cfg: Any) -> int:
        """One for each active player."""
        return len(cfg.league.player_category) * (sum(cfg.league.active_players.values()) or 1)
