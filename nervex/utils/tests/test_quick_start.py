"""A process that is forked from one that has imported torch is to its test as one that Python has started."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nervex.utils.tests import quick_start

KINDS = ['code', 'script', 'module', 'package']
PIPES = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
TOLD = """
import json, multiprocessing.spawn, os, signal, sys, tempfile, threading
print(json.dumps(dict(
    name=__name__, file=globals().get('__file__'), package=__package__, spec=__spec__ and __spec__.name,
    argv=sys.argv, path=sys.path, cwd=os.getcwd(), home=os.environ.get('HOME'), own=os.environ.get('OWN'),
    session=os.getsid(0) == os.getpid(), threads=threading.active_count(),
    signals=[str(signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE)],
    streams=[[f.name, f.encoding, f.errors, f.line_buffering, f.isatty()] for f in (sys.stdin, sys.stdout, sys.stderr)],
    spawned=multiprocessing.spawn.get_preparation_data('x').get('init_main_from_name'),
    parts=[len(os.listdir('/proc/self/fd')), len(os.listdir('/proc/self/task'))], tmp=tempfile.gettempdir(),
)))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Of a script, a module and a package that all tell what they are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'told').mkdir()
    for name in ('told.py', 'package/__init__.py', 'package/__main__.py'):
        Path('told', name).parent.mkdir(exist_ok=True)
        Path('told', name).write_text('' if '__init__' in name else TOLD, encoding='utf-8')
    return tmp_path / 'told'


@pytest.mark.skipif(sys.platform != 'linux', reason='every start is a real one there')
@pytest.mark.parametrize('what', [['-c', TOLD], ['told/told.py'], ['-m', 'told'], ['-m', 'package']], ids=KINDS)
def test_it_is_told_the_same_as_one_that_python_starts(what, folder, monkeypatch):
    monkeypatch.setenv('OWN', 'set by the test')
    monkeypatch.delenv('HOME', raising=False)
    command = [sys.executable, *what, 'one', '--two']
    more = {} if what[0] == 'told/told.py' else dict(cwd=folder)
    for path in (None, f'{folder}:/nowhere'):
        env = {**os.environ, **({} if path is None else {'PYTHONPATH': path})}
        with open(os.devnull) as nothing:
            how = dict(**more, env=env, stdin=nothing, start_new_session=path is None, **PIPES)
            started = [start(command, **how) for start in (subprocess.Popen, quick_start.Popen)]
        assert [type(one) for one in started] == [subprocess.Popen, quick_start.Popen]
        real, quick = (json.loads(one.communicate(timeout=60)[0]) for one in started)
        assert quick == real and real['argv'][1:] == ['one', '--two'] and real['own'] == 'set by the test'
        assert [one.returncode for one in started] == [0, 0]


@pytest.mark.parametrize(
    'code, ends',
    [
        ('pass', 0),
        ('raise SystemExit(300)', 44),
        ('raise SystemExit', 0),
        ("raise SystemExit('so long')", 1),
        ('1 / 0', 1),
        ('import os; os._exit(7)', 7),
        ('import os; os.kill(os.getpid(), 9)', -signal.SIGKILL),
        ('raise KeyboardInterrupt', -signal.SIGINT),
        ("import atexit; atexit.register(print, 'at exit'); raise SystemExit(3)", 3),
        ("import threading; threading.Timer(0.01, print, ['of a thread']).start()", 0),
        ("print('unwritten', file=open('/dev/full', 'w'))", 0),
        ("import sys; sys.stdout = open('/dev/full', 'w'); print('unwritten')", 120),
    ],
)
def test_it_ends_as_one_that_python_starts(code, ends):
    real, quick = (start.run([sys.executable, '-c', code], capture_output=True, text=True)
                   for start in (subprocess, quick_start))  # fmt: skip
    assert real.returncode == quick.returncode == ends and quick.stdout == real.stdout
    said = [done.stderr.splitlines()[-1:] for done in (real, quick)]
    assert said[0] == said[1] or 'unwritten' in code


def test_it_takes_signals_and_tells_its_end():
    code = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell would ignore it
print('runs', flush=True)
time.sleep(3600)
"""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with quick_start.Popen([sys.executable, '-c', code], start_new_session=True, **PIPES) as process:
            try:
                assert process.stdout.readline() == 'runs\n' and process.poll() is None
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(0.01)
                os.killpg(process.pid, number)
                assert process.wait(60) == process.poll() == process.returncode == -number
            finally:
                process.kill()  # where it has ended, this is no error


def test_a_command_that_takes_too_long_is_ended():
    code = 'import os, time; print(os.getpid(), flush=True); time.sleep(3600)'
    with pytest.raises(subprocess.TimeoutExpired):
        quick_start.run([sys.executable, '-c', code], capture_output=True, timeout=0.3)


def test_long_output_bytes_input_and_checks():
    code = 'import sys; text = sys.stdin.read(); print(text * 100000); print(text * 100000, file=sys.stderr)'
    with quick_start.Popen([sys.executable, '-c', code], stdin=subprocess.PIPE, **PIPES) as process:
        process.stdin.write('input\n')
        assert [len(text) for text in process.communicate(timeout=60)] == [600_001] * 2
    together = quick_start.run([sys.executable, '-c', 'import os; os.write(1, b"a"); os.write(2, b"b")'],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    assert together.stdout == b'ab' and together.stderr is None
    with pytest.raises(subprocess.CalledProcessError):
        quick_start.run([sys.executable, '-c', 'raise SystemExit(2)'], check=True)


@pytest.mark.parametrize(
    'command, env',
    [
        (['true'], {}),
        ([sys.executable, '-V'], {}),
        ([sys.executable, '-c', ''], {'OMP_NUM_THREADS': '7'}),
        ([sys.executable, '-c', ''], {'PYTHONHASHSEED': '1'}),
    ],
)
def test_what_is_read_at_the_start_only_is_a_real_start(command, env):
    process = quick_start.Popen(command, env={**os.environ, **env}, **PIPES)
    process.communicate()
    assert type(process) is subprocess.Popen and process.returncode == 0


def test_nothing_of_one_is_seen_by_the_next():
    changes = "import os, sys, torch; os.environ['X'] = '1'; os.chdir('/'); sys.x = 1; torch.manual_seed(1)"
    look = "import os, sys, torch, random, numpy; print('X' in os.environ, hasattr(sys, 'x'), torch.initial_seed(), "
    look += 'random.random(), numpy.random.random())'
    first, _, second = (quick_start.run([sys.executable, '-c', code], capture_output=True, text=True).stdout.split()
                        for code in (look, changes, look))  # fmt: skip
    real = subprocess.run([sys.executable, '-c', look], capture_output=True, text=True).stdout.split()
    assert first[:2] == second[:2] == real[:2]
    assert len({*first[2:], *second[2:], *real[2:]}) == 9
