"""Leagues of two sides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nervex.league.base_league import BaseLeague
from nervex.league.player import ActivePlayer
from nervex.utils import LEAGUE_REGISTRY

_SCORES = {'wins': 1.0, 'draws': 0.5, 'losses': 0.0}


@LEAGUE_REGISTRY.register('one_vs_one')
class OneVsOneLeague(BaseLeague):
    """Every job is a match of an active player (home) against an opponent (away); ratings follow the games."""

    def _get_job_info(self, player: ActivePlayer, eval_flag: bool = False) -> dict[str, Any]:
        found = player.get_job(eval_flag)
        opponent = found['opponent']
        if eval_flag:
            sides, paths, active = [player.player_id, opponent], [player.checkpoint_path], [True]
        else:
            sides = [player.player_id, opponent.player_id]
            paths = [player.checkpoint_path, opponent.checkpoint_path]
            active = [True, isinstance(opponent, ActivePlayer)]
        return {
            'agent_num': len(paths),
            'player_id': sides,
            'checkpoint_path': paths,
            'player_active_flag': active,
            'branch': found['branch'],
            'eval_flag': eval_flag,
        }

    def record(self, info: Mapping[str, Any]) -> bool:
        """Games that no job was for; ratings follow them."""
        home, away = info['player_id']
        if not super().record(info):
            return False
        if home != away:
            for result in _flat(info['result']):
                for rating in (self.elo, self.true_skill):
                    rating.update(home, away, _SCORES[result])
        return True

    def _mutate_player(self, player: ActivePlayer) -> str | None:
        reset = self.cfg['pretrain_checkpoint_path'].get(player.category)
        return player.mutate({'reset_checkpoint_path': reset})

    def _update_player(self, player: ActivePlayer, info: Mapping[str, Any]) -> None:
        if info.get('eval_win_rate', 0.0) > player._cfg['strong_win_rate']:
            player.increment_eval_difficulty()


def _flat(results: Any) -> list[str]:
    return [results] if isinstance(results, str) else [word for part in results for word in _flat(part)]
