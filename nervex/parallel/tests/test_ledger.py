"""Every block is counted once, whatever the order in which blocks arrive."""

import numpy as np

from nervex.data import Batch
from nervex.parallel.blocks import Ledger, pack_block, unpack_block


def test_a_block_is_taken_once():
    ledger = Ledger()
    assert ledger.take(0, 0, 0) and not ledger.take(0, 0, 0)


def test_the_same_number_of_another_incarnation_is_another_block():
    ledger = Ledger()
    assert ledger.take(0, 0, 0) and ledger.take(0, 1, 0) and ledger.take(1, 0, 0)


def test_late_and_double_blocks_out_of_order():
    ledger = Ledger()
    taken = [ledger.take(2, 0, seq) for seq in (1, 3, 0, 1, 2, 3, 4)]
    assert taken == [True, True, True, False, True, False, True]


def test_a_ledger_stays_small_and_survives_saving():
    ledger = Ledger()
    for seq in range(1000):
        ledger.take(0, 0, seq)
    ledger.take(0, 0, 1005)
    state = ledger.state_dict()
    assert state == {'taken': [[0, 0, 1000, [1005]]]}
    again = Ledger()
    again.load_state_dict(state)
    assert not again.take(0, 0, 999) and not again.take(0, 0, 1005) and again.take(0, 0, 1000)


def test_a_block_travels_as_arrays_and_comes_back_as_batch():
    batch = Batch(obs=np.arange(6, dtype=np.uint8).reshape(3, 2), said={'logit': np.ones((3, 4), np.float32)})
    columns, rows, nbytes = pack_block(batch)
    assert rows == 3 and nbytes == 6 + 48 and type(columns['said']) is dict
    assert unpack_block(columns) == batch
