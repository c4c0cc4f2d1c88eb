"""Shapes land where their coordinates say, with the area that they should have."""

import math

import numpy as np
import pytest

from nervex.utils.drawing import Canvas

BLACK = (0, 0, 0)


def ink(canvas):
    """Covered pixels, where black on white covers fully."""
    return (255 - canvas.pixels[..., 0].astype(float)) / 255


def test_rectangle_fills_exactly_its_pixels():
    """10 x 5 pixels stand for x 0..10, y 0..5; y 1..3 upwards are the rows 2 and 3 from above."""
    canvas = Canvas((10, 5), (0, 10), (0, 5))
    canvas.rectangle(2, 4, 1, 3, BLACK)
    expected = np.zeros((5, 10))
    expected[2:4, 2:4] = 1
    assert (ink(canvas) == expected).all()


def test_disc_has_the_area_and_the_centre_of_a_circle():
    canvas = Canvas((100, 100), (0, 10), (0, 10))
    canvas.disc((3, 8), 1.5, BLACK)  # 15 pixels; the centre is 20 pixels below the upper edge
    cover = ink(canvas)
    rows, columns = np.mgrid[0:100, 0:100] + 0.5
    assert cover.sum() == pytest.approx(math.pi * 15**2, rel=0.01)
    assert (cover * columns).sum() / cover.sum() == pytest.approx(30, abs=0.01)
    assert (cover * rows).sum() / cover.sum() == pytest.approx(20, abs=0.01)


def test_segment_has_the_area_of_a_bar_with_round_ends():
    canvas = Canvas((200, 100), (0, 20), (0, 10))
    canvas.segment((5, 2), (8, 6), 1, BLACK)  # length 5 -> 50 pixels, width 10 pixels
    assert ink(canvas).sum() == pytest.approx(50 * 10 + math.pi * 5**2, rel=0.01)


@pytest.mark.parametrize('center', [(-3, 5), (13, 5), (5, -3), (5, 13), (-50, -50)])
def test_shapes_outside_of_the_picture_leave_it_alone(center):
    canvas = Canvas((100, 100), (0, 10), (0, 10))
    canvas.disc(center, 2, BLACK)
    canvas.rectangle(center[0] - 1, center[0] + 1, center[1] - 1, center[1] + 1, BLACK)
    assert ink(canvas).sum() == 0


def test_a_shape_over_the_edge_is_cut():
    canvas = Canvas((100, 100), (0, 10), (0, 10))
    canvas.disc((0, 10), 2, BLACK)  # a quarter of a circle of 20 pixels
    assert ink(canvas).sum() == pytest.approx(math.pi * 20**2 / 4, rel=0.05)


def test_between_fills_what_two_curves_enclose():
    """A triangle over x 1..5 that opens to 4 at x = 5, in pixels of a tenth: 40 x 40 / 2."""
    canvas = Canvas((100, 100), (0, 10), (0, 10))
    canvas.between(np.array([1.0, 5.0]), np.array([2.0, 2.0]), np.array([2.0, 6.0]), BLACK)
    cover = ink(canvas)
    assert cover.sum() == pytest.approx(40 * 40 / 2, rel=0.02)
    assert cover[50, 48] == 1 and cover[50, 30] == cover[50, 55] == cover[85, 40] == 0


def boxes(canvas):
    """First and last row and column with ink."""
    rows, columns = np.nonzero(ink(canvas) > 0.2)
    return rows.min(), rows.max(), columns.min(), columns.max()


def test_text_stands_on_its_line_as_high_and_where_it_was_asked_for():
    canvas = Canvas((200, 100), (0, 200), (0, 100))
    canvas.text((50, 40), 'HH', 30, BLACK)  # 30 pixels of a 6 x 4 grid: 20 wide, 9 between, 20 wide
    top, bottom, left, right = boxes(canvas)
    assert (bottom, top) == pytest.approx((60, 29), abs=3) and (left, right) == pytest.approx((50, 99), abs=3)
    canvas = Canvas((200, 100), (0, 200), (0, 100))
    canvas.text((150, 40), 'HH', 30, BLACK, align=1)
    assert boxes(canvas)[2:] == pytest.approx((101, 150), abs=3)


def test_text_upwards_is_text_turned_by_a_quarter():
    across, up = (Canvas((100, 100), (0, 100), (0, 100)) for _ in range(2))
    across.text((20, 50), 'nervex', 10, BLACK)
    up.text((50, 20), 'nervex', 10, BLACK, up=True)
    assert np.abs(np.rot90(across.pixels).astype(int) - up.pixels).max() <= 1


def test_letters_differ_and_what_is_unknown_is_a_box():
    def drawn(letter):
        canvas = Canvas((20, 20), (0, 20), (0, 20))
        canvas.text((4, 6), letter, 10, BLACK)
        return canvas.pixels.tobytes()

    letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz.,:;-_/+=()[]'  # I and l look alike
    assert len({drawn(letter) for letter in letters} | {drawn('\u00e9')}) == len(letters) + 1
    assert drawn('\u00e9') == drawn('\u03b1')
