"""Rows that say less than usual, and rows that do not fit."""

from collections import deque

import numpy as np
import pytest
import torch

from nervex.data.batch import Batch
from nervex.rl_utils import Adder
from nervex.rl_utils.checks import ShapeError


def valued(count, **extra):
    return [{'value': torch.tensor([1.0]), 'reward': 1.0, **extra} for _ in range(count)]


def test_rows_that_say_nothing_of_an_end_go_on():
    rows = deque({'reward': float(t)} for t in range(3))
    window = Adder().get_traj(rows, 2, return_num=1)
    assert [row['reward'] for row in window] == [0.0, 1.0] and [row['reward'] for row in rows] == [1.0, 2.0]
    samples = Adder().get_nstep_return_data(list(rows), 2)
    assert [sample['reward'].tolist() for sample in samples] == [[1.0, 2.0], [2.0, 0.0]] and 'done' not in samples[0]
    # errors 1 + .5 * 1 - 1 = .5 and 1 + .5 * 0 - 1 = 0
    assert [row['adv'].item() for row in Adder().get_gae(valued(2), 0.0, 0.5, 0.5)] == [0.5, 0.0]


@pytest.mark.parametrize('as_batch', [False, True])
def test_an_end_by_the_time_limit_is_not_worth_zero(as_batch):
    rows = [*valued(1, done=False, truncated=False), *valued(1, done=True, truncated=True)]
    if as_batch:
        rows = Batch.of({key: torch.tensor([float(row[key]) for row in rows]) for key in rows[0]})
    # the last row lends its value 1 and goes: 1 + .5 * 1 - 1 = .5
    samples = Adder().get_gae_with_default_last_value(rows, True, 0.5, 0.5)
    assert [sample['adv'].item() for sample in samples] == [0.5]


def test_an_end_by_the_time_limit_takes_its_own_next_value():
    rows = valued(2, done=False, truncated=False, next_value=torch.tensor([1.0]))
    rows[1].update(done=True, truncated=True, next_value=torch.tensor([4.0]))
    # errors 1 + .5 - 1 = .5 and 1 + .5 * 4 - 1 = 2; advantages .5 + .25 * 2 = 1 and 2
    samples = Adder().get_gae_with_default_last_value(rows, True, 0.5, 0.5)
    assert [sample['adv'].item() for sample in samples] == [1.0, 2.0]


@pytest.mark.parametrize(
    'call',
    [
        lambda rows: Adder().get_nstep_return_data(rows, 2),
        lambda rows: Adder().get_gae(rows, 0.0),
    ],
)
def test_a_row_has_one_reward(call):
    rows = [{'value': 0.0, 'reward': torch.ones(2), 'done': False}]
    with pytest.raises(ShapeError, match=r"'reward' of a row has shape \(2,\), expected one number a step"):
        call(rows)


def test_what_is_neither_rows_nor_a_batch_is_a_type_error():
    with pytest.raises(TypeError, match='got a list, expected the live deque'):
        Adder().get_traj(valued(2), 2)
    with pytest.raises(TypeError, match='got a dict, expected dict rows in a list or deque, or a Batch'):
        Adder().get_nstep_return_data({'reward': torch.ones(3)}, 2)


@pytest.mark.parametrize('arguments', [(0,), (-1,), (1.5,), ('all',), (2, -1)])
def test_a_window_has_a_length(arguments):
    with pytest.raises(ValueError, match='traj_len is an int of at least 1'):
        Adder().get_traj(deque(valued(2)), *arguments)


def test_without_new_goals_there_are_no_rows():
    rows = [{'obs': np.zeros(2), 'next_obs': np.ones(2), 'reward': 0.0, 'done': False}]
    batch = Batch.of({key: torch.as_tensor(np.asarray([row[key] for row in rows])) for key in rows[0]})
    assert Adder(her_replay_k=0).get_her(rows) == [] and len(Adder(her_replay_k=0).get_her(batch)) == 0
    # arrays are taken as well: state 1 is reached, which is the new goal
    assert Adder(her_strategy='final').get_her(rows)[0]['reward'].item() == 1.0
    with pytest.raises(ValueError, match='her_replay_k must be at least 0, got -1'):
        Adder(her_replay_k=-1)
