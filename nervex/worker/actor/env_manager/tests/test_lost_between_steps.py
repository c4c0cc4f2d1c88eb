"""Processes of envs that end while nothing steps: whatever is called next, the run goes on."""

import os
import signal
import subprocess
import sys
import textwrap
from multiprocessing import connection

import pytest

from nervex.worker.actor.env_manager import WorkerLost
from nervex.worker.actor.env_manager.tests.managers import (
    build,
    check_counter_rows,
    drive,
    nothing_left_behind,
    whole_episodes,
)

KINDS = ['sync', 'sync_grouped', 'sync_hybrid', 'sync_pipe', 'async', 'async_grouped']
QUIET = {  # what asks nothing of the envs that one could not do without
    'nothing': lambda m: None,
    'ready_obs': lambda m: m.ready_obs,
    'seed': lambda m: m.seed(5),
    'seed_of_one': lambda m: m.seed({0: 5}),
    'reset': lambda m: m.reset(),
    'reset_of_one': lambda m: m.reset({3: {}}),
    'seed_and_reset': lambda m: (m.seed(5), m.reset()),
    'env_info': lambda m: m.env_info(),
}
ASKING = {'attribute': lambda m: m.tag, 'method': lambda m: m.get_tag(1)}


def first_worker(manager):
    """The group of envs that is the first with a process, and what the main process keeps of that."""
    return min(manager._live.backend.workers.items())


def kill_first_process(manager):
    """End the first worker, and wait until it has."""
    process = first_worker(manager)[1].process
    os.kill(process.pid, signal.SIGKILL)
    assert connection.wait([process.sentinel], 60)


def goes_on(manager):
    rows, _ = drive(manager, 10000, until=whole_episodes(2))
    for i in range(4):
        assert check_counter_rows(rows[i], i, 5, renewed=True) >= 2
    assert set(manager.faults.counts) <= {'crash'}


@pytest.mark.parametrize('call', QUIET)
@pytest.mark.parametrize('name', KINDS)
def test_a_process_that_ends_between_steps_is_replaced(name, call):
    with nothing_left_behind(), build(name, [dict(tag=i, length=5) for i in range(4)]) as m:
        kill_first_process(m)
        QUIET[call](m)
        goes_on(m)


@pytest.mark.parametrize('call', ASKING)
@pytest.mark.parametrize('name', KINDS)
def test_asking_an_env_whose_process_ended_is_an_error_and_no_more(name, call):
    with nothing_left_behind(), build(name, [dict(tag=i, length=5) for i in range(4)]) as m:
        kill_first_process(m)
        with pytest.raises(WorkerLost, match=r'ended by signal 9|being replaced'):
            ASKING[call](m)
        goes_on(m)
        assert m.faults.counts['crash'] >= 1 and m.get_tag(1) == [1, 2, 3, 4]


@pytest.mark.parametrize('name', ['sync', 'sync_grouped', 'sync_hybrid'])
def test_only_the_envs_of_the_lost_process_lose_their_episode(name):
    with build(name, [dict(tag=i, length=5) for i in range(4)]) as m:
        m.step(dict.fromkeys(range(4), 1))
        group, _ = first_worker(m)
        kill_first_process(m)
        m.seed({0: 7})
        lost = list(m._live.backend.groups[group])
        timesteps = m.step(dict.fromkeys(range(4), 1))
        for i in range(4):
            assert timesteps[i].info.get('abnormal', False) is (i in lost)
            assert timesteps[i].obs[2:].tolist() == ([0, -1] if i in lost else [2, 1])


@pytest.mark.parametrize('name', ['sync', 'sync_grouped'])
def test_envs_whose_process_ended_are_not_saved_and_the_others_go_on(name):
    with build(name, [dict(tag=i, length=5) for i in range(4)]) as m:
        kill_first_process(m)
        assert m.state_dict() is None
        goes_on(m)
        assert m.state_dict() is not None


@pytest.mark.parametrize('name', ['sync', 'async'])
def test_sigterm_to_the_whole_group_leaves_time_to_save(name):
    with nothing_left_behind(), build(name, [dict(tag=i, length=5) for i in range(4)]) as m:
        for worker in m._live.backend.workers.values():
            os.kill(worker.process.pid, signal.SIGTERM)
        assert m.tag == [0, 1, 2, 3] and m.faults.total == 0


def test_a_program_that_forgets_to_close_ends_at_once(tmp_path):
    """Python would send SIGTERM to the workers and wait for them."""
    code = textwrap.dedent("""
        from nervex.envs.hosting import worker
        worker.GRACE_S = 3600.
        from nervex.envs.tests.fakes import CounterEnv
        from nervex.worker.actor.env_manager import create_env_manager
        m = create_env_manager('subprocess', CounterEnv, [{}] * 2)
        m.launch()
    """)
    env = {**os.environ, 'PYTHONPATH': os.getcwd()}
    assert subprocess.run([sys.executable, '-c', code], timeout=120, env=env).returncode == 0
