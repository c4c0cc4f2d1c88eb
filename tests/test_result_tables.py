"""The tables of results: what counts as reached, how seeds are summed up, what is run again."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def learning(monkeypatch):
    """The modules of benchmark/learning, which are a script's and not a package's."""
    folder = ROOT / 'benchmark' / 'learning'
    if not folder.is_dir():
        pytest.skip('benchmark/ is not here: an installed package has no benchmarks')
    monkeypatch.syspath_prepend(str(folder))
    import pages
    import records
    import rows

    yield pages, records, rows
    for name in ('pages', 'records', 'rows', 'picture', 'epymarl_run'):
        sys.modules.pop(name, None)


def run(seed=0, mean=200.0, steps=1000, **more):
    return {'seed': seed, 'final_return': mean, 'env_steps': steps, 'overrides': [], **more}


def test_a_row_holds_only_if_every_seed_reaches_the_bound(learning):
    pages, _, rows = learning
    row = rows.Row('cartpole_dqn', at_least=195.0, median_steps=5000)
    good = [run(0, 195.0, 9000), run(1, 200.0, 1000), run(2, 200.0, 5000)]
    assert pages.holds(row, good).startswith('yes')
    assert pages.holds(row, [run(0, 194.9), *good[1:]]).startswith('**no**')
    assert pages.holds(row, [run(1, 200.0, 9000), *good[::2]]).startswith('**no**')  # the median is 9,000 now
    assert '2 of 3 seeds' in pages.holds(row, good[:2])


def test_many_seeds_are_told_by_how_late_the_slowest_is(learning):
    pages, _, rows = learning
    row = rows.Row('cartpole_a2c', at_least=195.0, seeds=tuple(range(7)))
    runs = [run(seed, steps=steps, solved=seed != 6) for seed, steps in enumerate((1, 2, 2, 2, 4, 5, 8))]
    (line,) = [line for line in pages.many_seeds([(row, runs)]) if '`cartpole_a2c`' in line]
    assert line.startswith('| `cartpole_a2c` | 6 of 7 | 2 | 8 | 4.0 | `nervex -m serial -c cartpole_a2c -s SEED`')
    assert not any('cartpole_a2c' in line for line in pages.singles([(row, runs)]))
    assert pages.many_seeds([(rows.Row('cartpole_ppo'), runs[:3])]) == []


def test_many_seeds_are_summed_up_by_the_middle_half_and_few_by_their_mean(learning):
    pages = learning[0]
    assert pages.summary([1.0, 3.0, 2.0], 1) == '2.0 (1.0 to 3.0)' and pages.summary([4.0], 0) == '4'
    # of eight without two at each end: (3 + 4 + 5 + 6) / 4; one wild seed moves the mean, not this
    middle, interval = pages.summary([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 1000.0], 1).split(' ', 1)
    low, high = (float(part) for part in interval.strip('[]').split(' to '))
    assert middle == '4.5' and 1.0 <= low < 4.5 < high < 1000.0


def test_solved_counts_the_seeds_of_both_sides_that_reach_the_bound(learning):
    pages, _, rows = learning
    curves = [[[0, 0.0], [1, 250.0], [2, high], [3, high]] for high in (10.0, 200.0, 300.0)]
    runs = [{'history': curve} for curve in curves]  # last: 90, 216.7, 283.3; best: 250, 250, 300
    pairs = [
        (rows.Row('lunarlander_ppo', peer='sb3', at_least=200.0), runs),
        (rows.Row('lunarlander_ppo', side='sb3', peer='sb3', at_least=200.0), runs[:2]),
        (rows.Row('acrobot_qrdqn', peer='sb3'), runs),
    ]
    (line,) = pages.solved('sb3', pairs)[5:]
    assert line == '| `lunarlander_ppo` | 200 | 2 of 3 | 1 of 2 | 3 of 3 | 2 of 2 |'


def test_area_is_the_mean_return_over_the_run(learning):
    pages = learning[0]
    # 0 to 10 over the first half: 5 on average; then 10 for the other half
    assert pages.area({'history': [[0, 0.0], [50, 10.0], [100, 10.0]]}) == 7.5
    assert pages.spread([1.0, 3.0, 2.0], 1) == '2.0 (1.0 to 3.0)' and pages.spread([2, 2], 0) == '2'


def test_a_finished_run_is_there_again_until_the_settings_change(learning, tmp_path):
    _, records, rows = learning
    store, row = records.Records(tmp_path), rows.Row('cartpole_dqn')
    assert not store.has(row, 0)
    store.add(row, run(1))
    store.add(row, run(0, mean=1.0))
    store.add(row, run(0, mean=2.0))  # takes the place of the older one
    assert [(r['seed'], r['final_return']) for r in store.of(row)] == [(0, 2.0), (1, 200.0)]
    assert not store.has(rows.Row('cartpole_dqn', overrides=('policy.learn.batch_size=1',)), 0)
    lines = (tmp_path / 'cartpole_dqn.jsonl').read_text(encoding='utf-8').splitlines()
    assert [json.loads(line)['seed'] for line in lines] == [0, 1]


def test_every_config_of_a_family_is_a_row_and_every_comparison_has_two_sides(learning):
    rows = learning[2].all_rows()
    names = [row.name for row in rows]
    assert len(set(names)) == len(names) and {'cartpole_qrdqn', 'pendulum_sac', 'bitflip_her_dqn'} <= set(names)
    for peer in ('sb3', 'epymarl'):
        pairs = [row for row in rows if row.peer == peer]
        names = {row.name for row in pairs if row.side == peer}
        assert names == {f'{row.problem}.{peer}' for row in pairs if row.side == 'nervex'} and names
        assert len({(row.config, row.overrides) for row in pairs}) * 2 == len(pairs)  # one budget for both sides


def test_a_row_of_a_team_holds_by_its_win_rate(learning):
    pages, _, rows = learning
    row = rows.Row('smac_3m_mappo', win_rate=0.95)
    won = [run(seed, 19.0, win_rate=rate) for seed, rate in enumerate((0.95, 1.0, 0.97))]
    assert pages.holds(row, won) == 'yes (win rate 0.97 (0.95 to 1.00) >= 0.95)'
    assert pages.holds(row, [*won[:2], run(2, 20.0, win_rate=0.94)]).startswith('**no**')


def test_what_epymarl_tells_of_a_run(learning):
    import epymarl_run

    log = """
    [INFO] my_main Recent Stats | t_env:     25000 | Episode:     1000
    return_mean:  -61.0  test_ep_length_mean:  25.0000  test_return_mean:   -78.9125  test_return_std: 2.0
    [INFO] my_main t_env: 25250 / 200050
    [INFO] my_main Recent Stats | t_env:     50000 | Episode:     2000
    ep_length_mean:  25.0000  test_return_mean:   -60.5000
    """
    found = epymarl_run.told(log)
    assert found['history'] == [[25000, -78.9125], [50000, -60.5]]
    assert found['final_return'] == -60.5 and found['env_steps'] == 50000
