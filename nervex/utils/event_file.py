"""TensorBoard's event files, written where the values come from: no thread, no queue, nothing that is lost."""

import itertools
import os
import socket
import struct
import threading
import time
from typing import Any

from nervex.utils.file_helper import naming

_COUNT = itertools.count()


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
