"""Simple pictures in NumPy, for environments that show themselves without a graphics package."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

Color = tuple[int, int, int]
#: Letters as strokes: two digits a point, x and y, where 2 is the line that they stand on and 8 the height of capitals.
_LETTERS = dict(
    line.split(' ', 1)
    for line in """\
0 180703122233372818|1 071812|2 07182837360232|3 07182837362515 253433221203|4 22280434|5 380805253433221203
6 3728180703122233342505|7 083812|8 15060718283736251504031222333425|9 0312223337281807061535
A 022842 1434|B 02083847463505 3544433202|C 4738180703123243|D 02083847433202|E 48080242 0535|F 480802 0535
G 47381807031232434525|H 0208 4248 0545|I 0208|J 3833221203|K 0208 4804 1542|L 080242|M 0208254842|N 02084248
O 180703123243473818|P 02083847463505|Q 180703123243473818 2442|R 02083847463505 2542|S 473818070615354443321203
T 0848 2822|U 080312324348|V 082248|W 0812263248|X 0248 0842|Y 082548 2522|Z 08480242
a 3526160503122233 3632|b 0802 0516263533221203|c 3526160503122233|d 3832 3526160503122233|e 043435261605031232
f 281712 0626|g 3526160503122233 36312000|h 0802 0516263532|i 0602 0808|j 161100 1818|k 0802 0426 1532|l 0802
m 0602 05162522 25364542|n 0602 0516263532|o 160503122233352616|p 0600 0516263533221203|q 3630 3526160503122233
r 0602 051626|s 3616051424332202|t 181322 0626|u 0603122233 3632|v 06122236|w 0612253246|x 0632 0236|y 3610 0622
z 06360232|. 0202|, 1201|: 0303 0606|; 1201 1515|- 0525|_ 0141|/ 0138|+ 0444 2622|= 0343 0545|( 18070312|) 08171302
[ 18080212|] 08181202""".replace('\n', '|').split('|')
)
_UNKNOWN = '0208383202'  # a box


class Canvas:
    """
    Overview:
        An RGB picture on which shapes are drawn with smooth edges. Coordinates are the caller's own, with y upwards.
    Arguments:
        - size (:obj:`tuple[int, int]`): width and height in pixels
        - x, y (:obj:`tuple[float, float]`): what the left and right, and the lower and upper edges stand for
    Interfaces:
        rectangle, segment, line, disc, between, text, pixels
    """

    def __init__(
        self, size: tuple[int, int], x: tuple[float, float], y: tuple[float, float], background: Color = (255, 255, 255)
    ) -> None:
        self._width, self._height = size
        self._scale = np.array([self._width / (x[1] - x[0]), -self._height / (y[1] - y[0])])
        self._origin = np.array([x[0], y[1]])
        self.pixels = np.empty((self._height, self._width, 3), np.uint8)
        self.pixels[:] = background

    def rectangle(self, left: float, right: float, low: float, high: float, color: Color) -> None:
        """Fill a rectangle; its edges are rounded to pixels."""
        (x0, y0), (x1, y1) = (np.rint(self._pixel(*corner)).astype(int) for corner in ((left, high), (right, low)))
        self.pixels[max(y0, 0) : max(y1, 0), max(x0, 0) : max(x1, 0)] = color

    def segment(self, start: tuple[float, float], end: tuple[float, float], width: float, color: Color) -> None:
        """A thick line with round ends; ``width`` in the caller's units of x."""
        a, b = self._pixel(*start), self._pixel(*end)
        radius = width * self._scale[0] / 2
        area, x, y = self._around(np.minimum(a, b) - radius, np.maximum(a, b) + radius)
        along = b - a
        length_2 = float(along @ along) or 1.0
        t = np.clip(((x - a[0]) * along[0] + (y - a[1]) * along[1]) / length_2, 0.0, 1.0)
        self._blend(area, np.hypot(x - a[0] - t * along[0], y - a[1] - t * along[1]) - radius, color)

    def line(self, points: Sequence[tuple[float, float]], width: float, color: Color) -> None:
        """Segments from point to point."""
        for start, end in pairwise(points):
            self.segment(start, end, width, color)

    def between(self, x: np.ndarray, low: np.ndarray, high: np.ndarray, color: Color) -> None:
        """
        Overview:
            Fill what lies between two curves.
        Shapes:
            - x, low, high (:obj:`np.ndarray`): :math:`(N, )`, x ascending
        """
        left, top = self._pixel(x, high)
        bottom = self._pixel(x, low)[1]
        area, columns, rows = self._around(np.array([left[0], top.min()]), np.array([left[-1], bottom.max()]))
        upper, lower = (np.interp(columns, left, edge, left=np.inf, right=np.inf) for edge in (top, bottom))
        self._blend(area, np.maximum(upper - rows, rows - lower), color)

    def text(
        self, at: tuple[float, float], words: str, height: float, color: Color, align: float = 0.0, up: bool = False
    ) -> None:
        """
        Overview:
            A line of text, where the units of x and y are equally long; letters beyond ASCII become boxes.
        Arguments:
            - at (:obj:`tuple[float, float]`): a point on the line that the letters stand on
            - height (:obj:`float`): of capitals
            - align (:obj:`float`): how much of the text is in front of the point: 0, or 0.5 to centre it, or 1
            - up (:obj:`bool`): upwards, not to the right
        """
        scale, x, strokes = height / 6, 0.0, []
        for letter in words:
            glyph = _LETTERS.get(letter, _UNKNOWN) if letter != ' ' else '22'
            points = [[(int(s[k]) + x, int(s[k + 1]) - 2) for k in range(0, len(s), 2)] for s in glyph.split()]
            strokes += points if letter != ' ' else []
            x = max(p[0] for stroke in points for p in stroke) + (1.8 if letter != ' ' else 1.0)
        start = -align * (x - 1.8)
        for stroke in strokes:
            moved = [((px + start) * scale, py * scale) for px, py in stroke]
            placed = [(at[0] - py, at[1] + px) if up else (at[0] + px, at[1] + py) for px, py in moved]
            self.line(placed, 0.75 * scale, color)

    def disc(self, center: tuple[float, float], radius: float, color: Color) -> None:
        """A filled circle; ``radius`` in the caller's units of x."""
        self.segment(center, center, 2 * radius, color)

    def _pixel(self, x: Any, y: Any) -> np.ndarray:
        return ((np.stack([x, y], -1) - self._origin) * self._scale).T

    def _around(self, low: np.ndarray, high: np.ndarray) -> tuple[tuple[slice, slice], np.ndarray, np.ndarray]:
        """The part of the picture between two corners, and the coordinates of its pixels' centres."""
        x0, y0 = (max(math.floor(v) - 1, 0) for v in low)
        x1, y1 = (max(math.ceil(v) + 1, 0) for v in high)
        area = (slice(y0, min(y1, self._height)), slice(x0, min(x1, self._width)))
        return area, np.arange(area[1].start, area[1].stop) + 0.5, np.arange(area[0].start, area[0].stop)[:, None] + 0.5

    def _blend(self, area: tuple[slice, slice], distance: np.ndarray, color: Color) -> None:
        """Paint where ``distance`` to the shape's edge is negative; half a pixel to both sides is mixed."""
        cover = np.clip(0.5 - distance, 0.0, 1.0)[..., None]
        part = self.pixels[area]
        self.pixels[area] = np.rint(part * (1 - cover) + np.array(color) * cover).astype(np.uint8)


def encode_png(pixels: np.ndarray) -> bytes:
    """
    Overview:
        A PNG file of uint8 pixels; TensorBoard pictures need no imaging package this way.
    Shapes:
        - pixels (:obj:`np.ndarray`): :math:`(H, W, C)` with C = 1 (grey), 3 (RGB) or 4 (RGBA)
    """
    height, width, channels = pixels.shape
    colour = {1: 0, 3: 2, 4: 6}[channels]
    rows = np.zeros((height, 1 + width * channels), dtype=np.uint8)  # every row starts with filter type 0
    rows[:, 1:] = pixels.reshape(height, -1)
    parts = [
        (b'IHDR', struct.pack('>IIBBBBB', width, height, 8, colour, 0, 0, 0)),
        (b'IDAT', zlib.compress(rows.tobytes())),
        (b'IEND', b''),
    ]
    chunks = [struct.pack('>I', len(d)) + kind + d + struct.pack('>I', zlib.crc32(kind + d)) for kind, d in parts]
    return b'\x89PNG\r\n\x1a\n' + b''.join(chunks)
