"""Cases that a Python of another virtual environment runs: a script that trains once and prints a line of JSON."""

import json
import os
import subprocess
from collections.abc import Callable


def cases(script: str, python: str, names: tuple[str, ...], folder: str = '') -> dict[str, Callable[..., int]]:
    """
    Overview:
        A case for each name: ``python`` is the variable that names the interpreter, ``folder`` the one of the checkout
        in whose ``src`` the script runs.
    """

    def case(name: str) -> Callable[..., int]:
        def run(clock: object) -> int:
            done = subprocess.run(
                [os.environ[python], script, name, str(clock.round)],
                cwd=os.path.join(os.environ[folder], 'src') if folder else None,
                capture_output=True,
                text=True,
                env={**os.environ, 'PYTHONPATH': '.', 'SDL_VIDEODRIVER': 'dummy'},
            )
            if done.returncode:
                raise RuntimeError(done.stderr[-2000:])
            told = json.loads(done.stdout.strip().splitlines()[-1])
            clock.wall_s, clock.cpu_s, clock.machine_s = told['wall_s'], told['cpu_s'], told['machine_s']
            return told['count']

        return run

    return {name: case(name) for name in names}
