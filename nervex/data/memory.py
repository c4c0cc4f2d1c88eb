"""Memory of buffers: whether it will fit, where it begins, and when it may be used again."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping

import numpy as np

from nervex.utils.errors import ConfigError

_ALIGNMENT = 64


class BufferMemoryError(ConfigError, MemoryError):
    """A buffer of the configured size does not fit into memory; the text says how many bytes it needs."""


def available_bytes() -> int | None:
    """Bytes that this process may still take: the machine's free memory, or less in a container. None if unknown."""
    limits = []
    for line in _read('/proc/meminfo').splitlines():
        if line.startswith('MemAvailable:'):
            limits.append(int(line.split()[1]) * 1024)
    if not limits and {'SC_AVPHYS_PAGES', 'SC_PAGE_SIZE'} <= set(getattr(os, 'sysconf_names', {})):
        limits.append(os.sysconf('SC_AVPHYS_PAGES') * os.sysconf('SC_PAGE_SIZE'))
    limit, used = (_read(f'/sys/fs/cgroup/memory.{what}').strip() for what in ('max', 'current'))
    if limit.isdigit() and used.isdigit():
        limits.append(max(int(limit) - int(used), 0))
    return min(limits) if limits else None


def _read(path: str) -> str:
    try:
        with open(path, encoding='ascii') as f:
            return f.read()
    except OSError:
        return ''


def check_memory(name: str, capacity: int, rows: Mapping[object, np.ndarray], overhead: int = 0) -> int:
    """
    Overview:
        Bytes that ``capacity`` rows like the given one need; BufferMemoryError if the machine cannot give them.
    Arguments:
        - rows (:obj:`Mapping`): column name -> array with at least one row
        - overhead (:obj:`int`): further bytes per row
    """
    row_bytes = sum(a.dtype.itemsize * math.prod(a.shape[1:]) for a in rows.values()) + overhead
    needed, free = row_bytes * capacity, available_bytes()
    if free is not None and needed > free:
        raise BufferMemoryError(
            f'{name}: {capacity} rows of {row_bytes} bytes need {needed} bytes ({needed / 2**30:.1f} GiB), but only '
            f'{free} bytes ({free / 2**30:.1f} GiB) are free; at most {free // max(row_bytes, 1)} rows fit: lower '
            'meta_maxlen, store uint8 images, or let the buffer keep each frame once'
        )
    return needed


def aligned_empty(shape: tuple, dtype: np.dtype) -> np.ndarray:
    """
    Overview:
        An uninitialised array that begins at a multiple of 64 bytes, whatever the allocator does: matrix products round
        differently at other addresses, and a run must give the same bits in every process.
    """
    if dtype.hasobject:
        return np.empty(shape, dtype)
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def take_rows(array: np.ndarray, slots: np.ndarray, pool: list[np.ndarray]) -> np.ndarray:
    """
    Overview:
        ``array.take(slots, 0)``. New memory for large rows costs more in page faults than in copying, so that of an
        earlier answer is used once nobody holds it, or a view or tensor of it, any more (its reference count tells).
        Row ``nervex (new memory)`` of the data bench, ``atari_s256``, needs this (0.6 in place of 2.3 ms), and so does
        ``nervex (frames once)`` (0.19 in place of 0.3 ms with two alternating outputs).
    Arguments:
        - slots (:obj:`np.ndarray`): of any shape; trusted
        - pool (:obj:`list`): earlier answers; the last eight are kept
    """
    shape, dtype = (*slots.shape, *array.shape[1:]), array.dtype
    if dtype.hasobject or math.prod(shape) * dtype.itemsize < 1 << 17:
        return array.take(slots, 0)
    for out in pool:
        # its memory is referred to by the array in the pool and by the argument of getrefcount: by nobody else
        if out.shape == shape and out.dtype == dtype and sys.getrefcount(out.base) == 2:
            break
    else:
        pool.append(out := aligned_empty(shape, dtype))
        del pool[:-8]
    array.take(slots, 0, out, 'clip')
    return out[...]
