"""Starting Ray or joining a cluster of it: what may go wrong, what is left out, who may enter, and how it ends."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from nervex.utils import ConfigError, ExtraMissingError, NervexError, TrainingError

_ANSWER_S = 5.0
_SCRIPT = Path(__file__).resolve().parents[1] / 'scripts' / 'end_with_me.sh'
_HOST_AND_PORT = re.compile(r'\[?([^\s/\[\]]+)\]?:(\d{1,5})')
_LOOPBACK = {'RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER': '0'}
# Blocks of some megabytes come and go: memory that was freed is kept for the next one, as the C library comes to do by
# itself in the end; until then the system would clear every page of every block anew.
_KEEP_FREED = {'MALLOC_MMAP_THRESHOLD_': str(32 * 2**20), 'MALLOC_TRIM_THRESHOLD_': str(64 * 2**20)}
_FOR_ALL = dict(RAY_worker_niceness='0', OMP_NUM_THREADS='1', RAY_DEDUP_LOGS='0', **_KEEP_FREED)


def require_ray() -> None:
    """Raise an error that says how to get Ray, unless it is there."""
    if importlib.util.find_spec('ray') is None:
        raise ExtraMissingError('parallel mode needs Ray: pip install -e ".[parallel]"')


def import_ray(alone: bool = False) -> Any:
    """
    Overview:
        The package.
    Arguments:
        - alone (:obj:`bool`): all processes of the cluster will be on this machine, so that its ports need no more than
            the loopback; Ray asks for that when it is imported, in the words of the systems where it has no other way
    """
    require_ray()
    with environment(**(_LOOPBACK if alone else {})):
        import ray
    return ray


@contextlib.contextmanager
def environment(**values: str) -> Iterator[None]:
    """Variables that the daemons and workers of Ray inherit; what the user has set stays."""
    fresh = {key: value for key, value in values.items() if key not in os.environ}
    os.environ.update(fresh)
    try:
        yield
    finally:
        for key in fresh:
            del os.environ[key]


class RayCluster:
    """
    Overview:
        ``ray``, as a guest of a cluster that runs, or with one of our own on this machine, which ``guard`` ends with
        this process, even if that is killed.
    Arguments:
        - address (:obj:`str | None`): of the cluster that runs; None: our own
        - num_cpus, object_store_mb (:obj:`int`): CPUs and memory of our own
        - show_output (:obj:`bool`): what its processes print is to be shown
        - options: of ``ray.init``
    Interfaces:
        close
    """

    def __init__(
        self, address: str | None, num_cpus: int, object_store_mb: int, show_output: bool = False, **options: Any
    ) -> None:
        if address is not None:
            check_address(address)
        self.ray = ray = import_ray(alone=address is None)
        self.guard: Guard | None = None
        if address is not None:
            with _told_in_a_line(ray, f'the Ray cluster at {address} cannot be joined'), environment(**_FOR_ALL):
                ray.init(address=address, **options)
            return
        own_token()
        guard = self.guard = Guard()
        variables = environment(**_FOR_ALL, **_LOOPBACK, **guard.variables)
        with _told_in_a_line(ray, 'Ray cannot be started'), variables, fewer_daemons(show_output):
            ray.init(
                address='local',
                num_cpus=num_cpus,
                include_dashboard=False,
                object_store_memory=object_store_mb * 2**20,
                _node_ip_address='127.0.0.1',
                **options,
            )
        guard.watch(ray._private.worker._global_node)

    def close(self) -> None:
        """Leave the cluster, or end it."""
        self.ray.shutdown()
        if self.guard is not None:
            self.guard.dismiss()


# ---- mistakes, in one line each, before Ray takes a minute to say so ----
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
def _told_in_a_line(ray: Any, what: str) -> Iterator[None]:
    """What Ray raises inside the block becomes one error of the framework."""
    try:
        yield
    except ray.exceptions.AuthenticationError as e:
        raise NervexError(
            f'{what}: it wants another token; set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH to the file with the '
            f"cluster's token ({_first_line(e)})"
        ) from e
    except Exception as e:  # Ray raises bare ones, too
        raise NervexError(f'{what}: {_first_line(e)}') from e


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


# ---- who may enter ----
def own_token() -> None:
    """
    Overview:
        Whoever reads Ray's token may run code as its owner, and Ray would write it for everybody to read: make the file
        before Ray does, and this user's alone. One that others could read is closed to them.
    """
    if {'RAY_AUTH_TOKEN', 'RAY_AUTH_TOKEN_PATH'} & os.environ.keys() or os.environ.get('RAY_AUTH_MODE') == 'disabled':
        return
    path = Path.home() / '.ray' / 'auth_token'
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError), open(path, 'x', opener=partial(os.open, mode=0o600)) as file:
            file.write(secrets.token_hex(32))
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError as e:
        raise NervexError(f'{path}: Ray keeps its token there, and it cannot be made yours alone ({e})') from e


# ---- what is left out ----
_NEEDLESS = {
    'start_monitor': 'adds and removes machines',
    'start_api_server': "without a dashboard, tells Ray's makers what is used",
    'start_log_monitor': 'shows what roles print',
}


@contextlib.contextmanager
def fewer_daemons(show_output: bool) -> Iterator[None]:
    """
    Overview:
        What ``ray.init`` starts inside the ``with`` block is smaller by three Python programs of 45 MB each (the rows
        "launch" and "memory" of ``benchmark/results/parallel``), though their names are private to Ray. A version of
        Ray that names their starting otherwise starts them all.
    Arguments:
        - show_output (:obj:`bool`): what roles print is to be shown
    """
    node = sys.modules['ray._private.node'].Node  # type: ignore[attr-defined]
    left_out = {name: getattr(node, name) for name in _NEEDLESS if hasattr(node, name)}
    if show_output:
        left_out.pop('start_log_monitor', None)
    for name in left_out:
        setattr(node, name, lambda node, *args, **kwargs: None)
    try:
        yield
    finally:
        for name, method in left_out.items():
            setattr(node, name, method)


# ---- how it ends ----
class Guard:
    """
    Overview:
        Of a cluster of our own: says when one of its daemons has ended, and leaves nothing of it. A shell outlives this
        process for a moment, to end what would outlive it for ever: every process that has ``variables`` in its
        environment, as the daemons of Ray have that are started with them, and what those start.
    Interfaces:
        watch, check, dismiss
    """

    def __init__(self) -> None:
        mark = f'NERVEX_RUN_{uuid.uuid4().hex}'
        self.variables = {mark: '1'}
        self.broken = ''  # what has ended, and why
        self._shell = subprocess.Popen(
            ['/bin/sh', str(_SCRIPT), mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )
        self._input: Any = self._shell.stdin
        self._daemons: dict[str, Any] = {}
        self._folder = ''

    def watch(self, node: Any) -> None:
        """Know the daemons of this node, the children that they have by now, whatever they do to their marks, and where
        they write."""
        self._daemons = {name: entries[0].process for name, entries in node.all_processes.items()}
        self._folder = node.get_session_dir_path()
        daemons = [process.pid for process in self._daemons.values()]
        pids = sorted({pid for daemon in daemons for pid in (daemon, *_children(daemon))})
        self._input.write(f'{" ".join(map(str, pids))}\n{self._folder}\n')
        self._input.flush()

    def check(self, gone: bool = False) -> None:
        """Raise an error if a daemon has ended, or the node is known to be gone with it."""
        codes = {name: process.poll() for name, process in self._daemons.items()}
        ended = next((name for name, code in codes.items() if code is not None), 'raylet' if gone else None)
        if ended is not None:
            code = codes[ended]
            how = f'was killed by signal {-code}' if code and code < 0 else 'has ended, as with each of its agents'
            self.broken = f"Ray's {ended} {how}; its logs are in {self._folder}/logs"
            raise TrainingError(f'{self.broken}. No role can be reached: start the run again, with --resume')

    def dismiss(self) -> None:
        """The daemons have been ended in order: what they wrote goes, unless it tells why one of them ended before."""
        self._shell.kill()
        self._shell.wait()
        self._input.close()
        if self._folder and not self.broken:
            shutil.rmtree(self._folder, ignore_errors=True)
            newest = Path(self._folder).with_name('session_latest')
            if newest.is_symlink() and not newest.exists():
                newest.unlink(missing_ok=True)


def _children(pid: int) -> list[int]:
    """Processes whose parent is ``pid``."""
    found = []
    for path in Path(f'/proc/{pid}/task').glob('*/children'):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found += [int(child) for child in path.read_text().split()]
    return found
