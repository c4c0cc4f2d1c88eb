"""The command as a person types it: what it prints, how it ends."""

import os
import pty
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from nervex.config import compile_config
from nervex.entry.cli import main
from nervex.utils.tests import quick_start

NERVEX = [sys.executable, '-m', 'nervex.entry.cli']


def run(*args, **kwargs):
    return subprocess.run([*NERVEX, *args], capture_output=True, text=True, timeout=300, **kwargs)


@pytest.fixture
def config_file(short_dqn, tmp_path):
    path = tmp_path / 'short.yaml'
    path.write_text(yaml.safe_dump(to_plain(short_dqn)), encoding='utf-8')
    return str(path)


def to_plain(value):
    return {k: to_plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def test_version_and_help():
    assert run('-v').stdout.startswith('nervex ')
    text = run('-h').stdout
    for flag in ('-v', '-m', '-c', '-s', '-p', '-ch', '-lh', '-ah', '-h', '-q', '-o'):
        assert f' {flag},' in text


def test_query_lists_a_registry_and_the_configs(capsys):
    assert 'nervex.policy.dqn:DQNPolicy' in run('-q', 'policy').stdout
    main(['-q', 'config'])
    assert 'cartpole_dqn_default_config.py' in capsys.readouterr().out
    check_refused(['-q', 'polisy'], "did you mean 'policy'", capsys)


@pytest.mark.parametrize(
    'args, said',
    [
        (('-m', 'serial'), 'needs a config'),
        (('--load', 'x.pth.tar'), 'give a mode'),
        (('-m', 'serial', '-c', 'nowhere.py'), 'nowhere.py'),
        pytest.param(
            ('-m', 'parallel', '-c', 'cartpole_dqn'),
            'pip install -e ".[parallel]"',
            marks=pytest.mark.skipif(find_spec('ray') is not None, reason='Ray is installed'),
        ),
        (('-m', 'sereal', '-c', 'cartpole_dqn'), 'sereal'),
        (('-m', 'serial', '-c', 'cartpole_dqn', '-p', 'slurm'), '-p slurm is for -m parallel'),
        (('-m', 'eval', '-c', 'cartpole_dqn', '--address', 'a:1'), '--address is for -m parallel'),
        (('-m', 'parallel', '-c', 'cartpole_dqn', '-p', 'slurm', '-ah', 'cpu[1-'), '-ah: got'),
        (('-x',), '-x'),
        (('-m', 'eval', '-c', 'cartpole_dqn'), 'no checkpoint given'),
        (('-m', 'collect', '-c', 'cartpole_dqn', '--load', 'a #1/x.pth.tar'), 'no such checkpoint file'),
        (('-m', 'serial', '--resume', 'nowhere'), 'nowhere: holds no run'),
        (('-m', 'eval', '--load', '.'), 'is no folder of a run'),
        (('-m', 'plot', 'nowhere'), 'nowhere: there is no such folder'),
        (('-m', 'offline', '-c', 'cartpole_cql', '--data', 'nowhere'), "'nowhere': there is no such folder"),
    ],
)
def test_wrong_usage_is_one_message_and_exit_code_2(args, said, capsys):
    check_refused(args, said, capsys)


def check_refused(args, said, capsys):
    with pytest.raises(SystemExit) as stop:
        main(list(args))
    err = capsys.readouterr().err
    assert stop.value.code == 2 and said in err and 'Traceback' not in err


@pytest.mark.parametrize('args, said', [(('-x',), '-x'), (('-m', 'serial', '-c', 'nowhere.py'), 'nowhere.py')])
def test_wrong_usage_ends_the_process_so(args, said):
    result = run(*args)
    assert result.returncode == 2 and said in result.stderr
    assert 'Traceback' not in result.stderr


@pytest.mark.skipif(find_spec('ray') is not None, reason='Ray is installed')
def test_without_ray_parallel_says_so_in_one_line():
    said = run('-m', 'parallel', '-c', 'cartpole_dqn').stderr.splitlines()
    assert len(said) == 1 and 'pip install -e ".[parallel]"' in said[0]


def test_a_short_run_prints_plain_lines_and_where_its_files_are(config_file):
    result = run('-m', 'serial', '-c', config_file, '-s', '0', '-o', 'policy.learn.learning_rate=5e-4')
    assert result.returncode == 0, result.stderr
    for word in ('env steps', 'updates', 'steps/s', 'return', 'left', 'checkpoint:', 'logs:', 'curve:', 'seed 0'):
        assert word in result.stdout
    assert '\x1b' not in result.stdout
    with open('log/config.yaml', encoding='utf-8') as f:
        assert yaml.safe_load(f)['policy']['learn']['learning_rate'] == 5e-4
    checkpoint = next(line.split()[1] for line in result.stdout.splitlines() if line.startswith('checkpoint:'))
    played = run('-m', 'eval', '-c', config_file, '--load', checkpoint, '--episodes', '3')
    assert played.returncode == 0 and '3 episodes: mean' in played.stdout


def test_a_terminal_shows_one_live_line(config_file):
    parent, child = pty.openpty()
    process = quick_start.Popen([*NERVEX, '-m', 'serial', '-c', config_file, '-s', '0'], stdout=child, stderr=child)
    os.close(child)
    shown = b''
    while True:
        try:
            piece = os.read(parent, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(parent)
    assert process.wait(300) == 0
    assert b'\x1b[' in shown and b'env steps' in shown


@pytest.mark.parametrize('number', [signal.SIGINT])
def test_ctrl_c_saves_a_checkpoint_and_exits_with_130(config_file, tmp_path, number):
    process = subprocess.Popen(
        [*NERVEX, '-m', 'serial', '-c', config_file, '-s', '0', '-o', 'commander.max_env_step=100000000'],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: len(list(tmp_path.glob('ckptBaseLearner*/iteration_*'))) > 0)
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    saved = err.strip().rsplit(' ', 1)[-1]
    assert 'checkpoint saved' in err and os.path.exists(saved)
    assert 'Traceback' not in err


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_without_an_argument_a_default_config_runs():
    with quick_start.Popen([*NERVEX, '-s', '0'], stdout=subprocess.PIPE, text=True) as process:
        assert 'cartpole_dqn' in process.stdout.readline() and 'building dqn for cartpole' in process.stdout.readline()
        process.send_signal(signal.SIGINT)
    assert process.returncode == 130


def test_mode_backend_and_checkpoint_stand_in_the_config(config_file, tmp_path, capsys):
    main(['-c', config_file, '-s', '0'])  # serial, as no mode is named
    lines = capsys.readouterr().out.splitlines()
    checkpoint = next(line.split()[1] for line in lines if line.startswith('checkpoint:'))
    given = yaml.safe_load(Path(config_file).read_text(encoding='utf-8'))
    test = tmp_path / 'test.yaml'
    test.write_text(yaml.safe_dump({**given, 'mode': 'test', 'load_checkpoint': True, 'load_path': checkpoint}))
    main(['-c', str(test), '--episodes', '2'])
    assert '2 episodes: mean' in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(['-c', str(test), '-o', 'load_checkpoint=false'])
    assert stop.value.code == 2 and 'no checkpoint given' in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main(['-c', config_file, '-o', 'mode=tset'])
    assert stop.value.code == 2 and "did you mean 'test'" in capsys.readouterr().err


def test_backend_ray_is_parallel_mode(config_file, monkeypatch):
    chosen = []
    monkeypatch.setattr('nervex.entry.cli._parallel', lambda options: chosen.append(options['mode']))
    main(['-c', config_file, '-o', 'backend=ray'])
    main(['-c', config_file, '-o', 'backend=ray', '-o', 'mode=train'])
    assert chosen == ['parallel', 'parallel']
    assert compile_config(config_file, overrides=['backend=ray']).backend == 'ray'
