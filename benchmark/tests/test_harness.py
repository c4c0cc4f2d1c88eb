import importlib
import json
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from clock import Clock
from harness import Bench, Implementation, measure, parser, run, table

CASES_SOURCE = """
import os

def good(clock):
    print('noise that must not reach the answers')
    with clock:
        sum(range(1000))
    return 10

def bad(clock):
    raise ValueError('this case fails')

def threads(clock):
    with clock:
        pass
    return int(os.environ['OMP_NUM_THREADS'])

def die(clock):
    os._exit(3)

CASES = {'good': good, 'bad': bad, 'threads': threads}

def dying():
    return {'die': die, 'good': good}
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    (tmp_path / 'toy_cases.py').write_text(CASES_SOURCE)
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))

    def build(cases: list[str], attribute: str = 'CASES', **more) -> Bench:
        return Bench('toy', 'calls per second', [Implementation('one', f'toy_cases:{attribute}', **more)], cases, 'one')

    return build


def record(name: str, case: str, count: float, wall_s: float) -> dict:
    return {'implementation': name, 'case': case, 'round': 0, 'count': count, 'wall_s': wall_s, 'cpu_s': wall_s}


def test_table_shows_median_ratio_and_spread():
    bench = Bench('t', 'u', [Implementation('a', ''), Implementation('b', '')], ['x'], reference='a')
    runs = [
        record('a', 'x', 100, 1.0),
        record('b', 'x', 900, 3.0),
        record('b', 'x', 200, 1.0),
        record('b', 'x', 150, 1.0),
    ]
    lines = table(bench, runs, 'wall_s').splitlines()
    assert lines[2] == '| a | 100 (1.00x; 0%) |'
    assert lines[3] == '| b | 200 (2.00x; 75%) |'  # rates 300, 200, 150: median 200, spread (300 - 150) / 200


def test_table_of_seconds_and_of_missing_cells():
    names = [Implementation('a', ''), Implementation('b', ''), Implementation('c', '')]
    bench = Bench('t', 'u', names, ['x', 'y'], reference='a', lower_is_better=True)
    runs = [
        record('a', 'x', 1, 2.0),
        record('b', 'x', 2, 2.0),
        record('b', 'y', 1, 5.0),
        {'implementation': 'c', 'case': 'x', 'round': 0, 'error': 'broken'},
    ]
    lines = table(bench, runs, 'wall_s').splitlines()
    assert lines[2:] == ['| a | 2 (1.00x; 0%) |  |', '| b | 1 (0.50x; 0%) | 5 (0%) |']


def test_the_clock_counts_only_what_is_inside():
    clock, begin = Clock(), time.perf_counter()
    with clock:
        time.sleep(0.01)
    time.sleep(0.05)
    with clock:
        time.sleep(0.01)
    assert 0.02 <= clock.wall_s <= time.perf_counter() - begin - 0.05
    assert 0 <= clock.cpu_s < clock.wall_s


def test_repeat_counts_the_calls_that_it_timed():
    clock, calls = Clock(), []
    counted = clock.repeat(lambda: time.sleep(calls.append(0) or 0.001), seconds=0.01)
    assert 1 <= counted < len(calls)  # the calls that found the number out are not counted
    assert clock.wall_s >= counted * 0.001


def test_a_failing_case_is_reported_and_the_others_go_on(toy):
    records = measure(toy(['bad', 'good']), rounds=2, threads=1)
    assert [r['count'] for r in records if r['case'] == 'good'] == [10, 10]
    errors = [r['error'] for r in records if r['case'] == 'bad']
    assert len(errors) == 2 and all('ValueError: this case fails' in e for e in errors)


def test_a_dead_worker_is_reported(toy):
    records = measure(toy(['die'], 'dying'), rounds=1, threads=1)
    assert 'code 3' in records[0]['error']


def test_a_module_that_does_not_import_is_reported(toy):
    bench = Bench('t', 'u', [Implementation('a', 'no_such_module:CASES')], ['x'], 'a')
    assert 'No module named' in measure(bench, rounds=1, threads=1)[0]['error']


def test_threads_are_pinned_by_environment(toy):
    assert measure(toy(['threads']), rounds=1, threads=3)[0]['count'] == 3


def test_each_number_of_threads_has_a_table_of_its_own(toy, tmp_path):
    bench = toy(['threads'])
    records = run(bench, parser(bench).parse_args(['--rounds', '1', '--threads', '1', '2', '--out', str(tmp_path)]))
    assert [r['count'] for r in records] == [1, 2]
    assert (tmp_path / 'toy.md').exists() and (tmp_path / 'toy_threads2.md').exists()


def test_loops_of_games_and_bodies_are_there():
    import atari_bench
    import mujoco_bench

    for bench in (atari_bench.BENCH, mujoco_bench.BENCH):
        assert bench.reference in [one.name for one in bench.implementations]
        for one in bench.implementations:
            if one.name == 'nervex':
                module, _, attribute = one.cases.partition(':')
                assert set(bench.cases) <= set(getattr(importlib.import_module(module), attribute))


def test_a_missing_package_is_skipped_with_what_to_install(toy, tmp_path, capsys):
    bench = toy(['good'], requires={'no_such_module': 'such-a-package==1.2'})
    assert run(bench, parser(bench).parse_args(['--out', str(tmp_path)])) == []
    assert 'skipped: one (not installed; pip install such-a-package==1.2)' in capsys.readouterr().out


def test_only_a_complete_run_replaces_the_table(toy, tmp_path):
    bench = toy(['good', 'threads'])
    run(bench, parser(bench).parse_args(['--rounds', '1', '--cases', 'good', '--out', str(tmp_path)]))
    assert not (tmp_path / 'toy.md').exists() and (tmp_path / 'raw' / 'toy.md').exists()
    run(bench, parser(bench).parse_args(['--rounds', '1', '--out', str(tmp_path)]))
    assert '| one |' in (tmp_path / 'toy.md').read_text()
    assert len(json.loads((tmp_path / 'raw' / 'toy.json').read_text())) == 2


def test_parts_make_a_table_and_a_case_measured_again_replaces_all_of_its_older_cells(toy, tmp_path):
    bench = toy(['good', 'threads'])
    part = ['--part', '--rounds', '1', '--out', str(tmp_path)]
    run(bench, parser(bench).parse_args([*part, '--cases', 'good']))
    assert not (tmp_path / 'toy.md').exists()
    first = run(bench, parser(bench).parse_args([*part, '--cases', 'threads']))
    assert {r['case'] for r in first} == {'good', 'threads'} and (tmp_path / 'toy.md').exists()
    again = run(bench, parser(bench).parse_args([*part[:2], '2', *part[3:], '--cases', 'good']))
    assert [r['round'] for r in again if r['case'] == 'good'] == [0, 1] and len(again) == 3
    with pytest.raises(SystemExit, match='--only'):
        run(bench, parser(bench).parse_args([*part, '--only', 'one']))
