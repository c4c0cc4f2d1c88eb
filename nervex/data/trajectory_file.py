"""Files of collected episodes: the format, and how one file is written and read. Nothing is pickled."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from nervex.data.batch import Batch
from nervex.data.batch_ops import object_column
from nervex.data.flatten import column_label, flatten, unflatten
from nervex.utils.errors import NervexError
from nervex.utils.file_helper import atomic_write

FORMAT, VERSION = 'nervex-trajectories', 1
EPISODES_PER_FILE = 1000
_EXPECTED = (
    f"expected a .npz archive with 'meta' (JSON: format '{FORMAT}', version {VERSION}, columns), 'lengths' "
    "(steps per episode) and one array per column, 'column.<name>', of all steps one after the other"
)


class TrajectoryError(NervexError, ValueError):
    """A trajectory file is damaged, foreign or of a newer version; or a column cannot be stored in one."""


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
    if not 0 < len(episodes) <= EPISODES_PER_FILE:
        raise ValueError(f'a trajectory file holds 1 to {EPISODES_PER_FILE} episodes, got {len(episodes)}')
    flat = flatten(Batch.cat(episodes))
    arrays: dict[str, np.ndarray] = {'lengths': np.array([len(e) for e in episodes], dtype=np.int64)}
    columns = []
    for name, column in flat.items():
        key = f'column.{column_label(name)}'
        if key in arrays:
            raise TrajectoryError(f"two columns are called '{column_label(name)}' when nested names are joined by dots")
        arrays[key], kind = _stored(column_label(name), column)
        columns.append({'key': key, 'path': list(name) if type(name) is tuple else [name], 'kind': kind})
    meta = json.dumps({'format': FORMAT, 'version': VERSION, 'columns': columns})
    with atomic_write(path) as f:
        np.savez(f, meta=np.array(meta), **arrays)


def _stored(label: str, column: Any) -> tuple[np.ndarray, str]:
    if isinstance(column, torch.Tensor):
        if column.dtype == torch.bfloat16:
            return column.detach().cpu().view(torch.int16).numpy(), 'bfloat16'
        return column.detach().cpu().numpy(), 'torch'
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
        with open(path, 'rb') as f:
            if not zipfile.is_zipfile(f):
                raise ValueError('it is no .npz archive, or only the beginning of one')
        with np.load(path, allow_pickle=False) as archive:
            meta = json.loads(str(archive['meta'][()]))
            if meta.get('format') != FORMAT:
                raise ValueError(f'its format is {meta.get("format")!r}')
            if meta['version'] != VERSION:
                raise ValueError(f'its version is {meta["version"]!r}')
            lengths = _checked_lengths(archive['lengths'])
            steps = int(lengths.sum())
            flat = {}
            for column in meta['columns']:
                array = archive[column['key']]
                if len(array) != steps:
                    raise ValueError(f"'{column['key']}' has {len(array)} steps, 'lengths' adds up to {steps}")
                name = tuple(column['path']) if len(column['path']) > 1 else column['path'][0]
                flat[name] = _loaded(array, column['kind'])
    except FileNotFoundError:
        raise
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        EOFError,
        IndexError,
        NotImplementedError,
        zipfile.BadZipFile,
        zlib.error,
    ) as e:
        raise TrajectoryError(f"'{path}' is no readable trajectory file ({e}); {_EXPECTED}") from e
    whole = Batch.of(unflatten(flat))
    ends = np.cumsum(lengths).tolist()
    return [whole[end - length : end] for end, length in zip(ends, lengths.tolist())]


def _checked_lengths(lengths: np.ndarray) -> np.ndarray:
    if lengths.ndim != 1 or lengths.dtype.kind not in 'iu' or not len(lengths) or lengths.min() < 1:
        raise ValueError(
            f"'lengths' must be a list of numbers of steps, it is of dtype {lengths.dtype} and shape "
            f'{lengths.shape}: {str(lengths)[:60]}'
        )
    return lengths


def _loaded(array: np.ndarray, kind: str) -> Any:
    if kind == 'numpy':
        return array
    if kind == 'torch':
        return torch.from_numpy(array)
    if kind == 'bfloat16':
        return torch.from_numpy(array).view(torch.bfloat16)
    if kind == 'json':
        return object_column([json.loads(text) for text in array.tolist()])
    raise ValueError(f'a column is of the unknown kind {kind!r}')
