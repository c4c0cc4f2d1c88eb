"""Runs on Ray: the same config as in serial mode, whatever dies, and nothing left behind."""

import glob
import os
import re
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip('ray')

from app_zoo.classic_control.cartpole.envs import CartPoleEnv
from nervex.entry.parallel_entry import parallel_pipeline
from nervex.entry.serial_entry import serial_pipeline
from nervex.parallel.tests.running import build_parallel
from nervex.run.launch import Passed

CONFIGS = 'app_zoo.classic_control.{0}.entry.{0}_{1}_default_config'


def config(env, policy):
    module = __import__(CONFIGS.format(env, policy), fromlist=['main_config'])
    return module.main_config


def children():
    """Processes of Ray that descend from this one."""
    listed = subprocess.run(['ps', '-eo', 'pid,ppid,args'], capture_output=True, text=True, check=True).stdout
    parents = {int(pid): (int(ppid), args) for pid, ppid, args in
               (line.split(None, 2) for line in listed.splitlines()[1:])}  # fmt: skip

    def descends(pid):
        while pid in parents and pid != 1:
            pid = parents[pid][0]
            if pid == os.getpid():
                return True
        return False

    return [args for pid, (_, args) in parents.items() if 'ray' in args and descends(pid) and 'defunct' not in args]


def lines(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


@pytest.fixture
def watched(tmp_path):
    """A run that goes on until the test ends it; answers (run, go) where go(condition) steps until it holds."""
    runs = []

    def begin(env='cartpole', policy='dqn', **parallel):
        endless = ['evaluator.stop_val=100000', 'commander.max_env_step=100000000', 'parallel.save_s=0.5']
        overrides = [f'exp_name={tmp_path}', *endless, *(f'parallel.{key}={value}' for key, value in parallel.items())]
        run = build_parallel(config(env, policy), 0, overrides=tuple(overrides))
        runs.append(run)
        run.begin()

        def go(condition, timeout_s=60):
            until = time.monotonic() + timeout_s
            while not condition():
                assert time.monotonic() < until, 'it did not come to that: ' + lines(run.log.path)
                assert run.going_on()
                run.coordinator.step(0.1)

        return run, go

    yield begin
    for run in runs:
        run.__exit__()
    assert not children()


def test_a_serial_config_is_solved_and_nothing_is_left(tmp_path):
    result = parallel_pipeline(config('cartpole', 'dqn'), 0, overrides=(f'exp_name={tmp_path}',))
    assert result.solved and result.final_return >= 195 and not children()
    log = tmp_path / 'log'
    assert len(glob.glob(f'{log}/actor/*_logger.txt')) == 2 and (log / 'coordinator_logger.txt').exists()
    assert (log / 'commander' / 'commander_logger.txt').exists() and (log / 'learner' / 'learner_logger.txt').exists()
    assert not glob.glob(f'{tmp_path}/data*') and not glob.glob(f'{tmp_path}/policy_*')
    # checkpoints are those of serial mode
    again = serial_pipeline(
        config('cartpole', 'dqn'), 0,
        overrides=(f'exp_name={tmp_path}/serial', f'learner.load_path={result.best_checkpoint}',
                   'commander.max_train_iter=100000', 'commander.max_env_step=100000'),
    )  # fmt: skip
    assert again.solved and again.history[0][2] >= 195


@pytest.mark.slow
@pytest.mark.parametrize('seed', [0, 1, 2])
@pytest.mark.parametrize(('env', 'policy'), [('cartpole', 'ppo'), ('cartpole', 'dqn'), ('pendulum', 'sac'),
                                             ('cartpole', 'impala')])  # fmt: skip
def test_it_learns(tmp_path, env, policy, seed):
    result = parallel_pipeline(config(env, policy), seed, overrides=(f'exp_name={tmp_path}', 'parallel.actor_num=2'))
    assert result.solved


@pytest.mark.slow
@pytest.mark.parametrize('victim', ['actor0', 'evaluator0', 'learner0'])
def test_a_role_that_is_killed_comes_back(watched, victim):
    run, go = watched()
    go(lambda: run.tally.train_iter > 300 and run.coordinator.saved_iter)
    slot = next(slot for slot in run.roster.slots if slot.name == victim)
    os.kill(slot.pid, signal.SIGKILL)
    go(lambda: slot.spec.incarnation == 1 and slot.ready)
    iteration = run.tally.train_iter
    go(lambda: run.tally.train_iter > iteration + 300)
    assert f'{victim} died' in lines(run.log.path) and run.tally.doubles == 0
    went_on = re.findall(r'goes to learner0, at update (\d+)', lines(run.log.path))
    assert [int(update) > 0 for update in went_on] == ([False, True] if victim == 'learner0' else [False])


@pytest.mark.slow
@pytest.mark.parametrize('victim', ['actor1', 'evaluator0', 'learner0'])
def test_a_role_that_is_stopped_is_seen_and_comes_back(watched, victim):
    run, go = watched(stall_s=8.0)
    go(lambda: run.tally.train_iter > 300 and run.coordinator.saved_iter)
    slot = next(slot for slot in run.roster.slots if slot.name == victim)
    os.kill(slot.pid, signal.SIGSTOP)
    go(lambda: slot.spec.incarnation == 1 and slot.ready)
    iteration = run.tally.train_iter
    go(lambda: run.tally.train_iter > iteration + 300)
    said = lines(run.log.path)
    assert f'{victim}: no progress for 2 s in ' in said and f'{victim} died (no progress for ' in said
    assert run.roster.restarts == 1


class HangsOnce(CartPoleEnv):
    """Sleeps for ever in its hundredth step, the first time in a run."""

    steps = 0

    def step(self, action):
        self.steps += 1
        flag = os.environ['HANGS_ONCE']
        if self.steps == 100 and not os.path.exists(flag):
            with open(flag, 'w', encoding='utf-8'):
                time.sleep(1e6)
        return super().step(action)


@pytest.mark.slow
def test_an_env_that_hangs_in_an_actor_without_time_limits_is_seen(tmp_path, monkeypatch):
    monkeypatch.setenv('HANGS_ONCE', f'{tmp_path}/hung')
    overrides = (f'exp_name={tmp_path}', 'parallel.stall_s=6', 'parallel.actor_num=1', 'env.env_manager_type=base')
    passed = Passed(env_setting=(HangsOnce, [{}] * 8, [{}] * 5))
    with build_parallel(config('cartpole', 'dqn'), 0, passed, overrides) as run:
        run.begin()
        while run.going_on():
            run.coordinator.step(0.1)
        assert run.coordinator.solved and run.roster.restarts == 1
    said = lines(tmp_path / 'log' / 'coordinator_logger.txt')
    assert re.search(r'(actor|evaluator)\d died \(no progress for \d+ s in (collect|evaluate)\)', said), said


@pytest.mark.slow
def test_an_env_process_that_is_killed_is_replaced_by_its_actor(tmp_path):
    overrides = (f'exp_name={tmp_path}/sub', 'env.env_manager_type=subprocess', 'evaluator.stop_val=100000')
    with build_parallel(config('cartpole', 'dqn'), 0, overrides=overrides) as run:
        run.begin()
        killed = False
        while run.tally.train_iter < 300:
            run.coordinator.step(0.1)
            if run.tally.blocks > 5 and not killed:
                killed = True
                actor = run.roster.of('actor')[0]
                found = subprocess.run(['pgrep', '-P', str(actor.pid)], capture_output=True, text=True, check=False)
                servers = [int(pid) for pid in found.stdout.split()]
                workers = [subprocess.run(['pgrep', '-P', str(pid)], capture_output=True, text=True, check=False).stdout
                           for pid in servers]  # fmt: skip
                victim = next(int(pid) for text in workers for pid in text.split())
                os.kill(victim, signal.SIGKILL)
        assert actor.spec.incarnation == 0, lines(run.log.path)


@pytest.mark.slow
def test_one_of_two_learners_that_is_killed_takes_the_other_along_and_both_come_back(watched):
    run, go = watched(learner_num=2)
    go(lambda: run.tally.train_iter > 300 and run.coordinator.saved_iter)
    slots = run.roster.of('learner')
    os.kill(slots[1].pid, signal.SIGKILL)
    go(lambda: all(slot.spec.incarnation == 1 and slot.ready for slot in slots))
    iteration = run.tally.train_iter
    go(lambda: run.tally.train_iter > iteration + 300)
    assert run.tally.doubles == 0


COMMAND = [sys.executable, '-m', 'nervex.entry.cli', '-m', 'parallel', '-o', 'commander.max_env_step=100000000']


def started(folder, *options):
    """The command line in a process group of its own."""
    process = subprocess.Popen([*COMMAND, *options], start_new_session=True, stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.STDOUT, env={**os.environ, 'OMP_NUM_THREADS': '1'})  # fmt: skip
    return process


def wait_for(condition, timeout_s=120):
    until = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


def newest_state(folder):
    """The update after which the newest saved state was taken."""
    return max((int(path.split('_')[-2]) for path in glob.glob(f'{folder}/ckpt*/run_state_[1-9]*.tar')), default=-1)


def group_is_empty(pgid):
    listed = subprocess.run(['ps', '-eo', 'pgid,stat'], capture_output=True, text=True, check=True).stdout
    return not any(int(group) == pgid and 'Z' not in stat for group, stat in
                   (line.split() for line in listed.splitlines()[1:]))  # fmt: skip


@pytest.mark.slow
def test_a_killed_run_leaves_nothing_running_and_is_resumed(tmp_path):
    folder = str(tmp_path)
    options = ['-o', f'exp_name={folder}', '-o', 'evaluator.stop_val=100000', '-o', 'parallel.save_s=0.5']
    process = started(folder, '-c', 'cartpole_dqn', '-s', '0', *options)
    curve = f'{folder}/log/evaluator/curve.csv'
    wait_for(lambda: os.path.exists(curve) and lines(curve).count('\n') > 3)
    for _ in range(2):  # the next state may have been asked for before the third evaluation
        last = newest_state(folder)
        wait_for(lambda last=last: newest_state(folder) > last)
    process.kill()
    process.communicate()
    wait_for(lambda: group_is_empty(process.pid), 20)
    process = started(folder, '--resume', folder)
    there = re.compile('learner0 is there: process .*, incarnation 1000')
    wait_for(lambda: there.search(lines(f'{folder}/log/coordinator_logger.txt')))
    said = ''
    wait_for(lambda: len(glob.glob(f'{folder}/ckpt*/run_state_[1-9]*')) >= 2)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 130 and 'checkpoint saved' in said
    wait_for(lambda: group_is_empty(process.pid), 20)
    rows = [line.split(',') for line in lines(curve).splitlines()]
    points = [(int(train_iter), int(env_step)) for train_iter, env_step, *_ in rows[1:]]
    assert len(points) > 2 and points == sorted(set(points)), 'the curve was not cut where the state was saved'


@pytest.mark.slow
def test_a_second_stop_signal_ends_the_run_at_once_and_leaves_nothing(tmp_path):
    folder = str(tmp_path)
    options = ['-o', f'exp_name={folder}', '-o', 'evaluator.stop_val=100000', '-o', 'parallel.save_s=0.5']
    process = started(folder, '-c', 'cartpole_dqn', '-s', '0', *options)
    wait_for(lambda: glob.glob(f'{folder}/ckpt*/run_state_[1-9]*'))
    os.killpg(process.pid, signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=10)
    assert process.returncode == 130 and 'checkpoint saved' not in said
    wait_for(lambda: group_is_empty(process.pid), 20)
