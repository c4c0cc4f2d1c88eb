"""Envs that go wrong, in every way, in every kind of manager: what is lost, what is kept, what is said."""

import contextlib
import gc
import logging
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from types import SimpleNamespace

import numpy as np
import pytest

from nervex.envs.tests.fakes import CounterEnv, FaultyEnv
from nervex.utils.errors import EnvError
from nervex.utils.tests import quick_start
from nervex.worker.actor.env_manager import EnvState, EnvStateError
from nervex.worker.actor.env_manager.tests.managers import (
    CLOCKED,
    HangClock,
    build,
    check_counter_rows,
    drive,
    nothing_left_behind,
)

ERRORS = ['raise', 'none', 'reset_raise', 'reset_none']
NOT_FINITE = ['nan', 'inf', 'huge', 'nan_reward', 'inf_reward', 'huge_reward']
INVALID = [
    'shape',
    'broadcast',
    'dtype',
    *NOT_FINITE,
    'none_reward',
    'bad_done',
    'reset_shape',
    'reset_nan',
    'reset_inf',
]
CRASHES = ['exit', 'kill', 'close_pipes', 'system_exit', 'reset_exit', 'reset_kill']
HANGS = ['sleep', 'reset_sleep']


def faulty(tmp_path, fault, n=4, **cfg):
    """Env 1 goes wrong once, in step 2 of some episode after the launch (or in a reset)."""
    cfgs = [dict(tag=i, length=5) for i in range(n)]
    episodes = [2, 3] if fault.startswith('reset_') else [2]
    cfgs[1].update(fault=fault, once_file=str(tmp_path / 'once'), episodes=episodes, **cfg)
    return cfgs


def enough(manager):
    """Until the fault has happened and every env has had two whole episodes."""
    return lambda rows: manager.faults.total >= 1 and all(sum(r[4] for r in rows[i]) >= 2 for i in rows)


def check(manager, rows, dropped, mates=(), renewed=True):
    for i in range(manager.env_num):
        assert check_counter_rows(rows[i], i, 5, renewed=renewed) >= 2
        if i != 1 and i not in mates:
            assert dropped[i] == 0 and manager.faults.per_env[i] == 0, 'another env was disturbed'
    assert manager.faults.per_env[1] == 1


@pytest.mark.parametrize(
    'fault, retry_type',
    [
        *((fault, 'reset') for fault in ERRORS + INVALID + ['abnormal']),
        # another env in place of the old one: nothing that depends on the fault
        *((fault, 'renew') for fault in (ERRORS[0], INVALID[0], 'abnormal')),
        *(
            pytest.param(fault, 'renew', marks=pytest.mark.slow)
            for fault in ERRORS + INVALID
            if fault not in (ERRORS[0], INVALID[0])
        ),
    ],
)
def test_env_that_answers_wrongly_is_restarted(single_kind, fault, retry_type, tmp_path, caplog):
    cfgs = faulty(tmp_path, fault)
    with nothing_left_behind(), build(single_kind, cfgs, env=FaultyEnv, retry_type=retry_type) as m:
        rows, dropped = drive(m, 100000, until=enough(m))
        check(m, rows, dropped)
        assert dropped[1] == (0 if fault.startswith('reset') else 1)  # a reset that fails costs no transition
        invalid = fault in [*INVALID, 'none', 'reset_none']
        kind = 'abnormal' if fault == 'abnormal' else 'invalid' if invalid else 'error'
        assert dict(m.faults.counts) == {kind: 1}
    text = '\n'.join(r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING)
    assert 'env 1' in text
    if 'raise' in fault:
        assert 'deliberate error of env 1' in text and 'fakes.py' in text  # the env's own traceback
    if fault in NOT_FINITE:
        which, value = 'reward' if 'reward' in fault else 'observation', 'nan' if 'nan' in fault else 'inf'
        assert re.search(f'the {which} of env 1 at step 2 of the episode has -?{value} in it', text), text


@pytest.mark.parametrize('fault', CRASHES)
def test_process_that_dies_is_replaced(process_kind, fault, tmp_path):
    with nothing_left_behind(), build(process_kind, faulty(tmp_path, fault), env=FaultyEnv) as m:
        rows, dropped = drive(m, 100000, until=enough(m))
        mates = (0,) if 'grouped' in process_kind else ()
        check(m, rows, dropped, mates) if not mates else None
        for i in range(4):
            assert check_counter_rows(rows[i], i, 5, renewed=True) >= 2
        assert set(m.faults.counts) == {'crash'}


@pytest.mark.parametrize('name', ['sync', 'sync_grouped', 'async', 'async_grouped', 'thread'])
@pytest.mark.parametrize('fault', HANGS)
def test_env_that_hangs_is_ended(name, fault, tmp_path, monkeypatch):
    cfgs = faulty(tmp_path, fault, seconds=1 if name == 'thread' else 3600, hang_file=str(tmp_path / 'hangs'))
    with nothing_left_behind(), build(name, cfgs, env=FaultyEnv, step_timeout=0.4, reset_timeout=0.4) as m:
        HangClock(monkeypatch, m)
        rows, dropped = drive(m, 100000, until=enough(m))
        for i in range(4):
            assert check_counter_rows(rows[i], i, 5, renewed=True) >= 2
        assert set(m.faults.counts) == {'timeout'} and m.faults.per_env[1] == 1
        assert dropped[2] == dropped[3] == m.faults.per_env[2] == m.faults.per_env[3] == 0


def test_others_go_on_while_one_hangs(tmp_path):
    with build('async', faulty(tmp_path, 'sleep', seconds=3600), env=FaultyEnv, wait_num=1) as m:
        steps = [0] * 4
        while not (tmp_path / 'once').exists() or min(steps[0], steps[2], steps[3]) < 50:
            ids, _ = m.observe()
            for i in m.advance(ids, np.zeros(len(ids), np.int64)).env_id.tolist():
                steps[i] += 1
        assert steps[1] == 5 + 1 and m.faults.total == 0  # an episode, and what came before the hanging step


def test_huge_info_travels(single_kind, tmp_path):
    with build(single_kind, faulty(tmp_path, 'huge_info', mb=3), env=FaultyEnv) as m:
        blobs = []
        while not blobs:
            ids, _ = m.observe()
            block = m.advance(ids, np.zeros(len(ids), np.int64))
            blobs = [info['blob'] for info in block.info if 'blob' in info]
        assert len(blobs[0]) == 3 * 2**20 and m.faults.total == 0


def test_mapping_form_marks_the_restarted_env(single_kind, tmp_path):
    with build(
        single_kind,
        [dict(tag=i, fault='raise' if i == 1 else None, at=2) for i in range(2)],
        env=FaultyEnv,
        wait_num=2,
        step_wait_timeout=5,
    ) as m:
        m.step({0: 0, 1: 0})
        timesteps = m.step({0: 0, 1: 0})
        assert timesteps[1].info == {'abnormal': True, 'reason': 'error in step'} and timesteps[1].done is False
        assert timesteps[1].reward.tolist() == [0.0] and timesteps[1].obs.tolist() == [1, 2, 0, -1]
        assert timesteps[0].info == {} and timesteps[0].obs.tolist() == [0, 1, 2, 0]
        assert m.ready_obs[1].tolist() == [1, 2, 0, -1]


@pytest.mark.parametrize('max_retry', [0, 1, 3])
def test_one_clear_error_when_retries_run_out(single_kind, max_retry):
    cfgs = [dict(tag=0), dict(tag=1, fault='raise', at=1, secret=42)]
    with nothing_left_behind(), build(single_kind, cfgs, env=FaultyEnv, max_retry=max_retry) as m:
        with pytest.raises(EnvError) as error:
            drive(m, 20_000)  # it ends at the error; where envs answer by themselves, the faulty one may be late
        assert m.faults.per_env == [0, max_retry + 1] and m.env_states[1] is EnvState.ERROR
        text = str(error.value)
        del error  # its frames hold the manager's memory
        gc.collect()
    assert 'env 1' in text and "'secret': 42" in text and 'deliberate error of env 1' in text and 'in step' in text


def test_env_that_never_ends_an_episode_fails_in_the_end(single_kind):
    with build(single_kind, [dict(fault='raise', at=3)], env=FaultyEnv, max_retry=0) as m, pytest.raises(EnvError):
        drive(m, 500)  # two good steps between any two faults, but nothing is ever learned from them


def test_reset_that_always_fails_ends_the_launch(single_kind):
    cfgs = [dict(tag=0), dict(tag=1, fault='reset_raise')]
    with nothing_left_behind():
        manager = build(single_kind, cfgs, env=FaultyEnv, launch=False, max_retry=2)
        with pytest.raises(EnvError, match='deliberate error of env 1'):
            manager.launch()
        gc.collect()
        assert manager.closed and manager.faults.per_env[1] == 3


class Unmakeable(CounterEnv):
    """Cannot be made."""

    def __init__(self, cfg):
        raise FileNotFoundError('no licence')


class Dying(CounterEnv):
    """Ends its process while it is made."""

    def __init__(self, cfg):
        super().__init__(cfg)
        if os.getpid() != self._cfg.main:
            os._exit(9)


def test_env_that_cannot_be_made_ends_the_launch(single_kind, caplog):
    with nothing_left_behind():
        with pytest.raises(EnvError, match='no licence'):
            build(single_kind, [{}, {}], env=Unmakeable, max_retry=3)
        assert not caplog.records  # what its code says is not tried again
        gc.collect()


@pytest.mark.parametrize('name', ['sync', 'async'])
def test_process_that_dies_at_launch(name):
    with nothing_left_behind(), pytest.raises(EnvError, match='exit code 9'):
        build(name, [dict(main=os.getpid())] * 2, env=Dying)


def test_interrupt_is_not_retried():
    with build('base', [dict(fault='interrupt', at=2)], env=FaultyEnv) as m, pytest.raises(KeyboardInterrupt):
        drive(m, 5)
    assert m.faults.total == 0


def test_interrupted_step_needs_a_reset(monkeypatch):
    with build('sync', [dict(tag=i, length=9, sleep_s=0.05) for i in range(2)]) as m:
        sleep = m._live.backend._sleep

        def interrupted(*args):
            monkeypatch.setattr(m._live.backend, '_sleep', sleep)
            raise KeyboardInterrupt

        monkeypatch.setattr(m._live.backend, '_sleep', interrupted)
        with pytest.raises(KeyboardInterrupt):
            m.step({0: 1, 1: 1})
        with pytest.raises(EnvStateError, match=r'interrupted.*reset\(\)'):
            m.step({0: 1, 1: 1})
        m.reset()
        assert m.step({0: 1, 1: 1})[1].obs.tolist() == [1, 2, 1, 1]


def test_kill_from_outside_in_the_middle_of_a_step(process_kind):
    cfgs = [dict(tag=i, length=5, sleep_s=0.002) for i in range(4)]
    with nothing_left_behind(), build(process_kind, cfgs) as m:
        killed = []

        def until(rows):
            if rows[0] and not killed:  # after its first whole episode
                killed.append(m._live.backend.workers[0].process.pid)
                os.kill(killed[0], signal.SIGKILL)
            return enough(m)(rows)

        rows, dropped = drive(m, 100000, until=until)
        assert all(check_counter_rows(rows[i], i, 5, renewed=True) >= 2 for i in range(4))
        assert dropped[2] == dropped[3] == 0 and set(m.faults.counts) == {'crash'}


SCRIPT = """
    import signal, sys, numpy as np
    from nervex.envs.tests.fakes import CounterEnv
    from nervex.worker.actor.env_manager import create_env_manager
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell would ignore it
    def main():
        cfgs = [dict(length=10 ** 9, sleep_s=float(sys.argv[3]))] * 3
        hybrid = sys.argv[1] == 'hybrid'
        cfg = dict(context=None if sys.argv[2] == 'None' else sys.argv[2], hybrid=hybrid)
        m = create_env_manager('sync_subprocess' if hybrid else sys.argv[1], CounterEnv, cfgs, cfg)
        m.launch()
        print('runs', flush=True)
        while True:
            ids, _ = m.observe()
            m.advance(ids, np.zeros(len(ids), np.int64))

    if __name__ == '__main__':
        main()
"""
WAYS = [(sig, sleep_s) for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL) for sleep_s in (0.001, 100)]
QUICK_ONES = {('sync_subprocess', 'fork'), ('async_subprocess', 'fork'), ('thread', None)}
ENDS = [
    pytest.param(name, context, sig, sleep_s, marks=[] if (name, context) in QUICK_ONES else pytest.mark.slow)
    for name, contexts in [
        ('sync_subprocess', ('fork', 'forkserver', 'spawn')),
        ('hybrid', ('fork', 'spawn')),
        ('async_subprocess', ('fork', 'forkserver', 'spawn')),
        ('thread', (None,)),
        ('base', (None,)),
    ]
    for context in contexts
    for sig, sleep_s in WAYS
]


@pytest.mark.parametrize('name,context,sig,sleep_s', ENDS)
def test_main_process_that_ends_leaves_nothing_running(name, context, sig, sleep_s, tmp_path):
    """Ctrl-C reaches the whole group, the others only the main process; in the middle of short and of endless steps."""
    path = tmp_path / 'run.py'
    path.write_text(textwrap.dedent(SCRIPT))
    process = quick_start.Popen(
        [sys.executable, str(path), name, str(context), str(sleep_s)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, 'PYTHONPATH': os.getcwd()},
        start_new_session=True,
    )
    try:
        assert process.stdout.readline() == b'runs\n'
        started = family(process.pid)
        assert len(started) >= (4 if 'subprocess' in name else 1)
        time.sleep(0.05)
        os.killpg(process.pid, sig) if sig == signal.SIGINT else process.send_signal(sig)
        process.wait(60)
        end = time.monotonic() + 60
        while running(started) and time.monotonic() < end:
            time.sleep(0.02)
        assert not running(started)
    finally:
        process.stdout.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def processes():
    """pid -> (parent, when it began) of all processes that have not ended."""
    found = {}
    for entry in os.listdir('/proc'):
        with contextlib.suppress(OSError, ValueError), open(f'/proc/{int(entry)}/stat') as f:
            state, parent, *rest = f.read().rsplit(')', 1)[1].split()
            if state != 'Z':
                found[int(entry)] = int(parent), rest[17]
    return found


def family(pid):
    """A process and all that it and its descendants have started: pid -> when it began."""
    alive, found = processes(), {}
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        found[one] = alive[one][1]
        waiting += [child for child, (parent, _) in alive.items() if parent == one]
    return found


def running(started):
    """Those of a family that have not ended."""
    alive = processes()
    return [pid for pid, begun in started.items() if pid in alive and alive[pid][1] == begun]


SUSPENDED = """
    import numpy as np
    from nervex.envs.tests.fakes import CounterEnv
    from nervex.worker.actor.env_manager import create_env_manager
    import sys
    m = create_env_manager(sys.argv[1], CounterEnv, [dict(length=10 ** 9, sleep_s=0.05)] * 2, dict(step_timeout=3))
    m.launch()
    for k in range(16):
        ids, _ = m.observe()
        m.advance(ids, np.zeros(len(ids), np.int64))
        if k == 3:
            print('stop me', flush=True)
    print(m.faults.total, flush=True)
    m.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize('name', ['sync_subprocess', 'async_subprocess'])
def test_time_for_which_everything_was_stopped_is_no_timeout(name, tmp_path):
    """Ctrl-Z, or a machine that was paused."""
    path = tmp_path / 'run.py'
    path.write_text(textwrap.dedent(SUSPENDED))
    process = subprocess.Popen(
        [sys.executable, str(path), name],
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, 'PYTHONPATH': os.getcwd()},
        text=True,
    )
    assert process.stdout.readline() == 'stop me\n'
    time.sleep(0.02)
    os.killpg(process.pid, signal.SIGSTOP)
    time.sleep(5.0)
    os.killpg(process.pid, signal.SIGCONT)
    assert process.communicate()[0] == '0\n'


@pytest.mark.parametrize('name', ['sync', 'async'])
def test_a_sleep_that_took_much_too_long_counts_for_no_timeout(name, monkeypatch):
    """The same, by a clock that leaps a day ahead in each sleep."""
    with build(name, [dict(tag=i, length=9, sleep_s=0.02) for i in range(2)]) as m:
        leaps, arrive = [0.0], m._live.backend._poll

        def poll(timeout):
            leaps[0] += 86400.0
            return arrive.poll(timeout)

        monkeypatch.setattr(
            m._live.backend, '_poll', SimpleNamespace(poll=poll, register=arrive.register, unregister=arrive.unregister)
        )
        for module in CLOCKED:
            monkeypatch.setattr(module, 'time', SimpleNamespace(monotonic=lambda: leaps[0]))
        rows, _ = drive(m, 5)
        assert leaps[0] > 0 and m.faults.total == 0 and len(rows[0]) >= 1
