"""A run in which something is killed at random every few seconds goes on, counts nothing twice, and ends solved."""

import os
import random
import signal
import time

import pytest

pytest.importorskip('ray')

from app_zoo.classic_control.cartpole.entry import cartpole_ppo_default_config
from nervex.parallel.run import build_parallel

SECONDS, EVERY_S, SOLVED = 300.0, 10.0, 195.0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_with_a_kill_every_ten_seconds_is_solved_in_the_end(tmp_path):
    overrides = (
        f'exp_name={tmp_path}',
        'evaluator.stop_val=100000',  # the run shall not end before the kills do
        'commander.max_env_step=100000000',
        'parallel.save_s=2.0',
        'parallel.restarts=50',
    )
    chance, kills = random.Random(0), 0
    with build_parallel(cartpole_ppo_default_config, 0, overrides=overrides) as run:
        run.begin()
        while run.tally.train_iter == 0:
            assert run.going_on()
            run.coordinator.step(0.1)
        end = time.monotonic() + SECONDS
        next_kill = time.monotonic() + EVERY_S
        while time.monotonic() < end:
            assert run.going_on()
            run.coordinator.step(0.1)
            alive = [slot for slot in run.roster.slots if slot.ready]
            if time.monotonic() >= next_kill and alive:
                os.kill(chance.choice(alive).pid, signal.SIGKILL)
                kills, next_kill = kills + 1, time.monotonic() + EVERY_S
        evaluations = len(run.evaluator.history)
        until = time.monotonic() + 120
        while not any(mean >= SOLVED for _, _, mean in run.evaluator.history[evaluations + 1 :]):
            assert time.monotonic() < until and run.going_on(), run.evaluator.history[evaluations:]
            run.coordinator.step(0.1)
        run.finish()
    assert run.tally.doubles == 0 and run.roster.restarts == kills > SECONDS / EVERY_S / 2
