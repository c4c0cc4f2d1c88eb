"""Files that are written whole or not at all, locked, packed, and read without running code from them."""

import contextlib
import fcntl
import glob
import multiprocessing
import os
import pickle
import re
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from enum import Enum, unique
from typing import IO, Any, cast

from nervex.utils import tree
from nervex.utils.errors import CheckpointError, unknown_name
from nervex.utils.import_helper import require


@unique
class LockContextType(Enum):
    """Who is kept apart: threads of one process, or processes with a common parent."""

    THREAD_LOCK = 1
    PROCESS_LOCK = 2


def LockContext(type_: LockContextType = LockContextType.THREAD_LOCK) -> Any:
    """A lock as a context manager, also with ``acquire`` and ``release``; whoever holds it may take it again."""
    if not isinstance(type_, LockContextType):
        raise ValueError(f'expected a LockContextType, got {type_!r}')
    return threading.RLock() if type_ == LockContextType.THREAD_LOCK else multiprocessing.RLock()


@contextlib.contextmanager
def get_file_lock(path: str) -> Iterator[None]:
    """
    Overview:
        Exclude all other users of ``get_file_lock(path)`` on this machine, also those without a common parent. The lock
        is on ``<path>.lock`` beside the file and ends with the process that holds it.
    """
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(f'{path}.lock', 'a+b') as f:  # closing it gives the lock back
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def atomic_write(path: str, mode: str = 'wb') -> Iterator[IO]:
    """
    Overview:
        Open a temporary file beside ``path``; it takes the name ``path`` when the block ends without error, after its
        contents reached the disk. A reader sees the old file or the new one, never a part.
    """
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f'.{os.path.basename(path)}.', suffix='.tmp', dir=folder)
    try:
        with os.fdopen(handle, mode, encoding=None if 'b' in mode else 'utf-8') as f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)
        raise
    number = os.open(folder, os.O_RDONLY)  # the new name reaches the disk, too
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """An OSError of the block, such as that of a full disk, tells the file that it is about."""
    try:
        yield
    except OSError as e:
        if e.filename is None and e.errno is not None:
            raise OSError(e.errno, e.strerror, path) from e
        raise


def remove_unfinished(folder: str) -> None:
    """
    Overview:
        Remove what ``atomic_write`` left in ``folder`` when its process was killed. Nobody may be writing there.
    """
    for path in glob.glob(os.path.join(glob.escape(folder), '.*.tmp')):
        remove_file(path)


def save_file(path: str, data: Any, use_lock: bool = False) -> None:
    """
    Overview:
        ``torch.save`` whole or not at all. Tensors that are views of something larger are stored by themselves, so
        that a part of a flat module does not drag the whole along.
    Arguments:
        - use_lock (:obj:`bool`): exclude other processes that use this file with ``use_lock`` for the time of the write
    """
    import torch  # who only writes texts needs none

    with _locked(path, use_lock), atomic_write(path) as f:
        out = _ToldWriter(f)
        try:
            torch.save(compact(data), cast(IO[bytes], out))
        except RuntimeError as e:
            raise out.error or e from e


class _ToldWriter:
    """A file that remembers why it could not be written: torch.save tells positions in its archive instead."""

    def __init__(self, file: IO) -> None:
        self._file = file
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            return self._file.write(data)
        except OSError as e:
            self.error = e
            raise

    def flush(self) -> None:
        self._file.flush()


def read_file(path: str, use_lock: bool = False, map_location: Any = 'cpu') -> Any:
    """
    Overview:
        Read what ``save_file`` wrote: tensors, numbers, strings, lists, tuples and dicts. Nothing in the file is
        executed.
    """
    import torch

    if not os.path.exists(path):
        raise CheckpointError(f"there is no file '{path}'")
    with _locked(path, use_lock):
        try:
            check_archive(path)
            return torch.load(path, map_location=map_location, weights_only=True)
        except pickle.UnpicklingError as e:
            foreign = re.search(r'(?i:unsupported global:?) (?:GLOBAL )?(\S+)', str(e))
            why = f'a {foreign[1]}' if foreign else str(e).split('. ')[0]
            raise CheckpointError(
                f"'{path}' is not read: it is damaged or holds more than tensors and plain values: {why}"
            ) from e
        except Exception as e:  # a damaged file may raise anything on the way: KeyError, struct.error, ...
            raise CheckpointError(f"'{path}' is damaged or not a file of torch.save: {e}") from e


def check_archive(path: str) -> None:
    """
    Overview:
        Compare every part of a zip archive, which the files of torch.save and ``.npz`` are, with its checksum: torch
        does not, and NumPy only for what it reads to the end. A difference, or anything else wrong, is an exception.
    """
    with zipfile.ZipFile(path) as archive:
        if (part := archive.testzip()) is not None:
            raise zipfile.BadZipFile(f'Bad CRC-32 for file {part!r}')


def remove_file(path: str) -> None:
    """Remove a file; it is no error if it is gone already."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


def compact(data: Any) -> Any:
    """
    Overview:
        The same nested containers with every tensor that is a view of a larger storage replaced by a copy of its own.
        Tensors that are one (tied weights) stay one.
    """
    import torch

    done: dict[tuple, tuple[torch.Tensor, torch.Tensor]] = {}

    def own(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or leaf.layout != torch.strided:
            return leaf
        if leaf.untyped_storage().nbytes() == leaf.numel() * leaf.element_size():
            return leaf
        key = (leaf.data_ptr(), leaf.shape, leaf.stride(), leaf.dtype)
        if key not in done:
            done[key] = (leaf.detach().clone(), leaf)  # the original is kept, so that its address stays taken
        return done[key][0]

    return tree.map(own, data)


def _locked(path: str, use_lock: bool) -> contextlib.AbstractContextManager:
    return get_file_lock(path) if use_lock else contextlib.nullcontext()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
