"""Units and maps of the micro-battle: the published figures of StarCraft II's units, as SMAC's maps use them."""

from __future__ import annotations

from dataclasses import dataclass, field

MELEE = 0.1  # range of a unit that strikes what it touches


@dataclass(frozen=True)
class Unit:
    """One kind of unit. Times in seconds of normal game speed, lengths in map cells."""

    name: str
    health: float
    armor: float
    damage: float  # of one hit
    cooldown: float  # between two attacks
    range: float  # from rim to rim
    speed: float
    radius: float
    shield: float = 0.0
    hits: int = 1  # of one attack
    armored: bool = False
    bonus_armored: float = 0.0  # further damage against armored units
    flies: bool = False
    shoots_air: bool = False
    heals: float = 0.0  # health a second, for energy
    energy: float = 0.0  # at the start; at most 200


MARINE = Unit('marine', 45, 0, 6, 0.86, 5, 2.25, 0.375, shoots_air=True)
MARAUDER = Unit('marauder', 125, 1, 10, 1.5, 6, 2.25, 0.5625, armored=True, bonus_armored=10)
MEDIVAC = Unit('medivac', 150, 1, 0, 0.0, 4, 2.5, 0.75, armored=True, flies=True, heals=9, energy=50)
STALKER = Unit('stalker', 80, 1, 13, 1.87, 6, 2.95, 0.625, shield=80, armored=True, bonus_armored=5, shoots_air=True)
ZEALOT = Unit('zealot', 100, 1, 8, 1.2, MELEE, 2.25, 0.5, shield=50, hits=2)


@dataclass(frozen=True)
class Map:
    """Two teams on a square field; ``limit``: steps of an episode."""

    name: str
    allies: tuple[Unit, ...]
    enemies: tuple[Unit, ...]
    limit: int
    kinds: tuple[Unit, ...] = field(init=False)  # in the order of the one-hot columns

    def __post_init__(self) -> None:
        order = (MARAUDER, MARINE, MEDIVAC, STALKER, ZEALOT)
        object.__setattr__(self, 'kinds', tuple(u for u in order if u in self.allies + self.enemies))

    @property
    def shields(self) -> bool:
        """Whether any unit has a shield; then all have a column for it."""
        return any(unit.shield for unit in self.kinds)


MAPS = {
    one.name: one
    for one in (
        Map('3m', (MARINE,) * 3, (MARINE,) * 3, 60),
        Map('8m', (MARINE,) * 8, (MARINE,) * 8, 120),
        Map('5m_vs_6m', (MARINE,) * 5, (MARINE,) * 6, 70),
        Map('2s3z', (STALKER,) * 2 + (ZEALOT,) * 3, (STALKER,) * 2 + (ZEALOT,) * 3, 120),
        Map('3s5z', (STALKER,) * 3 + (ZEALOT,) * 5, (STALKER,) * 3 + (ZEALOT,) * 5, 150),
        Map(
            'MMM',
            (MARAUDER,) * 2 + (MARINE,) * 7 + (MEDIVAC,),
            (MARAUDER,) * 2 + (MARINE,) * 7 + (MEDIVAC,),
            150,
        ),
    )
}
