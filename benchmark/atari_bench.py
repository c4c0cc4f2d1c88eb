"""
Complete training loops on Pong: DQN with one env and with eight, PPO with eight; and the memory of a buffer of frames.

    python benchmark/atari_bench.py --cleanrl ~/cleanrl --threads 1 2
    python benchmark/atari_bench.py --memory 1000000
"""

import os
import resource
import tempfile
from pathlib import Path

from harness import Bench
from train_bench import IMPLEMENTATIONS, run_loops

FRAME_BYTES = 84 * 84
BENCH = Bench(
    name='atari',
    unit='env steps per second of the training loop',
    implementations=[one for one in IMPLEMENTATIONS if one.name != 'nervex+own-env'],
    cases=['pong_dqn', 'pong_dqn8', 'pong_ppo'],
    reference='sb3',
    notes='Settings: `peers/settings.py`. Steps are of the player, four frames each; random ones count as well. '
    '`nervex+bfloat16` is not at equal settings: `policy.model.bfloat16=true` (convolutions), all others have float32.',
)


def memory(frames: int) -> str:
    """A line with what a buffer for so many frames takes once games at random have filled it, beside the frames."""
    from nervex.run.build import build_serial

    config = {
        'exp_name': 'memory',
        'env': {'env_type': 'atari', 'env_id': 'Pong', 'env_manager_type': 'vector', 'actor_env_num': 64},
        'policy': {
            'policy_type': 'dqn',
            'model': {'model_type': 'conv_discrete_net', 'channels': [1], 'kernels': [84], 'strides': [1]},
            'command': {'eps': {'type': 'linear', 'start': 1.0, 'end': 1.0, 'decay': 1}},
        },
        'replay_buffer': {'agent': {'meta_maxlen': frames, 'frame_axis': 0}},
        'actor': {'n_sample': 6400},
    }
    home = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            with build_serial(config, seed=0) as run:
                run.commander.step()
                run.buffer.push_data(run.actor.generate_data(0)[0])
                before, first = _resident(), run.actor.total_step
                while run.actor.total_step < 1.1 * frames:
                    run.buffer.push_data(run.actor.generate_data(0)[0])
                grown = _resident() - before
                rows = run.buffer.count()
        finally:
            os.chdir(home)
    ratio = grown / ((frames - first) * FRAME_BYTES)
    return f'{frames:,} frames: {ratio:.3f} times their bytes ({grown / 2**30:.2f} GiB), {rows:,} rows to sample'


def _resident() -> int:
    """Bytes of this process in memory."""
    return int(Path('/proc/self/statm').read_text().split()[1]) * resource.getpagesize()


if __name__ == '__main__':
    run_loops(BENCH, memory)
