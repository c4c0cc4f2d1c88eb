"""What teams see of battles: SMAC's observations, states and rewards, for many battles at once."""

from __future__ import annotations

import numpy as np

from app_zoo.smac.envs.battle import EAST, FIELD, FIRST_TARGET, NORTH, SIGHT, SOUTH, WEST, Battles, Outcome

WIN, KILL, MOST = 200.0, 10.0, 20.0  # shaped reward: of a victory, of an enemy that falls; the sum of a perfect episode


class View:
    """
    Overview:
        Columns of ``Battles`` as SMAC orders them. An observation has four flags of possible moves, then every enemy
        (may be chosen, distance, direction x and y, health, [shield, kind]), every comrade alike, and the own figures;
        who is dead or out of sight is all zeros. The state has all units without distances and the last actions.
    Interfaces:
        obs, state, reward, obs_dim, state_dim
    """

    def __init__(self, battles: Battles) -> None:
        self._b = battles
        units, kinds = battles.map.allies + battles.map.enemies, battles.map.kinds
        kind = (
            np.eye(len(kinds))[[kinds.index(unit) for unit in units]] if len(kinds) > 1 else np.zeros((len(units), 0))
        )
        self._kind = kind.astype(np.float32)
        self._shields = battles.map.shields
        self._shield_unit = np.maximum(battles.max_shield, 1.0)
        allies = battles.allies
        self._others = np.array([[k for k in range(allies) if k != me] for me in range(allies)], int).reshape(
            allies, -1
        )
        self._healer = battles.heals[:allies] > 0
        extra = self._shields + self._kind.shape[1]
        #: where the comrades stand in an observation
        self.comrades = slice(4 + (5 + extra) * battles.enemies, 4 + (5 + extra) * (battles.size - 1))
        self.obs_dim = 4 + (5 + extra) * (battles.size - 1) + 1 + extra
        self.state_dim = (4 + extra) * allies + (3 + extra) * battles.enemies + allies * battles.action_num
        figures = battles.enemies * KILL + WIN + (battles.max_health + battles.max_shield)[allies:].sum()
        self._reward_unit = MOST / figures

    def obs(self, mask: np.ndarray) -> np.ndarray:
        """
        Shapes:
            - mask (:obj:`np.ndarray`): :math:`(num, allies, actions)` of ``Battles.available``
            - obs (:obj:`np.ndarray`): :math:`(num, allies, obs_dim)` float32
        """
        b, n = self._b, self._b.allies
        alive = b.alive
        dx = (b.x[:, None, :] - b.x[:, :n, None]) / SIGHT
        dy = (b.y[:, None, :] - b.y[:, :n, None]) / SIGHT
        distance = np.sqrt(dx * dx + dy * dy)
        seen = ((distance < 1) & alive[:, :n, None] & alive[:, None, :]).astype(np.float32)
        width = 5 + self._shields + self._kind.shape[1]
        units = np.empty((b.num, n, b.size, width), np.float32)
        units[..., 0], units[..., 1], units[..., 2], units[..., 3] = 1.0, distance, dx, dy
        units[..., 4:] = self._figures()[:, None]
        units *= seen[..., None]
        chosen = mask[:, :, FIRST_TARGET : FIRST_TARGET + b.enemies] & ~self._healer[None, :, None]
        units[:, :, n:, 0] = chosen
        out = np.empty((b.num, n, self.obs_dim), np.float32)
        out[..., :4] = mask[..., [NORTH, SOUTH, EAST, WEST]]
        place = 4 + b.enemies * width
        out[..., 4:place] = units[:, :, n:].reshape(b.num, n, -1)
        others = units[:, np.arange(n)[:, None], self._others]
        out[..., place : place + (n - 1) * width] = others.reshape(b.num, n, -1)
        out[..., place + (n - 1) * width :] = self._figures()[:, :n] * alive[:, :n, None]
        return out

    def _figures(self) -> np.ndarray:
        """Health, [shield, kind] of all units: (num, units, k)."""
        b = self._b
        parts = [(b.health / b.max_health)[..., None]]
        if self._shields:
            parts.append((b.shield / self._shield_unit)[..., None])
        parts.append(np.broadcast_to(self._kind, (b.num, *self._kind.shape)))
        return np.concatenate(parts, 2, dtype=np.float32)

    def state(self, last_actions: np.ndarray) -> np.ndarray:
        """
        Shapes:
            - last_actions (:obj:`np.ndarray`): :math:`(num, allies)` int; -1 before the first step
            - state (:obj:`np.ndarray`): :math:`(num, state_dim)` float32
        """
        b, n = self._b, self._b.allies
        figures = self._figures()
        ready = np.where(b.heals > 0, b.energy / 200.0, np.maximum(b.wait, 0.0) / np.maximum(b.cooldown, 1e-9))
        x, y = (b.x - FIELD / 2) / FIELD, (b.y - FIELD / 2) / FIELD
        both = np.concatenate([figures[..., :1], x[..., None], y[..., None], figures[..., 1:]], 2)
        both *= b.alive[..., None]
        friends = np.concatenate([both[:, :n, :1], (ready * b.alive)[:, :n, None], both[:, :n, 1:]], 2)
        taken = np.zeros((b.num, n, b.action_num), np.float32)
        battle, ally = np.nonzero(last_actions >= 0)
        taken[battle, ally, last_actions[battle, ally]] = 1.0
        parts = [part.reshape(b.num, -1) for part in (friends, both[:, n:], taken)]
        return np.concatenate(parts, 1).astype(np.float32)

    def reward(self, outcome: Outcome) -> np.ndarray:
        """Damage and kills of enemies and the victory, scaled so that an episode gives 20 at most: (num, ) float32."""
        points = outcome.damage + KILL * outcome.kills + WIN * outcome.won
        return (points * self._reward_unit).astype(np.float32)
