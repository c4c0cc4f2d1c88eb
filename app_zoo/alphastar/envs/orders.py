"""
What can be ordered: a part of pysc2's raw functions, and the parts that an order of each type has.

The ending of a raw function's name says what it takes (pysc2 knows one exception): ``_pt`` a location, ``_unit`` a unit
as target, ``_quick`` neither; all take the units that are to obey, and whether to wait until earlier orders are done.
"""

from __future__ import annotations

import numpy as np

PARTS = ('action_type', 'delay', 'queued', 'selected_units', 'target_unit', 'target_location')
#: where each part stands in an order, a vector of ints
PLACES: dict[str, int | slice] = dict(zip(PARTS, (0, 1, 2, slice(3, -2), -2, -1)))
DELAYS = 32  # game loops until the next observation: 1 to 32
UNIT_TYPES = 2048  # above pysc2's largest number of one

_PROBE, _SCV, _DRONE, _LARVA = (84,), (45,), (104,), (151,)
_WORKERS = (*_PROBE, *_SCV, *_DRONE, 268)
_NEXUS, _GATEWAY, _ROBOTICS, _STARGATE = (59,), (62, 133), (71,), (67,)
_COMMAND, _BARRACKS, _FACTORY, _STARPORT = (18, 132, 130), (21,), (27,), (28,)
_HATCHERY = (86, 100, 101)
#: name of the raw function -> types of the units that can do it; none: any of one's own
ORDERS: dict[str, tuple[int, ...]] = {
    'no_op': (),
    **dict.fromkeys(('Smart_pt', 'Smart_unit', 'Attack_pt', 'Attack_unit', 'Move_pt', 'Move_unit', 'Patrol_pt'), ()),
    **dict.fromkeys(('Stop_quick', 'HoldPosition_quick', 'Cancel_quick', 'Rally_Units_pt'), ()),
    **dict.fromkeys(('Harvest_Gather_unit', 'Harvest_Return_quick'), _WORKERS),
    # Protoss
    **dict.fromkeys(('Build_Pylon_pt', 'Build_Nexus_pt', 'Build_Gateway_pt', 'Build_Assimilator_unit'), _PROBE),
    **dict.fromkeys(('Build_CyberneticsCore_pt', 'Build_Forge_pt', 'Build_RoboticsFacility_pt'), _PROBE),
    **dict.fromkeys(('Build_Stargate_pt', 'Build_TwilightCouncil_pt', 'Build_PhotonCannon_pt'), _PROBE),
    **dict.fromkeys(('Train_Probe_quick', 'Effect_ChronoBoostEnergyCost_unit'), _NEXUS),
    **dict.fromkeys(('Train_Zealot_quick', 'Train_Stalker_quick', 'Train_Sentry_quick', 'Train_Adept_quick'), _GATEWAY),
    **dict.fromkeys(('Train_Immortal_quick', 'Train_Observer_quick'), _ROBOTICS),
    'Train_VoidRay_quick': _STARGATE,
    **dict.fromkeys(('TrainWarp_Zealot_pt', 'TrainWarp_Stalker_pt'), (133,)),
    'Research_WarpGate_quick': (72,),
    'Effect_Blink_pt': (74,),
    # Terran
    **dict.fromkeys(('Build_SupplyDepot_pt', 'Build_CommandCenter_pt', 'Build_Barracks_pt', 'Build_Refinery_pt'), _SCV),
    **dict.fromkeys(('Build_Factory_pt', 'Build_Starport_pt', 'Build_EngineeringBay_pt', 'Build_Bunker_pt'), _SCV),
    'Effect_Repair_unit': (*_SCV, 268),
    'Train_SCV_quick': _COMMAND,
    'Morph_OrbitalCommand_quick': (18,),
    'Effect_CalldownMULE_unit': (132,),
    **dict.fromkeys(('Train_Marine_quick', 'Train_Marauder_quick'), _BARRACKS),
    **dict.fromkeys(('Train_Hellion_quick', 'Train_SiegeTank_quick'), _FACTORY),
    'Train_Medivac_quick': _STARPORT,
    **dict.fromkeys(('Build_TechLab_quick', 'Build_Reactor_quick'), (*_BARRACKS, *_FACTORY, *_STARPORT)),
    'Effect_Stim_quick': (48, 51),
    'Morph_SiegeMode_quick': (33,),
    'Morph_Unsiege_quick': (32,),
    # Zerg
    **dict.fromkeys(('Build_Hatchery_pt', 'Build_SpawningPool_pt', 'Build_Extractor_unit'), _DRONE),
    **dict.fromkeys(('Build_RoachWarren_pt', 'Build_EvolutionChamber_pt', 'Build_HydraliskDen_pt'), _DRONE),
    'Build_SpineCrawler_pt': _DRONE,
    **dict.fromkeys(('Train_Drone_quick', 'Train_Overlord_quick', 'Train_Zergling_quick', 'Train_Roach_quick'), _LARVA),
    **dict.fromkeys(('Train_Hydralisk_quick', 'Train_Mutalisk_quick'), _LARVA),
    **dict.fromkeys(('Train_Queen_quick',), _HATCHERY),
    'Effect_InjectLarva_unit': (126,),
    'Morph_Lair_quick': (86,),
}
NAMES = tuple(ORDERS)
NUMBER = {name: k for k, name in enumerate(NAMES)}
_AT_UNIT = {'Build_Refinery_pt'}  # whose name says otherwise


def _parts_of(name: str) -> list[bool]:
    real, ending = name != 'no_op', name.rpartition('_')[2]
    at_unit = ending == 'unit' or name in _AT_UNIT
    return [True, True, real, real, at_unit, ending == 'pt' and not at_unit]


def _obeyed() -> np.ndarray:
    table = np.zeros((UNIT_TYPES, len(NAMES)), bool)
    for number, makers in enumerate(ORDERS.values()):
        table[list(makers) or slice(None), number] = True
    return table & USES[:, PARTS.index('selected_units')]


#: which parts an order of each type has: (types of orders, parts) bool
USES = np.array([_parts_of(name) for name in NAMES])
#: whether a unit of that type can obey an order of that type: (UNIT_TYPES, types of orders) bool
OBEYS = _obeyed()


def possible(unit_type: np.ndarray, own: np.ndarray) -> np.ndarray:
    """
    Overview:
        Which types of orders somebody could obey; to do nothing is always possible.
    Shapes:
        - unit_type (ints), own (bool): :math:`(B, N)`; result: :math:`(B, types)` bool
    """
    found = (OBEYS[unit_type] & own[..., None]).any(1)
    found[:, NUMBER['no_op']] = True
    return found


def empty_order(selected: int, end: int) -> np.ndarray:
    """The order to do nothing; ``end`` fills the places of units that are not selected."""
    order = np.zeros(5 + selected, np.int64)
    order[PLACES['selected_units']] = end
    return order
