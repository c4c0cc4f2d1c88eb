"""Collected episodes on disk: writing them as they come, and learning from them. Nothing is pickled."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from nervex.data.batch import Batch, nested
from nervex.data.columns import object_column
from nervex.data.memory import available_bytes
from nervex.utils import tree
from nervex.utils.errors import NervexError, NothingThereError
from nervex.utils.file_helper import atomic_write, check_archive

logger = logging.getLogger(__name__)
_NAME = re.compile(r'trajectories_(\d+)\.npz')
FORMAT, VERSION = 'nervex-trajectories', 1
EPISODES_PER_FILE = 1000
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_EXPECTED = (
    f"expected a .npz archive with 'meta' (JSON: format '{FORMAT}', version {VERSION}, columns), 'lengths' "
    "(steps per episode) and one array per column, 'column.<name>', of all steps one after the other"
)


class TrajectoryError(NervexError, ValueError):
    """A trajectory file is damaged, foreign or of a newer version; or a column cannot be stored in one."""


class TrajectoryWriter:
    """
    Overview:
        Writes episodes into numbered files ``trajectories_00000.npz, ...`` of at most 1000 episodes. Numbers go on
        after those that the folder has. A file is written when it is full, and the rest at ``close``.
    Arguments:
        - folder (:obj:`str`): is made if it is not there
        - episodes_per_file, bytes_per_file (:obj:`int`): a file is full when it has one of them
    Interfaces:
        add, record, flush, close
    """

    def __init__(self, folder: str, episodes_per_file: int = EPISODES_PER_FILE, bytes_per_file: int = 1 << 28) -> None:
        _check_number(episodes_per_file)
        os.makedirs(folder, exist_ok=True)
        self.folder, self._per_file, self._max_bytes = folder, episodes_per_file, bytes_per_file
        self._episodes: list[Batch] = []
        self._bytes = 0
        self._open: dict[Any, list[Batch]] = {}  # env id -> parts of its unfinished episode
        self.written = 0  # episodes in files

    def add(self, episode: Batch | Sequence[Mapping]) -> None:
        """One finished episode: a Batch of its steps, or a list of dict rows."""
        episode = Batch.cat([episode if isinstance(episode, Batch) else Batch.from_rows(episode)])  # a copy
        if not len(episode):
            raise ValueError('an episode needs at least one step')
        self._episodes.append(episode)
        self._bytes += tree.nbytes(episode)
        if len(self._episodes) >= self._per_file or self._bytes >= self._max_bytes:
            self.flush()

    def record(self, steps: Batch, env_id: Any = None) -> None:
        """
        Overview:
            Steps of several envs as they come, in order of time for each env; an episode is added when its ``done`` is
            there. Unfinished episodes are not written.
        Arguments:
            - steps (:obj:`Batch`): with the column ``done``; ``env_id`` too, unless it is given
        """
        owners = np.asarray(steps['env_id'] if env_id is None else env_id).reshape(-1)
        done: np.ndarray = np.any(np.asarray(steps['done'], dtype=bool).reshape(len(steps), -1), axis=1)
        for owner in dict.fromkeys(owners.tolist()):
            rows = np.flatnonzero(owners == owner)
            start = 0
            for end in (np.flatnonzero(done[rows]) + 1).tolist():
                self.add(Batch.cat([*self._open.pop(owner, []), steps[rows[start:end]]]))
                start = end
            if start < len(rows):
                self._open.setdefault(owner, []).append(steps[rows[start:]])

    def drop(self, env_id: Any) -> None:
        """Forget the unfinished episode of an env, e.g. because the env was restarted."""
        self._open.pop(env_id, None)

    def flush(self) -> None:
        """Write what is there to a file of its own."""
        if self._episodes:
            numbers = [int(m.group(1)) for name in os.listdir(self.folder) if (m := _NAME.fullmatch(name))]
            path = os.path.join(self.folder, f'trajectories_{max(numbers, default=-1) + 1:05d}.npz')
            write_trajectory_file(path, self._episodes)
            self.written += len(self._episodes)
            self._episodes, self._bytes = [], 0

    def close(self) -> None:
        """Write the rest; may be called twice."""
        self.flush()
        self._open.clear()

    def __enter__(self) -> TrajectoryWriter:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class TrajectoryDataset:
    """
    Overview:
        The steps of all trajectory files of a folder (or of the files given), as a dataset: ``dataset[i]`` is step i as
        a dict, so that torch's DataLoader takes it (with ``default_collate``), and ``batches`` is what a learner
        iterates. A file that cannot be read is left out with one error in the log; ``errors`` has them all.
    Arguments:
        - paths (:obj:`str | Sequence[str]`): folder, file, or several of them
        - strict (:obj:`bool`): raise the first error instead
        - seed (:obj:`int | None`): of the shuffling
    Interfaces:
        batches, episode, fill, steps, lengths, errors
    """

    def __init__(self, paths: str | Sequence[str], strict: bool = False, seed: int | None = None) -> None:
        self.errors: list[TrajectoryError] = []
        episodes: list[Batch] = []
        files = _files(paths)
        for path in files:
            try:
                episodes += read_trajectory_file(path)
            except TrajectoryError as e:
                if strict:
                    raise
                logger.error('%s', e)
                self.errors.append(e)
        if not episodes:
            named = paths if isinstance(paths, (str, os.PathLike)) else ', '.join(map(str, paths))
            found = f'none of its {len(files)} files could be read'
            raise TrajectoryError('; '.join([f"no episodes in '{named}': {found}", *map(str, self.errors)]))
        self.lengths = np.array([len(e) for e in episodes])  # steps of each episode
        self.steps = Batch.cat(episodes)  # all of them, episode after episode
        self._rng = np.random.default_rng(seed)
        self._order = np.zeros(0, dtype=np.int64)  # what is left of this pass over the data

    def __len__(self) -> int:
        return int(self.lengths.sum())

    def __getitem__(self, index: int) -> dict[str, Any]:
        if not -len(self) <= index < len(self):
            raise IndexError(f'step {index} of {len(self)}')
        return self.steps[index].to_dict()

    def episode(self, number: int) -> Batch:
        """The steps of one episode."""
        number = range(len(self.lengths))[number]
        end = int(self.lengths[: number + 1].sum())
        return self.steps[end - int(self.lengths[number]) : end]

    def batches(self, batch_size: int, count: int, cur_learner_iter: int = 0) -> Iterator[Batch]:
        """``count`` minibatches, in shuffled passes over all steps; none has a step twice."""
        if not 1 <= batch_size <= len(self):
            raise ValueError(f'batch_size must be in 1 .. {len(self)}, the number of steps; got {batch_size}')
        for _ in range(count):
            if len(self._order) < batch_size:
                self._order = self._rng.permutation(len(self))
            rows, self._order = self._order[:batch_size], self._order[batch_size:]
            yield self.steps[rows]

    def fill(self, buffer: Any, buffer_name: str | None = None) -> None:
        """Push all steps into a BufferManager."""
        buffer.push_data(self.steps, *([] if buffer_name is None else [[buffer_name]]))


def _files(paths: str | Sequence[str]) -> list[str]:
    found = []
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        if os.path.isdir(path):
            names = [n for n in os.listdir(path) if n.endswith('.npz')]
            if not names:
                raise TrajectoryError(f"no episodes in '{path}': there is no .npz file")
            found += sorted(os.path.join(path, name) for name in names)
        elif os.path.exists(path):
            found.append(os.fspath(path))
        else:
            raise NothingThereError(f"'{path}': there is no such folder or file of trajectories")
    return found


def write_trajectory_file(path: str, episodes: Sequence[Batch]) -> None:
    """
    Overview:
        Write episodes to one file, whole or not at all. The file is a NumPy ``.npz`` archive: ``lengths`` has the
        number of steps of each episode; ``column.<name>`` the values of all steps, episode after episode (nested
        names are joined by dots); ``meta`` a JSON text that says what is a tensor. Columns of objects hold one JSON
        text per step. ``np.load(path)['column.obs']`` opens it without nervex.
    Arguments:
        - episodes (:obj:`Sequence[Batch]`): all with the same columns, at most 1000
    """
    _check_number(len(episodes))
    arrays: dict[str, np.ndarray] = {'lengths': np.array([len(e) for e in episodes], dtype=np.int64)}
    columns = []
    for names, column in tree.zip(Batch.cat(episodes)):
        key = f'column.{tree.label(names)}'
        if key in arrays:
            raise TrajectoryError(f"two columns are called '{key[7:]}' when nested names are joined by dots")
        arrays[key], kind = _stored(key[7:], column)
        columns.append({'key': key, 'path': list(names), 'kind': kind})
    meta = json.dumps({'format': FORMAT, 'version': VERSION, 'columns': columns})
    with atomic_write(path) as f:
        np.savez(f, meta=np.array(meta), **arrays)  # type: ignore[arg-type]


def _check_number(episodes: int) -> None:
    if not 0 < episodes <= EPISODES_PER_FILE:
        raise ValueError(f'a trajectory file holds 1 to {EPISODES_PER_FILE} episodes, got {episodes}')


def _stored(label: str, column: Any) -> tuple[np.ndarray, str]:
    if isinstance(column, torch.Tensor):
        half = column.dtype == torch.bfloat16
        return (column.view(torch.int16) if half else column).detach().cpu().numpy(), 'bfloat16' if half else 'torch'
    if column.dtype != object:
        if column.dtype.hasobject:
            raise TrajectoryError(f"column '{label}' of dtype {column.dtype} cannot be stored: it holds Python objects")
        return column, 'numpy'
    texts = []
    for step, value in enumerate(column):
        try:
            text = json.dumps(value)
            exact = json.loads(text) == value or value != value
        except (TypeError, ValueError):
            exact = False
        if not exact:
            raise TrajectoryError(
                f"column '{label}', step {step}: a value of type {type(value).__name__} cannot be "
                'stored exactly; give tensors, arrays, or what JSON knows (None, numbers, texts, '
                'lists, dicts with text keys)'
            )
        texts.append(text)
    return np.array(texts, dtype=np.str_), 'json'


def read_trajectory_file(path: str) -> list[Batch]:
    """
    Overview:
        The episodes of one file, exactly as they were written. Anything wrong with the file is a TrajectoryError that
        names it and what was expected.
    """
    try:
        os.stat(path)
        if not zipfile.is_zipfile(path):
            raise ValueError('it is no .npz archive, or only the beginning of one')
        _check_sizes(path)
        check_archive(path)
        with np.load(path, allow_pickle=False) as archive:
            meta = json.loads(str(archive['meta'][()]))
            if (kind := (meta.get('format'), meta.get('version'))) != (FORMAT, VERSION):
                raise ValueError(f'its format and version are {kind}')
            lengths = archive['lengths']
            if lengths.ndim != 1 or lengths.dtype.kind not in 'iu' or not len(lengths) or lengths.min() < 1:
                found = f'of dtype {lengths.dtype} and shape {lengths.shape}: {str(lengths)[:60]}'
                raise ValueError(f"'lengths' must be a list of numbers of steps, it is {found}")
            steps = int(lengths.sum())
            columns = []
            for column in meta['columns']:
                array = archive[column['key']]
                if len(array) != steps:
                    raise ValueError(f"'{column['key']}' has {len(array)} steps, 'lengths' adds up to {steps}")
                columns.append((column['path'], _loaded(array, column['kind'])))
            whole = nested(tree.from_paths(columns))
    except (FileNotFoundError, MemoryError):
        raise
    except Exception as e:  # zipfile, zlib, json and NumPy raise a dozen types for a damaged archive
        raise TrajectoryError(f"'{path}' is no readable trajectory file ({e}); {_EXPECTED}") from e
    ends = np.cumsum(lengths).tolist()
    return [whole[end - length : end] for end, length in zip(ends, lengths.tolist())]


def _check_sizes(path: str) -> None:
    """Refuse arrays that are not as large as their headers say, and more of them than there is memory for."""
    with zipfile.ZipFile(path) as archive:
        total, free = sum(part.file_size for part in archive.infolist()), available_bytes()
        if free is not None and total > free:
            raise ValueError(f'its arrays are of {total} bytes, and {free} bytes of memory are free')
        for part in archive.infolist():
            with archive.open(part) as f:
                version = np.lib.format.read_magic(f)
                if version not in _HEADERS:
                    raise ValueError(f"'{part.filename}' is of version {version} of the format of arrays")
                shape, _, dtype = _HEADERS[version](f)
                said, there = math.prod(shape) * dtype.itemsize, part.file_size - f.tell()
            if said != there and not dtype.hasobject:
                raise ValueError(f"'{part.filename}' says that it holds {shape} of {dtype}, which is not {there} bytes")


def _loaded(array: np.ndarray, kind: str) -> Any:
    if kind == 'numpy':
        return array
    if kind in ('torch', 'bfloat16'):
        tensor = torch.from_numpy(array)
        return tensor if kind == 'torch' else tensor.view(torch.bfloat16)
    if kind == 'json':
        return object_column([json.loads(text) for text in array.tolist()])
    raise ValueError(f'a column is of the unknown kind {kind!r}')
