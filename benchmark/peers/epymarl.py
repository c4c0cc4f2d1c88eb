"""
The training loops of teams in EPyMARL, from the checkout that ``EPYMARL_DIR`` names, by the Python that
``EPYMARL_PYTHON`` names: it needs older packages than nervex, so it has a virtual environment of its own.

Run as a script (by that Python, in the checkout's ``src``) this file trains once and prints a line of JSON. Its
configs ``qmix`` and ``mappo`` are taken as they are, their settings are those of ``peers/settings.py``; the clock
starts with the first episode that is learned from, tests are switched off.
"""

import json
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from peers.elsewhere import cases  # noqa: E402

KEY = 'pz-mpe-simple-spread-v3'


CASES = cases(__file__, 'EPYMARL_PYTHON', ('qmix', 'mappo'), 'EPYMARL_DIR')


def main(name: str, seed: int) -> None:
    """Train once, in EPyMARL's own loop."""
    from types import SimpleNamespace

    import numpy
    import run
    import torch
    import yaml
    from clock import Clock
    from peers import settings
    from utils.logging import Logger, get_logger

    torch.set_num_threads(1)
    numpy.random.seed(seed)
    torch.manual_seed(seed)
    config: dict = {}
    for part in ('config/default.yaml', 'config/envs/gymma.yaml', f'config/algs/{name}.yaml'):
        config |= yaml.safe_load(Path(part).read_text(encoding='utf-8'))
    steps = getattr(settings, name.upper()).env_steps
    config['env_args'] |= {'key': KEY, 'time_limit': 25, 'seed': seed}
    config |= {'t_max': steps, 'use_cuda': False, 'device': 'cpu', 'test_nepisode': 1, 'test_interval': 10 * steps}
    args, clock = SimpleNamespace(**config, unique_token='bench'), Clock()
    kind = run.r_REGISTRY[args.runner]

    class Timed(kind):  # type: ignore[misc, valid-type]
        """Starts the clock at the first episode and stops it when the envs are closed; plays no test."""

        def run(self, test_mode: bool = False) -> object:
            if test_mode:
                return None
            if not self.t_env:
                clock.__enter__()
            return super().run(test_mode)

        def close_env(self) -> None:
            clock.__exit__()
            super().close_env()

    made: list = []
    run.r_REGISTRY[args.runner] = lambda **kwargs: made.append(Timed(**kwargs)) or made[0]
    run.run_sequential(args, Logger(get_logger()))
    print(json.dumps({'count': made[0].t_env, **vars(clock)}))


if __name__ == '__main__':
    main(sys.argv[1], int(sys.argv[2]))
