"""What outlives a program that is killed: nothing that it started for its run."""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from nervex.parallel.ray_cluster import Guard

DAEMON = """
import subprocess, sys
child = subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.read()'], stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.read()
"""


def gone(pid):
    """Whether a process has ended; one that nobody has asked about yet counts."""
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8') as f:
            return f.read().rpartition(')')[2].split()[0] == 'Z'
    except FileNotFoundError:
        return True


def daemon(**variables):
    command = [sys.executable, '-c', DAEMON, 'raylet']
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env={**os.environ, **variables})  # fmt: skip
    return process, int(process.stdout.readline())


@pytest.mark.skipif(not os.path.exists('/proc/self/environ'), reason='there is no /proc')
def test_what_was_started_for_the_run_and_what_that_started_ends_and_nothing_else():
    guard, other = Guard(), Guard()
    (ours, child), (theirs, their_child) = daemon(**guard.variables), daemon(**other.variables)
    try:
        guard._shell.stdin.close()  # as when this process ends
        guard._shell.wait(20)
        assert ours.wait(10) == -signal.SIGKILL and gone(child)
        assert theirs.poll() is None and not gone(their_child)
        other.dismiss()
        assert theirs.poll() is None, 'who is dismissed does nothing'
    finally:
        theirs.kill()
        for process in (ours, theirs):
            process.wait()
            process.stdin.close()
            process.stdout.close()


@pytest.mark.skipif(not os.path.exists('/proc/self/environ'), reason='there is no /proc')
def test_a_daemon_that_was_named_ends_with_its_children_though_it_lost_its_mark():
    guard = Guard()
    process, child = daemon()
    guard.watch(SimpleNamespace(all_processes={'raylet': [SimpleNamespace(process=process)]}))
    guard._shell.stdin.close()
    guard._shell.wait(20)
    try:
        assert process.wait(10) == -signal.SIGKILL and gone(child)
    finally:
        process.stdin.close()
        process.stdout.close()
