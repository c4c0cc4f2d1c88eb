"""AsyncDataLoader: batches are gathered, collated and moved to the device while the learner is busy."""

from __future__ import annotations

import multiprocessing
import queue
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from nervex.data.batch import Batch
from nervex.data.collate import default_collate

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
        worker = _Worker(data_source, batch_size, _usable(device), chunk_size, collate_fn, num_workers, queue_size)
        self._ready, self._stop, self._ended = worker.ready, worker.stop, False
        self._thread = threading.Thread(target=worker.work, name='data loader', daemon=True)
        weakref.finalize(self, worker.stop.set)  # the thread does not hold the loader
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


class _Worker:
    """What the thread of a loader does. It knows nothing of the loader, which may be dropped without ``close``."""

    def __init__(
        self,
        data_source: Callable[[int], Any],
        batch_size: int,
        device: torch.device,
        chunk_size: int | None,
        collate_fn: Callable | None,
        num_workers: int,
        queue_size: int,
    ) -> None:
        self._source, self._batch_size, self._collate = data_source, batch_size, collate_fn or default_collate
        self._device = device
        self._stream = torch.cuda.Stream(device) if device.type == 'cuda' else None
        self._chunk_size = chunk_size or -(-batch_size // max(num_workers, 1))
        self._pool = multiprocessing.get_context('spawn').Pool(num_workers) if num_workers > 1 else None
        self.ready: queue.Queue = queue.Queue(queue_size)
        self.stop = threading.Event()

    def work(self) -> None:
        try:
            while not self.stop.is_set():
                data = self._source(self._batch_size)
                if data is None:
                    break
                self._put((self._finish(data), None))
        except BaseException as e:  # handed to the caller of next
            self._put((None, e))
        else:
            self._put((None, None))
        finally:
            if self._pool is not None:
                self._pool.terminate()
                self._pool.join()

    def _finish(self, data: Any) -> Any:
        if not isinstance(data, (Batch, Mapping)) and len(data) and callable(data[0]):
            data = self._call(list(data))
        if isinstance(data, Mapping):  # of several buffers
            batch = {name: self._collate(part) for name, part in data.items()}
        else:
            batch = self._collate(data)
        if self._stream is None:
            return _moved(batch, self._device)
        with torch.cuda.stream(self._stream):
            batch = _moved(batch, self._device)
        self._stream.synchronize()
        return batch

    def _call(self, functions: list[Callable]) -> list[Any]:
        if self._pool is None:
            return [function() for function in functions]
        chunks = [functions[k : k + self._chunk_size] for k in range(0, len(functions), self._chunk_size)]
        return [row for rows in self._pool.map(_call_all, chunks, chunksize=1) for row in rows]

    def _put(self, item: tuple) -> None:
        while not self.stop.is_set():
            try:
                return self.ready.put(item, timeout=_POLL_S)
            except queue.Full:
                continue


def _call_all(functions: list[Callable]) -> list[Any]:
    return [function() for function in functions]


def _moved(item: Any, device: torch.device) -> Any:
    """All tensors of a structure on the device."""
    if isinstance(item, torch.Tensor):
        if device.type == 'cuda' and item.device.type == 'cpu':
            item = item.pin_memory()
        return item.to(device, non_blocking=True)
    if isinstance(item, Batch):
        return item.to(device)
    if isinstance(item, Mapping):
        return {key: _moved(value, device) for key, value in item.items()}
    if isinstance(item, tuple) and hasattr(item, '_fields'):
        return type(item)(*(_moved(value, device) for value in item))
    if isinstance(item, (list, tuple)):
        return type(item)(_moved(value, device) for value in item)
    return item


def _usable(device: str | torch.device) -> torch.device:
    device = torch.device(device)
    if device.type == 'cuda' and not torch.cuda.is_available():
        raise ValueError(f"AsyncDataLoader: device '{device}' was asked for, but torch finds no CUDA here; use 'cpu'")
    return device
