"""Batch: columns and rows at once."""

import copy
import pickle

import numpy as np
import pytest
import torch
from easydict import EasyDict
from hypothesis import given, settings
from hypothesis import strategies as st

from nervex.data import Batch


def numbers(n, mixed=True):
    batch = Batch(a=np.arange(n), b={'c': np.arange(2.0 * n).reshape(n, 2)})
    if mixed:
        batch.t = torch.arange(n * 3).reshape(n, 3)
    return batch


# ---- the tutorial example
def test_values_become_columns_and_print_readably():
    data = Batch(a=4, b=[5, 5], c='2312312', d=('a', -2, -3))
    assert isinstance(data.b, np.ndarray) and data.b.tolist() == [5, 5]
    assert data.d.dtype == object
    data.b = np.array([3, 4, 5])
    assert (
        repr(data)
        == """Batch(
    a: 4,
    b: array([3, 4, 5]),
    c: '2312312',
    d: array(['a', '-2', '-3'], dtype=object),
)"""
    )


def test_in_place_arithmetic_on_an_index_of_all_columns():
    data = Batch(obs={'index': np.zeros((2, 3))}, act=torch.zeros((2, 2)))
    data[:, 1] += 6
    assert (
        repr(data[-1])
        == """Batch(
    obs: Batch(
             index: array([0., 6., 0.]),
         ),
    act: tensor([0., 6.]),
)"""
    )


def test_list_of_dicts_is_stacked():
    data = Batch([{'a': 0.5, 'b': 'hello'}, {'a': 1.5, 'b': 'world'}])
    assert data.a.tolist() == [0.5, 1.5] and data.b.tolist() == ['hello', 'world'] and data.b.dtype == object


def test_batch_dimension_of_a_single_observation():
    batch = Batch(obs=[np.array([1.0, 2.0])])
    assert batch.obs.shape == (1, 2) and len(batch) == 1


# ---- access
def test_attribute_and_key_access_are_the_same_column():
    batch = numbers(3)
    assert batch.a is batch['a'] and batch.b.c is batch['b']['c']
    batch.new = [1, 2, 3]
    assert 'new' in batch and batch['new'].tolist() == [1, 2, 3]
    del batch.new
    assert 'new' not in batch
    with pytest.raises(AttributeError, match="no column 'new'; it has: a, b, t"):
        _ = batch.new


def test_columns_named_like_methods_do_not_hide_them():
    batch = Batch.of({'keys': np.arange(2), 'copy': np.arange(2)})
    assert list(batch.keys()) == ['keys', 'copy'] and batch['copy'].tolist() == [0, 1]


def test_length_and_rows():
    batch = numbers(4)
    assert len(batch) == 4 and len(list(batch)) == 4
    row = batch[-1]
    assert row.a == 3 and row.b.c.tolist() == [6.0, 7.0] and row.t.tolist() == [9, 10, 11]
    with pytest.raises(TypeError, match='one row'):
        len(row)
    with pytest.raises(TypeError):
        len(Batch(a=1, b=[1, 2]))
    with pytest.raises(IndexError, match="column 'a'"):
        _ = batch[4]


def test_slices_are_views_and_gathers_are_copies():
    batch = numbers(6)
    batch[2:4].a[:] = 0
    assert batch.a.tolist() == [0, 1, 0, 0, 4, 5]
    picked = batch[np.array([0, 5])]
    picked.a[:] = 9
    assert batch.a[5] == 5


@pytest.mark.parametrize(
    'key',
    [
        [2, 0],
        np.array([2, 0], np.uint8),
        torch.tensor([2, 0]),
        np.array([-2, 0]),
        [True, False, True, False],
        slice(None, None, -2),
        slice(1, 3),
        slice(9, 12),
        [],
    ],
)
def test_every_kind_of_index_means_the_same_for_numpy_and_torch(key):
    batch = Batch(x=np.arange(4), y=torch.arange(4))
    found = batch[key]
    expected = np.arange(4)[
        np.asarray(key, dtype=np.int64 if isinstance(key, list) and not key else None)
        if not isinstance(key, slice)
        else key
    ]
    if isinstance(key, np.ndarray):
        expected = np.arange(4)[key.astype(np.int64)]
    assert found.x.tolist() == found.y.tolist() == expected.tolist()


def test_splitting_covers_every_row_once():
    batch = numbers(7)
    pieces = list(batch.split(3))
    assert [len(p) for p in pieces] == [3, 3, 1] and Batch.cat(pieces) == batch
    mixed = Batch.cat(batch.split(3, shuffle=True, rng=np.random.default_rng(0)))
    assert sorted(mixed.a.tolist()) == list(range(7)) and mixed != batch
    assert (mixed.t[:, 0].numpy() == 3 * mixed.a).all()  # rows stay together


# ---- assignment
def test_row_assignment():
    batch = numbers(3)
    batch[0] = {'a': 7, 'b': {'c': [1.0, 1.0]}, 't': torch.zeros(3, dtype=torch.int64)}
    assert batch.a[0] == 7 and batch.b.c[0].tolist() == [1.0, 1.0]
    batch[np.array([True, False, True])] = batch[1]
    assert batch.a.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    'key, value, words',
    [
        (slice(0, 2), {'a': np.zeros(3)}, ["'a'", '(4,)', '(3,)', 'int64', 'float64']),
        (0, {'a': 0.5}, ["'a'", 'float64', 'int64', 'exactly']),
    ],
)
def test_row_assignment_that_does_not_fit_names_everything(key, value, words):
    batch = Batch(a=np.arange(4))
    with pytest.raises(ValueError) as e:
        batch[key] = value
    assert all(word in str(e.value) for word in words)
    assert batch.a.tolist() == [0, 1, 2, 3]


def test_row_assignment_needs_the_same_columns():
    with pytest.raises(KeyError, match='missing'):
        numbers(2)[0] = {'a': 1}
    with pytest.raises(KeyError, match="'z'"):
        Batch(a=[1, 2])[0] = {'a': 1, 'z': 2}


def test_new_column_of_another_length_is_refused():
    batch = Batch(a=[1, 2, 3])
    with pytest.raises(ValueError, match=r"column 'x' of shape \(2,\).*3 rows"):
        batch.x = np.zeros(2)
    assert 'x' not in batch


# ---- arithmetic
def test_arithmetic_with_numbers_and_batches():
    batch = numbers(3)
    assert (batch + 1 - 1) == batch and (2 * batch) == batch + batch and (-batch) == batch * -1
    assert (1 - batch).a.tolist() == [1, 0, -1]
    assert (batch / 2).b.c[2].tolist() == [2.0, 2.5]
    assert batch.a.tolist() == [0, 1, 2]


def test_arithmetic_errors_name_the_column():
    with pytest.raises(TypeError, match="column 's'"):
        Batch(s=np.array([None, None])) + 1
    with pytest.raises(ValueError, match=r"column\(s\) \['b'\]"):
        Batch(a=[1]) + Batch(a=[1], b=[2])


# ---- joining
def test_stack_makes_rows_a_batch_and_cat_joins_them():
    batch = numbers(3)
    assert Batch.stack(list(batch)) == batch
    assert Batch.cat([batch[:1], batch[1:]]) == batch
    assert Batch.stack([Batch(a=np.array([0.0, 2.0]), b=5), Batch(a=np.array([1.0, 3.0]), b=-5)]).b.tolist() == [5, -5]
    assert Batch.cat([Batch(), batch]) == batch


def test_joining_different_columns_names_them():
    with pytest.raises(ValueError, match='b'):
        Batch.cat([Batch(a=[1]), Batch(a=[1], b=[2])])
    with pytest.raises(ValueError, match=r"column 'a'.*\(1, 2\).*\(1, 3\)"):
        Batch.cat([Batch(a=np.zeros((1, 2))), Batch(a=np.zeros((1, 3)))])


# ---- rows in
def test_rows_of_documented_kinds():
    rows = [
        EasyDict(
            obs=torch.full((2,), float(k)),
            reward=torch.ones(1),
            done=k == 1,
            n=k,
            f=0.5,
            none=None,
            s='x',
            nested={'deep': np.zeros(3, np.uint8)},
        )
        for k in range(2)
    ]
    batch = Batch.from_rows(rows)
    assert batch.obs.shape == (2, 2) and isinstance(batch.obs, torch.Tensor) and batch.reward.shape == (2, 1)
    assert batch.done.dtype == bool and batch.n.dtype == np.int64 and batch.f.dtype == np.float64
    assert batch.none.dtype == object and batch.none.tolist() == [None, None] and batch.s.tolist() == ['x', 'x']
    assert batch.nested.deep.shape == (2, 3) and batch.nested.deep.dtype == np.uint8


@pytest.mark.parametrize('shapes', [[(2, 3), (3, 2)], [(2, 3), (2, 4)], [(2, 3), (6,)], [(2,), (4,), (3,)]])
def test_arrays_of_other_shapes_do_not_stack(shapes):
    with pytest.raises(ValueError, match="column 'a' does not join"):
        Batch.stack([Batch(a=np.zeros(shape)) for shape in shapes])


@pytest.mark.parametrize('shape', [(), (0,), (3,), (2, 0), (2, 3)])
def test_stacking_is_that_of_numpy(shape):
    parts = [np.arange(np.prod(shape)).reshape(shape).astype(dtype) for dtype in (np.int32, np.float32, np.int64)]
    stacked = Batch.stack([Batch(a=part) for part in parts]).a
    assert stacked.dtype == np.stack(parts).dtype and np.array_equal(stacked, np.stack(parts))


def test_values_that_do_not_stack_are_kept_as_they_are():
    ragged = [torch.zeros(1), torch.zeros(2)]
    batch = Batch.from_rows([{'r': ragged[0], 'm': 1, 'b': True}, {'r': ragged[1], 'm': None, 'b': 2}])
    assert batch.r[1] is ragged[1] and batch.m.tolist() == [1, None] and batch.b.tolist() == [True, 2]


def test_rows_with_different_columns_are_refused():
    with pytest.raises(KeyError, match=r"row 1 .*'b'"):
        Batch.from_rows([{'a': 1}, {'a': 1, 'b': 2}])


# ---- conversions
def test_to_torch_shrinks_doubles_and_keeps_the_rest():
    columns = Batch(f=np.zeros(2), u=np.zeros(2, np.uint8), o=np.array([None, 1]), n={'x': np.ones(2, bool)}).to_torch()
    assert type(columns) is dict and columns['f'].dtype == torch.float32 and columns['u'].dtype == torch.uint8
    assert columns['o'].dtype == object and columns['n']['x'].dtype == torch.bool


def test_to_device_keeps_dtypes_and_to_dict_is_plain():
    batch = Batch(f=np.zeros(2), n={'x': torch.ones(2, dtype=torch.float64)})
    moved = batch.to('cpu')
    assert moved.f.dtype == moved.n.x.dtype == torch.float64
    assert batch.to('meta').f.device.type == 'meta'
    plain = batch.to_dict()
    assert type(plain) is dict and type(plain['n']) is dict and plain['f'] is batch.f


def test_of_does_not_copy():
    columns = {'a': np.arange(3)}
    assert Batch.of(columns)._columns is columns


def test_equality_sees_values_columns_and_shapes():
    assert Batch(a=[1, 2]) == Batch(a=torch.tensor([1, 2])) and Batch(a=[1]) != Batch(a=[2])
    assert Batch(a=[1]) != Batch(b=[1]) and Batch(a=np.zeros((1, 2))) != Batch(a=np.zeros(1))
    assert Batch(a=[1]) != {'a': [1]}


# ---- properties against a list of dicts
def column(n):
    shape = st.sampled_from([(), (2,), (2, 3)])
    dtype = st.sampled_from([np.float32, np.int64, np.uint8, bool])
    seed = st.integers(0, 2**31)
    make = st.builds(lambda s, d, r: np.random.default_rng(r).integers(0, 200, (n, *s)).astype(d), shape, dtype, seed)
    return st.one_of(
        make,
        make.map(torch.from_numpy),
        st.lists(st.one_of(st.none(), st.text(max_size=2)), min_size=n, max_size=n).map(as_objects),
    )


def as_objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@st.composite
def batches(draw, n=None):
    n = draw(st.integers(1, 6)) if n is None else n
    columns = draw(st.dictionaries(st.sampled_from('abc'), column(n), min_size=1))
    if draw(st.booleans()):
        columns['deep'] = Batch.of(draw(st.dictionaries(st.sampled_from('xy'), column(n), min_size=1)))
    return Batch.of(columns)


def model(batch):
    """The same data as a list of plain dicts."""
    return [
        {k: model(Batch.of({'v': v}))[i]['v'] if not isinstance(v, Batch) else model(v)[i] for k, v in batch.items()}
        if any(isinstance(v, Batch) for v in batch.values())
        else {k: v[i].tolist() if hasattr(v[i], 'tolist') else v[i] for k, v in batch.items()}
        for i in range(len(batch))
    ]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_index_agrees_with_the_model(data):
    batch = data.draw(batches())
    rows, n = model(batch), len(batch)
    index = data.draw(
        st.one_of(
            st.lists(st.integers(-n, n - 1), max_size=8), st.lists(st.booleans(), min_size=n, max_size=n), st.slices(n)
        )
    )
    picked = batch[index]
    if isinstance(index, slice):
        assert model(picked) == rows[index]
    elif index and isinstance(index[0], bool):
        assert model(picked) == [row for row, take in zip(rows, index) if take]
    else:
        assert model(picked) == [rows[i] for i in index]


@settings(max_examples=40, deadline=None)
@given(batch=batches(), size=st.integers(1, 4))
def test_round_trips_agree_with_the_model(batch, size):
    rows = model(batch)
    assert model(Batch.cat(batch.split(size))) == rows
    assert model(Batch.stack(list(batch))) == rows
    assert model(Batch.from_rows(list(batch))) == rows
    assert model(pickle.loads(pickle.dumps(batch))) == rows
    twin = copy.deepcopy(batch)
    assert twin == batch and model(twin) == rows
    assert list(twin.keys()) == list(batch.keys())


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_row_assignment_agrees_with_the_model(data):
    batch = data.draw(batches())
    rows, n = model(batch), len(batch)
    target, source = data.draw(st.integers(-n, n - 1)), data.draw(st.integers(0, n - 1))
    batch[target] = copy.deepcopy(batch[source])
    rows[target] = rows[source]
    assert model(batch) == rows


def test_in_place_arithmetic_that_does_not_fit_names_the_column():
    data = Batch(a=np.arange(3))
    with pytest.raises(TypeError, match=r"truediv does not work on column 'a' of shape.*int64"):
        data /= 2


def test_bfloat16_columns_compare_and_become_arrays():
    data = Batch(a=torch.tensor([1.0, 2.0], dtype=torch.bfloat16))
    assert data == copy.deepcopy(data) and data != Batch(a=torch.tensor([1.0, 3.0], dtype=torch.bfloat16))
    assert data.to_numpy().a.dtype == np.float32 and data.to_numpy().a.tolist() == [1.0, 2.0]


def test_a_nested_column_of_another_length_is_refused():
    data = Batch(a=[1, 2])
    with pytest.raises(ValueError, match=r"column 'b.c.d' of shape \(3,\) and dtype int64 does not fit a Batch of 2"):
        data['b'] = {'c': {'d': [1, 2, 3], 'e': [1, 2]}}
    data.b = {'c': [3, 4], 'nothing': {}}
    assert data[1].b.c == 4 and list(data.keys()) == ['a', 'b']


def test_dicts_with_different_keys_are_objects():
    data = Batch(info=[{'a': 1}, {'b': 2}], obs=[{'x': 1}, {'x': 2}])
    assert data.info.dtype == object and data[1].info == {'b': 2} and data.obs.x.tolist() == [1, 2]


def test_a_list_is_extended_by_the_rows_of_a_batch():
    rows = same = [{'a': 5}]
    rows += Batch(a=[1, 2])
    assert rows is same and [row['a'] for row in rows] == [5, 1, 2]
