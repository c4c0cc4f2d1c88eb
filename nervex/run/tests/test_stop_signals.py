"""Ctrl-C and SIGTERM: a wish first, an order when it is repeated."""

import os
import signal
import subprocess
import sys

import pytest

from nervex.entry.parallel_entry import parallel_pipeline
from nervex.parallel.run import ParallelRun
from nervex.run.signals import StopSignals


@pytest.fixture
def signals():
    made = StopSignals(patience_s=30.0)
    made.install()
    yield made
    made.close()


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_a_wish_that_is_given_some_time(signals, number):
    os.kill(os.getpid(), number)
    assert signals.stop_wanted and 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 30


def test_patience_is_not_lost_any_more_once_the_end_is_under_way(signals):
    os.kill(os.getpid(), signal.SIGINT)
    signals.be_patient()
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_signal_that_comes_when_the_end_is_under_way_sets_no_timer(signals):
    signals.be_patient()
    os.kill(os.getpid(), signal.SIGINT)
    assert signals.stop_wanted and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_the_second_signal_ends_the_process_at_once():
    code = """
import os, signal
from nervex.run.signals import StopSignals
signals = StopSignals()
signals.install()
with signals.held():
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGTERM)
    print('still there')
"""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=False)
    assert done.returncode == 130 and done.stdout == '' and done.stderr == ''


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_parallel_run_that_is_stopped_saves_its_state_and_tells_the_checkpoint(tmp_path, monkeypatch, number):
    cfg = dict(
        exp_name=str(tmp_path),
        env=dict(env_type='cartpole', import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
                 actor_env_num=2, evaluator_env_num=1),
        policy=dict(policy_type='dqn', model=dict(hidden_dim_list=[8]), learn=dict(batch_size=16)),
        actor=dict(n_sample=8), evaluator=dict(n_episode=1, eval_freq=1), commander=dict(max_env_step=10**9),
        parallel=dict(carrier='inline', actor_num=1, block=dict(rows=8), save_s=1000.0),
    )  # fmt: skip

    class Stopping:
        """Looks like progress: presses Ctrl-C after the third evaluation."""

        seen = 0

        def evaluated(self):
            Stopping.seen += 1
            if Stopping.seen == 3:
                os.kill(os.getpid(), number)

        def update(self):
            pass

        close = update

    monkeypatch.setattr(ParallelRun, 'show', lambda self, *args: setattr(self, 'progress', Stopping()))
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as stopped:
        parallel_pipeline(cfg, 0)
    (path,) = stopped.value.args
    assert os.path.isfile(path) and any(name.startswith('run_state') for name in os.listdir(os.path.dirname(path)))
    assert signal.getsignal(signal.SIGINT) is before and Stopping.seen == 3
