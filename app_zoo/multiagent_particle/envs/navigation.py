"""
Cooperative navigation for many teams at once, in NumPy: N agents are to cover N landmarks and not to touch each other.

The dynamics are those of ``simple_spread`` of MPE: a push of 5 in the chosen direction, a quarter of the speed lost a
step of 0.1 s, soft contact forces between agents of radius 0.15. The team loses the distance of every landmark to its
nearest agent, and each agent 1 for everybody whom it touches; ``local_ratio`` weighs the latter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nervex.envs.env.plain_state import encode, set_attributes

DT, DAMPING, PUSH = 0.1, 0.25, 5.0
RADIUS, CONTACT_FORCE, CONTACT_MARGIN = 0.15, 1e2, 1e-3
_DIRECTIONS = np.array([[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]], np.float64) * PUSH


class Navigation:
    """
    Overview:
        ``num`` teams; all state in arrays: ``place`` and ``speed`` (num, N, 2), ``marks`` (num, N, 2).
    Arguments:
        - agents (:obj:`int`): N, agents and landmarks of a team
        - local_ratio (:obj:`float`): weight of an agent's own collisions beside the distances of the team, in [0, 1]
    Interfaces:
        reset, step, obs, touching
    """

    def __init__(self, num: int, agents: int = 3, local_ratio: float = 0.5) -> None:
        if agents < 1:
            raise ValueError(f'cooperative navigation needs at least one agent, got {agents}')
        if not 0 <= local_ratio <= 1:
            raise ValueError(f'local_ratio is a weight in [0, 1], got {local_ratio}')
        self.num, self.agents, self.local_ratio = num, agents, local_ratio
        self.place, self.speed, self.marks = (np.zeros((num, agents, 2)) for _ in range(3))
        self.obs_dim = 4 + 2 * agents + 4 * (agents - 1)
        self._others = np.array([[k for k in range(agents) if k != me] for me in range(agents)], int).reshape(
            agents, -1
        )
        self._self = np.eye(agents, dtype=bool)

    def reset(self, which: np.ndarray, generators: list[np.random.Generator]) -> None:
        """Begin the episodes ``which`` (ids) anew; each draws its places from its own generator."""
        for team in which:
            drawn = generators[team].uniform(-1, 1, (2 * self.agents, 2))
            self.place[team], self.marks[team] = drawn[: self.agents], drawn[self.agents :]
        self.speed[which] = 0.0

    def state_dict(self) -> dict[str, Any]:
        """Where everything is, in the words of JSON."""
        return encode({name: getattr(self, name) for name in ('place', 'speed', 'marks')}, set())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        set_attributes(self, state)

    def step(self, actions: np.ndarray) -> np.ndarray:
        """
        Overview:
            0.1 s of all teams.
        Shapes:
            - actions (:obj:`np.ndarray`): :math:`(num, N)` ints (stay, left, right, down, up), or :math:`(num, N, 2)`
              floats in [-1, 1], a push along each axis
            - reward (:obj:`np.ndarray`): :math:`(num, N)` float64, one an agent
        """
        force = _DIRECTIONS[actions] if actions.dtype.kind in 'iu' else actions * PUSH
        contact = self._contact()
        for other in range(self.agents):  # in this order mpe2 adds them, which matters for the last bit
            force = contact[:, :, other] + force
        self.place += self.speed * DT
        self.speed *= 1 - DAMPING
        self.speed += force * DT
        return self._reward()

    def _contact(self) -> np.ndarray:
        """The force of each agent (last but one axis) on each agent: (num, N, N, 2)."""
        apart = self.place[:, :, None] - self.place[:, None]
        distance = np.sqrt((apart * apart).sum(-1))
        distance[:, self._self] = np.inf
        depth = np.logaddexp(0, -(distance - 2 * RADIUS) / CONTACT_MARGIN) * CONTACT_MARGIN
        return CONTACT_FORCE * apart / distance[..., None] * depth[..., None]

    def touching(self) -> np.ndarray:
        """(num, N, N) bool: who touches whom."""
        apart = self.place[:, :, None] - self.place[:, None]
        return (np.sqrt((apart * apart).sum(-1)) < 2 * RADIUS) & ~self._self

    def distances(self) -> np.ndarray:
        """(num, N): of each landmark to its nearest agent."""
        apart = self.place[:, :, None] - self.marks[:, None]
        return np.sqrt((apart * apart).sum(-1)).min(1)

    def _reward(self) -> np.ndarray:
        team = np.zeros(self.num)
        for distance in self.distances().T:
            team -= distance
        own = -self.touching().sum(2).astype(np.float64)
        return team[:, None] * (1 - self.local_ratio) + own * self.local_ratio

    def obs(self) -> np.ndarray:
        """What each agent sees, (num, N, obs_dim) float32: own speed and place, landmarks and comrades from there, two
        zeros for each comrade (it could say something in other tasks)."""
        out = np.zeros((self.num, self.agents, self.obs_dim), np.float32)
        end = 4 + 2 * self.agents
        out[..., :2], out[..., 2:4] = self.speed, self.place
        shape = (self.num, self.agents, -1)
        out[..., 4:end] = (self.marks[:, None] - self.place[:, :, None]).reshape(shape)
        comrades = self.place[:, self._others] - self.place[:, :, None]
        out[..., end : end + 2 * (self.agents - 1)] = comrades.reshape(shape)
        return out
