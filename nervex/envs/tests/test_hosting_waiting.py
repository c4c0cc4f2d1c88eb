"""How the processes of an env manager wait for each other, and in which form actions reach an env."""

import os
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from nervex.envs import GymEnv
from nervex.envs.env.base_env import BaseEnvInfo
from nervex.envs.hosting import waiting
from nervex.envs.hosting.actions import ARRAY, KEPT, NUMPY, PLAIN, ActionRows
from nervex.envs.hosting.block import Leaf
from nervex.envs.spaces import ActionCodec
from nervex.worker.actor.env_manager import create_env_manager


class Recorder(gymnasium.Env):
    """Keeps the actions that it was given."""

    observation_space, action_space = spaces.Box(-1, 1, (2,), np.float32), spaces.Discrete(3)

    def __init__(self) -> None:
        self.actions = []

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        return np.zeros(2, np.float32), {}

    def step(self, action: object) -> tuple:
        self.actions.append(action)
        return np.zeros(2, np.float32), 1.0, False, False, {}


def rows() -> ActionRows:
    return ActionRows(BaseEnvInfo(1, None, ActionCodec(spaces.Discrete(3), False).info, None).act_space)


@pytest.mark.parametrize('form, kind', [(PLAIN, int), (NUMPY, np.int64), (ARRAY, np.ndarray)])
def test_each_form_keeps_the_number(form, kind):
    given = [0, 2, -1, KEPT, 10**12]  # the last three are no actions of the env: it has to see and refuse them
    split = rows().split(np.array(given), form)
    assert [type(action) for action in split] == [kind] * len(given)
    assert [int(action) for action in split] == given


def test_numbers_that_are_no_ints_are_not_turned_into_ints():
    split = rows().split(np.array([1.0, 0.5], np.float32), NUMPY)
    assert [type(action) for action in split] == [np.float32] * 2 and split[1] == 0.5


def test_a_gymnasium_env_gets_numpy_ints_from_whole_and_from_partial_steps():
    envs = [Recorder() for _ in range(3)]
    cfgs = [dict(env_fn=lambda env=env: env) for env in envs]
    with create_env_manager('base', GymEnv, cfgs, {}) as manager:
        manager.launch()
        manager.advance(manager.all_ids, np.array([0, 1, 2]))
        manager.advance(np.array([2, 0]), np.array([1, 2]))
        given = [[int(a) for a in env.actions] for env in envs]
        types = {type(a) for env in envs for a in env.actions}
    assert given == [[0, 2], [1], [2, 1]] and types == {np.int64}


def test_waiting_awake_ends():
    cells = memoryview(np.array([3, 4]))
    assert not waiting.spin_while(cells, 0, 3, seconds=1e-4)
    assert waiting.spin_while(cells, 1, 3, seconds=1e-4)


@pytest.mark.parametrize('here, other, moves', [(2, 2, True), (1, 2, False), (0, 0, False)])
def test_a_worker_leaves_the_core_of_the_process_that_it_waits_for(monkeypatch, here, other, moves):
    asked = []
    monkeypatch.setattr(waiting, 'core', lambda: here)
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: {0, 1, 5}, raising=False)
    monkeypatch.setattr(os, 'sched_setaffinity', lambda pid, allowed: asked.append(allowed), raising=False)
    apart = waiting.Apart()
    for _ in range(waiting.PART_EVERY):
        apart.check(other)
    assert asked == ([{0, 5}, {0, 1, 5}] if moves else [])


@pytest.mark.parametrize('dtype', [np.uint8, np.float32, np.int64, bool, object])
def test_a_layout_that_was_sent_to_a_subprocess_has_the_dtypes_of_arrays(dtype):
    leaf = pickle.loads(pickle.dumps(Leaf((2, 3), dtype)))
    assert leaf.shape == (2, 3) and leaf.dtype is np.zeros(1, dtype).dtype  # else every row is converted
