"""What BitFlip shows."""

import numpy as np
import pytest

from app_zoo.classic_control.bitflip.envs import BitFlipEnv
from app_zoo.classic_control.bitflip.envs.bitflip_picture import ONE, RIGHT, WRONG, ZERO, draw


def colors(picture, row, n):
    """The colour in the middle of each cell, in the given part of the height."""
    height, width = picture.shape[:2]
    return [tuple(picture[int(row * height), int((k + 0.5) * width / n)].tolist()) for k in range(n)]


@pytest.mark.parametrize('n', [1, 5, 40])
def test_bits_goal_and_where_they_differ(n):
    rng = np.random.default_rng(n)
    bits, goal = rng.integers(0, 2, n).astype(np.float32), rng.integers(0, 2, n).astype(np.float32)
    picture = draw(bits, goal)
    assert picture.shape[0] % 16 == picture.shape[1] % 16 == 0
    assert colors(picture, 0.2, n) == [ONE if b else ZERO for b in bits]
    assert colors(picture, 0.5, n) == [RIGHT if b == g else WRONG for b, g in zip(bits, goal)]
    assert colors(picture, 0.8, n) == [ONE if g else ZERO for g in goal]


def test_render_follows_the_state_to_its_end_and_needs_a_reset():
    env = BitFlipEnv(dict(n_bits=3))
    with pytest.raises(RuntimeError, match='reset'):
        env.render()
    env.seed(0)
    obs = env.reset()
    assert colors(env.render(), 0.5, 3).count(WRONG) == int((obs[:3] != obs[3:]).sum())
    for bit in np.flatnonzero(obs[:3] != obs[3:]):
        timestep = env.step(bit)
    assert timestep.done and colors(env.render(), 0.5, 3) == [RIGHT] * 3  # also of the final state
