"""Many threads on one BufferManager."""

import gc
import threading

import numpy as np
import pytest

from nervex.data import Batch, BufferManager


def test_batches_that_are_collected_as_garbage_in_the_middle_of_a_call_do_not_block_it():
    buffer = BufferManager({'monitor': {'log_freq': 0}, 'type': 'on_policy'}, seed=0)
    buffer.push_data(Batch(a=np.arange(8)))
    batches = buffer.batches(4, 3)
    next(batches)
    cycle = [batches]
    cycle.append(cycle)
    del batches, cycle
    with buffer._lock:  # a garbage collection may come anywhere
        gc.collect()
    for thread in threading.enumerate():
        if thread.name == 'end of batches':
            thread.join()
    assert buffer.count() == 0 and not buffer._lock.locked()


@pytest.mark.parametrize(
    'cfg',
    [
        {'use_priority': True},
        {'use_priority': False},
        {'use_priority': True, 'max_reuse': 50},
        {'use_priority': False, 'enable_cache': True, 'cache_maxlen': 64, 'timeout': 0.01},
    ],
)
def test_concurrent_pushes_samples_and_updates_lose_and_duplicate_nothing(cfg):
    """Each row says who pushed it and has a checksum; when all is done every row must be there once."""
    pushers, rounds, rows = 4, 60, 7
    total = pushers * rounds * rows
    buffer = BufferManager({'meta_maxlen': total, 'monitor': {'log_freq': 0}, **cfg}, seed=0)
    errors, stop = [], threading.Event()
    buffer.start()

    def push(who):
        for k in range(rounds):
            number = np.arange(k * rows, (k + 1) * rows)
            if k % 3:
                buffer.push_data(Batch.of({'who': np.full(rows, who), 'number': number, 'check': who * 10**6 + number}))
            else:
                for n in number.tolist():
                    buffer.push_data({'who': who, 'number': n, 'check': who * 10**6 + n})

    def learn():
        while not stop.is_set():
            batch = buffer.sample(16, reuse=False)
            if batch is None:
                continue
            assert (batch.check == batch.who * 10**6 + batch.number).all()
            ids = batch['replay_unique_id']
            buffer.update(
                {
                    'priority': np.random.default_rng(0).random(16),
                    'replay_unique_id': ids,
                    'replay_buffer_idx': batch['replay_buffer_idx'],
                }
            )

    def guarded(work, *args):
        try:
            work(*args)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=guarded, args=(push, who)) for who in range(pushers)]
    learners = [threading.Thread(target=guarded, args=(learn,)) for _ in range(2)]
    for thread in threads + learners:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    for thread in learners:
        thread.join()
    buffer.close()
    assert not errors
    columns = {c['name']: c['data'].numpy() for c in buffer.state_dict()['buffers']['armor']['store']['columns']}
    assert (columns['check'] == columns['who'] * 10**6 + columns['number']).all()
    expected = [who * 10**6 + number for who in range(pushers) for number in range(rounds * rows)]
    assert sorted(columns['check'].tolist()) == expected
    for who in range(pushers):  # each pusher's rows in its order
        assert (np.diff(columns['number'][columns['who'] == who]) > 0).all()
    if 'max_reuse' not in cfg:
        assert buffer.count() == total
