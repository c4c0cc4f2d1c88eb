"""The three kinds of players of AlphaStar's league (Vinyals et al. 2019, Methods: multi-agent learning)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nervex.league.player import ActivePlayer, Group, Player
from nervex.utils import PLAYER_REGISTRY
from nervex.utils.declare import setting, settings


@PLAYER_REGISTRY.register('main_player')
class MainPlayer(ActivePlayer):
    """
    Overview:
        Meant to win against everybody. Half of its games are against all snapshots by pfsp; 35 % are self-play against
        a main player (against its snapshots, while it itself is too strong); 15 % go to exploiters' snapshots that it
        loses to and to snapshots of main players that it has forgotten how to beat, or to self-play if there are none.
    """

    config = settings(
        branch_probs=dict(pfsp=0.5, sp=0.35, verification=0.15),
        sp_win_rate=setting(0.3, 'number in [0, 1]', 'a main player that is beaten less often is met by its snapshots'),
        exploited_win_rate=setting(0.3, 'number in [0, 1]', "below it an exploiter's snapshot is dangerous"),
        forgotten_win_rate=setting(0.7, 'number in [0, 1]', "below it a main player's snapshot is forgotten"),
    )

    def _pfsp_branch(self) -> Player:
        past = self._roster.historical()
        return self._choose(past, 'squared') if past.players else self._sp_branch()

    def _sp_branch(self) -> Player:
        return self._play_main(self._choose(self._roster.active(MainPlayer)))

    def _play_main(self, main: Player) -> Player:
        past = self._roster.historical(main.player_id)
        if past.players and self.payoff[self.player_id, main.player_id] < self._cfg['sp_win_rate']:
            return self._choose(past, 'variance')
        return main

    def _verification_branch(self) -> Player:
        danger = [self._roster.historical(p.player_id) for p in self._roster.active(MainExploiter).players]
        strong = Group([p for part in danger for p in part.players], np.concatenate([p.places for p in danger] or [[]]))
        if self._below(strong, self._cfg['exploited_win_rate']):
            return self._choose(strong, 'squared')
        main = self._choose(self._roster.active(MainPlayer))
        past = self._forgettable(main)
        if self._below(past, self._cfg['forgotten_win_rate']):
            return self._choose(past, 'squared')
        return self._play_main(main)

    def _forgettable(self, main: Player) -> Group:
        """
        Snapshots of a main player without the newest ones, as long as each is beaten no more often than the one before
        it: those are not forgotten but not learned yet.
        """
        past = self._roster.historical(main.player_id)
        rates, end = self._rates(past), len(past.players)
        while end > 1 and rates[end - 1] <= rates[end - 2]:
            end -= 1
        end = end if end > 1 else 0
        return Group(past.players[:end], past.places[:end])

    def _below(self, group: Group, limit: float) -> bool:
        """Whether the least win rate against a group is below the limit."""
        return bool(group.players) and bool(self._rates(group).min() < limit)


@PLAYER_REGISTRY.register('main_exploiter')
class MainExploiter(ActivePlayer):
    """
    Overview:
        Looks for weaknesses of the main players: plays one of them, or (while it hardly ever wins) its snapshots of
        about equal strength. It begins anew after each snapshot.
    """

    config = settings(
        branch_probs=dict(main_players=1.0),
        min_valid_win_rate=setting(
            0.2, 'number in [0, 1]', 'below it snapshots of the main player are met, half the time'
        ),
    )

    def _main_players_branch(self) -> Player:
        main = self._choose(self._roster.active(MainPlayer))
        past = self._roster.historical(main.player_id)
        weak = self.payoff[self.player_id, main.player_id] < self._cfg['min_valid_win_rate']
        if past.players and weak and self._generator.random() < 0.5:
            return self._choose(past, 'variance')
        return main

    def is_trained_enough(self, select_fn: Callable[[Player], bool] | None = None) -> bool:
        """As any player, where everybody means the main players."""
        return super().is_trained_enough(select_fn or (lambda p: isinstance(p, MainPlayer)))

    def mutate(self, info: Mapping[str, Any]) -> str | None:
        """Begin anew, always."""
        return info['reset_checkpoint_path']


@PLAYER_REGISTRY.register('league_exploiter')
class LeagueExploiter(ActivePlayer):
    """
    Overview:
        Looks for weaknesses of the whole league: plays all snapshots by pfsp. After a quarter of its own snapshots it
        begins anew.
    """

    config = settings(
        branch_probs=dict(pfsp=1.0),
        mutate_prob=setting(0.25, 'number in [0, 1]', 'how often it begins anew after a snapshot'),
    )

    def _pfsp_branch(self) -> Player:
        past = self._roster.historical()
        return self._choose(past if past.players else self._roster.active(ActivePlayer), 'squared')

    def mutate(self, info: Mapping[str, Any]) -> str | None:
        """Begin anew with the probability ``mutate_prob``."""
        return info['reset_checkpoint_path'] if self._generator.random() < self._cfg['mutate_prob'] else None
