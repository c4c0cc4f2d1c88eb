"""What BitFlip looks like, drawn in NumPy."""

import numpy as np

from nervex.utils.drawing import Canvas

CELL, LINE = 48, 720  # pixels: side of a bit (less where many have to fit), and longest line of bits
ONE, ZERO, RIGHT, WRONG = (40, 40, 40), (225, 225, 225), (70, 160, 90), (205, 80, 70)
EDGE = 0.08  # of a cell


def draw(bits: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """
    Overview:
        Bits above, the goal below, dark for 1; between them a line, green where they agree and red where not.
    Returns:
        - pixels (:obj:`np.ndarray`): uint8, height x width x 3; sides are multiples of 16
    """
    n = len(bits)
    width = -(-max(min(CELL * n, LINE), 16) // 16) * 16
    canvas = Canvas((width, 112), (0.0, n), (0.0, 2.3))
    for k in range(n):
        left, right = k + EDGE, k + 1 - EDGE
        canvas.rectangle(left, right, 1.3, 2.3 - EDGE, ONE if bits[k] else ZERO)
        canvas.rectangle(left, right, 1.08, 1.22, RIGHT if bits[k] == goal[k] else WRONG)
        canvas.rectangle(left, right, EDGE, 1.0, ONE if goal[k] else ZERO)
    return canvas.pixels
