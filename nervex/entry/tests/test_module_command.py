"""``python -m nervex`` is the command."""

import subprocess
import sys


def test_the_package_runs_as_the_command():
    done = subprocess.run([sys.executable, '-m', 'nervex', '-v'], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and 'nervex' in (done.stdout + done.stderr).lower()
