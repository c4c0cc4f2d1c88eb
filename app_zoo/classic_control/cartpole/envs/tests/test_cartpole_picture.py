"""What CartPole shows."""

import numpy as np
import pytest

from app_zoo.classic_control.cartpole.envs import CartPoleEnv
from app_zoo.classic_control.cartpole.envs.cartpole_picture import CART, POLE, draw


def columns_of(picture, color):
    return np.flatnonzero((picture == color).all(2).any(0))


def test_the_cart_is_where_the_position_says():
    """480 pixels for 4.8 m: a cart of 0.6 m at 0.5 m covers the 60 pixels from 260 on."""
    columns = columns_of(draw((0.5, 0.0, 0.0, 0.0)), CART)
    assert columns[0] == 260 and columns[-1] == 319


@pytest.mark.parametrize('angle', [0.2, -0.2])
def test_the_pole_leans_to_the_side_of_its_angle(angle):
    picture = draw((0.0, 0.0, angle, 0.0))
    rows, columns = np.nonzero((picture == POLE).all(2))
    top = columns[rows == rows.min()].mean() - 240
    assert top * angle > 0 and abs(top) == pytest.approx(100 * np.sin(0.2), abs=2)


def test_render_follows_the_state_and_needs_a_reset():
    env = CartPoleEnv({})
    with pytest.raises(RuntimeError, match='reset'):
        env.render()
    env.seed(0)
    env.reset()
    before = env.render()
    assert before.dtype == np.uint8 and before.shape == (320, 480, 3)
    for _ in range(5):
        env.step(1)
    assert (env.render() != before).any()
