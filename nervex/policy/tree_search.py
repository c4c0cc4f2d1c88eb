"""Search by a learned policy and value: Gumbel AlphaZero over many games at once, in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

#: positions -> the logits of all actions (N, A) and the value for the side to move (N, )
Evaluate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
_ABSENT = -1


class GameRules(Protocol):
    """
    Overview:
        The rules of a game of two sides that move in turn and of which one wins what the other loses, for N positions
        at once in NumPy. A position is a row of an array, as the side to move sees it; what is in it is the game's own
        affair. An env names the object in ``search_rules``, as 'module:object'.
    """

    def positions(self, obs: np.ndarray) -> np.ndarray:
        """What the side to move sees -> the whole state, in a new array; ValueError where that is not to be seen."""
        ...

    def observe(self, positions: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """What the side to move sees: float32 (N, \\*shape), as from the env."""
        ...

    def legal(self, positions: np.ndarray) -> np.ndarray:
        """Which actions may be taken: bool (N, A)."""
        ...

    def play(self, positions: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """New positions after a move each, whether it has won the game, and whether the game is over: bool (N, )."""
        ...

    def symmetries(self, shape: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
        """
        Pairs (p, q) under which the game is the same, without the identity: where an observation of this shape, flat,
        is x and a policy of it y, x[p] is another one and y[q] its policy. An empty list if there are none.
        """
        ...


@dataclass(frozen=True)
class Found:
    """
    Overview:
        What a search says of N positions.
    Shapes:
        - action, value (:obj:`np.ndarray`): :math:`(N, )`, the move to make, and what the improved policy expects
        - policy, visits (:obj:`np.ndarray`): :math:`(N, A)`, the improved policy, and how often actions were tried
    """

    action: np.ndarray
    policy: np.ndarray
    value: np.ndarray
    visits: np.ndarray


class TreeSearch:
    """
    Overview:
        At the root, sequential halving over the actions with the greatest logit + noise, by logit + noise + sigma(q);
        below, the action that brings visits nearest to the improved policy softmax(logit + sigma(q)), where sigma(q) =
        ``c_scale`` (``c_visit`` + most visits) q, and an action without visits has the value that the others suggest.
        Every simulation goes down all trees and evaluates their leaves as one batch; ends of games have their exact
        value. Paper: Danihelka et al. 2022, Policy improvement by planning with Gumbel.
    Arguments:
        - simulations (:obj:`int`): positions that a search adds to its tree
        - considered (:obj:`int`): actions at the root that are tried at most
    """

    def __init__(
        self,
        rules: GameRules,
        simulations: int,
        considered: int = 16,
        c_visit: float = 50.0,
        c_scale: float = 0.1,
    ) -> None:
        self._rules, self._simulations = rules, simulations
        self._considered, self._c_visit, self._c_scale = considered, c_visit, c_scale
        self._plan = np.array([halving_plan(k, simulations) for k in range(considered + 1)])

    def __call__(self, positions: np.ndarray, evaluate: Evaluate, noise: np.ndarray | None = None) -> Found:
        """
        Overview:
            Search from these positions, at which no game is over.
        Arguments:
            - evaluate (:obj:`Callable`): the learned policy and value
            - noise (:obj:`np.ndarray | None`): (N, A) Gumbel numbers, so that actions are drawn by the improved policy;
              None: the best ones
        """
        trees = _Trees(self._rules, evaluate, positions, self._simulations)
        logits = trees.logits[:, 0] if noise is None else trees.logits[:, 0] + noise
        plan = self._plan[np.minimum(np.isfinite(logits).sum(1), self._considered)]
        for simulation in range(self._simulations):
            scores = logits + self._sigma(trees, trees.every, 0)
            due = trees.visits[:, 0] == plan[:, simulation, None]
            trees.grow(np.where(due, scores, -np.inf).argmax(1), simulation + 1, self._inner)
        visits, bonus = trees.visits[:, 0], self._sigma(trees, trees.every, 0)
        policy = softmax(trees.logits[:, 0] + bonus)
        most = visits == visits.max(1, keepdims=True)
        action = np.where(most, logits + bonus, -np.inf).argmax(1)
        return Found(action, policy, (policy * trees.values_of(trees.every, 0)).sum(1), visits)

    def _sigma(self, trees: _Trees, rows: np.ndarray, nodes: np.ndarray | int) -> np.ndarray:
        most = trees.visits[rows, nodes].max(1, keepdims=True)
        return self._c_scale * (self._c_visit + most) * trees.values_of(rows, nodes)

    def _inner(self, trees: _Trees, rows: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """The actions at inner nodes."""
        visits, logits = trees.visits[rows, nodes], trees.logits[rows, nodes]
        ahead = softmax(logits + self._sigma(trees, rows, nodes)) - visits / (1 + visits.sum(1, keepdims=True))
        return np.where(np.isfinite(logits), ahead, -np.inf).argmax(1)


class _Trees:
    """
    Overview:
        A tree for each of B games; node 0 is the root, node k came with simulation k. Values are those of the side to
        move at a node; ``sums`` those of its actions.
    """

    def __init__(self, rules: GameRules, evaluate: Evaluate, positions: np.ndarray, simulations: int) -> None:
        self._rules, self._evaluate = rules, evaluate
        num, nodes = len(positions), simulations + 1
        logits, values = self._judged(positions)
        actions, self.every = logits.shape[1], np.arange(num)
        shape = num, nodes, actions
        self.logits, self.priors, self.visits, self.sums = (np.zeros(shape, np.float32) for _ in range(4))
        self.children = np.full(shape, _ABSENT)
        self.values, self.over = np.zeros((num, nodes), np.float32), np.zeros((num, nodes), bool)
        self.positions = np.zeros((num, nodes, *positions.shape[1:]), positions.dtype)
        self.positions[:, 0], self.logits[:, 0], self.values[:, 0] = positions, logits, values
        self.priors[:, 0] = softmax(logits)

    def _judged(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The logits, minus infinity where an action is illegal, and the values within those of ends."""
        logits, values = self._evaluate(positions)
        return np.where(self._rules.legal(positions), logits, -np.inf), values.clip(-1, 1)

    def values_of(self, rows: np.ndarray, nodes: np.ndarray | int) -> np.ndarray:
        """
        The mean value of each action of these nodes; where there is none, that of the node, mixed of its own and those
        of the tried actions by their probabilities.
        """
        visits = self.visits[rows, nodes]
        tried, total = visits > 0, visits.sum(1)
        means = self.sums[rows, nodes] / np.maximum(visits, 1)
        weights = self.priors[rows, nodes] * tried
        others = (weights * means).sum(1) / np.maximum(weights.sum(1), 1e-9)
        mixed = (self.values[rows, nodes] + total * others) / (1 + total)
        return np.where(tried, means, mixed[:, None])

    def grow(self, actions: np.ndarray, new: int, choose: Callable[..., np.ndarray]) -> None:
        """One simulation: down by ``actions`` at the root and then by ``choose``, node ``new``, and the way back."""
        rows, nodes, way = self.every, np.zeros_like(self.every), []
        leaves, parents, moves, depths = (np.zeros_like(rows) for _ in range(4))
        while True:
            way.append((rows, nodes, actions))
            depths[rows] += 1
            leaves[rows] = children = self.children[rows, nodes, actions]
            parents[rows], moves[rows] = nodes, actions
            on = (children != _ABSENT) & ~self.over[rows, children]
            if not on.any():
                break
            rows, nodes = rows[on], children[on]
            actions = choose(self, rows, nodes)
        fresh = np.flatnonzero(leaves == _ABSENT)
        if len(fresh):
            self._expand(fresh, parents[fresh], moves[fresh], new)
            leaves[fresh] = new
        values = self.values[self.every, leaves]
        for level, (rows, nodes, actions) in enumerate(way):
            self.visits[rows, nodes, actions] += 1
            self.sums[rows, nodes, actions] += np.where((depths[rows] - level) % 2, -values[rows], values[rows])

    def _expand(self, rows: np.ndarray, nodes: np.ndarray, actions: np.ndarray, new: int) -> None:
        """Node ``new`` of these trees: what an action of a node leads to."""
        positions, won, over = self._rules.play(self.positions[rows, nodes], actions)
        self.children[rows, nodes, actions] = new
        self.positions[rows, new], self.over[rows, new] = positions, over
        self.values[rows, new] = -won.astype(np.float32)  # for who is to move then; 0 is a draw
        if not over.all():
            on = rows[~over]
            logits, self.values[on, new] = self._judged(positions[~over])
            self.logits[on, new], self.priors[on, new] = logits, softmax(logits)


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities over the last axis; 0 where a logit is minus infinity."""
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def halving_plan(actions: int, simulations: int) -> list[int]:
    """
    Overview:
        Sequential halving as numbers of visits: simulation k goes to the best of the actions that have ``plan[k]`` of
        them. All actions are tried equally often, then the better half of them, until two are left.
    """
    rounds = max(1, int(np.ceil(np.log2(max(actions, 1)))))
    plan: list[int] = []
    visits, left = [0] * max(actions, 1), max(actions, 1)
    while len(plan) < simulations:
        for _ in range(max(1, simulations // (rounds * left))):
            plan += visits[:left]
            visits[:left] = [count + 1 for count in visits[:left]]
        left = max(min(2, actions), left // 2)
    return plan[:simulations]
