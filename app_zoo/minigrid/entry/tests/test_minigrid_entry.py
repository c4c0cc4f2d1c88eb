"""What the config of MiniGrid shows of a room, and what it says without the package."""

import sys

import numpy as np
import pytest

from app_zoo.minigrid.entry import minigrid_ppo_default_config
from nervex.config import compile_config
from nervex.envs import GymEnv
from nervex.utils import ConfigError


def test_squares_and_direction_are_bits_of_one_vector_without_the_mission():
    pytest.importorskip('minigrid')
    with GymEnv(dict(minigrid_ppo_default_config.env)) as env:
        env.seed(0)
        obs = env.reset()
        assert obs.shape == env.info().obs_space.shape == (4 + 7 * 7 * 20,)
        assert set(np.unique(obs)) == {0.0, 1.0}
        assert obs.sum() == 1 + 7 * 7 * 3  # one direction; kind, colour and state of each square


def test_without_the_package_its_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.split('.')[0] == 'minigrid']:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, 'minigrid', None)
    with pytest.raises(ConfigError) as caught:
        compile_config('minigrid_ppo', overrides=('env.env_id=MiniGrid-Nowhere-v0',), needs_env=True)
    assert 'pip install "nervex[minigrid]"' in str(caught.value)
