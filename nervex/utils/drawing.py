"""Simple pictures in NumPy, for environments that show themselves without a graphics package."""

from __future__ import annotations

import math

import numpy as np

Color = tuple[int, int, int]


class Canvas:
    """
    Overview:
        An RGB picture on which shapes are drawn with smooth edges. Coordinates are the caller's own, with y upwards.
    Arguments:
        - size (:obj:`tuple[int, int]`): width and height in pixels
        - x, y (:obj:`tuple[float, float]`): what the left and right, and the lower and upper edges stand for
    Interfaces:
        rectangle, segment, disc, pixels
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

    def disc(self, center: tuple[float, float], radius: float, color: Color) -> None:
        """A filled circle; ``radius`` in the caller's units of x."""
        self.segment(center, center, 2 * radius, color)

    def _pixel(self, x: float, y: float) -> np.ndarray:
        return (np.array([x, y]) - self._origin) * self._scale

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
