"""A run in which something is killed at random every few seconds goes on, counts nothing twice, and ends solved."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip('ray')

from app_zoo.classic_control.cartpole.entry import cartpole_ppo_default_config
from nervex.parallel.tests.running import build_parallel

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


COMMAND = [sys.executable, '-m', 'nervex.entry.cli', '-m', 'parallel']
TWO_MINUTES, DAEMONS = 120.0, ('raylet/raylet', 'gcs_server', 'ray::DashboardAgent', 'ray::RuntimeEnvAgent')


def below(process):
    """Process ids with their command lines, of what descends from this process."""
    listed = subprocess.run(['ps', '-ewwo', 'pid,ppid,args'], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()[1:]]
    found = {process.pid}
    while more := {int(pid) for pid, ppid, _ in rows if int(ppid) in found} - found:
        found |= more
    return {int(pid): args for pid, _, args in rows if int(pid) in found - {process.pid}}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_roles_and_daemons_are_killed_for_two_minutes_and_the_run_goes_on_each_time(tmp_path):
    options = ['-o', 'evaluator.stop_val=100000', '-o', 'commander.max_env_step=100000000', '-o', 'parallel.save_s=1',
               '-o', 'parallel.restarts=50']  # fmt: skip
    chance, end, updates = random.Random(0), time.monotonic() + TWO_MINUTES, [0]
    start = ['-c', 'cartpole_dqn', '-s', '0', '-o', f'exp_name={tmp_path}', *options]
    while time.monotonic() < end or len(updates) <= len(DAEMONS):
        victim = DAEMONS[(len(updates) - 1) % len(DAEMONS)]
        process = subprocess.Popen([*COMMAND, *start], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        start = ['--resume', str(tmp_path), *options]

        def newest():
            return max((int(p.name.split('_')[-2]) for p in tmp_path.glob('ckpt*/run_state_[1-9]*')), default=0)

        def wait(condition, process=process):
            until = time.monotonic() + 60
            while not condition():
                assert time.monotonic() < until and process.poll() is None, process.communicate()[0]
                time.sleep(0.2)

        wait(lambda: newest() > updates[-1])
        for _ in range(2):  # a role, which comes back
            roles = [pid for pid, args in below(process).items() if args.startswith('ray::Host')]
            os.kill(chance.choice(roles), signal.SIGKILL)
            updates.append(newest())
            wait(lambda: newest() > updates[-1])
            updates.pop()
        updates.append(newest())
        os.kill(next(pid for pid, args in below(process).items() if victim in args), signal.SIGKILL)
        killed_at = time.monotonic()
        said, _ = process.communicate(timeout=30)
        last = said.strip().splitlines()[-1]
        assert time.monotonic() - killed_at < 10 and process.returncode == 1, (victim, said)
        assert "Ray's" in last and '--resume' in last and 'Traceback' not in said, (victim, said)
    assert updates == sorted(set(updates)) and len(updates) > len(DAEMONS)
