"""Leagues of players that play alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nervex.league.base_league import BaseLeague
from nervex.league.player import ActivePlayer
from nervex.utils import LEAGUE_REGISTRY
from nervex.utils.declare import settings


@LEAGUE_REGISTRY.register('solo')
class SoloLeague(BaseLeague):
    """Every job is a player in its env without an opponent; the payoff keeps returns."""

    config = settings(league_type='solo', payoff={'type': 'solo'})

    default_player = 'solo_active_player'

    def _get_job_info(self, player: ActivePlayer, eval_flag: bool = False) -> dict[str, Any]:
        return {
            'agent_num': 1,
            'player_id': [player.player_id],
            'checkpoint_path': [player.checkpoint_path],
            'player_active_flag': [True],
        }

    def _mutate_player(self, player: ActivePlayer) -> str | None:
        return None

    def _update_player(self, player: ActivePlayer, info: Mapping[str, Any]) -> None:
        """The step says all."""
