"""Starting Ray or joining a cluster of it: what can go wrong, in one line each, before Ray takes a minute to say so."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Iterator
from typing import Any

from nervex.utils import ConfigError, NervexError

_ANSWER_S = 5.0
_HOST_AND_PORT = re.compile(r'\[?([^\s/\[\]]+)\]?:(\d{1,5})')


def check_address(address: str) -> None:
    """Raise an error that says why a cluster cannot be joined at ``address``, if that can be seen quickly."""
    if address == 'auto':  # Ray looks for one on this machine
        return
    given = _HOST_AND_PORT.fullmatch(address)
    if given is None or not 0 < int(given[2]) < 65536:
        raise ConfigError(
            f'parallel.address: got {address!r}, must be HOST:PORT of a Ray head, such as 10.0.0.1:6379, or auto'
        )
    try:
        socket.create_connection((given[1], int(given[2])), timeout=_ANSWER_S).close()
    except OSError as e:
        raise ConfigError(
            f'parallel.address: nothing answers at {address} ({e.strerror or e}); start Ray there with '
            f'ray start --head --port={given[2]}, or leave the address out for a Ray of its own'
        ) from e


@contextlib.contextmanager
def told_in_a_line(ray: Any, address: str | None) -> Iterator[None]:
    """What Ray raises inside the block becomes one error of the framework."""
    what = 'Ray cannot be started' if address is None else f'the Ray cluster at {address} cannot be joined'
    try:
        yield
    except ray.exceptions.AuthenticationError as e:
        raise NervexError(
            f'{what}: it wants another token; set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH to the file with the '
            f"cluster's token ({_first_line(e)})"
        ) from e
    except (ray.exceptions.RayError, OSError, RuntimeError, ValueError) as e:
        raise NervexError(f'{what}: {_first_line(e)}') from e


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
