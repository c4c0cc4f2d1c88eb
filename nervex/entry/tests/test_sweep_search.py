"""Optuna's part in a sweep: what ranges mean, when a trial is ended early, and what is known after a restart."""

from types import SimpleNamespace

import click
import pytest

pytest.importorskip('optuna', reason='optuna is not installed')

from nervex.entry.sweep_entry import Plan
from nervex.entry.sweep_search import Search


def plan_of(grid, trials=(), number=20):
    return Plan(grid, [0], [], 1, {}, [], optuna=number, trials=list(trials))


def run_of(number, *returns, state='running'):
    rows = [{'env_step': str(100 * n), 'return_mean': str(value)} for n, value in enumerate(returns)]
    return SimpleNamespace(number=number, seed=0, state=state, curve=rows)


def test_ranges_are_whole_numbers_logarithms_and_choices():
    search = Search(plan_of({'a': ['1e-5..1e-2:log'], 'b': ['16..256'], 'c': ['x', '[1,2]']}))
    assert search.ends() == [{'a': '1e-05', 'b': '16', 'c': 'x'}, {'a': '0.01', 'b': '256', 'c': '[1,2]'}]
    search.ask([])
    (trial,) = search._plan.trials
    setting = trial['setting']
    assert 1e-5 <= float(setting['a']) <= 1e-2 and 16 <= int(setting['b']) <= 256 and setting['c'] in ('x', '[1,2]')


@pytest.mark.parametrize('text', ['1..', '2..1', 'a..b', '0..1:log', '1..2:exp'])
def test_what_is_no_range_is_refused(text):
    with pytest.raises(click.UsageError, match=r'LOW\.\.HIGH'):
        Search(plan_of({'a': [text]}))


def test_a_trial_below_the_median_of_those_before_is_ended():
    """Five trials end at 10, 20, ..., 50; after 100 steps they had 1, 2, ..., 5, so that the median there is 3."""
    plan = plan_of({'a': ['0..1']})
    search, done = Search(plan), []
    for n in range(5):
        assert search.ask(done) == n
        done.append(run_of(n, 0, n + 1, 10 * (n + 1), state='finished'))
    assert search.ask(done) == 5
    assert not search.hopeless(run_of(5, -100))  # before the first step nothing is learned
    assert not search.hopeless(run_of(5, -100, 3.5))
    assert search.ask([*done, run_of(5)]) == 6 and search.hopeless(run_of(6, 0, 2.5)) and plan.trials[6]['pruned']
    again = Search(plan_of(plan.grid, plan.trials))  # after a restart, from the plan and the curves alone
    runs = [*done, run_of(5, -100, 3.5), run_of(6, 0, 2.5, state='pruned')]
    assert again.ask(runs) == 7 and again.hopeless(run_of(7, 0, 2.5)) and not again.hopeless(run_of(5, -100, 3.5, 31))


def test_there_are_no_more_trials_than_asked_for_and_failed_ones_count():
    plan = plan_of({'a': ['0..1']}, number=2)
    search = Search(plan)
    runs = []
    for n in range(2):
        assert search.ask(runs) == n
        runs.append(run_of(n, state='failed'))
    assert search.ask(runs) is None and len(plan.trials) == 2
