"""A cluster of our own ends with this process, even if this process is killed."""

from __future__ import annotations

import subprocess
import uuid

# Waits for the end of its input, which comes when the process that holds the other end is gone; then ends what is left.
# Looks more than once: what is being started while it looks inherits the mark a moment later.
_SCRIPT = (
    'read line; for turn in 1 2 3; do for file in $(grep -lsa {mark} /proc/[0-9]*/environ); do '
    'pid=${{file#/proc/}}; kill -9 "${{pid%/environ}}"; done; sleep 0.2; done'
)


class Guard:
    """
    Overview:
        A shell that outlives this process for a moment, to end what would outlive it for ever: every process that has
        ``variables`` in its environment, as the daemons of Ray have that are started with them, the roles, and what
        roles start.
    """

    def __init__(self) -> None:
        mark = f'NERVEX_RUN_{uuid.uuid4().hex}'
        self.variables = {mark: '1'}
        self._shell = subprocess.Popen(
            ['/bin/sh', '-c', _SCRIPT.format(mark=mark)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def dismiss(self) -> None:
        """The daemons have been ended in order: nothing is left to do."""
        self._shell.kill()
        self._shell.wait()
        self._shell.stdin.close()
