"""AsyncDataLoader: order, bounds, shutdown, errors."""

import functools
import gc
import itertools
import operator
import threading
import time

import numpy as np
import pytest
import torch

from nervex.data import AsyncDataLoader, Batch, BufferManager, dataloader


def row(k):
    return {'x': torch.tensor([float(k)]), 'k': k}


class Source:
    """Numbered rows; counts its calls."""

    def __init__(self, end=None, kind=list):
        self.calls, self.end, self.kind, self.called = 0, end, kind, threading.Event()

    def __call__(self, batch_size):
        if self.end is not None and self.calls >= self.end:
            return None
        start = self.calls * batch_size
        self.calls += 1
        self.called.set()
        rows = range(start, start + batch_size)
        if self.kind is Batch:
            return Batch(k=np.array(rows))
        return [functools.partial(row, k) for k in rows] if self.kind is functools.partial else [row(k) for k in rows]


def names():
    return [t.name for t in threading.enumerate()]


@pytest.mark.parametrize('kind', [list, functools.partial, Batch])
def test_batches_come_in_order_and_end(kind):
    with AsyncDataLoader(Source(6, kind), batch_size=4) as loader:
        seen = [batch['k'].tolist() for batch in loader]
        assert seen == [list(range(4 * k, 4 * k + 4)) for k in range(6)]
        with pytest.raises(StopIteration):
            next(loader)
    assert 'data loader' not in names()


def test_at_most_queue_size_batches_wait():
    source = Source()
    loader = AsyncDataLoader(source, batch_size=1, queue_size=3)
    for taken in range(1, 11):
        next(loader)
        assert source.calls <= taken + 3 + 1  # in the queue, and one in the making
    loader.close()
    assert source.calls <= 10 + 3 + 1 and 'data loader' not in names()
    loader.close()
    with pytest.raises(StopIteration):
        next(loader)


@pytest.mark.parametrize('where', ['source', 'row', 'collate'])
def test_errors_reach_the_caller_after_the_batches_before_them(where):
    def fail(*_):
        raise RuntimeError(f'broken {where}')

    calls = iter(range(100))

    def source(n):
        if next(calls) < 2 or where == 'collate':
            return [row(0)] * n
        return fail() if where == 'source' else [fail] * n

    loader = AsyncDataLoader(source, 2, collate_fn=fail if where == 'collate' else None)
    if where != 'collate':
        assert len([next(loader), next(loader)]) == 2
    with pytest.raises(RuntimeError, match=f'broken {where}') as e:
        next(loader)
    assert any('fail' in str(entry.name) for entry in e.traceback)
    with pytest.raises(StopIteration):
        next(loader)
    loader.close()


def test_closing_while_the_source_waits_for_data():
    started, buffer = threading.Event(), BufferManager({'monitor': {'log_freq': 0}}, seed=0)
    buffer.push_data(Batch(k=np.arange(10)))

    def source(n):
        started.set()
        return buffer.sample(n)

    loader = AsyncDataLoader(source, 5, device='cpu')
    assert next(loader)['k'].shape == (5,) and started.is_set()
    loader.close()
    assert 'data loader' not in names()


def test_batches_are_moved_to_the_device():
    with AsyncDataLoader(Source(1), 3, device='meta') as loader:
        assert next(loader)['x'].device.type == 'meta'
    with AsyncDataLoader(lambda n: {'a': Batch(x=[1, 2]), 'b': Batch(x=[3])}, 1) as loader:
        assert next(loader)['b']['x'].tolist() == [3]


@pytest.mark.parametrize('name, value', [('batch_size', 0), ('num_workers', -1), ('queue_size', 0), ('chunk_size', -2)])
def test_wrong_numbers_are_named(name, value):
    with pytest.raises(ValueError, match=f'{name} must be'):
        AsyncDataLoader(Source(), **{'batch_size': 1, name: value})


@pytest.mark.slow
def test_functions_are_called_in_worker_processes():
    def source(n, left=[3]):  # noqa: B006  counts down
        left[0] -= 1
        return [functools.partial(int, str(k)) for k in range(n)] if left[0] >= 0 else None

    with AsyncDataLoader(source, 8, num_workers=2, chunk_size=3) as loader:
        assert [b.tolist() for b in loader] == [list(range(8))] * 3


def test_a_loader_that_is_dropped_ends_its_thread():
    loader = AsyncDataLoader(lambda n: [{'a': 1}] * n, 4)
    thread, _ = loader._thread, next(loader)
    del loader
    gc.collect()
    thread.join(timeout=10.0)
    assert not thread.is_alive()


@pytest.mark.skipif(torch.cuda.is_available(), reason='CUDA is there')
def test_a_device_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="device 'cuda' was asked for, but torch finds no CUDA here; use 'cpu'"):
        AsyncDataLoader(lambda n: [{'a': 1}] * n, 4, 'cuda')


def span():
    start = time.monotonic() % 1000
    time.sleep(0.1)
    return start, time.monotonic() % 1000


class Unreadable:
    """Can be pickled, but no process can read it."""

    def __call__(self):
        return 0

    def __reduce__(self):
        return operator.truediv, (1, 0)


def test_worker_processes_work_on_several_batches_at_a_time():
    """Although each batch is one chunk, for one process."""
    with AsyncDataLoader(lambda n: [span] * n, 2, num_workers=2, chunk_size=2) as loader:
        times = [next(loader) for _ in range(12)]
    assert any(later[0].min() < earlier[1].max() for earlier, later in itertools.pairwise(times))


def test_what_a_worker_cannot_read_is_an_error_and_no_hang():
    with AsyncDataLoader(lambda n: [Unreadable()] * n, 2, num_workers=2) as loader, pytest.raises(ZeroDivisionError):
        next(loader)


@pytest.mark.parametrize('num_workers', [0, 2])
def test_closing_does_not_wait_for_a_source_that_hangs(num_workers, monkeypatch, caplog):
    monkeypatch.setattr(dataloader, '_PATIENCE_S', 0.2)
    asked, answer = threading.Event(), threading.Event()

    def source(n):
        asked.set()
        answer.wait(60.0)

    loader = AsyncDataLoader(source, 2, num_workers=num_workers)
    assert asked.wait(30.0)
    start = time.perf_counter()
    loader.close()
    assert time.perf_counter() - start < 20.0 and (num_workers or 'does not answer' in caplog.text)
    answer.set()
