"""
Complete training loops on HalfCheetah: SAC and TD3 with an update a step, PPO with normalised observations and rewards.

    python benchmark/mujoco_bench.py --cleanrl ~/cleanrl --threads 1 2
"""

from harness import Bench
from train_bench import IMPLEMENTATIONS, run_loops

BENCH = Bench(
    name='mujoco',
    unit='env steps per second of the training loop',
    implementations=[one for one in IMPLEMENTATIONS if '+' not in one.name],
    cases=['cheetah_sac', 'cheetah_td3', 'cheetah_ppo'],
    reference='sb3',
    notes='Settings: `peers/settings.py`. Random warm-up steps are inside the clock, building nets and envs is not.',
)

if __name__ == '__main__':
    run_loops(BENCH)
