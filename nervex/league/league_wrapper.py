"""A league for callers elsewhere: the few calls that a commander makes, as plain data in and out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nervex.league.base_league import BaseLeague, create_league

CALLS = ('get_job_info', 'finish_job', 'update_active_player', 'judge_snapshot', 'save', 'load')


class LeagueWrapper:
    """
    Overview:
        Answers calls by name, so that a league can live in a process of its own (a Ray actor, a slave of
        ``nervex.interaction``). The league locks itself, so several callers are fine.
    Arguments:
        - league (:obj:`BaseLeague | Mapping`): the league, or the config of one
    """

    def __init__(self, league: BaseLeague | Mapping[str, Any]) -> None:
        self.league = league if isinstance(league, BaseLeague) else create_league(league)

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """One of ``CALLS``."""
        if name not in CALLS:
            raise ValueError(f'a league answers {", ".join(CALLS)}; got {name!r}')
        return getattr(self.league, name)(*args, **kwargs)


league_wrapper = LeagueWrapper
