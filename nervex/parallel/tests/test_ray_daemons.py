"""What of Ray is left out in a cluster of our own."""

import sys
import types

import pytest

from nervex.parallel.ray_cluster import fewer_daemons


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
