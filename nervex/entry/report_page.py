"""What a report is made of: charts as inline SVG, tables and texts as HTML that needs neither network nor scripts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from nervex.run.curve import round_numbers

_LIGHT = ('#0b62c4', '#c2410c', '#15803d', '#a21caf', '#b45309', '#0e7490', '#be123c', '#4d7c0f', '#6d28d9', '#57534e')
_DARK = ('#6db3ff', '#ff9d66', '#5fd38d', '#f08bfa', '#f5c04a', '#5cd4e6', '#ff8aa3', '#b4d94f', '#b79cff', '#c4bdb6')
_DASHES = ('', '7 4', '2 3', '9 3 2 3')  # ten groups have ten colours; the next ten the same colours and other lines
_SIZE = 1000  # units of a picture, whatever its size on the screen

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c1c24; --soft: #5c5c68; --line: #d9d9e0; --card: #f6f6f9;
  LIGHT }
@media (prefers-color-scheme: dark) { :root { --paper: #15161b; --ink: #ececf1; --soft: #a5a5b2; --line: #3a3b45;
  --card: #1f2027; DARK } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 1200px; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.5rem; margin: .2rem 0 } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem }
p { margin: .4rem 0 } .soft { color: var(--soft) }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: .87rem }
th, td { text-align: left; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: normal } th { color: var(--soft); font-weight: 600; white-space: nowrap }
td.n { font-variant-numeric: tabular-nums; white-space: nowrap }
.sections, .charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(300px, 100%), 1fr));
  gap: 0 1rem }
section { min-width: 0 } .s3 { grid-column: 1 / -1 }
@media (min-width: 720px) { .s2 { grid-column: span 2 } }
figure { margin: 0; min-width: 0 } figcaption { font-size: .87rem; font-weight: 600 }
.plot { position: relative; height: 170px; margin: .4rem .6rem 1.6rem 3.6rem } .large .plot { height: 380px }
.plot svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible }
.plot svg * { vector-effect: non-scaling-stroke }
.plot .rule { stroke: var(--line); fill: none } .plot .stop { stroke: var(--soft); stroke-dasharray: 4 4; fill: none }
.plot span { position: absolute; font-size: 11px; color: var(--soft); white-space: nowrap; line-height: 1 }
.plot .y { right: calc(100% + 6px); transform: translateY(50%) } .plot .x { top: calc(100% + 6px) }
.plot .x { transform: translateX(-50%) } .plot .x.end { transform: translateX(-90%) }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: .87rem; padding: 0; list-style: none }
.sticky { position: sticky; top: 0; z-index: 1; background: var(--paper); padding: .4rem 0; max-height: 6rem;
  overflow-y: auto } .legend svg { width: 26px; height: 8px; margin-right: .4rem; vertical-align: middle }
.split { display: flex; height: 1.3rem; border-radius: 4px; overflow: hidden; margin: .2rem 0 .7rem }
.split i { display: block }
details { margin: .5rem 0; padding: .4rem .8rem; background: var(--card); border-radius: 6px }
summary { cursor: pointer }
pre { font-size: .8rem; white-space: pre-wrap; margin: .4rem 0 }
img, video { max-width: 100%; border-radius: 6px }
""".replace('LIGHT', ' '.join(f'--c{n}: {color};' for n, color in enumerate(_LIGHT))).replace(
    'DARK', ' '.join(f'--c{n}: {color};' for n, color in enumerate(_DARK))
)


@dataclass(frozen=True)
class Line:
    """A group of runs in a chart: its mean, its band, and its runs."""

    group: int
    label: str
    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    runs: Sequence[tuple[np.ndarray, np.ndarray]] = ()


def page(title: str, parts: Iterable[str]) -> str:
    """The whole document."""
    view = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    icon = '<link rel="icon" href="data:,">'  # a browser would ask a server for one
    head = f'{view}{icon}<title>{escape(title)}</title><style>{STYLE}</style>'
    body = '\n'.join(part for part in parts if part)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def table(rows: Sequence[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Cells of text; those that begin with a digit or a sign stay in one line."""
    lines = [''.join(f'<th>{escape(cell)}</th>' for cell in head)] if head else []
    for row in rows:
        cells = ((' class="n"' if cell[:1].isdigit() or cell[:1] == '-' else '', escape(cell)) for cell in row)
        lines.append(''.join(f'<td{kind}>{cell}</td>' for kind, cell in cells))
    return f'<div class="wide"><table>{"".join(f"<tr>{line}</tr>" for line in lines)}</table></div>'


def _stroke(group: int) -> str:
    return f'stroke="var(--c{group % 10})" stroke-dasharray="{_DASHES[group // 10 % len(_DASHES)]}" fill="none"'


def legend(labels: Sequence[str]) -> str:
    """Which line is which, always in sight; none where there is one."""
    if len(labels) < 2:
        return ''
    mark = '<svg viewBox="0 0 26 8" aria-hidden="true"><path d="M0,4H26" stroke-width="3" {}/></svg>'
    items = (f'<li>{mark.format(_stroke(n))}{escape(label)}</li>' for n, label in enumerate(labels))
    return f'<ul class="legend sticky">{"".join(items)}</ul>'


def chart(title: str, lines: Sequence[Line], large: bool = False, stops: Sequence[float] = ()) -> str:
    """A picture of lines over a common axis, as wide as there is room for; values that are no numbers are left out."""
    xs = np.concatenate([x for line in lines for x, _ in line.runs])
    values = np.concatenate([y[np.isfinite(y)] for line in lines for _, y in line.runs])
    if not len(values):
        return ''
    left, right, low, high = (float(end) for end in (xs.min(), xs.max(), values.min(), values.max()))
    stops = [stop for stop in stops if low - (high - low) / 2 <= stop <= high + (high - low) / 2]  # others are far off
    low, high = min([low, *stops]), max([high, *stops])
    margin = 0.04 * (high - low) or 0.04 * abs(high) or 1.0
    low, high, width = low - margin, high + margin, (right - left) or 1.0

    def place(x: np.ndarray, y: np.ndarray) -> list[tuple[int, int]]:
        across = np.rint((np.asarray(x) - left) / width * _SIZE)
        down = np.rint(np.clip((high - np.asarray(y)) / (high - low), 0, 1) * _SIZE)
        return [(int(a), int(b)) for a, b in zip(across, down) if math.isfinite(a) and math.isfinite(b)]

    shapes, labels = [], []
    for value in round_numbers(low, high):
        at = (high - value) / (high - low)
        shapes.append(f'<path class="rule" d="M0,{at * _SIZE:.0f}H{_SIZE}"/>')
        labels.append(f'<span class="y" style="bottom:{100 - 100 * at:.1f}%">{shown_number(value)}</span>')
    for step in round_numbers(left, right):
        at = (step - left) / width
        end = ' end' if at > 0.9 else ''
        labels.append(f'<span class="x{end}" style="left:{100 * at:.1f}%">{shown_number(step)}</span>')
    for stop in stops:
        shapes.append(f'<path class="stop" d="M0,{(high - stop) / (high - low) * _SIZE:.0f}H{_SIZE}"/>')
    for line in lines:
        color = f'var(--c{line.group % 10})'
        if len(line.runs) > 1 and len(line.x) > 1:
            around = place(np.concatenate([line.x, line.x[::-1]]), np.concatenate([line.low, line.high[::-1]]))
            shapes.append(f'<path d="{_path(around)}Z" fill="{color}" fill-opacity=".16"/>')
            for x, y in line.runs:
                shapes.append(f'<path d="{_path(place(x, y))}" {_stroke(line.group)} stroke-opacity=".35"/>')
        shapes.append(f'<path d="{_path(place(line.x, line.mean))}" stroke-width="2.2" {_stroke(line.group)}>')
        last = line.mean[np.isfinite(line.mean)][-1:]
        said = f': last {shown_number(last[0])}' if len(last) else ''
        shapes.append(f'<title>{escape(line.label)}{said}</title></path>')
    kind = ' class="large"' if large else ''
    svg = f'<svg viewBox="0 0 {_SIZE} {_SIZE}" preserveAspectRatio="none" role="img" aria-label="{escape(title)}">'
    plot = f'<div class="plot">{svg}{"".join(shapes)}</svg>{"".join(labels)}</div>'
    return f'<figure{kind}><figcaption>{escape(title)}</figcaption>{plot}</figure>'


def _path(points: Sequence[tuple[int, int]]) -> str:
    """A line through points; one alone is a short dash."""
    if len(points) == 1:
        return f'M{points[0][0] - 6},{points[0][1]}h12'
    return 'M' + 'L'.join(f'{x},{y}' for x, y in points) if points else ''


def split(parts: Sequence[tuple[str, float]]) -> str:
    """Shares of a whole as a bar, with their seconds."""
    whole = sum(seconds for _, seconds in parts) or 1.0
    bars = ''.join(
        f'<i style="width:{100 * seconds / whole:.2f}%;background:var(--c{n})" title="{escape(name)}"></i>'
        for n, (name, seconds) in enumerate(parts)
    )
    names = (
        f'<li><svg viewBox="0 0 26 8" aria-hidden="true"><path d="M0,4H26" stroke-width="8" {_stroke(n)}/></svg>'
        f'{escape(name)} {seconds:,.1f} s, {100 * seconds / whole:.0f} %</li>'
        for n, (name, seconds) in enumerate(parts)
    )
    return f'<div class="split">{bars}</div><ul class="legend">{"".join(names)}</ul>'


def shown_number(value: float) -> str:
    """A number at an axis: 1.5k, 2M, 0.25."""
    size = abs(value)
    if size < 1e-12:
        return '0'
    for factor, letter in ((1e9, 'G'), (1e6, 'M'), (1e3, 'k')):
        if size >= factor:
            return f'{value / factor:.4g}{letter}'
    return f'{value:.3g}'
