"""A game of two sides as an env of one: others play the other side, or the learner itself plays both."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from nervex.envs.array_env import ArrayEngine, ArrayEnv
from nervex.envs.env.base_env import BaseEnv, BaseEnvInfo
from nervex.envs.two_sided import ITSELF, TwoSidedEnv
from nervex.utils.errors import ConfigError, unknown_name
from nervex.utils.import_helper import load_attribute

RESULTS = ('losses', 'draws', 'wins')


class Rivals:
    """
    Overview:
        Who plays the other side; here one player by rule. Whoever chooses among several overrides the methods.
    Arguments:
        - name (:obj:`str`): one of the game's ``players``, or ``module:function`` of a user
    """

    def __init__(self, name: str = 'random') -> None:
        self.name = name
        self.duels: weakref.WeakSet[Duel] = weakref.WeakSet()  # those that ask here

    def choose(self, count: int) -> Sequence[str]:
        """Whom the next ``count`` games are against."""
        return [self.name] * count

    def act(
        self, name: str, game: TwoSidedEnv, rows: np.ndarray, sides: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """The actions of that player in these rows, in which it has these sides."""
        player = game.players.get(name) or (load_attribute(name) if ':' in name else None)
        if player is None:
            raise ConfigError([f'env.opponent: {unknown_name("player", name, game.players)}; or name a checkpoint'])
        return player(game, rows, sides, rng)

    def ended(self, names: Sequence[str], results: Sequence[str]) -> None:
        """Told how games ended for the learner: 'wins', 'draws' or 'losses'."""


class OneSide(ArrayEnv):
    """
    Overview:
        What a game of two sides shows to a policy that sees one of them at a time, ``side`` of each row.
    Arguments:
        - game (:obj:`TwoSidedEnv`): the games
    """

    def __init__(self, game: TwoSidedEnv) -> None:
        super().__init__(game._cfg, game.num)
        self.game, self.limit, self.side = game, game.limit, np.zeros(game.num, np.int64)

    def seen(self) -> dict[str, np.ndarray]:
        """What these sides see."""
        return self.game.view(np.arange(self.num), self.side)

    def info(self) -> BaseEnvInfo:
        """That of one side."""
        return self.game.info()._replace(agent_num=1, sides=1)

    def render(self) -> Any:
        """The picture of the first game."""
        return self.game.render()

    @property
    def render_fps(self) -> float | None:
        """Pictures a second of the game."""
        return getattr(self.game, 'render_fps', None)

    def enable_save_replay(self, replay_path: str) -> None:
        """Save a video of every following game, if the game draws itself."""
        if type(self.game).render is BaseEnv.render:
            self.game.enable_save_replay(replay_path)  # says that it does not
        super().enable_save_replay(replay_path)

    def close(self) -> None:
        """Free what is held; may be called twice."""
        self.game.close()

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.game!r})'


class BothSides(OneSide):
    """
    Overview:
        A game whose sides move in turn as an env of one player who plays both. Each step is that of the side to move,
        sees what it sees and is paid what it is paid; then the other side is to move. What follows a step is good for
        the other side, so that returns alternate in sign: a policy learns here with a negative discount factor. All
        moves of a game become samples. RuntimeError where sides do not alternate, or rewards are not opposite.
    """

    def begin(self, which: np.ndarray, generators: list[np.random.Generator]) -> None:
        """Begin games."""
        self.game.begin(which, generators)
        self._turn(which)

    def _turn(self, rows: np.ndarray) -> None:
        turns = self.game.turns()[rows]
        if (turns.sum(1) != 1).any():
            raise RuntimeError(f"{self.game!r}: both sides move at once, which env.opponent 'self' does not know")
        self.side[rows] = turns.argmax(1)

    def act(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One move in each game."""
        rows, side = np.arange(self.num), self.side.copy()
        joint = np.zeros((self.num, 2, *np.shape(actions)[1:]), np.int64)
        joint[rows, side] = actions
        reward, over = self.game.move(rows, joint)
        self._turn(rows[~over])
        if (self.side == side)[~over].any() or reward.sum(1).any():
            text = 'its sides do not alternate' if not reward.sum(1).any() else 'rewards of the sides are not opposite'
            raise RuntimeError(f"{self.game!r}: {text}, so that env.opponent 'self' would learn wrong returns")
        return reward[rows, side], over


class Duel(OneSide):
    """
    Overview:
        One side of each of the games, for a policy with action masks. Where sides move in turn, a step is the own move
        and what the opponent then does, until the own side is to move again; a game that the opponent ends, ends with
        the reward of that. All rows that meet the same opponent are one batch for it. The own side changes from game to
        game. The last info of an episode has ``win`` and ``draw``, each 0 or 1.
    Arguments:
        - game (:obj:`TwoSidedEnv`): the games
        - rivals (:obj:`Rivals`): the opponents; their state is saved by whoever made them
    """

    state_constants = ('rivals', '_joint')

    def __init__(self, game: TwoSidedEnv, rivals: Rivals) -> None:
        super().__init__(game)
        rivals.duels.add(self)
        self.rivals = rivals
        self._joint = (self.num, 2, *game.parts)  # shape of all actions
        self._games, self._first = (np.zeros(self.num, np.int64) for _ in range(2))
        self._first += np.arange(self.num)
        self._who = np.zeros(self.num, np.int64)  # places in ``_names``
        self._names: list[str] = []
        self._totals = np.zeros((self.num, 2))
        self._rng = np.random.default_rng()  # of the opponents

    # ---- the ArrayEnv interface
    def begin(self, which: np.ndarray, generators: list[np.random.Generator]) -> None:
        """Begin games; where the opponent moves first, it does."""
        if len(which) == self.num:
            self._rng = np.random.default_rng(int(generators[0].integers(2**63)))
        while len(which):
            self.game.begin(which, generators)
            self.game.fresh[which] = True
            self.side[which] = (self._first[which] + self._games[which]) % 2
            self._games[which] += 1
            self._totals[which] = 0
            self._who[which] = [self._place(name) for name in self.rivals.choose(len(which))]
            over = self._wait(which, np.zeros(self._joint, np.int64), np.zeros(self.num))
            which = which[over]  # ended before the own side was to move: another game

    def act(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The own moves, and those of the opponents up to the next one."""
        rows, joint = np.arange(self.num), np.zeros(self._joint, np.int64)
        joint[rows, self.side] = np.reshape(actions, (self.num, *self.game.parts))
        at_once = self.game.turns()[rows, 1 - self.side].nonzero()[0]
        self._play(at_once, joint)
        paid = np.zeros(self.num)
        over = self._move(rows, joint, paid)
        over[~over] = self._wait(rows[~over], joint, paid)
        if over.any():
            ended = over.nonzero()[0]
            names = [self._names[k] for k in self._who[ended].tolist()]
            self.rivals.ended(names, [RESULTS[k] for k in (self._signs()[ended] + 1).tolist()])
        return paid.astype(np.float32), over

    def last_info(self) -> dict[str, np.ndarray]:
        """Who has won."""
        signs = self._signs()
        return {'win': (signs > 0).astype(np.float64), 'draw': (signs == 0).astype(np.float64)}

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        """Seed the games; sides begin anew, too, by the seed."""
        super().seed(seed, dynamic_seed)
        self._first, self._games = np.arange(self.num) + seed, np.zeros(self.num, np.int64)

    @property
    def met(self) -> set[str]:
        """Whom the present games are against."""
        return {self._names[k] for k in self._who.tolist()} if self._names else set()

    # ---- moves
    def _signs(self) -> np.ndarray:
        """1 where the own side has won, 0 for a draw, -1 where it has lost."""
        rows = np.arange(self.num)
        return np.sign(self._totals[rows, self.side] - self._totals[rows, 1 - self.side]).astype(np.int64)

    def _wait(self, rows: np.ndarray, joint: np.ndarray, paid: np.ndarray) -> np.ndarray:
        """Let opponents move until the own side of each of these rows is to move; answers whose games are over then."""
        over, left = np.zeros(self.num, bool), rows
        while True:
            left = left[~self.game.turns()[left, self.side[left]] & ~over[left]]
            if not len(left):
                return over[rows]
            self._play(left, joint)
            over[left] = self._move(left, joint, paid)

    def _move(self, rows: np.ndarray, joint: np.ndarray, paid: np.ndarray) -> np.ndarray:
        reward, over = self.game.move(rows, joint[rows])
        self._totals[rows] += reward
        paid[rows] += reward[np.arange(len(rows)), self.side[rows]]
        return over

    def _play(self, rows: np.ndarray, joint: np.ndarray) -> None:
        """Put the opponents' actions in these rows."""
        who = self._who[rows]
        for k in np.unique(who).tolist():
            mine = rows[who == k]
            sides = 1 - self.side[mine]
            chosen = self.rivals.act(self._names[k], self.game, mine, sides, self._rng)
            joint[mine, sides] = np.reshape(chosen, (len(mine), *self.game.parts))

    def _place(self, name: str) -> int:
        if name not in self._names:
            self._names.append(name)
        return self._names.index(name)


class DuelEngine(ArrayEngine):
    """Duels as one vectorised env: seeds count for the sides, too."""

    env: Duel | BothSides

    def start(self, seeds: list[int | None]) -> Any:
        """Begin all episodes."""
        if seeds[0] is not None:
            self.env.seed(seeds[0])
        return super().start(seeds)


class Duels:
    """
    Overview:
        An ``env_fn`` that makes duels of a class of games.
    Arguments:
        - game (:obj:`type[TwoSidedEnv]`): the class
        - rivals (:obj:`Rivals | None`): the opponents; None: the player by rule that a config names as ``opponent``, or
          the learner itself
    """

    def __init__(self, game: type[TwoSidedEnv], rivals: Rivals | None = None) -> None:
        self.game, self.rivals = game, rivals

    def __call__(self, cfg: dict, num: int = 1) -> Duel | BothSides:
        made = self.game(cfg, num)  # type: ignore[call-arg]
        if self.rivals is None and made._cfg.opponent == ITSELF:
            return BothSides(made)
        return Duel(made, self.rivals or Rivals(made._cfg.opponent))

    def create_vector_env(self, cfgs: list[dict]) -> DuelEngine:
        """One vectorised env for all of these (equal) configs."""
        return DuelEngine(self(cfgs[0], len(cfgs)))

    def __repr__(self) -> str:
        return repr(self.game)
