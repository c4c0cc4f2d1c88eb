"""Arena mode: policies and players by rule against each other; and a person against one of them."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from nervex.envs import Rivals, TwoSidedEnv
from nervex.envs.env.base_env import get_env_cls
from nervex.envs.spaces import MASK
from nervex.league import elo_interval, fit_elo
from nervex.run.folder import config_beside
from nervex.run.launch import Passed, prepare_launch
from nervex.run.opponents import Opponents
from nervex.utils import ConfigError


@dataclass(frozen=True)
class ArenaResult:
    """
    Overview:
        Who beat whom.
    Shapes:
        - wins, draws (:obj:`np.ndarray`): :math:`(N, N)`, games that row won against column, and that nobody won
        - elo, low, high (:obj:`np.ndarray`): :math:`(N, )`, ratings with mean 0 and their 95 % confidence intervals
        - different (:obj:`int`): games of the pair with the fewest that are not the same move for move
    """

    names: list[str]
    wins: np.ndarray
    draws: np.ndarray
    elo: np.ndarray
    low: np.ndarray
    high: np.ndarray
    different: int

    def table(self) -> str:
        """The cross table: wins-draws-losses of the row's player, and ratings."""
        cells = [['', *(f'{k + 1}' for k in range(len(self.names))), 'Elo', '95 %']]
        for i, name in enumerate(self.names):
            games = [
                '-' if i == j else f'{self.wins[i, j]}-{self.draws[i, j]}-{self.wins[j, i]}'
                for j in range(len(self.names))
            ]
            ratings = [f'{self.elo[i]:+.0f}', f'{self.low[i]:+.0f} to {self.high[i]:+.0f}']
            cells.append([f'{i + 1} {name}', *games, *ratings])
        widths = [max(map(len, column)) for column in zip(*cells)]
        return '\n'.join('  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells)


def arena(
    players: Sequence[str],
    n_episode: int = 100,
    seed: int = 0,
    cfg: str | dict | None = None,
    overrides: tuple[str, ...] = (),
    trust: bool = False,
    told: Callable[[str], Any] | None = None,
) -> ArenaResult:
    """
    Overview:
        Every player against every other one, each of them on both sides equally often.
    Arguments:
        - players (:obj:`Sequence[str]`): checkpoints, folders of runs, players by rule of the game, ``module:function``
        - n_episode (:obj:`int`): games of each pair
        - cfg (:obj:`str | dict | None`): whose ``env`` section names the game; None: that of the first run among them
        - told (:obj:`Callable | None`): gets a line about each pair that has played
    """
    if len(players) < 2:
        raise ConfigError([f'arena: got {len(players)} players, must be at least 2: checkpoints, runs, or names'])
    found = next((path for path in players if os.path.exists(path)), None)
    if cfg is None and found is None:
        raise ConfigError(
            ['arena: no player is a run or its checkpoint, which would name the game; give a config (-c)']
        )
    game, env_cfg = game_of(config_beside(found or '', trust) if cfg is None else cfg, overrides)
    complete = game.complete_cfg(env_cfg)
    rivals = [Opponents(game, name, complete.opponent_acts, complete.opponent_eps) for name in players]
    for one in rivals:
        one.check(env_cfg)
    names, num = _labels(players), len(players)
    wins, draws, different = np.zeros((num, num), int), np.zeros((num, num), int), n_episode
    pairs = list(itertools.combinations(range(num), 2))
    for done, (i, j) in enumerate(pairs, 1):
        rng = np.random.default_rng([seed, i, j])
        results, distinct = play(game, env_cfg, (rivals[i], rivals[j]), n_episode, rng)
        wins[i, j], wins[j, i] = (results > 0).sum(), (results < 0).sum()
        draws[i, j] = draws[j, i] = (results == 0).sum()
        different = min(different, distinct)
        if told is not None:
            score = f'{wins[i, j]} won, {draws[i, j]} drawn, {wins[j, i]} lost'
            told(f'pair {done} of {len(pairs)}: {names[i]} against {names[j]}: {score}')
    scores = wins + draws / 2
    low, high = elo_interval(wins, draws, np.random.default_rng(seed))
    return ArenaResult(names, wins, draws, fit_elo(scores, wins + wins.T + draws), low, high, different)


def game_of(cfg: str | dict, overrides: tuple[str, ...] = ()) -> tuple[type[TwoSidedEnv], dict]:
    """The class of the game in a config, and the settings of it, with players that are greedy but for the overrides."""
    resolved = prepare_launch(cfg, 0, Passed(), overrides, collects=False).cfg
    game = get_env_cls(resolved.env)
    if getattr(game, 'sides', 1) != 2:
        raise ConfigError([f'env.env_type: {getattr(game, "__name__", game)} has one side, so that nobody can be met'])
    usual = {'opponent_acts': 'greedy', 'opponent_eps': 0.0}  # whatever the run was trained with
    asked = {text.partition('=')[0] for text in overrides}
    return game, {**resolved.env, **{key: value for key, value in usual.items() if f'env.{key}' not in asked}}


def play(
    game_class: type[TwoSidedEnv],
    cfg: dict,
    players: tuple[Rivals, Rivals],
    games: int,
    rng: np.random.Generator,
    over: Callable[[TwoSidedEnv, int], Any] | None = None,
) -> tuple[np.ndarray, int]:
    """
    Overview:
        Games of two players, who change sides from game to game.
    Arguments:
        - over (:obj:`Callable | None`): told of the game and the first player's result, where one is played at a time
    Returns:
        - results (:obj:`np.ndarray`): (games, ), 1, 0 or -1: won, drawn or lost by the first of them
        - different (:obj:`int`): games that are not the same move for move
    """
    results: list[np.ndarray] = []
    seen: set[bytes] = set()
    rows_at_once = game_class.at_once if over is None else 1
    for start in range(0, games, rows_at_once):
        num = min(rows_at_once, games - start)
        with contextlib.closing(game_class(cfg, num)) as game:  # type: ignore[call-arg]
            rows = np.arange(num)
            game.begin(rows, list(rng.spawn(num)))
            side, totals, moves = (start + rows) % 2, np.zeros((num, 2)), []
            memories: list[Any] = [({}, np.ones(num, bool)) for _ in players]
            for _ in range(game.limit):
                joint, turns = np.full((num, 2, *game.parts), -1), game.turns()
                for player, own, memory in zip(players, (side, 1 - side), memories):
                    mine = rows[turns[rows, own[rows]]]
                    game.memory, game.fresh = memory  # each its own
                    if len(mine):
                        chosen = player.act(player.name, game, mine, own[mine], rng)
                        joint[mine, own[mine]] = np.reshape(chosen, (len(mine), *game.parts))
                paid, ended = game.move(rows, joint[rows])
                totals[rows] += paid
                moves.append(joint.reshape(num, -1))
                rows = rows[~ended]
                if not len(rows):
                    break
            every = np.arange(num)
            results.append(np.sign(totals[every, side] - totals[every, 1 - side]).astype(int))
            seen.update(one.tobytes() for one in np.concatenate([side[:, None], *moves], 1))
            if over is not None:
                over(game, int(results[-1][0]))
    return np.concatenate(results), len(seen)


class Human(Rivals):
    """A person at the terminal, for games that show themselves as text."""

    def __init__(self) -> None:
        super().__init__('human')

    def act(
        self, name: str, game: TwoSidedEnv, rows: np.ndarray, sides: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Show each board, and ask for an action until it is legal."""
        actions = []
        for row, side in zip(rows.tolist(), sides.tolist()):
            legal = np.flatnonzero(game.view(np.array([row]), np.array([side]))[MASK][0]).tolist()
            click.echo(f'\n{game.picture(row)}\n')
            question = f'you are {"XO"[side]}; your move ({", ".join(map(str, legal))})'
            while (text := click.prompt(question).strip()) not in map(str, legal):
                click.echo(f'{text!r} is no legal move')
            actions.append(int(text))
        return np.array(actions)


def play_human(
    cfg: str | dict, load_path: str, n_episode: int = 1, seed: int = 0, overrides: tuple[str, ...] = ()
) -> np.ndarray:
    """A trained policy against a person at the terminal: the policy's results, 1, 0 or -1 a game."""
    game, env_cfg = game_of(cfg, overrides)
    if game.picture is TwoSidedEnv.picture:
        text = (
            f"got 'human', but {game.__name__} does not show itself as text; take a game that does, or write picture()"
        )
        raise ConfigError([f'--opponent: {text}'])
    policy = Opponents(game, load_path, game.complete_cfg(env_cfg).opponent_acts)
    policy.check(env_cfg)

    def over(ended: TwoSidedEnv, result: int) -> None:
        click.echo(f'\n{ended.picture(0)}\n\n{("you win", "a draw", "you lose")[result + 1]}')

    return play(game, env_cfg, (policy, Human()), n_episode, np.random.default_rng(seed), over)[0]


def _labels(players: Sequence[str]) -> list[str]:
    """Names as short as they can be."""
    short = [os.path.basename(os.path.normpath(name)) for name in players]
    return [name if short.count(name) == 1 else full for name, full in zip(short, players)]
