"""AsyncDataLoader: batches are gathered, collated and moved to the device while the learner is busy."""

from __future__ import annotations

import logging
import multiprocessing
import pickle
import queue
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch

from nervex.data.batch import Batch
from nervex.data.collate import default_collate
from nervex.utils import tree

logger = logging.getLogger(__name__)
_POLL_S = 0.1  # how often a waiting thread looks whether the loader was closed
_PATIENCE_S = 2.0  # for a source that is asked while the loader is closed


class IDataLoader(ABC):
    """
    Overview:
        What a learner takes batches from: an iterator that can be closed.
    Interfaces:
        __next__, __iter__, close
    """

    @abstractmethod
    def __next__(self) -> Any:
        """The next batch; StopIteration when there is none."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        return self

    @abstractmethod
    def close(self) -> None:
        """Give back threads, processes and memory; may be called twice."""
        raise NotImplementedError


class AsyncDataLoader(IDataLoader):
    """
    Overview:
        Calls ``data_source(batch_size)`` from a thread and keeps a few finished batches ready. The source gives a Batch
        or a list of rows, or a list of functions that give one row each, or None when there is nothing more to come.
        An error in the source, in a row or in ``collate_fn`` is raised to the caller of ``next``.
    Arguments:
        - data_source (:obj:`Callable`): what it gives must not be overwritten later
        - device (:obj:`str | torch.device`): where the batches shall be; copies to a GPU go through a stream of their
          own
        - chunk_size (:obj:`int | None`): functions that a worker process calls at a time; by default an equal share
        - collate_fn (:obj:`Callable | None`): rows -> batch; None means ``default_collate``
        - num_workers (:obj:`int`): with more than 1, the functions of a list are called in that many processes, which
          work on several batches at a time
        - queue_size (:obj:`int`): finished batches that may wait
    Interfaces:
        __next__, __iter__, close
    """

    def __init__(
        self,
        data_source: Callable[[int], Any],
        batch_size: int,
        device: str | torch.device = 'cpu',
        chunk_size: int | None = None,
        collate_fn: Callable | None = None,
        num_workers: int = 0,
        queue_size: int = 2,
    ) -> None:
        for name, value, least in (
            ('batch_size', batch_size, 1),
            ('chunk_size', chunk_size or 1, 1),
            ('num_workers', num_workers, 0),
            ('queue_size', queue_size, 1),
        ):
            if not isinstance(value, int) or value < least:
                raise ValueError(f'AsyncDataLoader: {name} must be a number >= {least}, got {value!r}')
        device = torch.device(device)
        if device.type == 'cuda' and not torch.cuda.is_available():
            raise ValueError(
                f"AsyncDataLoader: device '{device}' was asked for, but torch finds no CUDA here; use 'cpu'"
            )
        self._stop = threading.Event()
        # the threads know nothing of the loader, which may be dropped without ``close``
        make = partial(_make, collate_fn or default_collate, device)
        chunk_size = chunk_size or -(-batch_size // max(num_workers, 1))
        given = _given(data_source, batch_size)
        self._batches = _Ahead(_made(given, make, num_workers, chunk_size, self._stop), queue_size, self._stop)
        weakref.finalize(self, self._stop.set)

    def __next__(self) -> Any:
        return next(self._batches)

    def close(self) -> None:
        """
        Overview:
            End the thread and the processes; batches that wait are dropped. May be called twice. A source that does not
            answer is not waited for: its thread ends as soon as it does.
        """
        self._stop.set()
        self._batches.end(_PATIENCE_S)

    def __enter__(self) -> AsyncDataLoader:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class _Ahead(Iterator):
    """What an iterator gives, taken by a thread ahead of its use; an error comes where the item would have come."""

    def __init__(self, items: Iterator, size: int, stop: threading.Event) -> None:
        self._ready: queue.Queue = queue.Queue(size)
        self._stop, self._ended = stop, False
        self._thread = threading.Thread(target=_take, args=(items, self._ready, stop), name='data loader', daemon=True)
        self._thread.start()

    def __next__(self) -> Any:
        while not self._ended:
            try:
                item, error = self._ready.get(timeout=_POLL_S)
            except queue.Empty:
                self._ended = self._stop.is_set()
                continue
            if error is None:
                return item
            self._ended = True
            raise error
        raise StopIteration

    def end(self, patience_s: float) -> None:
        """Wait for the thread, and drop what waits."""
        self._ended = True
        if self._thread is not threading.current_thread():
            self._thread.join(patience_s)
            if self._thread.is_alive():
                logger.warning(
                    'AsyncDataLoader: the data source does not answer; after %g s its thread is left alone', patience_s
                )
        while not self._ready.empty():
            self._ready.get_nowait()


def _take(items: Iterator, ready: queue.Queue, stop: threading.Event) -> None:
    """What the thread does: pairs (item, error) into the queue; the last one has an error, StopIteration at the end."""
    try:
        for item in items:
            if not _put(ready, stop, (item, None)):
                break
        error: BaseException = StopIteration()
    except BaseException as e:  # handed to the caller of next
        error = e
    items.close()  # type: ignore[attr-defined]  # of a generator
    _put(ready, stop, (None, error))


def _put(ready: queue.Queue, stop: threading.Event, item: tuple) -> bool:
    while not stop.is_set():
        try:
            ready.put(item, timeout=_POLL_S)
        except queue.Full:
            continue
        return True
    return False


def _given(source: Callable[[int], Any], batch_size: int) -> Iterator[Any]:
    """What the source gives, to its end."""
    while (data := source(batch_size)) is not None:
        yield data


def _made(given: Iterator, make: Callable, num_workers: int, chunk_size: int, stop: threading.Event) -> Iterator[Any]:
    """The finished batches. Where there are worker processes, so many batches are begun at a time."""
    if num_workers <= 1:
        yield from (make(_begin(data)()) for data in given)
        return
    with multiprocessing.get_context('spawn').Pool(num_workers) as pool:  # terminates it at the end
        begin = partial(_begin, pool=pool, chunk_size=chunk_size, stop=stop)
        for finish in _Ahead((begin(data) for data in given), num_workers, stop):
            yield make(finish())


def _begin(data: Any, pool: Any = None, chunk_size: int = 1, stop: Any = None) -> Callable[[], Any]:
    """Have the functions called that the source gave, if it did; answers what waits for their rows."""
    if isinstance(data, (Batch, Mapping)) or not len(data) or not callable(data[0]):
        return lambda: data
    if pool is None:
        return lambda: [function() for function in data]
    chunks = [pickle.dumps(list(data[k : k + chunk_size])) for k in range(0, len(data), chunk_size)]
    return partial(_rows, [pool.apply_async(_call_all, (chunk,)) for chunk in chunks], stop)


def _call_all(functions: bytes) -> list[Any]:
    """In a worker process. Bytes: what cannot be read here is an error like any other, and does not end the process."""
    return [function() for function in pickle.loads(functions)]


def _rows(results: list, stop: threading.Event) -> list[Any]:
    for result in results:
        while not (result.ready() or stop.is_set()):
            result.wait(_POLL_S)
    return [row for result in results for row in result.get(0)]


def _make(collate: Callable, device: torch.device, data: Any) -> Any:
    """A batch of the rows, on the device."""
    several = isinstance(data, Mapping)  # of several buffers
    batch = {name: collate(part) for name, part in data.items()} if several else collate(data)
    if device.type != 'cuda':
        return tree.map(partial(_moved, device), batch)
    stream = torch.cuda.Stream(device)
    with torch.cuda.stream(stream):
        batch = tree.map(partial(_moved, device), batch)
    stream.synchronize()
    return batch


def _moved(device: torch.device, leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    pin = device.type == 'cuda' and leaf.device.type == 'cpu'
    return (leaf.pin_memory() if pin else leaf).to(device, non_blocking=True)
