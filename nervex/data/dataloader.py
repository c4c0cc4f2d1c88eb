"""AsyncDataLoader: batches are gathered, collated and moved to the device while the learner is busy."""

from __future__ import annotations

import multiprocessing
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

_POLL_S = 0.1  # how often a waiting thread looks whether the loader was closed


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
        - num_workers (:obj:`int`): with more than 1, the functions of a list are called in that many processes
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
        self._ready: queue.Queue = queue.Queue(queue_size)
        self._stop, self._ended = threading.Event(), False
        # the thread knows nothing of the loader, which may be dropped without ``close``
        make = partial(_make, data_source, batch_size, collate_fn or default_collate, device)
        chunk_size = chunk_size or -(-batch_size // max(num_workers, 1))
        work = partial(_work, make, self._ready, self._stop, num_workers, chunk_size)
        self._thread = threading.Thread(target=work, name='data loader', daemon=True)
        weakref.finalize(self, self._stop.set)
        self._thread.start()

    def __next__(self) -> Any:
        while not self._ended:
            try:
                batch, error = self._ready.get(timeout=_POLL_S)
            except queue.Empty:
                if self._stop.is_set():
                    break
                continue
            if error is not None or batch is None:
                self._ended = True
                if error is not None:
                    raise error
                break
            return batch
        raise StopIteration

    def close(self) -> None:
        """End the thread and the processes; batches that wait are dropped. May be called twice."""
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._ended = True
        while not self._ready.empty():
            self._ready.get_nowait()

    def __enter__(self) -> AsyncDataLoader:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _work(make: Callable, ready: queue.Queue, stop: threading.Event, num_workers: int, chunk_size: int) -> None:
    """What the thread of a loader does: pairs (batch, error) into the queue, (None, None) at the end."""
    pool = multiprocessing.get_context('spawn').Pool(num_workers) if num_workers > 1 else None
    call = _call_all if pool is None else partial(_call_in, pool, chunk_size)
    item: tuple = (None, None)
    try:
        while not stop.is_set() and (batch := make(call)) is not None:
            _put(ready, stop, (batch, None))
    except BaseException as e:  # handed to the caller of next
        item = (None, e)
    finally:
        _put(ready, stop, item)
        if pool is not None:
            pool.terminate()
            pool.join()


def _put(ready: queue.Queue, stop: threading.Event, item: tuple) -> None:
    while not stop.is_set():
        try:
            return ready.put(item, timeout=_POLL_S)
        except queue.Full:
            continue


def _make(source: Callable, batch_size: int, collate: Callable, device: torch.device, call: Callable) -> Any:
    """The next batch, on the device; None at the end."""
    data = source(batch_size)
    if data is None:
        return None
    if not isinstance(data, (Batch, Mapping)) and len(data) and callable(data[0]):
        data = call(list(data))
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


def _call_all(functions: list[Callable]) -> list[Any]:
    return [function() for function in functions]


def _call_in(pool: Any, chunk_size: int, functions: list[Callable]) -> list[Any]:
    """Call the functions in worker processes, ``chunk_size`` at a time."""
    chunks = [functions[k : k + chunk_size] for k in range(0, len(functions), chunk_size)]
    return [row for rows in pool.map(_call_all, chunks, chunksize=1) for row in rows]
