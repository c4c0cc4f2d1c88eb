"""Data as few bytes, and back."""

import pickle
import zlib
from collections.abc import Callable
from typing import Any

from nervex.utils.errors import unknown_name
from nervex.utils.import_helper import require


def get_data_compressor(name: str) -> Callable[[Any], Any]:
    """A function that packs data: 'none' (as it is), 'zlib', or 'lz4' (needs the lz4 package)."""
    pack, _ = _codec(name)
    return lambda data: data if pack is None else pack(pickle.dumps(data, protocol=pickle.HIGHEST_PROTOCOL))


def get_data_decompressor(name: str) -> Callable[[Any], Any]:
    """The way back. The bytes are unpickled: only for what this run's own processes sent."""
    _, unpack = _codec(name)
    return lambda data: data if unpack is None else pickle.loads(unpack(data))


def _codec(name: str) -> tuple[Callable | None, Callable | None]:
    if name == 'none':
        return None, None
    if name == 'zlib':
        return lambda data: zlib.compress(data, level=1), zlib.decompress
    if name == 'lz4':
        frame = require('lz4.frame', 'lz4', "the compressor 'lz4'")
        return frame.compress, frame.decompress
    raise ValueError(unknown_name('compressor', name, ('none', 'zlib', 'lz4')))
