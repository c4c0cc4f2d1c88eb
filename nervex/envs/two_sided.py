"""Games of two sides against each other, in turn or at once: many of them in arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from nervex.envs.array_env import ArrayEnv
from nervex.envs.common import EnvElementInfo
from nervex.envs.env.base_env import BaseEnvInfo
from nervex.envs.spaces import MASK, choices_info, reward_info
from nervex.utils.declare import setting, settings
from nervex.utils.errors import ConfigError

#: the ``opponent`` that says that the learner plays both sides
ITSELF = 'self'

#: a player by rule: (game, rows, the side of each row, generator) -> an action a row
ScriptedPlayer = Callable[['TwoSidedEnv', np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


def random_player(game: TwoSidedEnv, rows: np.ndarray, sides: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A legal action, all of them equally likely."""
    legal = game.view(rows, sides)[MASK]
    return (rng.random(legal.shape) * legal).argmax(1)


class TwoSidedEnv(ArrayEnv):
    """
    Overview:
        ``num`` games of two sides. A subclass writes ``begin``, ``move``, ``view``, ``turns`` and the spaces of one
        side (``seen_shape``, ``action_num``). As an env it shows both sides; a policy that learns plays one of them in
        a ``Duel``, which a run makes of it by itself.
    Shapes:
        - observation: ``observation`` :math:`(2, *)`, ``action_mask`` :math:`(2, n)`, ``to_move`` :math:`(2, )`, of
          which one is True where the sides move in turn, both where they move at once
        - action: :math:`(2, )` ints, or :math:`(2, P)` where an action has P parts; that of a side that is not to move
          means nothing
        - reward: :math:`(2, )`. The side with the greater return has won; equal returns are a draw
    Attributes:
        - seen_shape (:obj:`tuple[int, ...]`), action_num (:obj:`int | tuple[int, ...]`): of one side; several numbers
          where an action has parts: then ``info``, and what ``view`` tells of legal ones, are the game's own
        - players (:obj:`dict[str, ScriptedPlayer]`): players by rule, by the names that ``opponent`` may have
        - search_rules (:obj:`str | None`): the rules of the game for policies that search, as 'module:object', see
          ``nervex.policy.tree_search.GameRules``; None: nobody searches it
        - memory (:obj:`dict[str, Any]`), fresh (:obj:`np.ndarray`): what the opponents of the rows remember, in
          columns, and in which rows there is nothing to remember yet
    """

    config = settings(
        opponent=setting(
            'random',
            'str',
            "who plays the other side: a player of the game, module:function, a checkpoint, a run; 'self': the learner",
        ),
        evaluator_opponent=setting(None, 'str | None', 'the same in evaluations; None: opponent'),
        opponent_acts=setting('greedy', "'greedy' | 'sampled'", 'how an opponent that is a policy chooses actions'),
        opponent_eps=setting(0.0, 'number in [0, 1]', 'and how often it takes any legal one while collecting'),
    )
    sides = 2
    seen_shape: tuple[int, ...]
    action_num: int | tuple[int, ...]
    players: dict[str, ScriptedPlayer] = {'random': random_player}
    search_rules: str | None = None

    def __init__(self, cfg: dict | None = None, num: int = 1) -> None:
        super().__init__(cfg, num)
        self.memory: dict[str, Any] = {}
        self.fresh = np.ones(num, bool)

    at_once = 256  # games that an arena plays at once

    @property
    def parts(self) -> tuple[int, ...]:
        """The further axes of an action: none, or one over its parts."""
        return () if isinstance(self.action_num, int) else (len(self.action_num),)

    @abstractmethod
    def move(self, rows: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One step of these rows by actions (rows, 2, [P]): rewards, float32 (rows, 2), and which games are over."""

    @abstractmethod
    def view(self, rows: np.ndarray, sides: np.ndarray) -> dict[str, np.ndarray]:
        """What one side of each row sees, in new arrays: ``observation`` (rows, *), ``action_mask`` (rows, n)."""

    @abstractmethod
    def turns(self) -> np.ndarray:
        """Which sides are to move: (num, 2) bool."""

    def act(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One step of all rows by actions (num, 2, [P])."""
        return self.move(np.arange(self.num), actions)

    def seen(self) -> dict[str, np.ndarray]:
        """What both sides see."""
        rows = np.arange(self.num)
        both = [self.view(rows, np.full(self.num, side)) for side in (0, 1)]
        return {**{key: np.stack([v[key] for v in both], 1) for key in both[0]}, 'to_move': self.turns()}

    def info(self) -> BaseEnvInfo:
        """The spaces of one side."""
        shapes = {'observation': tuple(self.seen_shape), MASK: (self.action_num,)}
        values = {'observation': reward_info().value, MASK: reward_info(0, 1).value}
        acts = choices_info(self.action_num)
        return BaseEnvInfo(2, EnvElementInfo(shapes, values), acts, reward_info(), sides=2, rules=self.search_rules)

    @classmethod
    def create_evaluator_env_cfg(cls, cfg: dict) -> list[dict]:
        """Those of the collecting envs, but for the opponent, which does not act at random."""
        other = cfg.get('evaluator_opponent')
        if other is None and cfg.get('opponent') == ITSELF:
            raise ConfigError([f"env.evaluator_opponent: missing; with env.opponent '{ITSELF}' it is to be named"])
        changed = {'opponent_eps': 0.0, **({} if other is None else {'opponent': other})}
        return [{**one, **changed} for one in ArrayEnv.create_evaluator_env_cfg(cfg)]

    def picture(self, row: int = 0) -> str:
        """A game as text, for a person who plays."""
        raise NotImplementedError(f'{self!r} cannot show itself as text')

    def __repr__(self) -> str:
        return f'{type(self).__name__}(num={self.num})'
