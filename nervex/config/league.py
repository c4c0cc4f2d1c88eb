"""Whole leagues, under the names that the documents use; what each setting means stands where its class declares it."""

from typing import Any

from easydict import EasyDict

from nervex.utils.import_helper import load_attribute


def _complete(league: str, **given: Any) -> EasyDict:
    return EasyDict(league=load_attribute('nervex.league.settings:complete_league')(load_attribute(league), given))


#: AlphaStar's league in small: one player of each kind in each category
one_vs_one_league_default_config = _complete(
    'nervex.league.base_league:OneVsOneLeague',
    active_players=dict(main_player=1, main_exploiter=1, league_exploiter=1),
)
solo_league_default_config = _complete('nervex.league.solo_league:SoloLeague')
