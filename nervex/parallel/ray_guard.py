"""A cluster of our own ends with this process, even if this process is killed."""

from __future__ import annotations

import os
import subprocess
import uuid
from typing import Any

# Reads numbers of processes until the end of its input, which comes when the process that holds the other end is gone;
# then ends what is left of these, what carries the mark, and the children of both (a process that takes a title may
# lose its mark). A number that meanwhile belongs to somebody else is left alone. Looks more than once: what is being
# started while it looks gets its mark a moment later.
_SCRIPT = """
end() {{ kill -9 "$1" $(cat /proc/"$1"/task/*/children); }}
pids=; while read -r line; do pids="$pids $line"; done
for pid in $pids; do grep -aqi ray /proc/"$pid"/cmdline && end "$pid"; done
for turn in 1 2 3; do
    for file in $(grep -lsa {mark} /proc/[0-9]*/environ); do pid=${{file#/proc/}}; end "${{pid%/environ}}"; done
    sleep 0.2
done
"""


class Guard:
    """
    Overview:
        A shell that outlives this process for a moment, to end what would outlive it for ever: every process that has
        ``variables`` in its environment, as the daemons of Ray have that are started with them, and what those start.
    Interfaces:
        watch, dismiss
    """

    def __init__(self) -> None:
        mark = f'NERVEX_RUN_{uuid.uuid4().hex}'
        self.variables = {mark: '1'}
        self._shell = subprocess.Popen(
            ['/bin/sh', '-c', _SCRIPT.format(mark=mark)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def watch(self, node: Any) -> None:
        """End the daemons of this node too, and the children that they have by now, whatever they do to their marks."""
        daemons = [entry.process.pid for entries in node.all_processes.values() for entry in entries]
        pids = sorted({pid for daemon in daemons for pid in (daemon, *_children(daemon))})
        self._shell.stdin.write(' '.join([*map(str, pids), '\n']).encode())
        self._shell.stdin.flush()

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
