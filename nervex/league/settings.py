"""The settings of a league: its own, its payoff's, and a section for each type of player that takes part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nervex.loader.errors import shown
from nervex.loader.problems import Problems
from nervex.loader.sections import Parts, merge_section
from nervex.utils import LEAGUE_REGISTRY, PLAYER_REGISTRY, unknown_name
from nervex.utils.declare import declared_by
from nervex.utils.import_helper import import_modules


class LeagueSettings(Parts):
    """The check of a setting that is a league; its answer has every setting."""

    def __init__(self) -> None:
        self.what = "a dict, as 'nervex -q league one_vs_one' and 'nervex -q player NAME' tell"

    def check_all(self, path: str, value: Any, problems: Problems) -> Any:
        """The complete settings; what is wrong with any of them becomes a problem."""
        if not isinstance(value, Mapping):
            problems.add(path, f'got {shown(value)}, must be {self.what}')
            return value
        try:
            import_modules(value.get('import_names'))
        except (ImportError, ValueError) as error:
            problems.add(f'{path}.import_names', str(error))
            return value
        kind = value.get('league_type', 'one_vs_one')
        if kind not in LEAGUE_REGISTRY:
            problems.add(f'{path}.league_type', unknown_name('league', kind, LEAGUE_REGISTRY))
            return value
        return merge_league(LEAGUE_REGISTRY.get(kind), path, value, problems)


def merge_league(cls: Any, path: str, given: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """
    Overview:
        Every setting of a league, with what was given on top of what classes declare.
    Arguments:
        - cls (:obj:`type[BaseLeague]`): the league
        - path (:obj:`str`): where these settings stand in a config, for messages
    """
    from nervex.league.player import ActivePlayer
    from nervex.league.shared_payoff import PAYOFFS

    section = declared_by(cls, own_only=False)
    defaults = section.defaults()
    types = given.get('active_players', defaults['active_players']) or {cls.default_player: 1}
    for kind in types if isinstance(types, Mapping) else ():
        if kind in PLAYER_REGISTRY and not issubclass(PLAYER_REGISTRY.get(kind), ActivePlayer):
            problems.add(f'{path}.active_players', f'{kind} does not learn, so it cannot be an active player')
        elif kind in PLAYER_REGISTRY:
            section.entries[kind] = declared_by(PLAYER_REGISTRY.get(kind), own_only=False)
        else:
            problems.add(f'{path}.active_players', unknown_name('type of player', kind, PLAYER_REGISTRY))
    idle = [key for key in given if key in PLAYER_REGISTRY and key not in section.entries]
    for key in idle:
        text = f'is for players of a type that nobody is; name it in {path}.active_players, or leave the section out'
        problems.add(f'{path}.{key}', text)
    payoff = given.get('payoff')
    kind = payoff.get('type', defaults['payoff']['type']) if isinstance(payoff, Mapping) else defaults['payoff']['type']
    if kind in PAYOFFS:
        section.entries['payoff'] = declared_by(PAYOFFS[kind])
    else:
        problems.add(f'{path}.payoff.type', unknown_name('type of payoff', kind, PAYOFFS))
    merged = merge_section(path, section, {key: given[key] for key in given if key not in idle}, problems)
    for kind in (kind for kind in types if kind in section.entries and not problems.about(f'{path}.{kind}')):
        wrong = PLAYER_REGISTRY.get(kind).wrong_branches(merged[kind]['branch_probs'])
        if wrong:
            problems.add(f'{path}.{kind}.branch_probs', wrong)
    return merged


def complete_league(cls: Any, given: Mapping[str, Any] | None, path: str = 'league') -> dict[str, Any]:
    """As ``merge_league``; one ConfigError says all that is wrong."""
    problems = Problems()
    merged = merge_league(cls, path, given or {}, problems)
    problems.raise_if_any()
    return merged
