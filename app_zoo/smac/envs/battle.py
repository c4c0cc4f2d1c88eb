"""
The micro-battle: many small fights between two teams at once, in NumPy, by the rules of StarCraft II's SMAC maps.

A step is eight ticks of 1/16 s. In each tick every unit that was ordered to attack goes to its target until its weapon
reaches it and strikes whenever the weapon is ready; who moves is pushed apart from who stands in the way; damage of a
tick falls on all at once. Shields take damage first and know no armor; they recover by 2 a second after 10 s of peace.
A medivac heals by 9 a second for one energy each 3 of health. Both sides give orders once a step: enemies walk towards
where the allies began and attack the nearest ally within 6 cells that they can hit, healers last; enemy medivacs stay
amid the fighting ones and heal the most hurt.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from app_zoo.smac.envs.units import Map, Unit
from nervex.envs.env.plain_state import encode, set_attributes

TICK_S, TICKS = 1 / 16, 8
FIELD = 32.0  # cells, both ways
SIGHT, SHOOT = 9.0, 6.0  # what an ally sees, and how near a target must be to be chosen
STRIDE = 2.0  # cells that a move order aims at
SHIELD_PEACE_S, SHIELD_PER_S = 10.0, 2.0
ENERGY_PER_S, HEALTH_PER_ENERGY = 0.5625, 3.0
START = np.array([9.0, 23.0])  # x of the two teams
NO_OP, STOP, NORTH, SOUTH, EAST, WEST, FIRST_TARGET = range(7)
_STEP_X = np.array([0, 0, 0, 0, STRIDE, -STRIDE])
_STEP_Y = np.array([0, 0, STRIDE, -STRIDE, 0, 0])
_NONE = -1
_FAR = 1e9
_CLOSER = 0.05  # cells that a unit goes nearer than its weapon needs


class Outcome(NamedTuple):
    """What one step did, a row a battle; ``damage`` to enemies counts health and shield, ``kills`` enemies."""

    damage: np.ndarray
    kills: np.ndarray
    won: np.ndarray
    lost: np.ndarray


class Battles:
    """
    Overview:
        ``num`` battles on one map. Columns are allies, then enemies; all state is in arrays (num, units).
    Arguments:
        - map (:obj:`Map`): who fights whom
        - num (:obj:`int`): how many battles
    Interfaces:
        reset, available, step
    """

    def __init__(self, map: Map, num: int) -> None:
        self.map, self.num = map, num
        units = map.allies + map.enemies
        self.allies, self.enemies = len(map.allies), len(map.enemies)
        self.size = len(units)
        self.target_num = max(self.enemies, self.allies - 1) if _healers(map.allies) else self.enemies
        self.action_num = FIRST_TARGET + self.target_num
        self._read(units)
        shape = (num, self.size)
        self.x, self.y, self.health, self.shield, self.wait, self.energy, self.peace = (
            np.zeros(shape, np.float64) for _ in range(7)
        )
        self.target = np.full(shape, _NONE)  # column of whom each unit attacks or heals
        self._rows = np.arange(num)[:, None]

    def _read(self, units: tuple[Unit, ...]) -> None:
        """The figures of all units as arrays, and what each would do to each other."""

        def column(name: str) -> np.ndarray:
            return np.array([float(getattr(unit, name)) for unit in units])

        self.max_health, self.max_shield, self.cooldown = column('health'), column('shield'), column('cooldown')
        self.heals, self.speed, radius = column('heals'), column('speed'), column('radius')
        self._energy = column('energy')
        armored, flies = column('armored') > 0, column('flies') > 0
        blow = column('damage')[:, None] + column('bonus_armored')[:, None] * armored
        self._blow = column('hits')[:, None] * blow  # to shields
        self._wound = column('hits')[:, None] * np.maximum(blow - column('armor'), 0.0) * (blow > 0)  # to health
        self.reach = column('range')[:, None] + radius[:, None] + radius  # distance at which i strikes j
        foes = (np.arange(self.size) < self.allies)[:, None] != (np.arange(self.size) < self.allies)
        hits = foes & (~flies | (column('shoots_air') > 0)[:, None]) & (self.heals == 0)[:, None]
        mends = ~foes & (self.heals > 0)[:, None] & ~np.eye(self.size, dtype=bool)
        self.may = hits | mends  # whom each unit may choose as a target
        touch = radius[:, None] + radius
        self._touch = np.where((flies[:, None] == flies) & ~np.eye(self.size, dtype=bool), touch, 0.0)
        self._healer = self.heals > 0
        self._enemy_last = np.where(self._healer[: self.allies], 100.0, 0.0)  # enemies choose healers last

    # ---- life
    def reset(self, which: np.ndarray, generators: list[np.random.Generator]) -> None:
        """Begin the battles ``which`` (ids) anew; each draws its places from its own generator."""
        for battle in which:
            draw = generators[battle].uniform(-0.4, 0.4, (2, self.size))
            for first, count, x in ((0, self.allies, START[0]), (self.allies, self.enemies, START[1])):
                place = np.arange(count)
                rows = min(count, 5)
                columns = slice(first, first + count)
                self.x[battle, columns] = x + (place // rows) * 1.5 * np.sign(x - FIELD / 2) + draw[0, columns]
                self.y[battle, columns] = FIELD / 2 + (place % rows - (rows - 1) / 2) * 1.5 + draw[1, columns]
        self.health[which], self.shield[which] = self.max_health, self.max_shield
        self.energy[which] = self._energy
        self.wait[which] = self.peace[which] = 0.0
        self.target[which] = _NONE

    def state_dict(self) -> dict[str, Any]:
        """How the battles stand, in the words of JSON."""
        names = ('x', 'y', 'health', 'shield', 'wait', 'energy', 'peace', 'target')
        return encode({name: getattr(self, name) for name in names}, set())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        set_attributes(self, state)

    @property
    def alive(self) -> np.ndarray:
        """(num, units) bool."""
        return self.health > 0

    def available(self) -> np.ndarray:
        """Which actions each ally may take: (num, allies, actions) bool."""
        mask = np.zeros((self.num, self.allies, self.action_num), bool)
        alive, x, y = self.alive, self.x[:, : self.allies], self.y[:, : self.allies]
        acts = alive[:, : self.allies]
        mask[..., NO_OP] = ~acts
        mask[..., STOP] = acts
        mask[..., NORTH], mask[..., SOUTH] = acts & (y + STRIDE / 2 < FIELD), acts & (y - STRIDE / 2 > 0)
        mask[..., EAST], mask[..., WEST] = acts & (x + STRIDE / 2 < FIELD), acts & (x - STRIDE / 2 > 0)
        near = self.distances() <= SHOOT
        for ally in range(self.allies):
            choice = self.choices(ally)
            reachable = near[:, ally, choice] & alive[:, choice] & self.may[ally, choice]
            mask[:, ally, FIRST_TARGET : FIRST_TARGET + len(choice)] = acts[:, ally, None] & reachable
        return mask

    def choices(self, ally: int) -> np.ndarray:
        """Columns that the target actions of an ally name: the enemies, or for a healer its comrades."""
        if self._healer[ally]:
            return np.array([k for k in range(self.allies) if k != ally])
        return np.arange(self.allies, self.size)

    def distances(self) -> np.ndarray:
        """(num, allies, units): from each ally to everybody, centre to centre."""
        dx = self.x[:, : self.allies, None] - self.x[:, None, :]
        dy = self.y[:, : self.allies, None] - self.y[:, None, :]
        return np.sqrt(dx * dx + dy * dy)

    # ---- a step
    def step(self, actions: np.ndarray) -> Outcome:
        """
        Overview:
            Half a second of all battles. Actions must be available; ended battles are to be reset first.
        Shapes:
            - actions (:obj:`np.ndarray`): :math:`(num, allies)` int; see ``available``
        """
        enemies = slice(self.allies, None)
        before = (self.health + self.shield)[:, enemies]
        stood = self.alive[:, enemies]
        goal_x, goal_y = self._order(actions)
        self._enemies_choose(goal_x, goal_y)
        for _ in range(TICKS):
            self._tick(goal_x, goal_y)
        stands = self.alive
        damage = np.maximum(before - (self.health + self.shield)[:, enemies], 0.0).sum(1)
        kills = (stood & ~stands[:, enemies]).sum(1)
        won = ~stands[:, enemies].any(1)
        return Outcome(damage, kills, won, ~stands[:, : self.allies].any(1) & ~won)

    def _order(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Allies' targets and everybody's goals to walk to."""
        goal_x, goal_y = self.x.copy(), self.y.copy()
        step = np.where(actions < FIRST_TARGET, actions, STOP)
        goal_x[:, : self.allies] = np.clip(goal_x[:, : self.allies] + _STEP_X[step], 0.0, FIELD)
        goal_y[:, : self.allies] = np.clip(goal_y[:, : self.allies] + _STEP_Y[step], 0.0, FIELD)
        aims = actions - FIRST_TARGET
        for ally in range(self.allies):
            choice = self.choices(ally)
            chosen = choice[np.clip(aims[:, ally], 0, len(choice) - 1)]
            self.target[:, ally] = np.where(aims[:, ally] >= 0, chosen, _NONE)
        return goal_x, goal_y

    def _enemies_choose(self, goal_x: np.ndarray, goal_y: np.ndarray) -> None:
        """Enemies attack the nearest ally in reach that they can hit, else they walk to where the allies began."""
        foes = slice(self.allies, None)
        alive = self.alive
        dx = self.x[:, foes, None] - self.x[:, None, : self.allies]
        dy = self.y[:, foes, None] - self.y[:, None, : self.allies]
        distance = np.sqrt(dx * dx + dy * dy)
        barred = np.where(alive[:, None, : self.allies] & self.may[foes, : self.allies], 0.0, _FAR)
        cost = distance + barred + self._enemy_last
        nearest = cost.argmin(2)
        seen = (distance + barred).min(2) <= SHOOT
        self.target[:, foes] = np.where(seen, nearest, _NONE)
        goal_x[:, foes], goal_y[:, foes] = START[0], FIELD / 2
        if self._healer[foes].any():
            self._enemy_healers_choose(goal_x, goal_y)

    def _enemy_healers_choose(self, goal_x: np.ndarray, goal_y: np.ndarray) -> None:
        foes = slice(self.allies, None)
        hurt = np.where(self.alive[:, foes], 1 - self.health[:, foes] / self.max_health[foes], -1.0)
        fighting = np.where(self.alive[:, foes] & ~self._healer[foes], 1.0, 0.0)
        count = np.maximum(fighting.sum(1), 1.0)
        for healer in np.flatnonzero(self._healer[foes]) + self.allies:
            need = np.where(self.may[healer, foes], hurt, -1.0)
            worst = need.argmax(1)
            self.target[:, healer] = np.where(need.max(1) > 0, worst + self.allies, _NONE)
            goal_x[:, healer] = (self.x[:, foes] * fighting).sum(1) / count  # stays amid the fighting ones
            goal_y[:, healer] = (self.y[:, foes] * fighting).sum(1) / count

    def _tick(self, goal_x: np.ndarray, goal_y: np.ndarray) -> None:
        alive, rows, target = self.alive, self._rows, np.maximum(self.target, 0)
        has = (self.target >= 0) & alive & alive[rows, target]
        to_x = np.where(has, self.x[rows, target], goal_x) - self.x
        to_y = np.where(has, self.y[rows, target], goal_y) - self.y
        distance = np.sqrt(to_x * to_x + to_y * to_y)
        reach = self.reach[np.arange(self.size), target]
        strikes = has & (distance <= reach)
        self._walk(to_x, to_y, distance, np.where(has, distance - reach + _CLOSER, distance), alive & ~strikes)
        self._strike(strikes, target, rows)
        if self._healer.any():
            self._heal(strikes & self._healer, target)
        self._recover()

    def _walk(
        self, to_x: np.ndarray, to_y: np.ndarray, distance: np.ndarray, left: np.ndarray, moves: np.ndarray
    ) -> None:
        """Towards the goal, no farther than ``left``; then whoever overlaps is pushed apart by half each."""
        stride = np.where(moves, np.minimum(self.speed * TICK_S, np.maximum(left, 0.0)), 0.0)
        share = stride / np.maximum(distance, 1e-9)
        self.x += to_x * share
        self.y += to_y * share
        dx = self.x[:, :, None] - self.x[:, None, :]
        dy = self.y[:, :, None] - self.y[:, None, :]
        gap = np.sqrt(dx * dx + dy * dy)
        alive = self.alive
        overlap = np.maximum(self._touch - gap, 0.0) * (alive[:, :, None] & alive[:, None, :])
        if overlap.any():
            push = 0.5 * overlap / np.maximum(gap, 1e-6)
            self.x += (dx * push).sum(2)
            self.y += (dy * push).sum(2)
        np.clip(self.x, 0.0, FIELD, out=self.x)
        np.clip(self.y, 0.0, FIELD, out=self.y)

    def _strike(self, strikes: np.ndarray, target: np.ndarray, rows: np.ndarray) -> None:
        """Weapons that are ready hit; the damage of a tick falls on all at once, shields first."""
        fires = strikes & (self.wait <= 0) & ~self._healer
        self.wait = np.where(fires, self.wait + self.cooldown, self.wait)
        if not fires.any():
            return
        me = np.arange(self.size)
        place = (rows * self.size + target).ravel()
        length = self.num * self.size
        blow, wound = (
            np.bincount(place, (fires * table[me, target]).ravel(), length).reshape(self.num, self.size)
            for table in (self._blow, self._wound)
        )
        hit = blow > 0
        held = np.minimum(self.shield, blow)
        self.shield -= held
        self.health = np.maximum(self.health - wound * np.where(hit, 1 - held / np.maximum(blow, 1e-9), 0.0), 0.0)
        self.peace[hit] = SHIELD_PEACE_S

    def _heal(self, mends: np.ndarray, target: np.ndarray) -> None:
        for healer in np.flatnonzero(self._healer):
            battle = np.flatnonzero(mends[:, healer])
            patient = target[battle, healer]
            stands = self.health[battle, patient] > 0  # it may have fallen in this tick
            battle, patient = battle[stands], patient[stands]
            amount = np.minimum(self.max_health[patient] - self.health[battle, patient], self.heals[healer] * TICK_S)
            amount = np.minimum(amount, self.energy[battle, healer] * HEALTH_PER_ENERGY)
            self.health[battle, patient] += amount
            self.energy[battle, healer] -= amount / HEALTH_PER_ENERGY

    def _recover(self) -> None:
        np.maximum(self.wait - TICK_S, np.where(self.wait > 0, -TICK_S, 0.0), out=self.wait)
        alive = self.alive
        if self._healer.any():
            self.energy = np.where(self._healer, np.minimum(self.energy + ENERGY_PER_S * TICK_S, 200.0), 0.0)
        if self.max_shield.any():
            np.maximum(self.peace - TICK_S, 0.0, out=self.peace)
            rests = alive & (self.peace <= 0)
            self.shield = np.where(
                rests, np.minimum(self.shield + SHIELD_PER_S * TICK_S, self.max_shield), self.shield * alive
            )


def _healers(units: tuple[Unit, ...]) -> bool:
    return any(unit.heals for unit in units)
