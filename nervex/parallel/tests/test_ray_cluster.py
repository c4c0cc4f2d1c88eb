"""Who may enter a cluster of our own."""

import subprocess
import sys

import pytest

from nervex.parallel.ray_cluster import own_token


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
def test_ray_finds_the_token_that_was_made_for_it_and_leaves_it_as_it_is(token):
    pytest.importorskip('ray')  # which reads the token once a process
    done = subprocess.run([sys.executable, '-c', RAY], capture_output=True, text=True, timeout=100)
    assert done.stdout == '1\n', done.stderr
    assert mode(token) == 0o600 and len(token.read_text()) == 64
