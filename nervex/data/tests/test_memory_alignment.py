import numpy as np
import pytest

from nervex.data import Batch, BufferManager
from nervex.data.memory import aligned_empty


@pytest.mark.parametrize('shape', [(1,), (7, 5), (64, 84, 84)])
def test_arrays_begin_at_multiples_of_64_bytes(shape):
    for dtype in (np.uint8, np.float32, np.float64):
        array = aligned_empty(shape, np.dtype(dtype))
        assert array.shape == shape and array.dtype == dtype and array.flags.c_contiguous
        assert array.ctypes.data % 64 == 0


@pytest.mark.parametrize('kind', ['replay', 'on_policy'])
def test_what_a_learner_gets_is_aligned_so_that_products_round_alike_in_every_process(kind):
    buffer = BufferManager({'type': kind}, seed=0)
    buffer.push_data(Batch.of({'obs': np.zeros((32, 5), np.float32), 'x': np.zeros(32)}))
    for batch in buffer.batches(32, 3):
        assert np.asarray(batch['obs']).ctypes.data % 64 == 0
