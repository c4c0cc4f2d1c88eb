"""Draws the pictures of the pages, as SVG: ``python docs/drawings.py`` writes them into docs/drawings."""

from __future__ import annotations

import re
from pathlib import Path

from nervex.design.diagrams import package_diagram

FOLDER = Path(__file__).parent / 'drawings'
WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 132, 46, 76, 44, 14
STYLE = (
    'text{font:14px sans-serif;fill:#1a237e;text-anchor:middle;dominant-baseline:central}'
    '.note{font-size:11px;fill:#455a64}rect{fill:#e8eaf6;stroke:#3f51b5}path{fill:none;stroke:#455a64;stroke-width:1.5}'
)
Place = tuple[float, float]

#: what is drawn: boxes (name -> column, row), arrows (from, to, what goes along it)
PICTURES: dict[str, tuple[dict[str, Place], list[tuple[str, str, str]]]] = {
    'flow': (
        {
            'commander': (1, 0),
            'env manager': (0, 1),
            'actor': (1, 1),
            'adder': (2, 1),
            'buffer': (3, 1),
            'evaluator': (0, 2),
            'policy': (1, 2),
            'learner': (3, 2),
        },
        [
            ('env manager', 'actor', 'steps'),
            ('actor', 'adder', 'rows'),
            ('adder', 'buffer', 'samples'),
            ('buffer', 'learner', 'batches'),
            ('actor', 'policy', 'obs, action'),
            ('evaluator', 'policy', 'episodes'),
            ('commander', 'actor', 'epsilon'),
            ('learner', 'policy', 'weights'),
        ],
    ),
    'policy': (
        {'learn_mode': (0, 0), 'collect_mode': (1, 0), 'eval_mode': (2, 0), 'command_mode': (3, 0)}
        | {'armor + target': (0, 1), 'armor + explore': (1, 1), 'armor + argmax': (2, 1), 'settings': (3, 1)}
        | {'model': (1, 2)},
        [
            ('learn_mode', 'armor + target', ''),
            ('collect_mode', 'armor + explore', ''),
            ('eval_mode', 'armor + argmax', ''),
            ('command_mode', 'settings', ''),
            ('armor + target', 'model', ''),
            ('armor + explore', 'model', ''),
            ('armor + argmax', 'model', ''),
        ],
    ),
}


def picture(boxes: dict[str, Place], arrows: list[tuple[str, str, str]]) -> str:
    """
    Overview:
        An SVG of named boxes on a grid, with arrows from edge to edge.
    """
    columns, rows = (max(place[axis] for place in boxes.values()) + 1 for axis in (0, 1))
    width, height = (
        int(n * side + (n - 1) * gap + 2 * MARGIN) for n, side, gap in ((columns, WIDTH, GAP_X), (rows, HEIGHT, GAP_Y))
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<style>{STYLE}</style><marker id="a" orient="auto" markerWidth="8" markerHeight="8" refX="7" refY="4">'
        '<path d="M0,0L8,4L0,8z" style="fill:#455a64;stroke:none"/></marker>',
    ]
    for a, b, note in arrows:
        lines += _arrow(_middle(boxes[a]), _middle(boxes[b]), note)
    for name, place in boxes.items():
        x, y = _middle(place)
        lines.append(f'<rect x="{x - WIDTH / 2:g}" y="{y - HEIGHT / 2:g}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>')
        lines.append(f'<text x="{x:g}" y="{y:g}">{name}</text>')
    return '\n'.join([*lines, '</svg>\n'])


def _middle(place: Place) -> Place:
    return MARGIN + WIDTH / 2 + place[0] * (WIDTH + GAP_X), MARGIN + HEIGHT / 2 + place[1] * (HEIGHT + GAP_Y)


def _arrow(a: Place, b: Place, note: str) -> list[str]:
    """From the edge of one box to that of another: sideways in a row, else from below to above."""
    side = (b[0] > a[0]) - (b[0] < a[0])
    if a[1] == b[1]:
        start, end = (a[0] + side * WIDTH / 2, a[1]), (b[0] - side * WIDTH / 2, b[1])
        at = ((start[0] + end[0]) / 2, a[1] - 9)
    else:
        start, end = (a[0], a[1] + HEIGHT / 2), (b[0] - side * WIDTH / 4, b[1] - HEIGHT / 2)
        at = ((start[0] + end[0]) / 2 + 34, (start[1] + end[1]) / 2)
    path = f'<path d="M{start[0]:g},{start[1]:g}L{end[0]:g},{end[1]:g}" marker-end="url(#a)"/>'
    return [path, *([f'<text class="note" x="{at[0]:g}" y="{at[1]:g}">{note}</text>'] if note else [])]


def house() -> str:
    """The packages in rows: each imports from rows below its own only, as their sources say."""
    imports: dict[str, set[str]] = {}
    for a, b in re.findall(r'(\w+) -->\|\d+\| (\w+)', package_diagram()):
        imports.setdefault(a, set()).add(b)
        imports.setdefault(b, set())

    def level(name: str, above: tuple[str, ...] = ()) -> int:
        below = [level(other, (*above, name)) + 1 for other in imports[name] if other not in (*above, name)]
        return max(below, default=0)

    levels = {name: level(name) for name in sorted(imports)}
    top, places, taken = max(levels.values()), {}, dict.fromkeys(levels.values(), 0)
    for name, height in levels.items():
        places[name] = (float(taken[height]), (top - height) * 0.66)
        taken[height] += 1
    return picture(places, [])


def pictures() -> dict[str, str]:
    """File names and what is in them."""
    return {'house.svg': house(), **{f'{name}.svg': picture(*parts) for name, parts in PICTURES.items()}}


if __name__ == '__main__':
    FOLDER.mkdir(exist_ok=True)
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, encoding='utf-8')
