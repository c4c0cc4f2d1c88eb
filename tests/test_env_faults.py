"""What an env can do wrong, by kind of env manager: every cell of docs/en/env_faults.md is run here."""

import contextlib
import ctypes
import faulthandler
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from nervex.envs.tests.fakes import CounterEngine, FaultyEnv
from nervex.utils.errors import EnvError
from nervex.worker.actor.env_manager import create_env_manager
from nervex.worker.actor.env_manager.tests.managers import check_counter_rows, drive

ROOT = Path(__file__).resolve().parents[1]
MANAGERS = ('base', 'subprocess', 'async_subprocess', 'thread', 'vector')
RESTARTED, ALL, WAITS, ENDS, ISOLATED = 'restarted', 'all restarted', 'waits', 'ends the run', 'copy ended'
ENDED, LEFT, GOES_ON = 'ended', 'left', 'goes on'
ONE_BAD = [RESTARTED] * 4 + [ALL]
TABLE = {
    'raise': ONE_BAD,
    'hang': [WAITS, RESTARTED, RESTARTED, RESTARTED, WAITS],
    'exit': [ENDS, RESTARTED, RESTARTED, ENDS, ENDS],
    'system_exit': ONE_BAD,
    'segfault': [ENDS, RESTARTED, RESTARTED, ENDS, ENDS],
    'nan': ONE_BAD,
    'inf': ONE_BAD,
    'shape': ONE_BAD,
    'dtype': ONE_BAD,
    'none': ONE_BAD,
    'fork': [ISOLATED] * 5,
    'simulator': [LEFT, ENDED, ENDED, LEFT, LEFT],
    'stdin': [GOES_ON] * 5,
    'prints': [GOES_ON] * 5,
}
KINDS = {'nan': 'invalid', 'inf': 'invalid', 'shape': 'invalid', 'dtype': 'invalid', 'none': 'invalid'}
ALONE = {'exit', 'segfault', 'stdin'}  # in a program of their own where the env lives in it
CELLS = [
    pytest.param(fault, kind, gives, marks=[pytest.mark.slow] if fault in ALONE and 'sub' not in kind else [])
    for fault, row in TABLE.items()
    for kind, gives in zip(MANAGERS, row)
]


class Broken(FaultyEnv):
    """A FaultyEnv with more to go wrong; ``note`` is a file for what it wants to tell."""

    config = dict(note=None)

    def _go_wrong(self, fault, timestep):
        if fault == 'hang':
            time.sleep(self._cfg.seconds)
        elif fault == 'segfault':
            faulthandler.disable()  # this one is no news
            ctypes.string_at(0)
        elif fault == 'fork':
            copy = os.fork()
            if copy:  # the copy goes on as if it were this process
                self._tell(os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]))
            else:
                faulthandler.disable()
        elif fault == 'simulator':
            self._tell(subprocess.Popen(['sleep', '3600'], stdout=subprocess.DEVNULL).pid)
        elif fault == 'stdin':
            os.close(0)
        elif fault == 'prints':
            print('I am an env\n' * 2000, flush=True)
            print('and in trouble', file=sys.stderr, flush=True)
        else:
            return super()._go_wrong(fault, timestep)
        return timestep

    def _tell(self, what):
        Path(self._cfg.note).write_text(str(what), encoding='utf-8')

    @classmethod
    def create_vector_env(cls, cfgs):
        engine = CounterEngine(cfgs)
        engine.envs = [cls(cfg) for cfg in cfgs]
        return engine


def managed(fault, kind, folder):
    """A manager of three envs of which one goes wrong once, in step 2 of its second episode."""
    cfg = dict(length=5, fault=fault, once_file=f'{folder}/once', note=f'{folder}/note', episodes=[2], seconds=0.7)
    cfgs = [dict(cfg, tag=i) if i == 1 else dict(tag=i, length=5) for i in range(3)]
    cfgs = [dict(cfg, tag=1)] * 3 if kind == 'vector' else cfgs
    limits = dict(step_timeout=0.2 if fault == 'hang' else 60, retry_waiting_time=0.01)
    return create_env_manager(kind, Broken, cfgs, limits)


def play(manager, kind, folder):
    """Until every env has had four episodes, and the fault was there; each transition is a true one."""

    def enough(rows):
        return os.path.exists(f'{folder}/once') and all(sum(row[4] for row in mine) >= 4 for mine in rows.values())

    rows, dropped = drive(manager, 100_000, until=enough)
    for i, mine in rows.items():
        assert check_counter_rows(mine, 1 if kind == 'vector' else i, 5, renewed=True) >= 4
    return dropped


@pytest.mark.parametrize('fault, kind, gives', CELLS)
def test_what_a_fault_gives(fault, kind, gives, tmp_path):
    if fault in ALONE and 'sub' not in kind:
        code, output = in_a_program(fault, kind, tmp_path)
        expected = {'exit': 3, 'segfault': -signal.SIGSEGV, 'stdin': 0}[fault]
        assert code == expected and (output == '{0: 0, 1: 0, 2: 0}\n') == (gives == GOES_ON), output
        return
    with managed(fault, kind, tmp_path) as manager:
        manager.launch()
        begin = time.monotonic()
        dropped = play(manager, kind, tmp_path)
        waited, counts = time.monotonic() - begin, dict(manager.faults.counts)
    if gives == RESTARTED:
        died = 'sub' in kind and fault in ('exit', 'segfault')
        name = (
            'timeout' if fault == 'hang' else 'crash' if died or fault == 'system_exit' else KINDS.get(fault, 'error')
        )
        assert counts == {name: 1} and dropped == {0: 0, 1: 1, 2: 0}
    elif gives == ALL:
        assert sum(counts.values()) == 1 and dropped == {0: 1, 1: 1, 2: 1}
    else:
        assert not counts and not any(dropped.values())
    if gives == WAITS:
        assert waited >= 0.7
    elif gives == ISOLATED:
        assert int((tmp_path / 'note').read_text()) in (1, -signal.SIGSEGV)
    elif fault == 'simulator':
        pid = int((tmp_path / 'note').read_text())
        assert ends(pid, 0.2 if gives == LEFT else 30) == (gives == ENDED)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def ends(pid, seconds):
    """Whether a process ends within so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), open(f'/proc/{pid}/stat') as f:
            if f.read().rsplit(')', 1)[1].split()[0] != 'Z':
                time.sleep(0.02)
                continue
        return True
    return False


def in_a_program(fault, kind, folder):
    """(exit code, what it printed: how many episodes of each env were lost)."""
    code = f"""
        from tests.test_env_faults import managed, play
        with managed({fault!r}, {kind!r}, {str(folder)!r}) as manager:
            manager.launch()
            print(play(manager, {kind!r}, {str(folder)!r}), flush=True)
    """
    run = subprocess.run(
        [sys.executable, '-c', textwrap.dedent(code)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
        timeout=300,
    )
    return run.returncode, run.stdout


@pytest.mark.parametrize('kind', ['subprocess', 'async_subprocess'])
@pytest.mark.parametrize('fault', ['hang', 'exit'])
def test_what_an_env_that_is_ended_has_started_ends_with_it(fault, kind, tmp_path):
    class Simulator(Broken):
        def _go_wrong(self, fault, timestep):
            super()._go_wrong('simulator', timestep)
            return super()._go_wrong(fault, timestep)

    cfgs = [dict(fault=fault, seconds=3600, once_file=f'{tmp_path}/once', note=f'{tmp_path}/note', length=5)] * 2
    cfg = dict(step_timeout=0.5, retry_waiting_time=0.01)
    with create_env_manager(kind, Simulator, cfgs, cfg) as manager:
        manager.launch()
        drive(manager, 100_000, until=lambda rows: manager.faults.total >= 1)
        assert ends(int((tmp_path / 'note').read_text()), 30)


def test_threads_that_hang_are_given_up_with_a_bound(tmp_path):
    cfgs = [dict(fault='hang', at=1, seconds=3.0, tag=i) for i in range(2)]
    limits = dict(step_timeout=0.05, retry_waiting_time=0.01, max_retry=50)
    with create_env_manager('thread', Broken, cfgs, limits) as manager:
        manager.launch()
        with pytest.raises(EnvError, match='3 threads of envs hang and cannot be ended'):
            drive(manager, 1000)
        assert manager.faults.counts == {'timeout': 2}
        assert 'the thread was given up' in manager.faults.recent[0].text


@pytest.mark.parametrize('cfg, level', [({}, 'INFO'), (dict(step_timeout=3), 'WARNING')])
@pytest.mark.parametrize('kind, holds', [('base', False), ('vector', False), ('subprocess', True), ('thread', True)])
def test_where_no_timeout_holds_that_is_said_at_the_launch(kind, holds, cfg, level, caplog):
    caplog.set_level('INFO')
    with create_env_manager(kind, Broken, [{}, {}], cfg) as manager:
        manager.launch()
    said = [record.levelname for record in caplog.records if 'no timeout holds' in record.getMessage()]
    assert said == ([] if holds else [level])


def test_the_page_says_what_the_cells_give():
    """The rows of the tables of both pages, in this order."""
    for language, words in (('en', None), ('zh', ZH)):
        text = (ROOT / 'docs' / language / 'env_faults.md').read_text(encoding='utf-8')
        rows = re.findall(r'^\| `(\w+)` \|[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\|$', text, re.M)
        told = {name: [cell.strip() for cell in cells] for name, *cells in rows}
        assert told == {name: [words[c] if words else c for c in row] for name, row in TABLE.items()}


ZH = {
    RESTARTED: '重启',
    ALL: '全部重启',
    WAITS: '等待',
    ENDS: '运行结束',
    ISOLATED: '副本被结束',
    ENDED: '被结束',
    LEFT: '留下',
    GOES_ON: '继续',
}


@pytest.mark.parametrize('kind, said', [('base', False), ('async_subprocess', True)])
def test_a_run_whose_envs_cannot_be_saved_says_so_at_its_start(short_dqn, kind, said, caplog):
    from nervex.entry import serial_pipeline

    short_dqn.env.env_manager_type = kind
    short_dqn.commander.max_env_step = 100
    serial_pipeline(short_dqn, seed=0)
    assert ('the collecting envs cannot be saved' in caplog.text) is said
