"""Nested data (dicts, lists, tuples, namedtuples) between devices, dtypes, tensors, arrays and lists."""

import numbers
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch


def map_data(function: Callable[[Any], Any], item: Any, ignore_keys: Sequence[str] = ()) -> Any:
    """
    Overview:
        The same containers with ``function`` applied to every leaf.
    Arguments:
        - ignore_keys (:obj:`Sequence[str]`): entries of dicts, at any depth, that stay as they are
    """
    if isinstance(item, Mapping):
        made = {k: v if k in ignore_keys else map_data(function, v, ignore_keys) for k, v in item.items()}
        return made if type(item) is dict else type(item)(made)
    if isinstance(item, tuple) and hasattr(item, '_fields'):
        return type(item)(*[map_data(function, v, ignore_keys) for v in item])
    if isinstance(item, (list, tuple)):
        return type(item)(map_data(function, v, ignore_keys) for v in item)
    return function(item)


def to_device(item: Any, device: str | torch.device, ignore_keys: Sequence[str] = ()) -> Any:
    """Tensors and modules on another device; everything else as it is."""

    def move(x: Any) -> Any:
        return x.to(device) if isinstance(x, (torch.Tensor, torch.nn.Module)) else x

    return map_data(move, item, ignore_keys)


def to_dtype(item: Any, dtype: torch.dtype) -> Any:
    """Tensors in another dtype; everything else as it is."""
    return map_data(lambda x: x.to(dtype) if isinstance(x, torch.Tensor) else x, item)


def to_tensor(item: Any, dtype: torch.dtype | None = None) -> Any:
    """
    Overview:
        Arrays, numbers and lists of numbers become tensors; None and text stay.
    Arguments:
        - dtype (:obj:`torch.dtype | None`): of all of them; None keeps the array's, and float32 for Python floats
    """
    if isinstance(item, list) and item and all(isinstance(x, numbers.Number) for x in item):
        return torch.tensor(item, dtype=dtype)
    if isinstance(item, (Mapping, list, tuple)):
        return _over_entries(lambda x: to_tensor(x, dtype), item)
    if isinstance(item, torch.Tensor):
        return item if dtype is None else item.to(dtype)
    if isinstance(item, (np.ndarray, np.generic)):
        return torch.from_numpy(np.ascontiguousarray(item).reshape(np.shape(item))).to(dtype)
    if isinstance(item, numbers.Number):
        return torch.tensor(item, dtype=dtype)
    return _pass(item, 'to_tensor')


def to_ndarray(item: Any, dtype: Any = None) -> Any:
    """Tensors, numbers and lists of numbers become arrays; None and text stay."""
    if isinstance(item, list) and item and all(isinstance(x, numbers.Number) for x in item):
        return np.array(item, dtype=dtype)
    if isinstance(item, (Mapping, list, tuple)):
        return _over_entries(lambda x: to_ndarray(x, dtype), item)
    if isinstance(item, torch.Tensor):
        array = item.detach().cpu().numpy()
        return array if dtype is None else array.astype(dtype)
    if isinstance(item, (np.ndarray, np.generic, numbers.Number)):
        return np.asarray(item, dtype=dtype)
    return _pass(item, 'to_ndarray')


def to_list(item: Any) -> Any:
    """Tensors and arrays become (nested) lists, or numbers if they have no dimension; numbers, None and text stay."""
    if isinstance(item, (Mapping, list, tuple)):
        return _over_entries(to_list, item)
    if isinstance(item, (torch.Tensor, np.ndarray, np.generic)):
        return item.tolist()
    return item if isinstance(item, numbers.Number) else _pass(item, 'to_list')


def tensor_to_list(item: Any) -> Any:
    """As ``to_list``, for tensors only: everything else stays."""
    return map_data(lambda x: x.tolist() if isinstance(x, torch.Tensor) else x, item)


def get_tensor_data(item: Any) -> Any:
    """Copies of the tensors without their graphs."""
    return map_data(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, item)


def same_shape(data: Sequence[torch.Tensor]) -> bool:
    """Whether all tensors have one shape; True for none."""
    return len({tuple(x.shape) for x in data}) <= 1


class LogDict(dict):
    """
    Overview:
        A dict for logging: tensors and arrays put in become numbers, or lists if they have several elements.
    """

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, (torch.Tensor, np.ndarray)):
            size = value.numel() if isinstance(value, torch.Tensor) else value.size
            value = value.item() if size == 1 else value.tolist()
        super().__setitem__(key, value)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """As dict, with the same conversion."""
        for key, value in dict(*args, **kwargs).items():
            self[key] = value


def build_log_buffer() -> LogDict:
    """An empty LogDict."""
    return LogDict()


class CudaFetcher:
    """
    Overview:
        Brings batches to a device ahead of time, in a thread with a stream of its own. An error of the source is
        raised where the batch is asked for.
    Interfaces:
        run, __next__, close
    """

    def __init__(self, data_source: Iterable, device: str | torch.device, queue_size: int = 4) -> None:
        self._source: Iterator = iter(data_source)
        self._device = torch.device(device)
        self._queue: queue.Queue = queue.Queue(queue_size)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._produce, daemon=True)

    def run(self) -> 'CudaFetcher':
        """Start; returns itself."""
        self._thread.start()
        return self

    def __iter__(self) -> 'CudaFetcher':
        return self

    def __next__(self) -> Any:
        kind, value = self._queue.get()
        if kind == 'data':
            return value
        self._queue.put((kind, value))  # for whoever asks again
        raise StopIteration if kind == 'end' else value

    def close(self) -> None:
        """Stop the thread; safe to call twice."""
        self._stop.set()
        while self._thread.is_alive():
            try:
                self._queue.get_nowait()  # a producer that waits for a place goes on and sees the stop
            except queue.Empty:
                self._thread.join(0.01)

    def _produce(self) -> None:
        stream = torch.cuda.Stream(self._device) if self._device.type == 'cuda' else None
        try:
            for data in self._source:
                if self._stop.is_set():
                    return
                if stream is None:
                    self._queue.put(('data', to_device(data, self._device)))
                else:
                    with torch.cuda.stream(stream):
                        moved = to_device(data, self._device)
                    stream.synchronize()
                    self._queue.put(('data', moved))
            self._queue.put(('end', None))
        except Exception as e:  # raised again by __next__
            self._queue.put(('error', e))


def _over_entries(function: Callable[[Any], Any], item: Any) -> Any:
    """One level of a container, so that a list of numbers is seen before its elements."""
    if isinstance(item, Mapping):
        made = {k: function(v) for k, v in item.items()}
        return made if type(item) is dict else type(item)(made)
    if isinstance(item, tuple) and hasattr(item, '_fields'):
        return type(item)(*[function(v) for v in item])
    return type(item)(function(v) for v in item)


def _pass(item: Any, who: str) -> Any:
    if item is None or isinstance(item, (str, torch.Generator)):
        return item
    raise TypeError(f'{who} takes tensors, arrays, numbers and containers of them, got {type(item).__name__}')
