"""A cluster of our own: who may enter, what is left out, and what outlives a program that is killed: nothing."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import types
from types import SimpleNamespace

import pytest

from nervex.parallel.ray_cluster import Guard, fewer_daemons, own_token
from nervex.utils import TrainingError


@pytest.fixture
def token(tmp_path, monkeypatch):
    """Where Ray keeps its token, in a home of its own."""
    monkeypatch.setenv('HOME', str(tmp_path))
    for name in ('RAY_AUTH_TOKEN', 'RAY_AUTH_TOKEN_PATH', 'RAY_AUTH_MODE'):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / '.ray' / 'auth_token'


def mode(path):
    return path.stat().st_mode & 0o777


def test_the_token_is_made_for_its_owner_alone(token):
    own_token()
    assert mode(token) == 0o600 and len(token.read_text()) == 64
    before = token.read_text()
    own_token()
    assert token.read_text() == before and mode(token) == 0o600


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which('setpriv'), reason='only root can be somebody else')
def test_another_user_cannot_read_the_token(token, tmp_path, monkeypatch):
    with tempfile.TemporaryDirectory() as home:  # whose folders anybody may enter, unlike pytest's
        os.chmod(home, 0o755)
        monkeypatch.setenv('HOME', home)
        os.makedirs(f'{home}/.ray', mode=0o755)
        own_token()
        as_nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
        assert subprocess.run([*as_nobody, 'ls', f'{home}/.ray/auth_token'], capture_output=True).returncode == 0
        read = subprocess.run([*as_nobody, 'cat', f'{home}/.ray/auth_token'], capture_output=True, text=True)
    assert read.returncode != 0 and read.stdout == '' and 'denied' in read.stderr


def test_a_token_that_others_can_read_is_closed_to_them(token):
    token.parent.mkdir()
    token.write_text('f' * 64)
    token.chmod(0o644)
    own_token()
    assert mode(token) == 0o600 and token.read_text() == 'f' * 64


@pytest.mark.parametrize('name', ['RAY_AUTH_TOKEN', 'RAY_AUTH_TOKEN_PATH'])
def test_a_token_of_the_users_choice_is_left_alone(token, monkeypatch, name):
    monkeypatch.setenv(name, 'x')
    own_token()
    assert not token.exists()


RAY = """
from nervex.parallel.ray_carrier import RayCarrier
with RayCarrier(None, 100) as carrier:
    print(len(carrier._ray.nodes()))
"""


@pytest.mark.slow
def test_ray_finds_the_token_that_was_made_for_it_and_leaves_neither_it_changed_nor_a_folder(token):
    pytest.importorskip('ray')  # which reads the token once a process
    with tempfile.TemporaryDirectory(dir='/tmp') as folder:  # the names of sockets must be short
        env = {**os.environ, 'RAY_TMPDIR': folder}
        done = subprocess.run([sys.executable, '-c', RAY], capture_output=True, text=True, timeout=100, env=env)
        assert done.stdout == '1\n', done.stderr
        assert 'ray' in os.listdir(folder) and os.listdir(f'{folder}/ray') == []
    assert mode(token) == 0o600 and len(token.read_text()) == 64


class Node:
    """As much of Ray's node as matters here."""

    def __init__(self):
        self.started = []
        for part in ('gcs_server', 'monitor', 'api_server', 'log_monitor', 'raylet'):
            getattr(self, f'start_{part}')()

    def start_gcs_server(self):
        self.started.append('gcs_server')

    def start_monitor(self):
        self.started.append('monitor')

    def start_api_server(self):
        self.started.append('api_server')

    def start_log_monitor(self):
        self.started.append('log_monitor')

    def start_raylet(self):
        self.started.append('raylet')


@pytest.fixture
def node(monkeypatch):
    class Patched(Node):
        pass

    for name in [name for name in vars(Node) if name.startswith('start_')]:
        setattr(Patched, name, getattr(Node, name))
    monkeypatch.setitem(sys.modules, 'ray._private.node', types.SimpleNamespace(Node=Patched))
    return Patched


def test_only_what_a_run_needs_is_started_and_later_clusters_have_all_of_it(node):
    with fewer_daemons(show_output=False):
        assert node().started == ['gcs_server', 'raylet']
    with fewer_daemons(show_output=True):
        assert node().started == ['gcs_server', 'log_monitor', 'raylet']
    assert node().started == ['gcs_server', 'monitor', 'api_server', 'log_monitor', 'raylet']


def test_a_ray_that_names_them_otherwise_starts_them_all(node):
    del node.start_monitor
    node.start_autoscaler = Node.start_monitor
    node.__init__ = lambda self: setattr(self, 'started', [])
    with fewer_daemons(show_output=False):
        this = node()
        this.start_autoscaler()
    assert this.started == ['monitor']


@pytest.mark.slow
def test_a_cluster_of_our_own_has_no_python_daemon_but_the_agents():
    pytest.importorskip('ray')
    from nervex.parallel.ray_carrier import RayCarrier

    with RayCarrier(None, 100) as carrier:
        started = carrier._ray._private.worker._global_node.all_processes
        assert {'gcs_server', 'raylet'} <= set(started) and not {'monitor', 'dashboard', 'log_monitor'} & set(started)


DAEMON = """
import subprocess, sys
child = subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.read()'], stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.read()
"""


def gone(pid):
    """Whether a process has ended; one that nobody has asked about yet counts."""
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8') as f:
            return f.read().rpartition(')')[2].split()[0] == 'Z'
    except FileNotFoundError:
        return True


def daemon(**variables):
    command = [sys.executable, '-c', DAEMON, 'raylet']
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env={**os.environ, **variables})  # fmt: skip
    return process, int(process.stdout.readline())


@pytest.mark.skipif(not os.path.exists('/proc/self/environ'), reason='there is no /proc')
def test_what_was_started_for_the_run_and_what_that_started_ends_and_nothing_else():
    guard, other = Guard(), Guard()
    (ours, child), (theirs, their_child) = daemon(**guard.variables), daemon(**other.variables)
    try:
        guard._shell.stdin.close()  # as when this process ends
        guard._shell.wait(20)
        assert ours.wait(10) == -signal.SIGKILL and gone(child)
        assert theirs.poll() is None and not gone(their_child)
        other.dismiss()
        assert theirs.poll() is None, 'who is dismissed does nothing'
    finally:
        theirs.kill()
        for process in (ours, theirs):
            process.wait()
            process.stdin.close()
            process.stdout.close()


def watch(guard, folder, **processes):
    session = folder / 'session_1'
    session.mkdir()
    (folder / 'session_latest').symlink_to(session)
    daemons = {name: [SimpleNamespace(process=process)] for name, process in processes.items()}
    guard.watch(SimpleNamespace(all_processes=daemons, get_session_dir_path=lambda: str(session)))


class Daemon:
    def __init__(self, code=None):
        self.pid, self.code = 2**30, code

    def poll(self):
        return self.code


def test_a_cluster_that_ended_in_order_leaves_no_folder(tmp_path):
    guard = Guard()
    watch(guard, tmp_path, raylet=Daemon())
    guard.check()
    guard.dismiss()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ('code', 'gone', 'said'),
    [(-9, False, 'killed by signal 9'), (1, True, 'has ended, as with each'), (None, True, 'raylet has ended')],
)
def test_the_end_of_a_daemon_is_an_error_that_says_where_its_logs_are_and_they_stay(tmp_path, code, gone, said):
    guard = Guard()
    watch(guard, tmp_path, gcs_server=Daemon(), raylet=Daemon(code))
    with pytest.raises(TrainingError, match=rf"Ray's raylet .*{tmp_path}/session_1/logs.*--resume") as e:
        guard.check(gone)
    assert said in str(e.value)
    guard.dismiss()
    assert (tmp_path / 'session_1').exists()


@pytest.mark.skipif(not os.path.exists('/proc/self/environ'), reason='there is no /proc')
def test_a_daemon_that_was_named_ends_with_its_children_though_it_lost_its_mark(tmp_path, capfd):
    guard = Guard()
    process, child = daemon()
    watch(guard, tmp_path, raylet=process)
    guard._shell.stdin.close()
    guard._shell.wait(20)
    try:
        assert 'the run was cut short' in capfd.readouterr().err and not list(tmp_path.iterdir())
        assert process.wait(10) == -signal.SIGKILL and gone(child)
    finally:
        process.stdin.close()
        process.stdout.close()
