import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nervex.loader import (
    divide,
    divide_with,
    interval,
    is_negative,
    is_positive,
    item,
    item_or,
    keep,
    mcmp,
    minus,
    minus_with,
    mmulti,
    msum,
    multi,
    negative,
    non_negative,
    non_positive,
    numeric,
    plus,
    positive,
    power,
    power_with,
)


@pytest.mark.parametrize(
    'value, error',
    [
        ('1', TypeError),
        (None, TypeError),
        (True, TypeError),
        (math.nan, ValueError),
    ],
)
def test_numeric_refuses(value, error):
    with pytest.raises(error):
        numeric()(value)


def test_numeric_options():
    assert numeric()(-math.inf) == -math.inf
    with pytest.raises(ValueError, match='finite'):
        numeric(inf_ok=False)(math.inf)
    with pytest.raises(TypeError, match='a float'):
        numeric(int_ok=False)(1)
    with pytest.raises(TypeError, match='an int'):
        numeric(float_ok=False)(1.0)
    with pytest.raises(ValueError):
        numeric(int_ok=False, float_ok=False)


@pytest.mark.parametrize(
    'options, inside, outside',
    [
        (dict(lo=1, hi=3.5), [1, 2, 3.5], [0.999, 3.501]),
        (dict(lo=1, hi=3.5, left_ok=False, right_ok=False), [1.001, 3.499], [1, 3.5]),
        (dict(lo=1), [1, 1e300], [0.9]),
        (dict(hi=3.5, right_ok=False), [-1e300, 3.499], [3.5]),
        (dict(lo=1.0, eps=0.01), [0.995], [0.98]),
        (dict(lo=1.0, left_ok=False, eps=0.01), [1.02], [1.005]),
        (dict(), [0, -5], [math.nan]),
    ],
)
def test_interval(options, inside, outside):
    loader = interval(**options)
    assert all(loader(value) == value for value in inside)
    for value in outside:
        with pytest.raises(ValueError):
            loader(value)


def test_interval_errors():
    with pytest.raises(TypeError, match=r"got 'abc', must be a number in \[0, 1\]"):
        interval(0, 1)('abc')
    with pytest.raises(TypeError, match='a number in'):
        interval(0, 1)(True)
    with pytest.raises(ValueError, match='above'):
        interval(1, 0.9)
    with pytest.raises(ValueError, match='eps'):
        interval(0, 1, eps=-1)


def test_signs():
    values = [-1, 0, 1]
    assert [is_positive().check(v) for v in values] == [False, False, True]
    assert [is_negative().check(v) for v in values] == [True, False, False]
    assert [non_negative().check(v) for v in values] == [False, True, True]
    assert [non_positive().check(v) for v in values] == [True, True, False]
    assert [positive()(v) for v in values] == values and [negative()(v) for v in values] == [1, 0, -1]


@pytest.mark.parametrize(
    'loader, result',
    [
        (plus(2), 5),
        (minus(2), 1),
        (minus_with(2), -1),
        (multi(2), 6),
        (divide(2), 1.5),
        (divide_with(6), 2.0),
        (power(2), 9),
        (power_with(2), 8),
        (plus(negative()), 0),
        (multi(keep()), 9),
        (power(keep()) >> power(keep()), 27**27),
    ],
)
def test_arithmetic_on_three(loader, result):
    assert loader(3) == result


def test_sums_products_and_chains_over_items():
    assert msum(item('a'), item('b'), item_or('c', 10))({'a': 1, 'b': 2}) == 13
    assert mmulti(item('a'), item('b'), 5)({'a': 2, 'b': 3}) == 30
    chain = mcmp(1, '<', item('a'), '>=', item('b'))
    assert chain({'a': 2, 'b': 2}) == {'a': 2, 'b': 2}
    with pytest.raises(ValueError, match='1 < 2 >= 3 does not hold'):
        chain({'a': 2, 'b': 3})
    assert mcmp(1)('anything') == 'anything'


def test_chain_mistakes_are_found_when_it_is_written():
    with pytest.raises(ValueError, match='ends with an operand'):
        mcmp(1, '<', keep(), '<=')
    with pytest.raises(KeyError, match='=<'):
        mcmp(1, '=<', keep())


@given(st.floats(allow_nan=False), st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_interval_agrees_with_python(lo, hi, value):
    if lo <= hi:
        assert interval(lo, hi).check(value) == (lo <= value <= hi)
