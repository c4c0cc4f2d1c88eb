"""Crossings over time, as SVG: the queue on every road, and which phase has green."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app_zoo.sumo.envs.nets import Crossing

WIDTH, HEIGHT, BAND, LEFT, HEAD, GAP = 960, 110, 12, 34, 24, 26
QUEUES = ('#1f5fbf', '#d9661f', '#2e8b57', '#8e44ad', '#b8860b', '#607d8b', '#c2185b', '#00838f')
PHASES = ('#455a64', '#b0bec5', '#e8c547', '#90caf9')
STYLE = 'text{font:12px sans-serif;fill:#333}path{fill:none;stroke-width:1.4}.axis{stroke:#999;stroke-width:1}'


@dataclass
class Watched:
    """
    Overview:
        An episode after each decision: cars that stand, by road; the phase of every crossing; and its last ``info``.
    """

    standing: list[dict[str, int]]
    phases: list[list[int]]
    info: dict[str, float]


def draw(episodes: Sequence[tuple[str, Watched]], step_s: int, crossings: Sequence[Crossing]) -> str:
    """
    Overview:
        A panel for each crossing and episode, all with the same axes: a line for the queue on every road that leads to
        the crossing, and below it a band with a colour for each phase.
    Arguments:
        - episodes (:obj:`Sequence`): name and episode of each rule
        - step_s (:obj:`int`): seconds from a decision to the next
    """
    most = max(max(row.values()) for _, episode in episodes for row in episode.standing) or 1
    lines: list[str] = []
    top = 0
    for k, crossing in enumerate(crossings):
        for name, episode in episodes:
            at = f', crossing {crossing.name}' if len(crossings) > 1 else ''
            title = f'{name}{at}: a car stood {episode.info["mean_wait"]:.1f} s on average'
            queues = {road: [row[road] for row in episode.standing] for road in crossing.roads}
            lines += _panel(top, title, queues, most)
            lines += _band(top + HEAD + HEIGHT + 2, [phases[k] for phases in episode.phases])
            top += HEAD + HEIGHT + BAND + GAP
    seconds = step_s * len(episodes[0][1].phases)
    ends = [(LEFT, 'start', '0 s'), (LEFT + WIDTH, 'end', f'{seconds:,} s; below each panel: a colour for each phase')]
    lines += [f'<text x="{x}" y="{top - 8}" text-anchor="{anchor}">{words}</text>' for x, anchor, words in ends]
    size = f'{LEFT + WIDTH + 10} {top}'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}"><style>{STYLE}</style>'
    return '\n'.join([head, '<rect width="100%" height="100%" fill="#fff"/>', *lines, '</svg>\n'])


def _panel(top: int, title: str, queues: dict[str, list[int]], most: int) -> Iterable[str]:
    low = top + HEAD + HEIGHT
    yield f'<text x="{LEFT}" y="{top + 16}">{title}</text>'
    for k, (road, cars) in enumerate(queues.items()):
        colour, step = QUEUES[k % len(QUEUES)], WIDTH / len(cars)
        corners = ''.join(f'V{low - HEIGHT * n / most:.0f}H{LEFT + step * (i + 1):.1f}' for i, n in enumerate(cars))
        yield f'<path d="M{LEFT},{low}{corners}" stroke="{colour}"/>'
        yield f'<text x="{LEFT + WIDTH - 90 * (k + 1)}" y="{top + 16}" style="fill:{colour}">{road}</text>'
    yield f'<path class="axis" d="M{LEFT},{low - HEIGHT}V{low}H{LEFT + WIDTH}"/>'
    for cars, y in ((most, low - HEIGHT + 8), (0, low)):
        yield f'<text x="{LEFT - 5}" y="{y}" text-anchor="end">{cars}</text>'


def _band(y: int, phases: Sequence[int]) -> Iterable[str]:
    begin, step = 0, WIDTH / len(phases)
    for end in range(1, len(phases) + 1):
        if end == len(phases) or phases[end] != phases[begin]:
            x, wide = LEFT + step * begin, step * (end - begin)
            colour = PHASES[phases[begin] % len(PHASES)]
            yield f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{BAND}" fill="{colour}"/>'
            begin = end
