"""
Python processes for tests that begin where ``import torch`` and nervex are done: ``Popen`` and ``run`` take a command
as those of ``subprocess`` do, and fork it from one process that has imported everything (processor time of a start: a
twentieth). What is started is a process of its own, with its own arguments, environment, folder, session, standard
files, signals and exit code, under ``sys.argv[1:]`` as Python knows it: a script, ``-m module`` or ``-c code``.

Not for tests of the start itself: of what is imported and when, of signals before ``main``, of other programs. What
Python or a library reads only at its start (``READ_AT_START``) is a real start by itself.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import importlib.util
import io
import json
import os
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

#: beginnings of the names of variables that are read once, when a process or a library begins
READ_AT_START = (
    *('PYTHON', 'LANG', 'LC_', 'LD_', 'MALLOC_'),
    *('OMP_', 'MKL_', 'OPENBLAS_', 'KMP_', 'NUMBA_', 'ATEN_'),
)
#: what the parent imports: all that a run on CartPole does
MODULES = (
    *('nervex.entry.cli', 'nervex.entry.commands', 'nervex.entry.serial_entry', 'nervex.entry.eval_entry'),
    *('nervex.run.build', 'nervex.run.league_run', 'nervex.policy.dqn', 'nervex.policy.ppo'),
    *('nervex.worker.actor.env_manager', 'nervex.worker.coordinator.base_serial_commander', 'nervex.worker.learner'),
    *('nervex.worker.learner.base_learner', 'nervex.model.discrete_net', 'nervex.graph.script', 'nervex.data.replay'),
    *('nervex.parallel.settings', 'nervex.envs.tests.fakes', 'app_zoo.classic_control.cartpole.envs'),
    *('gymnasium', 'tensorboardX', 'rich', 'click', 'yaml', 'torch'),
)
_SIZE = struct.Struct('!q')
_AT_IMPORT = dict(os.environ)


# ---- in the test
class Popen:
    """A process that runs ``command``, with the methods of ``subprocess.Popen`` that tests use; see the module."""

    def __new__(cls, command: Sequence[str], *, env: Mapping[str, str] | None = None, **how: Any) -> Any:
        """A real start where this one would not do."""
        return super().__new__(cls) if _will_do(command, env) else subprocess.Popen(command, env=env, **how)

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
        text: bool = False,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike | None = None,
        start_new_session: bool = False,
    ) -> None:
        self.args, self.returncode, self._text = list(command), None, text
        with contextlib.ExitStack() as theirs:  # the ends of the new process are closed here when it has them
            self.stdin, first = self._file(theirs, stdin, 0)
            self.stdout, second = self._file(theirs, stdout, 1)
            self.stderr, third = (None, second) if stderr == subprocess.STDOUT else self._file(theirs, stderr, 2)
            self._status, status = socket.socketpair()
            theirs.callback(status.close)
            request = dict(
                arguments=[os.fspath(word) for word in command[1:]],
                environment=dict(os.environ if env is None else env),
                folder=os.path.abspath(cwd or os.getcwd()),
                session=start_new_session,
            )
            parent().ask(request, [first, second, third, status.fileno()])
        self.pid = self._told()

    def _file(self, theirs: contextlib.ExitStack, wanted: Any, number: int) -> tuple[Any, int]:
        """Our end of a standard file, if it has one, and the number of the other end."""
        if wanted is None:
            return None, number
        if wanted == subprocess.DEVNULL:
            null = os.open(os.devnull, os.O_RDWR)
            theirs.callback(os.close, null)
            return None, null
        if wanted != subprocess.PIPE:
            return None, wanted if isinstance(wanted, int) else wanted.fileno()
        read, write = os.pipe()
        ours, other = (read, write) if number else (write, read)
        theirs.callback(os.close, other)
        return open(ours, ('r' if number else 'w') + ('' if self._text else 'b')), other

    def _told(self) -> int:
        answer = self._status.recv(_SIZE.size)
        assert answer, 'the process that forks has ended'
        return _SIZE.unpack(answer)[0]

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; answers the exit code."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = self._told()
            self._status.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it by SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """End it by SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def communicate(self, timeout: float | None = None) -> tuple[Any, Any]:
        """Read both outputs to their ends, then wait."""
        end = None if timeout is None else time.monotonic() + timeout
        if self.stdin is not None:
            self.stdin.close()
        found: dict[Any, bytes] = {pipe: b'' for pipe in (self.stdout, self.stderr) if pipe is not None}
        with selectors.DefaultSelector() as ready:
            for pipe in found:
                ready.register(pipe, selectors.EVENT_READ)
            while ready.get_map():
                arrived = ready.select(None if end is None else max(0.0, end - time.monotonic()))
                if not arrived:
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
                for key, _ in arrived:
                    piece = os.read(key.fd, 1 << 16)
                    found[key.fileobj] += piece
                    if not piece:
                        ready.unregister(key.fileobj)
                        key.fileobj.close()  # type: ignore[union-attr]
        self.wait(None if end is None else max(0.0, end - time.monotonic()))
        out, err = (None if pipe is None else self._decoded(found[pipe]) for pipe in (self.stdout, self.stderr))
        return out, err

    def _decoded(self, data: bytes) -> Any:
        return io.TextIOWrapper(io.BytesIO(data)).read() if self._text else data

    def __enter__(self) -> Popen:
        return self

    def __exit__(self, *_: Any) -> None:
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()
        self.wait()


def run(
    command: Sequence[str],
    *,
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **how: Any,
) -> subprocess.CompletedProcess:
    """As ``subprocess.run``."""
    if capture_output:
        how.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with Popen(command, **how) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


def _will_do(command: Sequence[str], env: Mapping[str, str] | None) -> bool:
    """Whether a fork does what a start would do."""
    program, kind = (os.fspath(word) for word in [*command, '-'][:2])
    if sys.platform != 'linux' or program != sys.executable or (kind[:1] == '-' and kind not in ('-c', '-m')):
        return False
    wanted = os.environ if env is None else env
    names = {name for name in {*wanted, *_AT_IMPORT} if name.startswith(READ_AT_START) and name != 'PYTHONPATH'}
    return all(wanted.get(name) == _AT_IMPORT.get(name) for name in names)


class Parent:
    """The process that forks, seen from the test."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**_AT_IMPORT, 'OMP_NUM_THREADS': '1'},  # a process that forks has one thread
            )
        self._owner = os.getpid()
        atexit.register(self.close)

    def ask(self, request: dict, files: list[int]) -> None:
        """Have a process forked that does this, with these standard files, and tells its end to the last one."""
        text = json.dumps(request).encode()
        socket.send_fds(self._ours, [_SIZE.pack(len(text))], files)
        self._ours.sendall(text)

    def close(self) -> None:
        """End the process that forks; what it has forked goes on."""
        self._ours.close()
        if os.getpid() == self._owner:
            self._process.wait()


@functools.cache
def parent() -> Parent:
    """The one of this test process, started when the first asks for it."""
    return Parent()


# ---- in the process that forks
class Forks:
    """Forks when asked, and tells the ends of its children."""

    def __init__(self, control: socket.socket) -> None:
        self._control, self._running = control, dict[int, socket.socket]()
        self._at_interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests
        self._woken, self._wake = socket.socketpair()
        self._wake.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake.fileno())

    def serve(self) -> dict | None:
        """Answers in each child what it is to do; and None in this process, when the test process has ended."""
        while True:
            ready, _, _ = select.select([self._control, self._woken], [], [])
            if self._woken in ready:
                self._woken.recv(1 << 10)
                self._reap()
            if self._control in ready:
                size, files, _, _ = socket.recv_fds(self._control, _SIZE.size, 4)
                if not size:
                    return None
                text = self._control.recv(_SIZE.unpack(size)[0], socket.MSG_WAITALL)
                request, status = json.loads(text), socket.socket(fileno=files[3])
                assert len(os.listdir('/proc/self/task')) == 1, 'a process that forks must have one thread'
                child = os.fork()
                if child == 0:
                    self._be_separate(request, files, status)
                    return request
                self._running[child] = status
                for number in files[:3]:
                    os.close(number)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                with self._running.pop(ended[0]) as status, contextlib.suppress(BrokenPipeError):
                    status.sendall(_SIZE.pack(os.waitstatus_to_exitcode(ended[1])))

    def _be_separate(self, request: dict, files: list[int], status: socket.socket) -> None:
        """Of the parent keep nothing but its modules; then tell the test the pid."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, self._at_interrupt)
        for one in (self._control, self._woken, self._wake, *self._running.values()):
            one.close()
        if request['session']:
            os.setsid()
        for number, file in enumerate(files[:3]):
            os.dup2(file, number)
        for file in set(files[:3]):
            os.close(file)
        with status:
            status.sendall(_SIZE.pack(os.getpid()))


def own_path() -> list[str]:
    """``sys.path`` without the folder of this script and what PYTHONPATH adds."""
    added = {os.path.abspath(path) for path in os.environ.get('PYTHONPATH', '').split(os.pathsep) if path}
    return [path for path in sys.path[1:] if os.path.abspath(path) not in added]


def become(request: dict, path: list[str]) -> tuple[Any, types.ModuleType]:
    """Take over environment, folder, arguments and standard files; answers the program to run, as which module."""
    import multiprocessing.process
    import tempfile

    import numpy as np
    import torch

    os.environ.clear()
    os.environ.update(request['environment'])
    os.chdir(request['folder'])
    multiprocessing.process.ORIGINAL_DIR = os.getcwd()  # type: ignore[attr-defined]
    tempfile.tempdir = None
    np.random.seed(), torch.seed()  # random sees to its own
    for number, name in enumerate(('stdin', 'stdout', 'stderr')):
        setattr(sys, name, standard_file(number, name)), setattr(sys, f'__{name}__', getattr(sys, name))
    added = [os.path.abspath(one) for one in os.environ.get('PYTHONPATH', '').split(os.pathsep) if one]
    sys.path[:] = [*dict.fromkeys([*added, *path])]
    importlib.invalidate_caches()
    return main_of(request['arguments'])


def standard_file(number: int, name: str) -> io.TextIOWrapper:
    """``sys.stdin``, ``stdout`` or ``stderr`` as Python makes it, by what it has made for this process."""
    made = getattr(sys, name)
    buffered = not isinstance(made.buffer, io.FileIO)  # they are files themselves for PYTHONUNBUFFERED
    binary: Any = open(number, 'wb' if number else 'rb', -1 if buffered else 0, closefd=False)  # noqa: SIM115
    (binary.raw if buffered else binary).name = f'<{name}>'
    by_line = buffered and (number == 2 or binary.isatty())
    return io.TextIOWrapper(binary, made.encoding, made.errors, None, by_line, made.write_through)


def main_of(arguments: list[str]) -> tuple[Any, types.ModuleType]:
    """What ``python`` with these arguments runs, and as which module; ``sys.argv`` and ``sys.path`` begin with it."""
    main, kind = types.ModuleType('__main__'), arguments[0]
    sys.modules['__main__'] = main
    if kind == '-m':
        sys.path.insert(0, os.getcwd())
        spec = importlib.util.find_spec(arguments[1])
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f'{arguments[1]}.__main__')
        assert spec is not None and spec.origin is not None, f'no module named {arguments[1]}'
        main.__spec__, main.__loader__, main.__file__, main.__package__ = spec, spec.loader, spec.origin, spec.parent
        sys.argv = [spec.origin, *arguments[2:]]
        return spec.loader.get_code(spec.name), main  # type: ignore[union-attr]
    if kind == '-c':
        sys.path.insert(0, '')
        sys.argv = ['-c', *arguments[2:]]
        return compile(arguments[1], '<string>', 'exec'), main
    sys.path.insert(0, os.path.dirname(os.path.realpath(kind)))
    sys.argv, main.__file__ = arguments, os.path.abspath(kind)
    return compile(Path(kind).read_bytes(), kind, 'exec'), main


class End:
    """
    Ends the process when all that is to be done at exit has been done: what it registers comes last. To take the
    modules down, one by one, would copy what is shared with the parent, and take ten times as long as the start.
    """

    code: int | None = None  # None: as Python does

    def __init__(self) -> None:
        atexit.register(self._leave)

    def carry_out(self, program: Any, main: types.ModuleType) -> None:
        """Execute a program, and see how it ends."""
        try:
            exec(program, main.__dict__)
            self.code = 0
        except SystemExit as e:
            self.code = 0 if e.code is None else e.code if isinstance(e.code, int) else 1
            raise
        except Exception:
            self.code = 1
            raise

    def _leave(self) -> None:
        for file in (sys.stdout, sys.stderr):
            try:
                if file is not None:
                    file.flush()
            except OSError:
                self.code = None
        if self.code is not None:
            os._exit(self.code & 0xFF)


if __name__ == '__main__':
    end, from_start = End(), own_path()
    for module in MODULES:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # children look at nothing of this again, so that it stays shared
    wanted = Forks(socket.socket(fileno=int(sys.argv[1]))).serve()
    if wanted is None:
        os._exit(0)
    end.carry_out(*become(wanted, from_start))
