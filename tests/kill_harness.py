"""
A run that is killed at its n-th file operation and resumed, for every n that is asked for:

    python tests/kill_harness.py CONFIG.yaml 1 5 300 -1

(-1: the last but one).
A file operation is: opening for writing, a write (of which half is done), fsync, rename, remove, truncate or mkdir in
the folder of the run. Printed as JSON: how many operations the run has, and what differs after a kill at n from a run
that was never killed. Every run is a fork of one process that has imported everything.
"""

import builtins
import io
import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from run_contents import same_models, whole_run

from nervex.entry import serial_pipeline
from nervex.utils import CheckpointError

SEED = 3


class Operations:
    """Counts the file operations below a folder; at number ``deadly`` the process is killed."""

    def __init__(self, folder: str, deadly: int) -> None:
        self.folder, self.deadly, self.count = os.path.realpath(folder) + os.sep, deadly, 0
        self._paths: dict[int, str] = {}  # of open files, by number
        for name in ('remove', 'unlink', 'rename', 'replace', 'truncate', 'mkdir', 'rmdir'):
            setattr(os, name, self._counting(getattr(os, name)))
        self._real_open, self._os_open, self._fsync = builtins.open, os.open, os.fsync
        builtins.open = io.open = self._open  # type: ignore[assignment]
        os.open, os.fsync = self._open_number, self._sync  # type: ignore[assignment]

    def one(self, path: Any) -> bool:
        """Count an operation; answers whether it is the deadly one."""
        if isinstance(path, int) or not os.path.abspath(os.fspath(path)).startswith(self.folder):
            return False
        self.count += 1
        return self.count == self.deadly

    def _counting(self, function: Callable) -> Callable:
        def counted(path: Any, *args: Any, **kwargs: Any) -> Any:
            if self.one(path):
                die()
            return function(path, *args, **kwargs)

        return counted

    def _open_number(self, path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes and self.one(path):
            die()
        number = self._os_open(path, flags, *args, **kwargs)
        self._paths[number] = os.fspath(path) if writes else ''
        return number

    def _sync(self, number: int) -> None:
        if self.one(self._paths.get(number, '')):
            die()  # whatever a killed process has written is there; only a power cut would tell the difference

    def _open(
        self, file: Any, mode: str = 'r', buffering: int = -1, encoding: Any = None, errors: Any = None,
        newline: Any = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        path = self._paths.get(file, '') if isinstance(file, int) else os.fspath(file)
        if not set(mode) & set('wax+') or not os.path.abspath(path).startswith(self.folder):
            return self._real_open(file, mode, buffering, encoding, errors, newline, **kwargs)
        if not isinstance(file, int) and self.one(path):
            die()
        raw = Torn(file, mode.replace('b', ''))
        raw.told = lambda: self.one(path)
        self._paths[raw.fileno()] = path
        if buffering == 0:
            return raw
        buffered = io.BufferedRandom(raw) if '+' in mode else io.BufferedWriter(raw)
        return buffered if 'b' in mode else io.TextIOWrapper(buffered, encoding, errors, newline, buffering == 1)


class Torn(io.FileIO):
    """A file of which the deadly write is done by half."""

    told: Callable[[], bool]

    def write(self, data: Any) -> int:
        """Write, or begin to."""
        if self.told():
            super().write(bytes(data)[: len(data) // 2])
            die()
        return super().write(data)


def die() -> None:
    """As a power cut would have it."""
    os.kill(os.getpid(), signal.SIGKILL)


def forked(work: Callable[[], None], errors: str) -> int:
    """Do the work in a process of its own; answers its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            Path(errors).write_text(traceback.format_exc(), encoding='utf-8')
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    """Kill and resume at the operations of the command line."""
    config, numbers_wanted = sys.argv[1], [int(n) for n in sys.argv[2:]]
    torch.set_num_threads(1)

    def start(folder: str, deadly: int = 0) -> None:
        operations = Operations(folder, deadly)
        serial_pipeline(config, SEED, overrides=(f'exp_name={folder}',))
        Path(f'{folder}.count').write_text(str(operations.count), encoding='utf-8')

    def resume(folder: str) -> None:
        try:
            serial_pipeline(None, resume=folder)
        except CheckpointError as e:
            if 'holds no run to resume' not in str(e):  # it was killed before it had described itself
                raise
            serial_pipeline(config, SEED, overrides=(f'exp_name={folder}',))

    straight, differ = Path('straight'), {}
    assert forked(lambda: start('straight'), 'errors') == 0, Path('errors').read_text(encoding='utf-8')
    expected = whole_run(straight)
    models = expected.pop('checkpoints')
    operations = int(Path('straight.count').read_text(encoding='utf-8'))
    for n in (n if n > 0 else operations + n for n in numbers_wanted):
        killed, folder = f'killed_{n}', Path(f'killed_{n}')
        ended = forked(lambda killed=killed, n=n: start(killed, n), 'errors')
        if ended != -signal.SIGKILL:
            differ[n] = f'ended with {ended} in place of the kill'
        elif forked(lambda killed=killed: resume(killed), 'errors') != 0:
            differ[n] = Path('errors').read_text(encoding='utf-8')
        else:
            found = whole_run(folder)
            same = {'checkpoints': same_models(found.pop('checkpoints'), models)}
            same.update({name: found[name] == value for name, value in expected.items()})
            same['nothing left over'] = not [*folder.glob('**/*.tmp'), *folder.glob('**/.nervex_lock')]
            if not all(same.values()):
                differ[n] = ', '.join(name for name, equal in same.items() if not equal)
        if n not in differ:
            shutil.rmtree(folder)
    print(json.dumps({'operations': operations, 'killed': len(numbers_wanted), **differ}))


if __name__ == '__main__':
    main()
