"""Real Ray: the batch script on two nodes that a stand-in for srun provides, and who listens where."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import nervex

ray = pytest.importorskip('ray', reason='pip install nervex[parallel]')
pytestmark = pytest.mark.slow

ROOT = Path(nervex.__file__).resolve().parents[1]
FAKES = Path(__file__).parent / 'fake_slurm'
LISTEN = '0A'  # in /proc/net/tcp


def children(pid):
    found = [pid]
    for path in Path(f'/proc/{pid}/task').glob('*/children'):
        for child in path.read_text().split():
            found += children(int(child))
    return found


def listening(pids):
    """(address, port) of everything that these processes listen on, by TCP."""
    sockets = {}
    for family, length in ((socket.AF_INET, 4), (socket.AF_INET6, 16)):
        name = 'tcp' if length == 4 else 'tcp6'
        for line in Path(f'/proc/net/{name}').read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTEN:
                host, port = fields[1].split(':')
                raw = bytes.fromhex(host)
                raw = b''.join(raw[i : i + 4][::-1] for i in range(0, length, 4))
                sockets[fields[9]] = (socket.inet_ntop(family, raw), int(port, 16))
    found = set()
    for pid in pids:
        for entry in Path(f'/proc/{pid}/fd').glob('*'):
            try:
                target = os.readlink(entry)
            except OSError:
                continue
            if target.startswith('socket:['):
                found.add(sockets.get(target[8:-1]))
    return found - {None}


def environment(**variables):
    paths = os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])
    kept = {k: v for k, v in os.environ.items() if not k.startswith('SLURM')}
    return {**kept, 'PYTHONPATH': paths, 'OMP_NUM_THREADS': '1', **variables}


def ray_processes():
    found = set()
    for path in Path('/proc').glob('[0-9]*/environ'):
        try:
            if b'NERVEX_TEST_MARK=%d' % os.getpid() in path.read_bytes():
                found.add(path.parent.name)
        except OSError:
            continue
    return found


def test_the_batch_script_trains_on_two_nodes_and_leaves_nothing_behind(tmp_path):
    mark = environment(PATH=f'{FAKES}:{os.environ["PATH"]}', NERVEX_TEST_MARK=str(os.getpid()),
                       FAKE_JOB_ID=str(os.getpid() % 9000 + 1000))  # fmt: skip
    command = [
        sys.executable, '-m', 'nervex.entry.cli', '-m', 'parallel', '-p', 'slurm', '-c', 'cartpole_ppo', '-s', '0',
        '-lh', 'na', '-ah', 'na,nb', '-o', 'commander.max_env_step=2000', '-o', 'parallel.object_store_mb=100',
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=tmp_path, env=mark, capture_output=True, text=True, timeout=240, start_new_session=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    said = (tmp_path / 'log' / 'coordinator_logger.txt').read_text() + done.stdout + done.stderr
    assert 'actor 1' in said or 'actor1' in said
    assert 'none of the hosts' not in said  # na and nb were found
    assert 'seed 0' in done.stdout and 'collecting:' in done.stdout
    assert not list(tmp_path.glob('.ray_token*'))
    for _ in range(50):  # Ray's own last processes may take a moment
        if not ray_processes():
            return
        time.sleep(0.2)
    assert not ray_processes()


LOCAL = """
import sys, time
from types import SimpleNamespace
from nervex.parallel.ray_carrier import RayCarrier

class Role:
    def __init__(self, spec): pass
    def ready(self): return 'ready'

with RayCarrier(None, 100) as carrier:
    handle = carrier.spawn('x', Role, {'spec': SimpleNamespace(index=0)}, {'num_cpus': 1})
    print(carrier.get(handle.call('ready')), flush=True)
    sys.stdin.read()
"""


def test_on_one_machine_everything_listens_on_the_loopback_alone(tmp_path):
    process = subprocess.Popen(
        [sys.executable, '-c', LOCAL], cwd=tmp_path, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == 'ready\n'
        found = listening(children(process.pid))
        addresses = {host.removeprefix('::ffff:') for host, _ in found}
        assert found and addresses == {'127.0.0.1'}, found
    finally:
        process.stdin.close()
        process.wait(60)


JOIN = """
import sys
from types import SimpleNamespace
from nervex.parallel.ray_carrier import RayCarrier

class Role:
    def __init__(self, spec): pass
    def ready(self): return 'ready'

with RayCarrier(sys.argv[1]) as carrier:
    handle = carrier.spawn('x', Role, {'spec': SimpleNamespace(index=0)}, {'num_cpus': 1})
    print(carrier.get(handle.call('ready')), flush=True)
"""


def test_a_running_cluster_is_joined_with_its_token_and_not_without(tmp_path):
    (tmp_path / 'token').write_text('0123456789abcdef' * 4)
    (tmp_path / 'token').chmod(0o600)
    member = environment(RAY_AUTH_MODE='token', RAY_AUTH_TOKEN_PATH=str(tmp_path / 'token'))
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    start = 'import sys; from ray.scripts.scripts import main; sys.exit(main())'
    options = ['start', '--head', '--block', f'--port={port}', '--include-dashboard=false', '--num-cpus=2',
               '--object-store-memory=100000000', '--disable-usage-stats']  # fmt: skip
    head = subprocess.Popen(
        [sys.executable, '-c', start, *options], env=member, cwd=tmp_path, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        said = ''
        while 'Ray runtime started' not in said:
            line = head.stdout.readline()
            assert line, said
            said += line
        address = f'{socket.gethostbyname(socket.gethostname())}:{port}'
        run = [sys.executable, '-c', JOIN, address]
        joined = subprocess.run(run, env=member, capture_output=True, text=True, timeout=100, cwd=tmp_path)
        assert joined.stdout == 'ready\n', joined.stderr[-2000:]
        wrong = tmp_path / 'wrong'
        wrong.write_text('f' * 64)
        for stranger in ({'RAY_AUTH_MODE': 'disabled'}, {'RAY_AUTH_TOKEN_PATH': str(wrong)}):
            refused = subprocess.run(
                run, env={**member, **stranger}, capture_output=True, text=True, timeout=100, cwd=tmp_path
            )
            assert refused.returncode and 'ready' not in refused.stdout
            assert 'uthenti' in refused.stderr, refused.stderr[-2000:]
    finally:
        head.terminate()
        head.wait(60)


UNBUILDABLE = """
from nervex.entry import parallel_pipeline

def make(cfg):
    raise ConnectionError('no simulator here')

cfg = {'policy': {'policy_type': 'dqn', 'model': {'obs_dim': 4, 'action_dim': 2}}, 'actor': {'n_sample': 8}, 'env': {},
       'parallel': {'object_store_mb': 100}}
parallel_pipeline(cfg, 0, env_setting=(make, [{}, {}], [{}]))
"""


def test_a_role_that_cannot_be_built_ends_the_run_with_its_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, '-c', UNBUILDABLE],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 1
    assert 'Error: ' in done.stderr and 'no simulator here' in done.stderr
