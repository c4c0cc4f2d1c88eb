"""Rows, columns and windows of the adder give the same samples whatever the episode looks like."""

from collections import deque

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nervex.data.batch import Batch
from nervex.rl_utils import Adder

flags = st.lists(st.booleans(), min_size=1, max_size=14)


def rows_of(done):
    return [
        {
            'obs': torch.tensor([float(t)]),
            'next_obs': torch.tensor([t + 1.0]),
            'reward': torch.tensor([1.0 + t * t]),
            'value': torch.tensor([float(t % 3)]),
            'done': bool(d),
            'truncated': bool(d) and t % 2 == 0,
            'next_value': torch.tensor([float(t % 5)]),
        }
        for t, d in enumerate(done)
    ]


def columns_of(rows):
    columns = {key: torch.stack([torch.as_tensor(row[key]) for row in rows]) for key in rows[0]}
    return Batch.of({key: c[:, 0] if key in ('reward', 'value', 'next_value') else c for key, c in columns.items()})


@settings(max_examples=60, deadline=None)
@given(done=flags, nstep=st.integers(1, 6))
def test_rows_equal_columns(done, nstep):
    rows = rows_of(done)
    samples = Adder().get_nstep_return_data(rows, nstep, gamma=0.9)
    batch = Adder().get_nstep_return_data(columns_of(rows), nstep, gamma=0.9)
    assert len(samples) == len(batch) == len(done)
    for sample, column in zip(samples, batch):
        assert torch.equal(sample['reward'], column['reward']) and torch.equal(sample['next_obs'], column['next_obs'])
        assert sample['done'] == column['done'] and sample['truncated'] == column['truncated']
        if nstep > 1:
            assert torch.allclose(sample['value_gamma'], column['value_gamma'])


@settings(max_examples=60, deadline=None)
@given(length=st.integers(1, 20), window=st.integers(1, 8), nstep=st.integers(1, 5))
def test_windows_lose_and_shorten_nothing(length, window, nstep):
    rows, live, samples = rows_of([t == length - 1 for t in range(length)]), deque(), []
    for row in rows:
        live.append(row)
        if len(live) >= window:
            samples += Adder().get_nstep_return_data(Adder().get_traj(live, window, nstep), nstep)
    while live:
        samples += Adder().get_nstep_return_data(Adder().get_traj(live, window, nstep), nstep)
    whole = Adder().get_nstep_return_data(rows, nstep)
    assert [s['reward'].tolist() for s in samples] == [s['reward'].tolist() for s in whole]


@settings(max_examples=60, deadline=None)
@given(done=flags, nstep=st.integers(2, 5), block=st.integers(1, 6))
def test_blocks_lose_and_shorten_nothing(done, nstep, block):
    batch, overlap = columns_of(rows_of(done)), nstep - 1
    whole, parts, start = Adder().get_nstep_return_data(batch, nstep, gamma=0.9), [], 0
    while start + block + overlap < len(done):
        part = batch[start : start + block + overlap]
        parts.append(Adder().get_nstep_return_data(part, nstep, gamma=0.9, overlap=overlap))
        start += block
    parts.append(Adder().get_nstep_return_data(batch[start:], nstep, gamma=0.9))
    for key in ('reward', 'next_obs', 'done', 'value_gamma'):
        assert np.array_equal(np.concatenate([part[key].numpy() for part in parts]), whole[key].numpy())


@settings(max_examples=60, deadline=None)
@given(done=flags)
def test_advantages_of_rows_equal_those_of_columns(done):
    rows = rows_of(done)
    batch = Adder().get_gae(columns_of(rows), 2.0, 0.9, 0.8)
    assert torch.allclose(torch.cat([row['adv'] for row in Adder().get_gae(rows, 2.0, 0.9, 0.8)]), batch['adv'])
