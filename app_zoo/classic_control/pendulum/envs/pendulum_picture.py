"""What a pendulum looks like, drawn in NumPy."""

import math

import numpy as np

from nervex.utils.drawing import Canvas

SIZE = (320, 320)  # pixels; multiples of 16, as video codecs like them
RANGE = (-1.5, 1.5)  # metres, both ways
ROD_LENGTH, ROD_WIDTH, AXLE = 1.0, 0.16, 0.05
MAX_TORQUE, BAR_LENGTH, BAR_PLACE = 2.0, 1.2, -1.35
ROD, HUB, BAR, MIDDLE = (204, 77, 77), (30, 30, 30), (90, 130, 200), (150, 150, 150)


def draw(angle: float, torque: float) -> np.ndarray:
    """
    Overview:
        The picture of an angle (0 is upright, growing against the clock, as in the equations), to scale; below it a bar
        shows the torque that is applied, to the left for one against the clock.
    Returns:
        - pixels (:obj:`np.ndarray`): uint8, shape (320, 320, 3)
    """
    canvas = Canvas(SIZE, RANGE, RANGE)
    end = (-ROD_LENGTH * math.sin(angle), ROD_LENGTH * math.cos(angle))
    canvas.segment((0.0, 0.0), end, ROD_WIDTH, ROD)
    canvas.disc((0.0, 0.0), AXLE, HUB)
    tip = -BAR_LENGTH * torque / MAX_TORQUE
    canvas.rectangle(min(tip, 0.0), max(tip, 0.0), BAR_PLACE - 0.05, BAR_PLACE + 0.05, BAR)
    canvas.rectangle(-0.01, 0.01, BAR_PLACE - 0.08, BAR_PLACE + 0.08, MIDDLE)
    return canvas.pixels
