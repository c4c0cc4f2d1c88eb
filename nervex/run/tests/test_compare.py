"""The statistics of few runs, by hand, by loops, and beside rliable."""

import itertools

import numpy as np
import pytest

from nervex.run.compare import bootstrap_interval, comparison, improvement, iqm, readable

# (runs, other runs, aggregate_iqm, probability_of_improvement): what rliable 1.2 says
RLIABLE = [
    ([1.3, 1.8, 1.3], [-0.8, 1.4, 0.9, 0.0], 1.4666666666666668, 0.8333333333333334),
    ([1.6, 1.4, 1.3, 1.0, 1.5], [-0.2, 0.3, 0.0, 1.1, 0.5], 1.4, 0.96),
    ([0.7, 0.2, 0.7, 1.0, 0.7, 2.3, 2.0], [-2.2, -1.4, 0.3, 0.1, 0.7, 0.7, 2.6, -0.6, 0.1, 2.5], 1.02, 5 / 7),
]  # fmt: skip


@pytest.mark.parametrize('values, over, middle, better', RLIABLE)
def test_the_same_as_rliable(values, over, middle, better):
    assert iqm(np.array(values)) == pytest.approx(middle, abs=1e-12)
    assert improvement(values, over) == pytest.approx(better, abs=1e-12)


def test_iqm_leaves_out_a_quarter_at_both_ends_by_hand():
    assert iqm(np.array([9.0, 0.0, 2.0, 4.0])) == 3.0  # (2 + 4) / 2
    assert iqm(np.array([9.0, 0.0, 3.0])) == 4.0  # fewer than four: the mean
    assert iqm(np.array([[8.0, 1, 2, 3], [0, 1, 2, 100]])).tolist() == [2.5, 1.5]


def test_improvement_is_the_share_of_won_pairs_by_a_loop():
    x, y = [3, 1, 2, 2], [2, 0, 2]
    won = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in itertools.product(x, y)]
    assert improvement(x, y) == pytest.approx(sum(won) / len(won))


def test_the_interval_is_that_of_all_resamples_by_a_loop():
    values = [0.0, 1.0, 2.0, 6.0]
    means = [np.mean(drawn) for drawn in itertools.product(values, repeat=4)]
    low, high = bootstrap_interval(values)
    assert (low, high) == bootstrap_interval(values)
    assert low == pytest.approx(np.percentile(means, 2.5), abs=0.13)
    assert high == pytest.approx(np.percentile(means, 97.5), abs=0.26)


def test_a_table_compares_with_the_first_group_that_has_a_result():
    rows = comparison([('a', []), ('b', [1.0]), ('c', [2.0, 0.5])])
    assert readable(rows) == [
        ['setting', 'n', 'final mean', '95 % interval', 'IQM', 'better than first'],
        ['a', '0', '', '', '', ''],
        ['b', '1', '1.000', '', '1.000', ''],
        ['c', '2', '1.250', '0.500 to 2.000', '1.250', '0.50'],
    ]
