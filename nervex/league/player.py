"""Players of a league: active ones that learn, and frozen ones to play against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from nervex.league.algorithm import draw, pfsp
from nervex.loader.sections import complete
from nervex.utils import PLAYER_REGISTRY, unknown_name
from nervex.utils.declare import setting, settings
from nervex.utils.part_state import HasState


class Player:
    """
    Overview:
        Somebody with a checkpoint who takes part in a league.
    Arguments:
        - cfg (:obj:`Mapping | None`): settings over the ``config`` of the class
        - category (:obj:`str`): what kind of side it plays, such as a race; 'default' where there is one kind
        - init_payoff (:obj:`Any`): the payoff that all players of the league share
        - checkpoint_path (:obj:`str`): file of its weights
        - player_id (:obj:`str`): its name in the league
        - total_agent_step (:obj:`int`): steps that it has been trained for
    """

    config: dict[str, Any] = settings()

    def __init__(
        self,
        cfg: Mapping[str, Any] | None,
        category: str,
        init_payoff: Any,
        checkpoint_path: str,
        player_id: str,
        total_agent_step: int = 0,
    ) -> None:
        self._cfg = complete(type(self), cfg, f'league.{type(self).__name__}', own_only=False)
        self.category, self.payoff = category, init_payoff
        self.checkpoint_path, self.player_id = checkpoint_path, player_id
        self.total_agent_step = int(total_agent_step)

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.player_id}, {self.total_agent_step} steps)'


@PLAYER_REGISTRY.register('historical_player')
class HistoricalPlayer(Player):
    """
    Overview:
        A snapshot of an active player: it is played against and never changes.
    Arguments:
        - parent_id (:obj:`str`): the player that it was taken of
    """

    def __init__(self, *args: Any, parent_id: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.parent_id = parent_id


class Roster:
    """
    Overview:
        Who is in a league, and groups of them in the order in which they came, each with its places in the payoff; a
        group is looked up anew only after somebody has come.
    Interfaces:
        add, remove, active, historical, players
    """

    def __init__(self, payoff: Any) -> None:
        self.payoff = payoff
        self.clear()

    def clear(self) -> None:
        """Forget everybody."""
        self.players: list[Player] = []
        self._groups: dict[Any, Group] = {}

    def add(self, player: Player) -> None:
        """Somebody comes; the payoff knows them already."""
        self.players.append(player)
        self._groups.clear()

    def remove(self, player: Player) -> None:
        """Somebody leaves."""
        self.players.remove(player)
        self._groups.clear()

    def active(self, kind: type[Player]) -> Group:
        """The players of a class."""
        return self._group(kind, lambda player: isinstance(player, kind))

    def historical(self, parent_id: str | None = None) -> Group:
        """Snapshots of one player, or of all."""
        return self._group(parent_id, lambda p: isinstance(p, HistoricalPlayer) and parent_id in (None, p.parent_id))

    def _group(self, key: Any, belongs: Callable[[Player], bool]) -> Group:
        group = self._groups.get(key)
        if group is None:
            players = [player for player in self.players if belongs(player)]
            places = self.payoff.places([p.player_id for p in players]) if hasattr(self.payoff, 'places') else None
            group = self._groups[key] = Group(players, places)
        return group


class Group(NamedTuple):
    """Players, and where the payoff has them."""

    players: list[Player]
    places: Any


class ActivePlayer(Player, HasState):
    """
    Overview:
        A player that learns. ``get_job`` draws a branch of matchmaking by ``branch_probs`` and the opponent from the
        method ``_<branch>_branch``; ``is_trained_enough`` says when the league is to keep a snapshot.
    Arguments:
        - generator (:obj:`numpy.random.Generator | None`): source of all chance
    Interfaces:
        is_trained_enough, snapshot, mutate, get_job, increment_eval_difficulty, state_dict, load_state_dict
    """

    config = settings(
        one_phase_step=setting(2000, 'whole >= 1', 'training steps of a phase: no snapshot before one, one after two'),
        branch_probs=setting({}, 'dict of number in [0, 1]', 'branch -> how often its opponents are met; sums to 1'),
        strong_win_rate=setting(0.7, 'number in [0, 1]', 'within the second phase: a snapshot above this least rate'),
        eval_opponent_difficulty=setting(['default'], 'list of str', 'built-in opponents, from weak to strong'),
    )

    resume_parts = ('total_agent_step', '_last_enough_step', '_difficulty', 'checkpoint_path')

    def __init__(self, *args: Any, generator: np.random.Generator | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._generator = np.random.default_rng() if generator is None else generator
        self._roster = Roster(self.payoff)
        self._last_enough_step = self.total_agent_step
        self._difficulty = 0
        wrong = self.wrong_branches(self._cfg['branch_probs'])
        if wrong:
            raise ValueError(f'{type(self).__name__}.branch_probs: {wrong}')

    @classmethod
    def wrong_branches(cls, probs: Mapping[str, float]) -> str | None:
        """What is wrong with a setting ``branch_probs`` of such a player; None: nothing."""
        for branch in probs:
            if not callable(getattr(cls, f'_{branch}_branch', None)):
                known = [name[1:-7] for name in dir(cls) if name.startswith('_') and name.endswith('_branch')]
                return unknown_name(f'branch of {cls.__name__}', branch, known)
        if abs(sum(probs.values()) - 1) > 1e-6 or min(probs.values(), default=0) < 0:
            return f'got {dict(probs)}, must sum to 1; a branch that is not wanted gets 0'
        return None

    def join(self, roster: Roster) -> None:
        """Enter a league, whose players are in ``roster``, this one among them."""
        self._roster = roster

    # ---- growing
    def is_trained_enough(self, select_fn: Callable[[Player], bool] | None = None) -> bool:
        """
        Overview:
            Whether it is time for a snapshot: never within a phase of the last one, always after two phases, and in
            between once it beats everybody.
        Arguments:
            - select_fn (:obj:`Callable | None`): who counts as everybody; None: all historical players
        """
        phases = (self.total_agent_step - self._last_enough_step) / self._cfg['one_phase_step']
        if phases < 1 or (phases < 2 and not self._beats(select_fn or (lambda p: isinstance(p, HistoricalPlayer)))):
            return False
        self._last_enough_step = self.total_agent_step
        return True

    def _beats(self, counts: Callable[[Player], bool]) -> bool:
        """Whether there are players who count, and it beats each of them often enough."""
        rivals = [player.player_id for player in self._roster.players if counts(player)]
        return bool(rivals) and self.payoff.win_rates(self.player_id, rivals).min() > self._cfg['strong_win_rate']

    def snapshot(self) -> HistoricalPlayer:
        """A historical player as this one is now; copying its checkpoint is up to the league."""
        name = f'{self.player_id}_{self.total_agent_step}'
        stem, dot, ending = self.checkpoint_path.partition('.pth')
        path = f'{stem}_{self.total_agent_step}{dot}{ending}'
        return HistoricalPlayer(
            {}, self.category, self.payoff, path, name, self.total_agent_step, parent_id=self.player_id
        )

    def mutate(self, info: Mapping[str, Any]) -> str | None:
        """
        Overview:
            What happens to the player itself after a snapshot.
        Arguments:
            - info (:obj:`Mapping`): ``reset_checkpoint_path``, what a reset goes back to
        Returns:
            - path (:obj:`str | None`): the checkpoint to go on from; None: its own
        """
        return None

    # ---- matchmaking
    def get_job(self, eval_flag: bool = False) -> dict[str, Any]:
        """
        Overview:
            Whom to play next: ``opponent`` is a player and ``branch`` how it was found; in an evaluation ``opponent``
            is the name of a built-in difficulty.
        """
        if eval_flag:
            return {'opponent': self._cfg['eval_opponent_difficulty'][self._difficulty], 'branch': 'eval'}
        branches = list(self._cfg['branch_probs'])
        branch = branches[draw(np.array([self._cfg['branch_probs'][b] for b in branches]), self._generator)]
        opponent = getattr(self, f'_{branch}_branch')()
        return {'opponent': opponent, 'branch': branch}

    def increment_eval_difficulty(self) -> bool:
        """Evaluate against the next stronger built-in opponent; False if there is none."""
        if self._difficulty + 1 >= len(self._cfg['eval_opponent_difficulty']):
            return False
        self._difficulty += 1
        return True

    def _choose(self, group: Group, weighting: str | None = None) -> Player:
        """One of these players: by pfsp with this weighting, or (None) all equally likely."""
        if weighting is None:
            return group.players[int(self._generator.integers(len(group.players)))]
        return group.players[draw(pfsp(self._rates(group), weighting), self._generator)]

    def _rates(self, group: Group) -> np.ndarray:
        """Win rates against the players of a group."""
        return self.payoff.win_rates(self.player_id, group.places)


@PLAYER_REGISTRY.register('naive_sp_player')
class NaiveSpPlayer(ActivePlayer):
    """
    Overview:
        Plays the other active players and itself as they are now (``sp``), or snapshots: by prioritized
        fictitious self-play (``pfsp``), or any of them (``pool``).
    """

    config = settings(branch_probs=dict(pfsp=0.5, sp=0.5))

    def _sp_branch(self) -> Player:
        return self._choose(self._roster.active(ActivePlayer))

    def _pfsp_branch(self) -> Player:
        past = self._roster.historical()
        return self._choose(past, 'squared') if past.players else self._sp_branch()

    def _pool_branch(self) -> Player:
        past = self._roster.historical()
        return self._choose(past) if past.players else self._sp_branch()


@PLAYER_REGISTRY.register('solo_active_player')
class SoloActivePlayer(ActivePlayer):
    """Plays alone, so that it has no opponent: its payoff holds returns."""

    config = settings(branch_probs=dict(alone=1.0))

    def _alone_branch(self) -> None:
        return None

    def _beats(self, counts: Callable[[Player], bool]) -> bool:
        """There is nobody to beat: every phase is enough."""
        return True


def create_player(cfg: Mapping[str, Any], player_type: str, *args: Any, **kwargs: Any) -> Player:
    """The player registered as ``player_type``, with the settings that ``cfg`` has under that name."""
    return PLAYER_REGISTRY.get(player_type)(cfg.get(player_type), *args, **kwargs)


def register_player(name: str, cls: type[Player]) -> None:
    """Register a player under a name that the configs of leagues may use."""
    PLAYER_REGISTRY.register(name, cls)
