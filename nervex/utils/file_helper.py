"""Files that are written whole or not at all, and read without running code from them."""

import contextlib
import glob
import os
import pickle
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from typing import IO, Any, cast

import torch

from nervex.utils.errors import CheckpointError
from nervex.utils.lock_helper import get_file_lock


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
    _sync_folder(folder)


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
    return _map_tensors(data, _Compactor())


class _Compactor:
    """Remembers the copies by place and shape, so that equal views stay equal."""

    def __init__(self) -> None:
        self._done: dict[tuple, tuple[torch.Tensor, torch.Tensor]] = {}

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.layout != torch.strided:
            return tensor
        if tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size():
            return tensor
        key = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        if key not in self._done:
            self._done[key] = (tensor.detach().clone(), tensor)  # the original is kept, so that its address stays taken
        return self._done[key][0]


def _map_tensors(data: Any, fn: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(data, torch.Tensor):
        return fn(data)
    if isinstance(data, dict):
        mapped = {k: _map_tensors(v, fn) for k, v in data.items()}
        return mapped if type(data) is dict else _same_mapping(data, mapped)
    if type(data) in (list, tuple):
        return type(data)(_map_tensors(v, fn) for v in data)
    return data


def _same_mapping(original: Any, mapped: dict) -> Any:
    """OrderedDict (a state_dict) stays one; other dict classes, e.g. EasyDict, become plain dicts that load safely."""
    made: Any = type(original)(mapped) if type(original).__module__ == 'collections' else mapped
    if hasattr(original, '_metadata') and hasattr(made, '__dict__'):
        made._metadata = original._metadata
    return made


def _locked(path: str, use_lock: bool) -> contextlib.AbstractContextManager:
    return get_file_lock(path) if use_lock else contextlib.nullcontext()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: str) -> None:
    """The new name reaches the disk too, where folders can be synced (not on Windows)."""
    if os.name == 'posix':
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
