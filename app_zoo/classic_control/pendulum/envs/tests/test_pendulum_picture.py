"""What Pendulum shows."""

import math

import numpy as np
import pytest

from app_zoo.classic_control.pendulum.envs import PendulumEnv
from app_zoo.classic_control.pendulum.envs.pendulum_picture import BAR, ROD, draw


def place(picture, color):
    """Mean row and column of a colour, from the middle, in pixels."""
    rows, columns = np.nonzero((picture == color).all(2))
    return rows.mean() - 159.5, columns.mean() - 159.5


@pytest.mark.parametrize('angle,up,left', [(0.0, 1, 0), (math.pi, -1, 0), (math.pi / 2, 0, 1), (-math.pi / 2, 0, -1)])
def test_the_rod_points_to_its_angle(angle, up, left):
    row, column = place(draw(angle, 0.0), ROD)
    assert [round(-row / 50), round(-column / 50)] == [up, left]


def test_the_bar_is_as_long_as_the_torque():
    """320 pixels for 3 m: 1.2 m at full torque are 128 pixels, of which the middle line covers one."""
    full, half = draw(0.0, -2.0), draw(0.0, 1.0)
    width = [(p == BAR).all(2).any(0).sum() for p in (full, half)]
    assert width[0] == pytest.approx(127, abs=1) and width[1] == pytest.approx(63, abs=1)
    assert place(full, BAR)[1] > 0 > place(half, BAR)[1]


def test_render_follows_the_state_and_needs_a_reset():
    env = PendulumEnv({})
    with pytest.raises(RuntimeError, match='reset'):
        env.render()
    env.seed(0)
    env.reset()
    before = env.render()
    assert before.dtype == np.uint8 and before.shape == (320, 320, 3) and not (before == BAR).all(2).any()
    env.step([2.0])
    assert (env.render() != before).any() and (env.render() == BAR).all(2).any()
