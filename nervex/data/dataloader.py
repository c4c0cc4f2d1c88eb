"""AsyncDataLoader: batches are gathered, collated and moved to the device while the learner is busy."""

from __future__ import annotations

import logging
import multiprocessing
import pickle
import queue
import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from operator import itemgetter
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
        - num_workers (:obj:`int`): with more than 1, the functions of a list are called in that many processes, and the
          source is asked for so many lists ahead, as the processes work on several at a time
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
        given = dict(batch_size=batch_size, chunk_size=chunk_size or 1, num_workers=num_workers, queue_size=queue_size)
        for name, value in given.items():
            least = 0 if name == 'num_workers' else 1
            if not isinstance(value, int) or value < least:
                raise ValueError(f'AsyncDataLoader: {name} must be a number >= {least}, got {value!r}')
        device = torch.device(device)
        if device.type == 'cuda' and not torch.cuda.is_available():
            raise ValueError(
                f"AsyncDataLoader: device '{device}' was asked for, but torch finds no CUDA here; use 'cpu'"
            )
        self._ready: queue.Queue = queue.Queue(queue_size)
        self._stop, self._ended = threading.Event(), False
        pool = multiprocessing.get_context('spawn').Pool(num_workers) if num_workers > 1 else None
        chunk_size = chunk_size or -(-batch_size // max(num_workers, 1))
        rows = _rows(partial(data_source, batch_size), pool, chunk_size, num_workers, self._stop)
        batches = (_finished(data, collate_fn or default_collate, device) for data in rows)
        # the thread knows nothing of the loader, which may be dropped without ``close``
        self._thread = threading.Thread(
            target=_take, args=(batches, self._ready, self._stop), name='data loader', daemon=True
        )
        self._thread.start()
        self._release = weakref.finalize(self, _release, self._stop, pool)

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

    def close(self) -> None:
        """
        Overview:
            End the thread and the processes; batches that wait are dropped. May be called twice. A source that does not
            answer is not waited for: its thread ends as soon as it does.
        """
        self._ended = True
        self._release()
        if self._thread is not threading.current_thread():
            self._thread.join(_PATIENCE_S)
            if self._thread.is_alive():
                text = 'AsyncDataLoader: the data source does not answer; after %g s its thread is left alone'
                logger.warning(text, _PATIENCE_S)
        while not self._ready.empty():
            self._ready.get_nowait()

    def __enter__(self) -> AsyncDataLoader:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class CudaFetcher(AsyncDataLoader):
    """
    Overview:
        Brings the batches of an iterable to a device ahead of time, as they are.
    Interfaces:
        run, __next__, close
    """

    def __init__(self, data_source: Iterable, device: str | torch.device, queue_size: int = 4) -> None:
        batches = ([batch] for batch in data_source)
        super().__init__(lambda _: next(batches, None), 1, device, collate_fn=itemgetter(0), queue_size=queue_size)

    def run(self) -> CudaFetcher:
        """Answers itself, which has begun already."""
        return self


def _release(stop: threading.Event, pool: Any) -> None:
    stop.set()
    if pool is not None:
        pool.terminate()


def _take(items: Iterator, ready: queue.Queue, stop: threading.Event) -> None:
    """What the thread does: pairs (item, error) into the queue; the last one has an error, StopIteration at the end."""
    error: BaseException | None = None
    while error is None and not stop.is_set():
        item = None
        try:
            item = next(items)
        except BaseException as e:  # handed to the caller of next
            error = e
        while not stop.is_set():
            try:
                ready.put((item, error), timeout=_POLL_S)
                break
            except queue.Full:
                continue


def _rows(source: Callable, pool: Any, chunk_size: int, ahead: int, stop: threading.Event) -> Iterator[Any]:
    """What the source gives, to its end, with its functions called; by a pool those of several answers at a time."""
    begun: deque[Callable] = deque()
    while not stop.is_set():
        if (data := source()) is not None:
            begun.append(_begin(data, pool, chunk_size, stop))
        if data is None and not begun:
            return
        if data is None or pool is None or len(begun) > ahead:
            yield begun.popleft()()


def _begin(data: Any, pool: Any, chunk_size: int, stop: threading.Event) -> Callable[[], Any]:
    """Have the functions called that the source gave, if it did; answers what waits for their rows."""
    if isinstance(data, (Batch, Mapping)) or not len(data) or not callable(data[0]):
        return lambda: data
    if pool is None:
        return lambda: [function() for function in data]
    chunks = [pickle.dumps(list(data[k : k + chunk_size])) for k in range(0, len(data), chunk_size)]
    results = [pool.apply_async(_call_all, (chunk,)) for chunk in chunks]

    def rows() -> list[Any]:
        for result in results:
            while not (result.ready() or stop.is_set()):
                result.wait(_POLL_S)
        return [row for result in results for row in result.get(0)]

    return rows


def _call_all(functions: bytes) -> list[Any]:
    """In a worker process. Bytes: what cannot be read here is an error like any other, and does not end the process."""
    return [function() for function in pickle.loads(functions)]


def _finished(data: Any, collate: Callable, device: torch.device) -> Any:
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
