"""What CartPole looks like, drawn in NumPy."""

import math
from collections.abc import Sequence

import numpy as np

from nervex.utils.drawing import Canvas

SIZE = (480, 320)  # pixels; multiples of 16, as video codecs like them
X_RANGE, Y_RANGE = (-2.4, 2.4), (-1.0, 2.2)  # metres
CART_HALF, CART_HEIGHT, POLE_LENGTH, POLE_WIDTH, AXLE = 0.3, 0.3, 1.0, 0.1, 0.06
TRACK, CART, POLE, HUB = (120, 120, 120), (30, 30, 30), (202, 152, 101), (129, 132, 203)


def draw(state: Sequence[float]) -> np.ndarray:
    """
    Overview:
        The picture of a state (position, velocity, angle, angular velocity), to scale.
    Returns:
        - pixels (:obj:`np.ndarray`): uint8, shape (320, 480, 3)
    """
    x, _, angle, _ = state
    canvas = Canvas(SIZE, X_RANGE, Y_RANGE)
    canvas.rectangle(*X_RANGE, -0.01, 0.01, TRACK)
    canvas.rectangle(x - CART_HALF, x + CART_HALF, -CART_HEIGHT / 2, CART_HEIGHT / 2, CART)
    top = (x + POLE_LENGTH * math.sin(angle), CART_HEIGHT / 2 + POLE_LENGTH * math.cos(angle))
    canvas.segment((x, CART_HEIGHT / 2), top, POLE_WIDTH, POLE)
    canvas.disc((x, CART_HEIGHT / 2), AXLE, HUB)
    return canvas.pixels
