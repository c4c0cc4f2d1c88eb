"""A cluster of our own ends with this process, even if this process is killed."""

from __future__ import annotations

import os
import subprocess
from typing import Any

# Waits for the end of its input, which comes when the process that holds the other end is gone; then ends what is left.
# A number that meanwhile belongs to somebody else is left alone.
_SCRIPT = 'read line; for p in {pids}; do grep -aqi ray /proc/$p/cmdline 2>/dev/null && kill -9 $p; done'


class Guard:
    """
    Overview:
        A shell that outlives this process for a moment, to end the daemons of Ray that would outlive it for ever.
    """

    def __init__(self, node: Any) -> None:
        daemons = [entry.process.pid for entries in node.all_processes.values() for entry in entries]
        pids = sorted({pid for daemon in daemons for pid in (daemon, *_children(daemon))})
        script = _SCRIPT.format(pids=' '.join(map(str, pids)))
        self._shell = subprocess.Popen(
            ['/bin/sh', '-c', script], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip

    def dismiss(self) -> None:
        """The daemons have been ended in order: nothing is left to do."""
        self._shell.kill()
        self._shell.wait()
        self._shell.stdin.close()


def _children(pid: int) -> list[int]:
    """Processes whose parent is ``pid``."""
    found = []
    for entry in os.listdir('/proc') if os.path.isdir('/proc') else []:
        if entry.isdigit():
            try:
                with open(f'/proc/{entry}/stat', encoding='utf-8', errors='replace') as f:
                    parent = int(f.read().rpartition(')')[2].split()[1])
            except (OSError, ValueError, IndexError):  # it has ended meanwhile
                continue
            if parent == pid:
                found.append(int(entry))
    return found
