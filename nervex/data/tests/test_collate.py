"""Rows to batches of tensors and back."""

import copy
from collections import namedtuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nervex.data import Batch, default_collate, default_decollate, diff_shape_collate, timestep_collate

Pair = namedtuple('Pair', ['left', 'right'])


def test_kinds_of_values():
    row = {
        't': torch.ones(3),
        'one': torch.ones(1),
        'array': np.zeros((2, 2)),
        'float': 1.5,
        'int': 2,
        'bool': True,
        'str': 'x',
        'np': np.float64(0.5),
        'list': [torch.zeros(2), 1],
        'pair': Pair(1, torch.zeros(3)),
    }
    out = default_collate([row] * 4)
    assert out['t'].shape == (4, 3) and out['one'].shape == (4,) and out['array'].shape == (4, 2, 2)
    assert out['float'].dtype == out['np'].dtype == torch.float32 and out['float'].tolist() == [1.5] * 4
    assert out['int'].dtype == torch.int64 and out['bool'].dtype == torch.bool and out['str'] == ['x'] * 4
    assert out['list'][0].shape == (4, 2) and out['list'][1].tolist() == [1] * 4
    assert isinstance(out['pair'], Pair) and out['pair'].right.shape == (4, 3)


def test_eight_rows_of_four_there_and_back():
    rows = [torch.randn(4) for _ in range(8)]
    batch = default_collate(rows)
    assert batch.shape == (8, 4)
    back = default_decollate(batch)
    assert len(back) == 8 and all(torch.equal(a, b) for a, b in zip(rows, back))


def test_decollate_gives_tensors_of_one_element_for_a_flat_tensor_and_leaves_ignored_lists():
    states = [object(), object()]
    rows = default_decollate(
        {'a': torch.tensor([1, 2]), 'b': [torch.zeros(2, 3), torch.ones(2, 3)], 'prev_state': states}
    )
    assert rows[1]['a'].tolist() == [2] and rows[1]['a'].shape == (1,) and rows[1]['prev_state'] is states[1]
    assert rows[0]['b'][1].tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match='different numbers of rows'):
        default_decollate({'a': torch.zeros(2), 'b': torch.zeros(3)})


def test_a_batch_collates_like_its_rows():
    batch = Batch(
        obs=torch.randn(5, 3),
        reward=np.ones((5, 1), np.float32),
        done=np.zeros(5, bool),
        f=np.ones(5),
        deep={'x': np.arange(5)},
    )
    fast, slow = default_collate(batch), default_collate(list(batch))
    assert type(fast) is dict and fast['reward'].shape == (5,)
    for key in ('obs', 'reward', 'done', 'f'):
        assert fast[key].dtype == slow[key].dtype and torch.equal(fast[key], slow[key]), key
    assert torch.equal(fast['deep']['x'], slow['deep']['x'])


def test_errors_say_what_differs():
    with pytest.raises(KeyError, match=r"row 1 .*'b'"):
        default_collate([{'a': 1}, {'a': 1, 'b': 2}])
    with pytest.raises(TypeError, match='object'):
        default_collate([object()])
    with pytest.raises(ValueError, match='no rows'):
        default_collate([])
    with pytest.raises(ValueError, match=r'\[1, 2\]'):
        default_collate([[1], [1, 2]])


def test_timestep_collate_puts_time_first():
    rows = [
        {
            'obs': [torch.full((3,), float(10 * b + t)) for t in range(4)],
            'reward': [torch.ones(1)] * 4,
            'nested': [{'x': torch.tensor(b)}] * 4,
            'done': [False] * 4,
            'prev_state': [f'state {b} {t}' for t in range(4)],
        }
        for b in range(2)
    ]
    out = timestep_collate(rows)
    assert out['obs'].shape == (4, 2, 3) and out['obs'][3, 1].tolist() == [13.0] * 3
    assert out['reward'].shape == out['done'].shape == (4, 2) and out['nested']['x'].tolist() == [[0, 1]] * 4
    assert out['prev_state'] == [
        ['state 0 0', 'state 1 0'],
        ['state 0 1', 'state 1 1'],
        ['state 0 2', 'state 1 2'],
        ['state 0 3', 'state 1 3'],
    ]
    assert 'prev_state' in rows[0] and len(rows[0]['obs']) == 4  # untouched
    out['obs'][:] = 0
    assert rows[1]['obs'][3].tolist() == [13.0] * 3


def test_timestep_collate_of_columns_equals_that_of_rows():
    sequences = Batch(obs=np.random.default_rng(0).random((2, 4, 3), dtype=np.float32), reward=np.ones((2, 4, 1)))
    fast = timestep_collate(sequences)
    slow = timestep_collate([{k: list(torch.as_tensor(v).float()) for k, v in row.items()} for row in sequences])
    assert fast['obs'].shape == (4, 2, 3) and torch.equal(fast['obs'], slow['obs'])
    assert fast['reward'].shape == (4, 2) and torch.equal(fast['reward'], slow['reward'])


def test_diff_shape_collate_tolerates_what_does_not_stack():
    out = diff_shape_collate(
        [
            {'a': None, 'b': torch.zeros(2), 'c': torch.zeros(1), 'd': 1},
            {'a': torch.zeros(1), 'b': torch.zeros(3), 'c': torch.zeros(1), 'd': 2},
        ]
    )
    assert out['a'][0] is None and [t.shape for t in out['b']] == [(2,), (3,)]
    assert out['c'].shape == (2, 1) and out['d'].tolist() == [1, 2]


values = st.recursive(
    st.sampled_from(['tensor', 'flat', 'int', 'bool']),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from('xyz'), inner, min_size=1, max_size=3), st.lists(inner, min_size=1, max_size=2)
    ),
    max_leaves=6,
)


def make(kind, k):
    if isinstance(kind, dict):
        return {name: make(part, k) for name, part in kind.items()}
    if isinstance(kind, list):
        return [make(part, k) for part in kind]
    return {
        'tensor': torch.full((2, 3), float(k)),
        'flat': torch.tensor([float(k)]),
        'int': torch.tensor([k]),
        'bool': torch.tensor([k % 2 == 0]),
    }[kind]


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return torch.equal(a, b)


@settings(max_examples=50, deadline=None)
@given(kind=values, n=st.integers(1, 5))
def test_decollate_is_the_inverse_of_collate(kind, n):
    rows = [make(kind, k) for k in range(n)]
    assert all(same(a, b) for a, b in zip(rows, default_decollate(default_collate(rows))))


def test_rows_that_do_not_stack_are_named_by_key_and_shape():
    rows = [{'obs': {'image': torch.zeros(2)}}, {'obs': {'image': torch.zeros(3)}}]
    with pytest.raises(ValueError, match=r"key 'obs': key 'image': .*\(2,\) torch.float32, \(3,\) torch.float32"):
        default_collate(rows)
    with pytest.raises(ValueError, match=r"key 'obs': .*\(5, 2\).*\(4, 2\)"):
        timestep_collate([{'obs': torch.zeros(5, 2)}, {'obs': torch.zeros(4, 2)}])


def test_bools_among_numbers_stay_numbers():
    assert default_collate([True, 2]).tolist() == [1, 2] and default_collate([True, False]).dtype == torch.bool
    assert default_collate([True, 0.5]).tolist() == [1.0, 0.5]


def test_timestep_collate_of_a_batch_aliases_nothing():
    batch = Batch(
        obs=torch.zeros(4, 5, 2),
        one=torch.zeros(4, 5, 1),
        IS=torch.zeros(4),
        nest={'x': torch.zeros(4, 3)},
        array=np.zeros((4, 5)),
    )
    before = copy.deepcopy(batch)
    collated = timestep_collate(batch)
    for tensor in (*[collated[name] for name in ('obs', 'one', 'IS', 'array')], collated['nest']['x']):
        tensor.fill_(7)
    assert batch == before
