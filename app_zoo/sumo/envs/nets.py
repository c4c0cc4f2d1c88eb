"""Road nets as SUMO's files tell them, and the traffic that enters them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nervex.utils.errors import NervexError

NETS = {path.name.split('.')[0]: path for path in sorted((Path(__file__).parent / 'nets').glob('*.net.xml'))}
CAR_M = 7.5  # what a waiting car takes of a lane


class NetError(NervexError, ValueError):
    """A file is no net with lights to switch and ways for cars."""


@dataclass
class Crossing:
    """
    Overview:
        Traffic lights that are switched together.
    Arguments:
        - greens (:obj:`list[str]`): its phases with green, in SUMO's letters, a letter a connection
        - lanes (:obj:`list[str]`): lanes that lead to it
        - served (:obj:`np.ndarray`): (phases, lanes) bool: who has green in which phase
        - leaving (:obj:`list[str]`): lanes that lead away from it
    """

    name: str
    greens: list[str]
    lanes: list[str] = field(default_factory=list)
    leaving: list[str] = field(default_factory=list)
    served: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), bool))

    @property
    def roads(self) -> list[str]:
        """Roads that lead to it; a lane is named by its road and a number."""
        return list(dict.fromkeys(road_of(lane) for lane in self.lanes))


@dataclass
class Net:
    """
    Overview:
        A net: its crossings with lights, of each road on which cars enter it those on which they can leave it, of each
        road those from which cars come to it without passing such lights, length and course of each lane, and the
        courses inside of crossings.
    """

    path: str
    crossings: list[Crossing]
    ways: dict[str, list[str]]
    before: dict[str, list[str]]
    length: dict[str, float]
    shape: dict[str, np.ndarray]
    inside: list[np.ndarray]

    def pieces(self, roads: Iterable[str]) -> set[str]:
        """These roads with those in front of them that lead to nothing else: pieces of the same road."""
        found: set[str] = set()
        left = list(roads)
        while left:
            road = left.pop()
            found.add(road)
            before = self.before[road]
            left += [one for one in before if len(before) == 1 and one not in found]
        return found


def read_net(path: str | Path) -> Net:
    """What a ``.net.xml`` holds for cars; a NetError if no crossing in it has two green phases, or no car a way."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as e:
        raise NetError(f"{path}: no net, which is an XML file made by SUMO's netgenerate or netconvert: {e}") from e
    crossings = []
    for logic in root.iter('tlLogic'):
        states = [phase.get('state', '') for phase in logic.iter('phase')]
        greens = [state for state in states if 'y' not in state and 'G' in state]
        known = {crossing.name for crossing in crossings}
        if len(greens) > 1 and logic.get('id', '') not in known:  # which may have other programs, by the hour
            crossings.append(Crossing(logic.get('id', ''), greens))
    if not crossings:
        raise NetError(f'{path}: no traffic light with two green phases; give a net with one (netgenerate --tls.set)')
    edges = [edge for edge in root.iter('edge') if edge.get('function', 'normal') == 'normal']
    roads = {edge.get('id', ''): edge for edge in edges if any(map(_for_cars, edge.iter('lane')))}
    lanes = {lane.get('id', ''): lane for edge in roads.values() for lane in edge.iter('lane') if _for_cars(lane)}
    every = ((_lane(link, 'from'), _lane(link, 'to'), link) for link in root.iter('connection'))
    links = [(before, after, link) for before, after, link in every if before in lanes and after in lanes]
    for crossing in crossings:
        own = [(before, after, link) for before, after, link in links if link.get('tl') == crossing.name]
        crossing.lanes = list(dict.fromkeys(before for before, _, _ in own))
        crossing.leaving = list(dict.fromkeys(after for _, after, _ in own))
        crossing.served = np.zeros((len(crossing.greens), len(crossing.lanes)), bool)
        for lane, _, link in own:
            for phase, state in enumerate(crossing.greens):
                crossing.served[phase, crossing.lanes.index(lane)] |= state[int(link.get('linkIndex', 0))] in 'Gg'
    onward: dict[str, list[str]] = {road: [] for road in roads}
    unlit: dict[str, list[str]] = {road: [] for road in roads}
    names = {crossing.name for crossing in crossings}
    for before, after, link in links:
        if link.get('dir') != 't':  # which turns round
            onward[road_of(before)].append(road_of(after))
            if link.get('tl') not in names and road_of(before) not in unlit[road_of(after)]:
                unlit[road_of(after)].append(road_of(before))
    ways = _ways(onward, {road: (edge.get('from', ''), edge.get('to', '')) for road, edge in roads.items()})
    if not ways:
        raise NetError(
            f'{path}: no way for cars, which come and go by roads at its rim (netgenerate --grid.attach-length)'
        )
    inner = [edge for edge in root.iter('edge') if edge.get('function') == 'internal']
    return Net(
        path=str(path),
        crossings=crossings,
        ways=ways,
        before=unlit,
        length={name: float(lane.get('length', 0)) for name, lane in lanes.items()},
        inside=[_points(lane.get('shape', '')) for edge in inner for lane in edge.iter('lane')],
        shape={name: _points(lane.get('shape', '')) for name, lane in lanes.items()},
    )


def _ways(onward: dict[str, list[str]], ends: dict[str, tuple[str, str]]) -> dict[str, list[str]]:
    """Of each road that none leads to: those that lead no further and can be reached, but back to where it begins."""
    later = {road for roads in onward.values() for road in roads}
    ways = {}
    for entry in onward:
        if entry in later:
            continue
        reached, left = set(), [entry]
        while left:
            found = set(onward[left.pop()]) - reached
            reached |= found
            left += found
        ways[entry] = [r for r in onward if r in reached and not onward[r] and ends[r][1] != ends[entry][0]]
    return {entry: found for entry, found in ways.items() if found}


def _for_cars(lane: ElementTree.Element) -> bool:
    allow, disallow = lane.get('allow', 'all').split(), lane.get('disallow', '').split()
    return bool({'all', 'passenger'} & set(allow)) and not {'all', 'passenger'} & set(disallow)


def _lane(link: ElementTree.Element, end: str) -> str:
    return f'{link.get(end)}_{link.get(end + "Lane")}'


def road_of(lane: str) -> str:
    """The road that a lane is part of."""
    return lane.rsplit('_', 1)[0]


def _points(shape: str) -> np.ndarray:
    return np.array([[float(x) for x in point.split(',')[:2]] for point in shape.split()])


def traffic(
    net: Net, rng: np.random.Generator, per_hour: float, uneven: float, change_s: float, seconds: float
) -> Iterator[tuple[float, str, str]]:
    """
    Overview:
        The cars of an episode by the second of their start: (second, road on which it enters, road on which it leaves).
    Arguments:
        - per_hour (:obj:`float`): cars an entry and hour, on average
        - uneven (:obj:`float`): each entry has its own share of them, between 1 - uneven and 1 + uneven, another one
          every ``change_s`` seconds
    """
    cars = []
    for entry in net.ways:
        for begin in np.arange(0, seconds, change_s):
            length = min(change_s, seconds - begin)
            rate = per_hour / 3600 * rng.uniform(1 - uneven, 1 + uneven)
            for second in np.sort(rng.uniform(begin, begin + length, rng.poisson(rate * length))):
                cars.append((float(second), entry))
    for second, entry in sorted(cars):
        yield second, entry, str(rng.choice(net.ways[entry]))


def write_routes(path: str | Path, cars: Iterator[tuple[float, str, str]]) -> list[float]:
    """Write the cars as SUMO's trips; answers the seconds of their starts."""
    rows = list(cars)
    lines = [
        f'<trip id="{k}" depart="{second:.2f}" from="{entry}" to="{way}" departLane="best" departSpeed="max"/>'
        for k, (second, entry, way) in enumerate(rows)
    ]
    Path(path).write_text('\n'.join(['<routes>', *lines, '</routes>\n']), encoding='utf-8')
    return [second for second, _, _ in rows]
