"""Master: knows its slaves by name."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

from nervex.interaction.base import open_line
from nervex.interaction.exception import ConnectionAlreadyExists, InteractionError, MasterSystemShuttingDown
from nervex.interaction.master.connection import Connection


class Master:
    """
    Overview:
        Opens connections to slaves and hands them tasks. ``name in master`` and ``master[name]`` are about open
        connections; those that close, for whatever reason, are forgotten.
    Interfaces:
        start, shutdown, join, close, ping, new_connection
    """

    def __init__(self, name: str = 'master') -> None:
        self.name = name
        self._running = False
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._connections: dict[str, Connection] = {}

    def start(self) -> Master:
        """Begin; answers itself."""
        if self._running or self._ended.is_set():
            raise RuntimeError(f'{self.name}: a master starts once')
        self._running = True
        return self

    def shutdown(self) -> None:
        """Open no more connections, and let go of all slaves, also of those that would refuse it."""
        self._running = False
        for connection in list(self._connections.values()):
            try:
                connection.disconnect()
            except InteractionError:  # it refuses, or is lost at this very moment
                connection.abandon()
        self._ended.set()

    def join(self) -> None:
        """Wait for ``shutdown``."""
        self._ended.wait()

    def close(self) -> None:
        """``shutdown`` and ``join``."""
        self.shutdown()
        self.join()

    def __enter__(self) -> Master:
        return self.start()

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def ping(self) -> bool:
        """Whether connections can be opened."""
        return self._running

    def new_connection(self, name: str, address: Any, data: Any = None, **spans: float) -> Connection:
        """
        Overview:
            A connection to a slave, opened by ``connect()`` or by a ``with`` block.
        Arguments:
            - name (:obj:`str`): this master's name of the slave
            - address (:obj:`Any`): see ``open_line``
            - spans (:obj:`float`): ``heartbeat_span_s``, ``heartbeat_tolerance_s``, ``request_timeout_s``
        """
        if not self._running:
            raise MasterSystemShuttingDown(f'{self.name} is not running; use it in a with block, or start() it')
        line = open_line(address)
        return Connection(name, line, data, on_open=self._remember, on_close=self._forget, **spans)

    def __contains__(self, name: str) -> bool:
        return name in self._connections

    def __getitem__(self, name: str) -> Connection:
        if name not in self:
            opened = ', '.join(sorted(self._connections)) or 'none'
            raise KeyError(f'{self.name} has no open connection {name!r}; open: {opened}')
        return self._connections[name]

    def _remember(self, connection: Connection) -> None:
        with self._lock:
            if not self._running:
                raise MasterSystemShuttingDown(f'{self.name} is not running any more')
            if connection.name in self._connections:
                raise ConnectionAlreadyExists(f'{self.name} has a connection {connection.name!r} already; rename one')
            self._connections[connection.name] = connection

    def _forget(self, connection: Connection) -> None:
        with self._lock:
            self._connections.pop(connection.name, None)
