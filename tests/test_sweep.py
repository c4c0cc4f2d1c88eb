"""Sweeps: what is refused before anything starts, what goes on after kills, and what is told at the end."""

import csv
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nervex.config import save_config
from nervex.entry import serial_pipeline
from nervex.entry.cli import main
from nervex.entry.sweep_entry import Sweep, grid_of, seed_list
from nervex.run.folder import saved_run
from nervex.utils.tests import quick_start

sys.path.insert(0, str(Path(__file__).parent))
from run_contents import checkpoints, curves, same_models

NERVEX = [sys.executable, '-m', 'nervex.entry.cli']
RATE = 'policy.learn.learning_rate'


def refused(arguments, capsys):
    with pytest.raises(SystemExit) as left:
        main(['sweep', *arguments])
    (line,) = capsys.readouterr().err.splitlines()
    assert left.value.code == 2 and not Path('sweeps').exists()
    return line


@pytest.mark.parametrize(
    'text, seeds', [('0-3', [0, 1, 2, 3]), ('7', [7]), ('0,3,7', [0, 3, 7]), (' 1 - 2, 5', [1, 2, 5])]
)
def test_seeds_are_ranges_and_lists(text, seeds):
    assert seed_list(text) == seeds


def test_values_of_a_grid_are_split_at_the_commas_between_them():
    assert grid_of(['a.b=1e-4,3e-4', 'm=[64,64],[128]', 'c=x, y', 'n=[[1,2],[3]],null']) == {
        'a.b': ['1e-4', '3e-4'],
        'm': ['[64,64]', '[128]'],
        'c': ['x', 'y'],
        'n': ['[[1,2],[3]]', 'null'],
    }


@pytest.mark.parametrize(
    'arguments, said',
    [
        (['-g', 'policy.learn.learning_rat=1e-4'], "did you mean 'learning_rate'"),
        (['-g', f'{RATE}='], 'path=value,value'),
        (['-g', f'{RATE}=1e-4,,1e-3'], 'path=value,value'),
        (['-g', RATE], 'path=value,value'),
        (['-g', f'{RATE}=1e-4,0.0001'], 'a value twice'),
        (['-g', f'{RATE}=1e-4', '-g', f'{RATE}=1e-3'], 'given twice'),
        (['-g', f'{RATE}=-1'], f'{RATE}: '),
        (['-g', f'{RATE}=1e-5..1e-2'], f'{RATE}: '),
        (['-g', 'seed=1,2'], '--seeds'),
        (['--seeds', '9-0'], 'write 0-9'),
        (['--seeds', 'a-b'], 'write 0-9'),
        (['--seeds', ''], 'write 0-9'),
        (['--seeds', '0,0'], 'a seed twice'),
        (['-o', 'exp_name=runs/mine'], 'below that of the sweep, --out'),
        (['--seeds', '0-20000'], 'more than 10,000 runs'),
        (['--seeds', '0-5000', '-g', f'{RATE}=1e-4,1e-3'], '10,002 runs'),
        (['-j', '0'], '0 is not in the range'),
        (['--address', 'host:1'], '--ray'),
        (['--out', 'full'], 'full: holds something already'),
        (['--out', 'other'], 'nervex resume other goes on'),
    ],
)
def test_what_is_wrong_is_one_line_before_anything_starts(arguments, said, capsys):
    for name in ('full/x', 'other/sweep.yaml'):
        Path(name).parent.mkdir()
        Path(name).touch()
    assert said in refused(['cartpole_dqn', *arguments], capsys)


def test_a_config_that_no_other_process_can_make_is_refused(short_dqn, capsys):
    save_config(short_dqn, 'base.yaml')
    text = "from nervex.config import read_config\nmain_config = read_config('base.yaml')\n"
    Path('own.py').write_text(f'{text}main_config.env.env_fn = lambda cfg: None\n', encoding='utf-8')
    assert 'env.env_fn: no other process can import' in refused(['own.py'], capsys)


def test_of_a_changed_plan_nothing_is_run(capsys, monkeypatch):
    monkeypatch.setattr('nervex.entry.sweep_entry.Sweep.carry_out', lambda self: None)
    main(['sweep', 'cartpole_dqn', '--out', 'own', '--seeds', '0'])
    main(['resume', 'own'])
    plan = Path('own/sweep.yaml')
    plan.write_text(plan.read_text(encoding='utf-8').replace('override: []', 'override: [a=b]'), encoding='utf-8')
    with pytest.raises(SystemExit) as left:
        main(['resume', 'own'])
    assert left.value.code == 1 and 'you have not signed it' in capsys.readouterr().err
    main(['resume', 'own', '--trust'])


# ---- kills ----
def wait_for(condition, process):
    end = time.monotonic() + 200
    while not condition():
        assert time.monotonic() < end
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def running(folder):
    """The processes that write into the runs of a sweep now."""
    found = [int(lock.read_text() or 0) for lock in Path(folder).glob('*/.nervex_lock')]
    return [pid for pid in found if pid and Path(f'/proc/{pid}').exists()]


def began(*command):
    return quick_start.Popen([*NERVEX, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def rows(folder):
    path = Path(folder) / 'log/evaluator/curve.csv'
    return path.read_text(encoding='utf-8').count('\n') if path.exists() else 0


def test_a_sweep_that_is_killed_twice_ends_as_one_that_was_not(short_dqn):
    short_dqn.commander.max_env_step = 1000
    short_dqn.learner = dict(resume=dict(interval_s=0.0, max_cost=None))
    save_config(short_dqn, 'config.yaml')
    driver = began('sweep', 'config.yaml', '-g', f'{RATE}=5e-4,1e30', '--seeds', '0-1', '-j', '2', '--out', 'own')
    good, bad = Path('own/learning_rate=5e-4_s0'), Path('own/learning_rate=1e30_s0')
    wait_for(lambda: rows(good) > 2, driver)
    driver.kill()
    driver.communicate()
    end = time.monotonic() + 5
    while running('own'):
        assert time.monotonic() < end, 'a run goes on without its sweep'
        time.sleep(0.02)
    assert saved_run(good).state == 'killed'

    driver, before = began('resume', 'own'), rows(good)
    wait_for(lambda: rows(good) > before + 1 and running('own'), driver)
    for pid in running('own'):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: running('own'), driver)  # the next one
    driver.kill()
    driver.communicate()

    driver = began('resume', 'own', '-j', '2')
    out, err = driver.communicate(timeout=250)
    assert driver.returncode == 0 and not err, err
    assert [saved_run(good.with_name(f'learning_rate=5e-4_s{seed}')).state for seed in (0, 1)] == ['finished'] * 2
    picture = 'curves.png' if importlib.util.find_spec('matplotlib') else "needs matplotlib: pip install 'nervex[plot]'"
    assert f'\n  {bad}: error: ' in out and picture in out
    with open('own/results.csv', encoding='utf-8') as file:
        first, second = csv.DictReader(file)
    assert first['n'] == '2' and float(first['low']) <= float(first['mean']) <= float(first['high'])
    assert second['n'] == '0' and second['not finished'] == '2 failed' and first['improvement'] == ''

    short_dqn.events = {'tensorboard': {}}
    serial_pipeline(short_dqn, 0, overrides=(f'{RATE}=5e-4', 'exp_name=straight'))
    assert curves(good) == curves(Path('straight'))
    assert same_models(checkpoints(good), checkpoints(Path('straight')))
    again = Sweep('own')  # what is finished is not run again
    assert {run.state for run in again.runs if 'learning_rate=5e-4' in run.folder} == {'finished'}


def test_ctrl_c_stops_all_runs_resumably(short_dqn):
    short_dqn.commander.max_env_step = 10**9
    save_config(short_dqn, 'config.yaml')
    driver = began('sweep', 'config.yaml', '--seeds', '0-2', '-j', '2', '--out', 'own')
    runs = [Path('own/s0'), Path('own/s1')]
    wait_for(lambda: all(rows(run) > 2 for run in runs), driver)
    driver.send_signal(signal.SIGINT)
    _, err = driver.communicate(timeout=200)
    assert driver.returncode == 130 and 'to go on: nervex resume own' in err and 'Traceback' not in err
    assert [saved_run(run).state for run in runs] == ['interrupted'] * 2 and not Path('own/s2').exists()
    assert all(list(run.glob('ckpt*/run_state_*')) for run in runs)


@pytest.mark.slow
def test_on_ray_too_all_runs_are_stopped_resumably(short_dqn):
    pytest.importorskip('ray', reason='Ray is not installed')
    short_dqn.commander.max_env_step = 10**9
    save_config(short_dqn, 'config.yaml')
    driver = began('sweep', 'config.yaml', '--seeds', '0-1', '-j', '2', '--out', 'own', '--ray')
    runs = [Path('own/s0'), Path('own/s1')]
    wait_for(lambda: all(rows(run) > 2 for run in runs), driver)
    driver.send_signal(signal.SIGINT)
    _, err = driver.communicate(timeout=200)
    assert driver.returncode == 130 and 'to go on: nervex resume own' in err
    assert [saved_run(run).state for run in runs] == ['interrupted'] * 2
