"""Text and TensorBoard loggers of one part of a run."""

import contextlib
import itertools
import logging
import math
import numbers
import os
import socket
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partialmethod
from typing import Any

import numpy as np
import torch

from nervex.utils.drawing import encode_png
from nervex.utils.file_helper import naming

_EDGES = 1e-12 * 1.1 ** np.arange(774)  # up to 1e20
_BINS = np.concatenate([-_EDGES[::-1], [0.0], _EDGES])  # of histograms: as fine near 0 as far from it
KINDS = ('scalar', 'scalars', 'histogram', 'image', 'text')
#: the logs of the runs of this process that want to hear, by their folders: see ``nervex.run.events.Events``
LISTENERS: dict[str, Any] = {}
_COUNT = itertools.count()  # of the event files of this process
_LINE = logging.Formatter('[%(asctime)s][%(levelname)s] %(message)s', '%Y-%m-%d %H:%M:%S')


def build_logger(
    path: str, name: str | None = None, need_tb: bool = True, need_text: bool = True
) -> tuple['TextLogger | None', 'TBLogger | None']:
    """
    Overview:
        The loggers of one worker, as in the run folder: ``<path>/<name>_logger.txt`` and ``<path>/<name>_tb_logger/``.
    Returns:
        - loggers (:obj:`tuple`): (text logger, TensorBoard logger); None for one that is not wanted
    """
    name = name or 'default'
    text = TextLogger(path, name) if need_text else None
    return text, TBLogger(path, name) if need_tb else None


class TextLogger:
    """
    Overview:
        Writes timed lines to ``<path>/<name>_logger.txt``, each on disk when the call returns, and to the ``nervex``
        logger tree for those who listen there. Texts and ``%`` arguments as in logging.
    Interfaces:
        log, debug, info, warning, error, print_vars, print_vars_hor, close
    """

    def __init__(self, path: str, name: str = 'default', level: int | str = logging.INFO) -> None:
        os.makedirs(path, exist_ok=True)
        self.path = os.path.join(path, f'{name}_logger.txt')
        self._logger = logging.getLogger(f'nervex.run.{name}')
        self._level = logging.getLevelName(level) if isinstance(level, str) else level
        self._lock = threading.Lock()
        self._file = open(self.path, 'a', buffering=1, encoding='utf-8')  # noqa: SIM115  closed by close()

    def log(self, level: int, text: Any, *args: Any) -> None:
        """Write at a level of the logging module; nothing below the logger's own."""
        if level < self._level:
            return
        record = self._logger.makeRecord(self._logger.name, level, __file__, 0, text, args, None)
        with self._lock:
            if self._file.closed:
                raise ValueError(f"'{self.path}' is closed")
            with naming(self.path):
                self._file.write(_LINE.format(record) + '\n')
                self._file.flush()
        if self._logger.isEnabledFor(level):
            self._logger.handle(record)

    debug = partialmethod(log, logging.DEBUG)
    info = partialmethod(log, logging.INFO)
    warning = partialmethod(log, logging.WARNING)
    error = partialmethod(log, logging.ERROR)

    def print_vars(self, variables: dict[str, Any], level: int = logging.INFO) -> None:
        """A table of names and values, one row per variable."""
        rows = [[k, format_value(v)] for k, v in variables.items()]
        self.log(level, '%s', '\n' + pretty_table([['Name', 'Value'], *rows]))

    def print_vars_hor(self, variables: dict[str, Any], level: int = logging.INFO) -> None:
        """A table of one row, a column per variable."""
        self.log(level, '%s', '\n' + pretty_table([list(variables), [format_value(v) for v in variables.values()]]))

    def close(self) -> None:
        """Close the file; safe to call twice."""
        with self._lock, naming(self.path):
            self._file.close()

    def __enter__(self) -> 'TextLogger':
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class FaultFile(logging.FileHandler):
    """
    Overview:
        Puts the warnings and errors of this process into a file, in the form of ``TextLogger``, until it is closed. The
        file is made with the first one; if it cannot be written, nothing ends.
    Arguments:
        - path (:obj:`str`): the file
    Interfaces:
        say, close
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, encoding='utf-8', delay=True)
        self.setLevel(logging.WARNING)
        self.setFormatter(_LINE)
        logging.getLogger('nervex').addHandler(self)

    def _open(self) -> Any:
        os.makedirs(os.path.dirname(self.baseFilename), exist_ok=True)
        return super()._open()

    def emit(self, record: logging.LogRecord) -> None:
        """A record, if there is a place for it; where nobody else listens, it is printed, as it is without this."""
        self._write(record)
        listening = logging.getLogger('nervex').handlers + logging.getLogger().handlers
        if listening[:1] == [self] and all(isinstance(one, FaultFile) for one in listening) and logging.lastResort:
            logging.lastResort.handle(record)

    def say(self, level: int, text: str) -> None:
        """A line for this file alone."""
        self._write(logging.makeLogRecord(dict(levelno=level, levelname=logging.getLevelName(level), msg=text)))

    def _write(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Nothing: the log is not what the run is for."""

    def close(self) -> None:
        """Hear no more; safe to call twice."""
        logging.getLogger('nervex').removeHandler(self)
        with contextlib.suppress(OSError):
            super().close()


class EventFile:
    """
    Overview:
        One event file in a folder, made with a name of its own. An event is in the file, whole, when ``add`` returns,
        so that the file's size is true at any time. One that does not fit on the disk is taken back and is an OSError
        that names the file.
    Interfaces:
        add, close
    """

    def __init__(self, folder: str) -> None:
        from tensorboardX.record_writer import masked_crc32c

        self._crc, self._lock, self._size = masked_crc32c, threading.Lock(), 0
        os.makedirs(folder, exist_ok=True)
        name = f'events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.{next(_COUNT)}'
        self.path = os.path.join(folder, name)
        self._file = open(self.path, 'xb', buffering=0)  # noqa: SIM115  closed by close()
        self._write(file_version='brain.Event:2')

    def add(self, summary: Any, step: int | None) -> None:
        """Write a ``Summary`` of this step."""
        self._write(summary=summary, **({} if step is None else {'step': int(step)}))

    def close(self) -> None:
        """Close the file; safe to call twice."""
        with self._lock:
            self._file.close()

    def _write(self, **fields: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event

        data = Event(wall_time=time.time(), **fields).SerializeToString()
        head = struct.pack('<Q', len(data))
        record = head + struct.pack('<I', self._crc(head)) + data + struct.pack('<I', self._crc(data))
        with self._lock:
            try:
                rest = memoryview(record)
                with naming(self.path):
                    while rest:
                        rest = rest[self._file.write(rest) :]
            except OSError:
                self._file.seek(self._size)
                self._file.truncate()
                raise
            self._size += len(record)


class TBLogger:
    """
    Overview:
        TensorBoard events in ``<path>/<name>_tb_logger/`` in the form of tensorboardX, which is imported when the first
        event is written. Each is in the file when the call returns. ``add_val`` takes the framework's variable names,
        e.g. ``'[histogram]action'``. The ``events`` of the run that it is of are told, too, and may do without its
        files.
    Arguments:
        - name (:obj:`str | None`): None writes in ``path`` itself
    Interfaces:
        add_val, add_scalar, add_values, add_both, add_scalars, add_histogram, add_image, add_text, close, listener
    """

    def __init__(self, path: str, name: str | None = 'default') -> None:
        self.path = path if name is None else os.path.join(path, f'{name}_tb_logger')
        place = os.path.abspath(self.path)
        self.listener = next((heard for log, heard in LISTENERS.items() if place.startswith(log + os.sep)), None)
        self._writes = self.listener is None or self.listener.own_files
        if self._writes:
            os.makedirs(self.path, exist_ok=True)
        self._files: dict[str, EventFile] = {}  # by folder below ``path``
        self._closed = False

    def _add(self, step: int | None, folder: str = '', **values: Any) -> None:
        """One event, of values in the form of TensorBoard by their names."""
        from tensorboardX.proto.summary_pb2 import Summary

        if self._closed:
            raise ValueError(f"'{self.path}' is closed")
        if not self._writes:
            return
        if folder not in self._files:
            self._files[folder] = EventFile(os.path.join(self.path, folder))
        self._files[folder].add(Summary(**values), step)

    def _tell(self, kind: str, name: str, value: Any) -> None:
        if self.listener is not None:
            self.listener.log({f'[{kind}]{name}': value})

    def add_val(self, name: str, value: Any, step: int) -> None:
        """Write a variable by the kind that its name states, as ``split_kind`` reads it."""
        kind, name = split_kind(name)
        getattr(self, f'add_{kind}')(name, value, step)

    def add_scalar(self, name: str, value: Any, step: int | None = None) -> None:
        """One number."""
        self.add_values({name: value}, step)

    def add_values(self, values: Mapping[str, Any], step: int | None = None) -> None:
        """Several numbers of the same step, each in a chart of its own: one event."""
        self._write(values, step)
        if self.listener is not None:
            self.listener.log(values)

    def _write(self, values: Mapping[str, Any], step: int | None) -> None:
        if values:
            self._add(step, value=[{'tag': name, 'simple_value': float(value)} for name, value in values.items()])

    def add_both(self, part: str, values: Mapping[str, Any], train_iter: int, envstep: int, heard: bool = True) -> None:
        """
        Overview:
            Numbers of a moment, as ``<part>_iter/<name>`` against updates and ``<part>_envstep/<name>`` against env
            steps; who listens is told once of ``<part>/<name>``, unless they are not to be ``heard``.
        """
        for axis, step in (('iter', train_iter), ('envstep', envstep)):
            self._write({f'{part}_{axis}/{name}': value for name, value in values.items()}, step)
        if heard and self.listener is not None:
            self.listener.log({f'{part}/{name}': value for name, value in values.items()})

    def add_scalars(self, name: str, value: dict[str, Any], step: int | None = None) -> None:
        """Several numbers in one chart."""
        if not isinstance(value, dict):
            raise TypeError(f"'[scalars]{name}' takes a dict of numbers, got {type(value).__name__}")
        for key, number in value.items():
            self._add(step, os.path.join(name, key), value=[{'tag': name, 'simple_value': float(number)}])
        self._tell('scalars', name, value)

    def add_histogram(self, name: str, value: Any, step: int | None = None) -> None:
        """The distribution of the elements of a tensor, array or list; nothing is written for an empty one."""
        from tensorboardX.summary import histogram

        values = _to_numpy(value).reshape(-1)
        if values.size:
            self._add(step, value=histogram(name, values.astype(np.float64), _BINS).value)
            self._tell('histogram', name, values)

    def add_image(self, name: str, value: Any, step: int | None = None) -> None:
        """An image (C, H, W) or (H, W), floats in [0, 1] or uint8."""
        pixels = _pixels(_to_numpy(value))
        height, width, channels = pixels.shape
        image = dict(height=height, width=width, colorspace=channels, encoded_image_string=encode_png(pixels))
        self._add(step, value=[{'tag': name, 'image': image}])
        self._tell('image', name, pixels)

    def add_text(self, name: str, value: Any, step: int | None = None) -> None:
        """A text."""
        from tensorboardX.summary import text

        self._add(step, value=text(name, str(value)).value)
        self._tell('text', name, value)

    def close(self) -> None:
        """Close the files; safe to call twice."""
        self._closed = True
        for file in self._files.values():
            file.close()

    def __enter__(self) -> 'TBLogger':
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def split_kind(name: str) -> tuple[str, str]:
    """
    Overview:
        ``'[histogram]action'`` -> ``('histogram', 'action')``, with kind scalar, scalars, histogram, image or text; a
        name without brackets is a scalar.
    """
    if not name.startswith('['):
        return 'scalar', name
    kind, closed, rest = name[1:].partition(']')
    if not closed or not rest or ']' in rest or kind not in KINDS:
        raise ValueError(f"variable '{name}': expected '[kind]name' with kind one of {', '.join(KINDS)}")
    return kind, rest


def format_value(value: Any) -> str:
    """A number with six significant digits, a tensor of one element as its number, anything else as text."""
    if isinstance(value, (torch.Tensor, np.ndarray, np.generic)) and math.prod(value.shape) == 1:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return str(value)
    return f'{float(value):.6g}' if not isinstance(value, numbers.Integral) else str(value)


def pretty_print(result: Any, direct_print: bool = True) -> str:
    """Nested dicts and lists as indented text, one entry a line; written to the standard output too if asked for."""
    text = '\n'.join(_indented(result, '')) + '\n'
    if direct_print:
        sys.stdout.write(text)
    return text


def _indented(value: Any, pad: str) -> Iterator[str]:
    for key, v in value.items() if isinstance(value, Mapping) else ((f'[{i}]', v) for i, v in enumerate(value)):
        if isinstance(v, (Mapping, list, tuple)) and len(v):
            yield f'{pad}{key}:'
            yield from _indented(v, pad + '    ')
        else:
            yield f'{pad}{key}: {format_value(v)}'


class DistributionTimeImage:
    """
    Overview:
        How a distribution over a few classes changes: a picture with one column per step and one row per class.
    Arguments:
        - maxlen (:obj:`int`): the newest steps that are kept
        - val_range (:obj:`tuple | None`): values drawn black and white; None: the smallest and largest there are
    """

    def __init__(self, maxlen: int = 600, val_range: tuple[float, float] | None = None) -> None:
        self._columns: deque[np.ndarray] = deque(maxlen=maxlen)
        self._range = val_range

    def add_one_time_step(self, data: Any) -> None:
        """
        Shapes:
            - data: :math:`(N, )`, the same N every time
        """
        column = _to_numpy(data).astype(np.float64)
        if column.ndim != 1 or (self._columns and column.shape != self._columns[0].shape):
            expected = self._columns[0].shape if self._columns else '(N,)'
            raise ValueError(f'one step has shape {expected}, got {column.shape}')
        self._columns.append(column)

    def get_image(self) -> np.ndarray:
        """
        Shapes:
            - image (:obj:`np.ndarray`): :math:`(1, N, T)`, floats in [0, 1], ready for an ``[image]`` variable
        """
        if not self._columns:
            raise ValueError('there is no step yet')
        values = np.stack(self._columns, axis=1)
        low, high = self._range if self._range is not None else (values.min(), values.max())
        return np.clip((values - low) / max(high - low, 1e-12), 0.0, 1.0)[None]


def pretty_table(rows: list[list[Any]]) -> str:
    """Rows of cells as an aligned table with rules above, below and under the head."""
    cells = [[str(c) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    rule = '+' + '+'.join('-' * (w + 2) for w in widths) + '+'
    lines = ['| ' + ' | '.join(c.ljust(w) for c, w in zip(row, widths)) + ' |' for row in cells]
    return '\n'.join([rule, lines[0], rule, *lines[1:], rule])


def _pixels(image: np.ndarray) -> np.ndarray:
    """(H, W) or (C, H, W), uint8 or floats in [0, 1] -> (H, W, C) uint8."""
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[0] not in (1, 3, 4)):
        raise ValueError(f'an [image] variable has shape (H, W) or (1|3|4, H, W), got {image.shape}')
    image = image[None] if image.ndim == 2 else image
    if image.dtype != np.uint8:
        image = np.clip(np.round(image.astype(np.float64) * 255.0), 0, 255).astype(np.uint8)
    return np.ascontiguousarray(image.transpose(1, 2, 0))


def _to_numpy(value: Any) -> np.ndarray:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy()
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor):
        return np.stack([v.detach().cpu().numpy() for v in value])
    return np.asarray(value)
