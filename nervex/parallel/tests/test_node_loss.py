"""A whole node of a Ray cluster goes, with what runs on it and the blocks that it holds."""

import os
import re
import subprocess
import time

import pytest

from nervex.parallel.tests.running import build_parallel

ray = pytest.importorskip('ray')

pytestmark = pytest.mark.slow
TIMEOUT_S = 200


def children():
    """What descends from this process and is Ray's."""
    listed = subprocess.run(['ps', '-eo', 'pid,ppid,stat,args'], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 3) for line in listed.splitlines()[1:]]
    below = {os.getpid()}
    while more := {int(pid) for pid, ppid, *_ in rows if int(ppid) in below} - below:
        below |= more
    return [args for pid, _, stat, args in rows if int(pid) in below and 'ray' in args and 'Z' not in stat]


@pytest.fixture
def cluster(monkeypatch):
    """A head and two nodes for actors, each with room for both of them."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv('RAY_worker_niceness', '0')
    monkeypatch.setenv('OMP_NUM_THREADS', '1')
    made = Cluster(
        initialize_head=True,
        head_node_args=dict(num_cpus=2, object_store_memory=100 * 2**20, include_dashboard=False),
    )
    for _ in range(2):
        made.add_node(num_cpus=2, resources={'collects': 2}, object_store_memory=100 * 2**20)
    yield made
    ray.shutdown()
    made.shutdown()
    left = children()
    assert not left, left


def node_of(slot):
    """The node's id, as the process of this role knows it."""
    return ray.get(slot.handle.actor.__ray_call__.remote(lambda self: ray.get_runtime_context().get_node_id()))


def on_a_cluster(cluster, folder, **settings):
    overrides = [f'exp_name={folder}', f'parallel.address={cluster.address}', 'parallel.actor_num=2',
                 'parallel.resources.actor.custom={"collects": 1}']  # fmt: skip
    return build_parallel('cartpole_dqn', 0, overrides=(*overrides, *(f'{k}={v}' for k, v in settings.items())))


def test_a_run_goes_on_without_the_node_of_an_actor_and_is_solved(cluster, tmp_path):
    with on_a_cluster(cluster, tmp_path, **{'evaluator.eval_freq': 10**9, 'commander.max_env_step': 10**6}) as run:
        run.begin()
        until = time.monotonic() + TIMEOUT_S
        while run.tally.train_iter < 100 or len(run.roster.of('actor')) < 2:
            run.coordinator.step(0.1)
            assert run.going_on() and time.monotonic() < until
        nodes = {slot.name: node_of(slot) for slot in run.roster.of('actor')}
        lost = nodes['actor0']
        there = [name for name, node in nodes.items() if node == lost]
        cluster.remove_node(next(n for n in cluster.worker_nodes if n.node_id == lost), allow_graceful=False)
        back = [slot for slot in run.roster.slots if slot.name in there]
        while not all(slot.spec.incarnation and slot.ready for slot in back):
            run.coordinator.step(0.1)
            assert run.going_on() and time.monotonic() < until, 'it did not come back in time'
        assert all(node_of(slot) != lost for slot in run.roster.of('actor'))
        run.evaluator._cfg.eval_freq = 200  # from here on it may end
        while run.going_on():
            run.coordinator.step(0.1)
            assert time.monotonic() < until, 'it was not solved in time'
        assert run.coordinator.solved and run.tally.doubles == 0
        result = run.finish()
    said = (tmp_path / 'log' / 'coordinator_logger.txt').read_text()
    assert sorted(re.findall(r'(\w+\d) died', said)) == sorted(there), said  # a line each
    assert 'refused' not in said and 'again' not in said
    assert result.final_return >= 195
