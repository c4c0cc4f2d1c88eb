import numpy as np
import pytest
import torch

from nervex.data import Batch
from nervex.utils.part_state import restored, state_of

VALUES = [
    np.arange(6, dtype=np.int16).reshape(2, 3),
    np.float32(2.5),
    np.array(7),
    np.zeros((0, 3)),
    np.array([True, False]),
    np.arange(12).reshape(3, 4)[:, ::2],
    torch.arange(4.0),
    3,
    2.5,
    None,
    'text',
    True,
    [1, [2.0]],
    (1, 'a'),
    {'a': {'b': np.ones(2)}},
]


def same(a, b) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (np.ndarray, np.generic)):
        return np.asarray(b).dtype == a.dtype and np.array_equal(a, b) and np.shape(a) == np.shape(b)
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else type(a) is type(b) and a == b


@pytest.mark.parametrize('value', VALUES, ids=[str(k) for k in range(len(VALUES))])
def test_round_trip_through_a_safely_loaded_file(value, tmp_path):
    torch.save(state_of(value), tmp_path / 'x')
    assert same(value, restored(torch.load(tmp_path / 'x', weights_only=True)))


def test_batches_and_object_columns_come_back():
    batch = Batch.of({'x': np.arange(3), 'nested': Batch.of({'y': torch.ones(3)})})
    back = restored(state_of(batch))
    assert isinstance(back, Batch) and back == batch
    objects = np.array([None, 'a', {'k': 1}], dtype=object)
    assert restored(state_of(objects)).tolist() == objects.tolist()


def test_a_view_is_saved_without_what_it_looks_at():
    assert state_of(torch.zeros(1000)[:2]).untyped_storage().nbytes() == 8


def test_what_cannot_be_saved_is_named():
    with pytest.raises(TypeError, match='set'):
        state_of({'a': {1}})
