"""
What an exported policy costs: ``python benchmark/export_bench.py [--out FILE]``.

A PPO with two layers of 64 on four numbers, untrained, once plain and once with what PPO usually has on CartPole
(scaled observations). Load: a fresh process, from the first import to the first action, without Python's own start, by
processor time; the best of five. Act: microseconds a call for one observation and for 64, the best of 50 rounds of 100
calls, of which each way gets its turn.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from nervex import runtime
from nervex.run.acting import Acting
from nervex.run.defaults import config_for
from nervex.run.export import export_policy

ROUNDS, CALLS, STARTS = 50, 100, 5
PLAIN = dict(env=dict(manager=dict(norm_obs=False, norm_reward=False)))
LOAD = (
    'import time; t = time.process_time(); import numpy, nervex.runtime; '
    'nervex.runtime.load({path!r}).act(numpy.zeros(4)); print(time.process_time() - t)'
)


def load_ms(path: str) -> float:
    """From the first import to the first action."""
    command = [sys.executable, '-c', LOAD.format(path=path)]
    return 1e3 * min(float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(STARTS))


def act_us(ways: dict[str, Callable[[Any], Any]], obs: np.ndarray) -> dict[str, float]:
    """Microseconds a call of each way."""
    best = dict.fromkeys(ways, float('inf'))
    for _ in range(ROUNDS):
        for name, act in ways.items():
            begin = time.perf_counter()
            for _ in range(CALLS):
                act(obs)
            best[name] = min(best[name], 1e6 * (time.perf_counter() - begin) / CALLS)
    return best


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', help='also write it to this file')
    lines = ['| net | way | load, ms | 1 observation, us | 64 observations, us |', '|---|---|---|---|---|']
    out = parser.parse_args().out
    rng = np.random.default_rng(0)
    one, many = rng.normal(size=4).astype(np.float32), rng.normal(size=(64, 4)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        for title, given in (('64x64', PLAIN), ('64x64, scaled observations', {})):
            cfg = config_for('ppo', 'CartPole-v1', **given)
            names = {'.npz': 'nervex.runtime (.npz)', '.onnx': 'onnxruntime (.onnx)', '.pt2': 'torch.export (.pt2)'}
            paths = {name: os.path.join(folder, f'policy{ending}') for ending, name in names.items()}
            for path in paths.values():
                export_policy(cfg, None, path)
            policies = {name: runtime.load(path) for name, path in paths.items()}
            ways: dict[str, Callable[[Any], Any]] = {name: policy.act for name, policy in policies.items()}
            ways['Agent.predict'] = Acting(cfg)
            session = policies[names['.onnx']]._run
            ways['onnxruntime alone'] = lambda obs, run=session: run([obs if obs.ndim > 1 else obs[None]])
            for act in ways.values():
                for _ in range(400):  # acting is recorded after 300 calls
                    act(one)
                    act(many)
            times = act_us(ways, one), act_us(ways, many)
            for name in ways:
                load = f'{load_ms(paths[name]):.0f}' if name in paths else ''
                lines.append(f'| {title} | {name} | {load} | {times[0][name]:.1f} | {times[1][name]:.1f} |')
    print('\n'.join(lines))
    if out is not None:
        with open(out, 'w', encoding='utf-8') as file:
            file.write('\n'.join(['# Exported policies', '', str(__doc__).strip(), '', *lines, '']))


if __name__ == '__main__':
    main()
