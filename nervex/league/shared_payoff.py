"""Payoffs: what all players of a league know of their games with each other."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nervex.loader.sections import complete
from nervex.utils import unknown_name
from nervex.utils.declare import setting, settings

RESULTS = ('wins', 'draws', 'losses')
_FIRST_SIZE = 16


class BattleRecordDict(dict):
    """
    Overview:
        ``wins``, ``draws``, ``losses`` and ``games`` of one pair, seen from the first of the two; each starts at 0.
        ``record * decay`` is a new record that has forgotten a part.
    """

    def __init__(self, **counts: float) -> None:
        super().__init__({**dict.fromkeys((*RESULTS, 'games'), 0.0), **counts})

    def __mul__(self, decay: float) -> BattleRecordDict:
        return BattleRecordDict(**{key: value * decay for key, value in self.items()})

    __rmul__ = __mul__


class SharedPayoff:
    """What both payoffs have: who takes part, each with what is kept of it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._kept: dict[str, Any] = {}

    @property
    def players(self) -> list[str]:
        """Ids of the players, oldest first."""
        return list(self._kept)

    def __contains__(self, player_id: str) -> bool:
        return player_id in self._kept

    def add_player(self, player: Any) -> None:
        """Take part from now on: a player, or its id."""
        (name,) = _ids(player)
        with self._lock:
            if name in self._kept:
                raise ValueError(f'player {name!r} takes part already')
            self._kept[name] = self._beginning()

    def _beginning(self) -> Any:
        """What is kept of somebody new."""
        raise NotImplementedError

    def _of(self, player_id: str) -> Any:
        try:
            return self._kept[player_id]
        except KeyError:
            raise KeyError(unknown_name('player of the payoff', str(player_id), self._kept)) from None


class BattleSharedPayoff(SharedPayoff):
    """
    Overview:
        Games between pairs of players, home and away. Whatever is recorded for (a, b) is also recorded, the other way
        round, for (b, a). A new game of a pair makes its older ones count ``decay`` times as much.

        ``payoff[home, away]`` is the win rate of home, draws counting half, and 0.5 below ``min_win_rate_games`` games;
        with lists of ids it is an array (homes, aways) without axes of length 1.
    Arguments:
        - cfg (:obj:`Mapping | None`): ``decay`` and ``min_win_rate_games``
    Interfaces:
        add_player, remove_player, update, record, win_rates, games, state_dict, load_state_dict
    """

    config = settings(
        type=setting('battle', 'str', 'registered name'),
        decay=setting(0.99, 'number in (0, 1]', 'weight of what is known already when a game is added'),
        min_win_rate_games=setting(8, 'number >= 0', 'fewer games say nothing: the win rate is 0.5'),
    )

    def __init__(self, cfg: Mapping | None = None) -> None:
        super().__init__()
        given = complete(type(self), cfg, 'league.payoff')
        self._decay, self._least = float(given['decay']), float(given['min_win_rate_games'])
        self._make_room(_FIRST_SIZE)

    # ---- players, of whom the row and column is kept
    def _beginning(self) -> int:
        place = len(self._kept)
        if place == self._counts.shape[1]:
            counts, rates = self._counts, self._rates
            self._make_room(2 * place)
            self._counts[:, :place, :place], self._rates[:place, :place] = counts, rates
        return place

    def remove_player(self, player: Any) -> None:
        """Forget a player and all its games; places that were asked for before are void."""
        (name,) = _ids(player)
        with self._lock:
            left = np.delete(np.arange(len(self._kept)), self._of(name))
            counts, rates = self._counts, self._rates
            self._make_room(counts.shape[1])
            size = len(left)
            self._counts[:, :size, :size], self._rates[:size, :size] = counts[:, left][:, :, left], rates[left][:, left]
            self._kept = {other: k for k, other in enumerate(other for other in self._kept if other != name)}

    def _make_room(self, size: int) -> None:
        self._counts = np.zeros((4, size, size))  # wins, draws, losses, games of row against column
        self._rates = np.full((size, size), 0.5)

    # ---- games
    def update(self, job_info: Mapping[str, Any]) -> bool:
        """
        Overview:
            Record the games of a finished job.
        Arguments:
            - job_info (:obj:`Mapping`): ``player_id``, the ids (home, away), and ``result``, a list for each episode
              with a word for each env, of 'wins', 'draws', 'losses' as home sees it; flat lists are fine
        Returns:
            - known (:obj:`bool`): False, and nothing is recorded, if one of the players does not take part
        """
        home, away = job_info['player_id']
        results = list(flat(job_info['result']))
        if wrong := sorted({str(r) for r in results} - set(RESULTS)):
            raise ValueError(unknown_name('result of a game', wrong[0], RESULTS))
        with self._lock:
            if home not in self or away not in self:
                return False
            i, j = self._kept[home], self._kept[away]
            for result in results:
                kind = RESULTS.index(result)
                self._add(i, j, kind)
                if i != j:
                    self._add(j, i, 2 - kind)
        return True

    def _add(self, i: int, j: int, kind: int) -> None:
        pair = self._counts[:, i, j]
        pair *= self._decay
        pair[kind] += 1
        pair[3] += 1
        wins, draws, _, games = pair.tolist()
        self._rates[i, j] = (wins + 0.5 * draws) / games if games >= self._least else 0.5

    def record(self, home: str, away: str) -> BattleRecordDict:
        """Games of a pair, as home sees them, with their weights."""
        with self._lock:
            pair = self._counts[:, self._of(home), self._of(away)]
            return BattleRecordDict(**dict(zip((*RESULTS, 'games'), pair.tolist())))

    def win_rates(self, home: str, aways: Sequence[str] | np.ndarray) -> np.ndarray:
        """Win rates of one player against each of the others, ids or what ``places`` answered: (len(aways), )."""
        places = aways if isinstance(aways, np.ndarray) else self.places(aways)
        with self._lock:
            return self._rates[self._of(home)].take(places)

    def places(self, ids: Sequence[str]) -> np.ndarray:
        """Players in the form in which ``win_rates`` finds them at once; it stays valid while the payoff grows."""
        with self._lock:
            return np.array([self._of(name) for name in ids], np.intp)

    def games(self, home: str, aways: Sequence[str]) -> np.ndarray:
        """Weighted games of one player with each of the others: (len(aways), )."""
        with self._lock:
            return self._counts[3, self._of(home)].take(self.places(aways))

    def __getitem__(self, pair: tuple[Any, Any]) -> np.ndarray:
        homes, aways = (_ids(side) for side in pair)
        return np.stack([self.win_rates(home, aways) for home in homes]).squeeze()

    # ---- state
    def state_dict(self) -> dict[str, Any]:
        """Players and counts; loads with ``weights_only=True``."""
        import torch

        with self._lock:
            size = len(self._kept)
            return {'players': self.players, 'counts': torch.from_numpy(self._counts[:, :size, :size].copy())}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        with self._lock:
            self._kept = {name: k for k, name in enumerate(state['players'])}
            size = len(self._kept)
            room = max(_FIRST_SIZE, 1 << max(size - 1, 0).bit_length())
            self._make_room(room)
            wins, draws, _, games = self._counts[:, :size, :size] = np.asarray(state['counts'])
            known = games >= max(self._least, 1e-9)
            self._rates[:size, :size] = np.where(known, (wins + 0.5 * draws) / np.maximum(games, 1e-9), 0.5)

    def __repr__(self) -> str:
        return f'{type(self).__name__}({len(self._kept)} players)'


class SoloSharedPayoff(SharedPayoff):
    """
    Overview:
        Scores of players that play alone: the last ``buffer_size`` returns of each.
    Arguments:
        - cfg (:obj:`Mapping | None`): ``buffer_size``
    Interfaces:
        add_player, update, scores, state_dict, load_state_dict
    """

    config = settings(
        type=setting('solo', 'str', 'registered name'),
        buffer_size=setting(100, 'int >= 1', 'scores of a player that are kept'),
    )

    def __init__(self, cfg: Mapping | None = None) -> None:
        super().__init__()
        self._size = complete(type(self), cfg, 'league.payoff')['buffer_size']

    def _beginning(self) -> deque[float]:
        return deque(maxlen=self._size)

    def remove_player(self, player: Any) -> None:
        """Forget a player and its scores."""
        del self._kept[_ids(player)[0]]

    def update(self, job_info: Mapping[str, Any]) -> bool:
        """Record ``result`` (returns of episodes) of ``player_id``; False if that player does not take part."""
        name = _ids(job_info['player_id'])[0]
        with self._lock:
            if name not in self:
                return False
            self._kept[name].extend(float(score) for score in flat(job_info['result']))
        return True

    def scores(self, player_id: str) -> list[float]:
        """The kept returns of a player, oldest first."""
        with self._lock:
            return list(self._of(player_id))

    def __getitem__(self, player_id: str) -> float:
        """The mean of the kept returns; NaN while there is none."""
        scores = self.scores(player_id)
        return float(np.mean(scores)) if scores else float('nan')

    def state_dict(self) -> dict[str, Any]:
        """All scores; loads with ``weights_only=True``."""
        with self._lock:
            return {'scores': {name: list(kept) for name, kept in self._kept.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        with self._lock:
            self._kept = {name: deque(kept, maxlen=self._size) for name, kept in state['scores'].items()}


SoloPayoff = SoloSharedPayoff
PAYOFFS = {'battle': BattleSharedPayoff, 'solo': SoloSharedPayoff}


def create_payoff(cfg: Mapping[str, Any]) -> Any:
    """The payoff of ``cfg['type']``: 'battle' or 'solo'."""
    kind = cfg.get('type', 'battle')
    if kind not in PAYOFFS:
        raise ValueError(unknown_name('type of payoff', kind, PAYOFFS))
    return PAYOFFS[kind](cfg)


def _ids(side: Any) -> list[str]:
    """Of one player or several, which may be given as ids."""
    several = [side] if isinstance(side, str) or hasattr(side, 'player_id') else side
    return [getattr(player, 'player_id', player) for player in several]


def flat(results: Any) -> Iterator[Any]:
    """The results of single games, however deep they lie in lists."""
    for result in [results] if isinstance(results, (str, float, int)) else results:
        if isinstance(result, (list, tuple)):
            yield from flat(result)
        else:
            yield result
