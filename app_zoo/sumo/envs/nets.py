"""Road nets as SUMO's files tell them, and the traffic that enters them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

NETS = {path.name.split('.')[0]: path for path in sorted((Path(__file__).parent / 'nets').glob('*.net.xml'))}
CAR_M = 7.5  # what a waiting car takes of a lane


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
        A net: its crossings with lights, the roads on which cars enter and leave it, length and course of each lane,
        and the courses inside of crossings.
    """

    path: str
    crossings: list[Crossing]
    entries: list[str]
    exits: list[str]
    length: dict[str, float]
    shape: dict[str, np.ndarray]
    inside: list[np.ndarray]


def read_net(path: str | Path) -> Net:
    """What a ``.net.xml`` holds; a ValueError if there is no crossing with two green phases in it."""
    root = ElementTree.parse(path).getroot()
    crossings = []
    for logic in root.iter('tlLogic'):
        states = [phase.get('state', '') for phase in logic.iter('phase')]
        greens = [state for state in states if 'y' not in state and 'G' in state]
        if len(greens) > 1:
            crossings.append(Crossing(logic.get('id', ''), greens))
    if not crossings:
        raise ValueError(f'{path}: no traffic light with two green phases; give a net with one (netgenerate --tls.set)')
    for crossing in crossings:
        links = [link for link in root.iter('connection') if link.get('tl') == crossing.name]
        ways = [(f'{link.get("from")}_{link.get("fromLane")}', int(link.get('linkIndex', 0))) for link in links]
        crossing.lanes = list(dict.fromkeys(lane for lane, _ in ways))
        crossing.leaving = list(dict.fromkeys(f'{link.get("to")}_{link.get("toLane")}' for link in links))
        crossing.served = np.zeros((len(crossing.greens), len(crossing.lanes)), bool)
        for lane, index in ways:
            for phase, state in enumerate(crossing.greens):
                crossing.served[phase, crossing.lanes.index(lane)] |= state[index] in 'Gg'
    roads = [edge for edge in root.iter('edge') if edge.get('function') != 'internal']
    pairs = {frozenset((edge.get('from'), edge.get('to'))) for edge in roads}
    ends = {node for pair in pairs for node in pair if sum(node in other for other in pairs) == 1}
    lanes = [lane for edge in roads for lane in edge.iter('lane')]
    return Net(
        path=str(path),
        crossings=crossings,
        entries=[edge.get('id', '') for edge in roads if edge.get('from') in ends],
        exits=[edge.get('id', '') for edge in roads if edge.get('to') in ends],
        length={lane.get('id', ''): float(lane.get('length', 0)) for lane in lanes},
        inside=[_points(lane.get('shape', '')) for edge in root.iter('edge') if edge not in roads for lane in edge],
        shape={lane.get('id', ''): _points(lane.get('shape', '')) for lane in lanes},
    )


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
    for entry in net.entries:
        for begin in np.arange(0, seconds, change_s):
            length = min(change_s, seconds - begin)
            rate = per_hour / 3600 * rng.uniform(1 - uneven, 1 + uneven)
            for second in np.sort(rng.uniform(begin, begin + length, rng.poisson(rate * length))):
                cars.append((float(second), entry))
    ways = {entry: [way for way in net.exits if not _returns(entry, way)] for entry in net.entries}
    for second, entry in sorted(cars):
        yield second, entry, str(rng.choice(ways[entry]))


def _returns(entry: str, way: str) -> bool:
    """Whether a car would turn round: netgenerate names a road by its two ends."""
    return len(entry) == len(way) and sorted(entry) == sorted(way)


def write_routes(path: str | Path, cars: Iterator[tuple[float, str, str]]) -> list[float]:
    """Write the cars as SUMO's trips; answers the seconds of their starts."""
    rows = list(cars)
    lines = [
        f'<trip id="{k}" depart="{second:.2f}" from="{entry}" to="{way}" departLane="best" departSpeed="max"/>'
        for k, (second, entry, way) in enumerate(rows)
    ]
    Path(path).write_text('\n'.join(['<routes>', *lines, '</routes>\n']), encoding='utf-8')
    return [second for second, _, _ in rows]
