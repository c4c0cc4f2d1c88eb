"""Signals, locks and full folders: how a run ends when something outside ends it."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from nervex.entry import serial_pipeline
from nervex.run import progress, serial_run
from nervex.utils.tests import quick_start

NERVEX = [sys.executable, '-m', 'nervex.entry.cli']


def to_plain(value):
    return {k: to_plain(v) for k, v in value.items()} if isinstance(value, dict) else value


@pytest.fixture
def endless(short_dqn, tmp_path):
    """The command of a run that does not end by itself."""
    short_dqn.commander.max_env_step = 10**9
    path = tmp_path / 'endless.yaml'
    path.write_text(yaml.safe_dump(to_plain(short_dqn)), encoding='utf-8')
    return [*NERVEX, '-m', 'serial', '-c', str(path), '-s', '0']


def started(command, tmp_path):
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    run = quick_start.Popen(command, start_new_session=True, **pipes)
    end = time.monotonic() + 120
    while not list(tmp_path.glob('ckptBaseLearner*/iteration_*')):
        assert run.poll() is None and time.monotonic() < end
        time.sleep(0.02)
    return run


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
@pytest.mark.parametrize('manager', ['base', 'sync_subprocess'])
def test_one_signal_saves_and_ends(endless, tmp_path, number, manager):
    run = started([*endless, '-o', f'env.env_manager_type={manager}'], tmp_path)
    os.killpg(run.pid, number)  # as a terminal or a cluster does
    _, err = run.communicate(timeout=120)
    assert run.returncode == 128 + number and 'checkpoint saved' in err and 'Traceback' not in err, err
    assert not children_of(run.pid)


def children_of(pid):
    return subprocess.run(['pgrep', '-P', str(pid)], capture_output=True, text=True).stdout.split()


def test_a_second_run_in_a_folder_in_use_is_refused(endless, tmp_path):
    run = started(endless, tmp_path)
    second = quick_start.run(endless, capture_output=True, text=True, timeout=120)
    run.kill()
    run.communicate()
    assert second.returncode == 1
    assert 'another run' in second.stderr and str(run.pid) in second.stderr and 'exp_name' in second.stderr
    assert 'Traceback' not in second.stderr


def test_a_later_run_moves_the_older_logs_aside(short_dqn, tmp_path):
    from nervex.entry import serial_pipeline

    first = serial_pipeline(short_dqn, seed=0)
    serial_pipeline(short_dqn, seed=1)
    assert yaml.safe_load((tmp_path / 'log_1/config.yaml').read_text())['seed'] == 0
    assert yaml.safe_load((tmp_path / 'log/config.yaml').read_text())['seed'] == 1
    facts = yaml.safe_load((tmp_path / 'log_1/run.yaml').read_text())
    assert facts['finished'] == 'limit reached' and 'torch' in facts['packages']
    assert os.path.basename(first.ckpt_path) == facts['checkpoints']


@pytest.mark.skipif(os.geteuid() == 0, reason='root may write everywhere')
def test_an_unwritable_folder_is_one_clear_error(short_dqn, tmp_path):
    from nervex.entry import serial_pipeline

    short_dqn.exp_name = str(tmp_path / 'locked' / 'run')
    (tmp_path / 'locked').mkdir(mode=0o500)
    with pytest.raises(PermissionError, match='locked'):
        serial_pipeline(short_dqn)


def test_a_second_signal_ends_at_once(short_dqn, tmp_path):
    """The first one finds the run inside of an env that hangs, which tells when it was heard."""
    module = tmp_path / 'hanging.py'
    module.write_text(
        'import signal, time\n'
        'from app_zoo.classic_control.cartpole.envs import CartPoleEnv\n'
        'from nervex.utils import ENV_REGISTRY\n'
        "@ENV_REGISTRY.register('hanging')\n"
        'class Hanging(CartPoleEnv):\n'
        '    def step_into(self, *args):\n'
        "        open('hangs', 'w').close()\n"
        '        while True:\n'
        '            try:\n'
        '                time.sleep(0.01)\n'
        '                if signal.getsignal(signal.SIGINT).__self__.stop_wanted:\n'
        "                    open('heard', 'w').close()\n"
        '            except KeyboardInterrupt:\n'
        '                pass\n'
        '    def step(self, action):\n'
        '        self.step_into()\n'
    )
    short_dqn.env.env_type, short_dqn.env.import_names = 'hanging', ['hanging']
    (tmp_path / 'config.yaml').write_text(yaml.safe_dump(to_plain(short_dqn)), encoding='utf-8')
    run = quick_start.Popen([*NERVEX, '-m', 'serial', '-c', 'config.yaml'], stderr=subprocess.PIPE, text=True)
    wait_for(tmp_path / 'hangs', run)
    run.send_signal(signal.SIGINT)
    wait_for(tmp_path / 'heard', run)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=120)
    assert run.returncode == 130


def wait_for(path, run):
    end = time.monotonic() + 120
    while not path.exists():
        assert run.poll() is None and time.monotonic() < end
        time.sleep(0.02)


def test_a_full_disk_is_one_clear_error_and_leaves_the_older_checkpoint_whole(endless, tmp_path):
    """A limit on the size of files stands for the disk; it is lowered when one checkpoint is there."""
    import torch

    code = (
        'import resource, sys, signal\n'
        'from nervex.entry.cli import main\n'
        'from nervex.worker.learner import BaseLearner\n'
        'signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n'
        'save = BaseLearner.save_checkpoint\n'
        'def limited(self, name=None):\n'
        '    path = save(self, name)\n'
        '    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n'
        '    self.register_hook(type(self._hooks["after_run"][-1])("again", 20, "after_iter", {"freq": 5}))\n'
        '    return path\n'
        'BaseLearner.save_checkpoint = limited\n'
        f'main({endless[3:]!r})\n'
    )
    run = quick_start.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=300)
    assert run.returncode == 1, run.stderr
    assert 'cannot be written ([Errno' in run.stderr and 'Last good checkpoint' in run.stderr, run.stderr
    assert 'Traceback' not in run.stderr
    (ckpt,) = tmp_path.glob('ckptBaseLearner*')
    assert not list(ckpt.glob('.*.tmp')) and not list(ckpt.glob('*.tmp'))
    for path in ckpt.glob('*.pth.tar'):
        torch.load(path, weights_only=True)
    assert list(ckpt.glob('iteration_*'))


def test_an_evaluation_that_is_cut_short_loses_nothing(short_dqn, tmp_path, monkeypatch):
    """A stop in the middle of the second evaluation: the resumed run begins with it and ends as if never stopped."""
    from nervex.entry import serial_pipeline
    from nervex.worker.actor import BaseSerialEvaluator

    short_dqn.learner = dict(resume=dict(interval_s=None))
    straight = serial_pipeline(short_dqn, seed=1, overrides=('exp_name=straight',))
    evaluate = BaseSerialEvaluator.evaluate

    def cut_short(self, *args, **kwargs):
        def on_step(*step):
            if len(self.history) == 1:
                raise KeyboardInterrupt  # as StopSignals raises it where the program is

        return evaluate(self, *args, **kwargs, on_step=on_step)

    monkeypatch.setattr(BaseSerialEvaluator, 'evaluate', cut_short)
    with pytest.raises(KeyboardInterrupt):
        serial_pipeline(short_dqn, seed=1, overrides=('exp_name=stopped',))
    monkeypatch.setattr(BaseSerialEvaluator, 'evaluate', evaluate)
    assert list(tmp_path.glob('stopped/ckpt*/run_state_[1-9]*'))
    resumed = serial_pipeline(None, resume='stopped')
    assert resumed.history == straight.history and len(resumed.history) > 2
    rows = [(tmp_path / name / 'log/evaluator/curve.csv').read_text().count('\n') for name in ('straight', 'stopped')]
    assert rows == [len(straight.history) + 1] * 2


def test_a_disk_that_is_full_where_logs_are_written_names_the_file(short_dqn, tmp_path):
    path = tmp_path / 'config.yaml'
    path.write_text(yaml.safe_dump(to_plain(short_dqn)), encoding='utf-8')
    code = (
        'import resource, signal\n'
        'from nervex.entry.cli import main\n'
        'from nervex.worker.actor import BaseSerialActor\n'
        'signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n'
        'generate = BaseSerialActor.generate_data\n'
        'def limited(self, *args):\n'
        '    resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n'
        '    return generate(self, *args)\n'
        'BaseSerialActor.generate_data = limited\n'
        f"main(['-m', 'serial', '-c', {str(path)!r}, '-s', '0', '-o', 'actor.collect_print_freq=1'])\n"
    )
    run = quick_start.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=300)
    assert run.returncode == 1 and 'Traceback' not in run.stderr, run.stderr
    assert "File too large: '" in run.stderr and '/log/' in run.stderr


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_envs_are_made_ends_in_order(short_dqn, tmp_path, number):
    """The first env hangs in its first reset, while the processes of the others are being started."""
    (tmp_path / 'slow.py').write_text(
        'import time\n'
        'from app_zoo.classic_control.cartpole.envs import CartPoleEnv\n'
        'from nervex.utils import ENV_REGISTRY\n'
        "@ENV_REGISTRY.register('slow')\n"
        'class Slow(CartPoleEnv):\n'
        '    def reset(self):\n'
        "        open('resets', 'w').close()\n"
        '        time.sleep(3600)\n'
    )
    short_dqn.env.env_type, short_dqn.env.import_names = 'slow', ['slow']
    (tmp_path / 'config.yaml').write_text(yaml.safe_dump(to_plain(short_dqn)), encoding='utf-8')
    command = [*NERVEX, '-m', 'serial', '-c', 'config.yaml', '-o', 'env.env_manager_type=sync_subprocess']
    run = quick_start.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_for(tmp_path / 'resets', run)
    os.killpg(run.pid, number)
    _, err = run.communicate(timeout=120)
    assert run.returncode == 128 + number and err.strip() == 'interrupted'


def test_a_round_that_does_not_come_to_its_end_says_so(short_dqn, monkeypatch, caplog, capsys):
    """A huge ``train_step``: Ctrl-C is the only way out of the round, so the person must know what goes on."""
    monkeypatch.setattr(serial_run, 'LONG_ROUND_S', 0.05)
    monkeypatch.setattr(progress, '_PLAIN_LINE_S', 0.05)
    updates = iter(range(300))

    def interrupt_at_last(*_):
        if next(updates, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr(serial_run.SerialRun, 'train', chained(serial_run.SerialRun.train, interrupt_at_last))
    with pytest.raises(KeyboardInterrupt):
        serial_pipeline(short_dqn, 0, overrides=('policy.learn.train_step=1000000000',), progress=True)
    assert 'updates, and goes on' in caplog.text and 'policy.learn.train_step' in caplog.text
    assert len(re.findall(r'updates \d+', capsys.readouterr().out)) > 1


def chained(first, second):
    return lambda *args: (first(*args), second(*args))


@pytest.mark.parametrize('where', ['| head -1', '>&-', '>&- 2>&-'])
def test_losing_the_output_does_not_end_the_run(short_dqn, tmp_path, where):
    command = f'set -o pipefail; {short_run(short_dqn)} {where}'
    run = subprocess.run(['bash', '-c', command], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0 and not run.stderr, run.stderr
    ended_at_its_limit(tmp_path)


@pytest.mark.parametrize('where', ['> /dev/full', '> /dev/full 2>&1'])
def test_output_that_cannot_be_written_does_not_end_the_run(short_dqn, tmp_path, where):
    command = short_run(short_dqn).split()
    with open('/dev/full', 'w') as full:
        errors = subprocess.STDOUT if '2>&1' in where else subprocess.PIPE
        run = quick_start.run(command, stdout=full, stderr=errors, text=True, timeout=120)
    assert run.returncode == 0 and not run.stderr, run.stderr
    ended_at_its_limit(tmp_path)


def short_run(short_dqn):
    Path('config.yaml').write_text(yaml.safe_dump(to_plain(short_dqn)), encoding='utf-8')
    return f'{" ".join(NERVEX)} -m serial -c config.yaml -s 0'


def ended_at_its_limit(tmp_path):
    facts = yaml.safe_load((tmp_path / 'log/run.yaml').read_text(encoding='utf-8'))
    assert facts['finished'] == 'limit reached' and facts['result']['env_steps'] == 400
