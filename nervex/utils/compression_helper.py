"""Data as few bytes, and back."""

import pickle
import zlib
from collections.abc import Callable
from typing import Any

from nervex.utils.errors import unknown_name
from nervex.utils.import_helper import require

NAMES = ('none', 'zlib', 'lz4')


def get_data_compressor(name: str) -> Callable[[Any], Any]:
    """
    Overview:
        A function that packs data: 'none' (as it is), 'zlib', or 'lz4' (needs the lz4 package).
    """
    if name == 'none':
        return _same
    if name == 'zlib':
        return lambda data: zlib.compress(pickle.dumps(data, protocol=pickle.HIGHEST_PROTOCOL), level=1)
    if name == 'lz4':
        frame = _lz4()
        return lambda data: frame.compress(pickle.dumps(data, protocol=pickle.HIGHEST_PROTOCOL))
    raise ValueError(unknown_name('compressor', name, NAMES))


def get_data_decompressor(name: str) -> Callable[[Any], Any]:
    """
    Overview:
        The way back. The bytes are unpickled: only for what this run's own processes sent.
    """
    if name == 'none':
        return _same
    if name == 'zlib':
        return lambda data: pickle.loads(zlib.decompress(data))
    if name == 'lz4':
        frame = _lz4()
        return lambda data: pickle.loads(frame.decompress(data))
    raise ValueError(unknown_name('decompressor', name, NAMES))


def _same(data: Any) -> Any:
    return data


def _lz4() -> Any:
    return require('lz4.frame', 'lz4', "the compressor 'lz4'")
