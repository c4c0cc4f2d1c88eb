import operator

import pytest

from nervex.loader import Loader, interval, item, land, lcmp, lin, lis, lisnot, lnot, lor, lsum, norm, normfunc

A, B = norm(item('a')), norm(item('b'))
VALUE = {'a': 13, 'b': 5, 'list': [1, 2]}


@pytest.mark.parametrize(
    'name',
    [
        'add',
        'sub',
        'mul',
        'truediv',
        'floordiv',
        'mod',
        'pow',
        'lshift',
        'rshift',
        'and_',
        'or_',
        'xor',
        'eq',
        'ne',
        'lt',
        'le',
        'gt',
        'ge',
    ],
)
def test_every_operator_between_norms_and_plain_values_on_both_sides(name):
    function = getattr(operator, name)
    assert function(A, B)(VALUE) == function(13, 5)
    assert function(A, 3)(VALUE) == function(13, 3)
    assert function(3, B)(VALUE) == function(3, 5)


def test_unary_operators():
    assert ((-A)(VALUE), (+A)(VALUE), (~A)(VALUE)) == (-13, 13, -14)


def test_an_expression_raises_what_its_loaders_raise():
    expression = A * (B - norm(item('c'))) * 2 == norm(item('result') | item('sum'))
    assert expression({'a': 2, 'b': 10, 'c': -2, 'result': 48}) is True
    assert expression({'a': 2, 'b': 10, 'c': -2, 'sum': 1}) is False
    with pytest.raises(KeyError):
        expression({'a': 2, 'b': 10, 'sum': 1})


def test_logic_stops_early():
    broken = norm(item('missing'))
    assert land(A > 20, broken)(VALUE) is False and lor(A > 1, broken)(VALUE) is True
    assert land(A, B)(VALUE) == 5 and lor(0, B)(VALUE) == 5
    assert lnot(A > 20)(VALUE) is True
    with pytest.raises(ValueError):
        land()


def test_membership_identity_sum_and_chain():
    assert lin(norm(item('list')), 2)(VALUE) and not lin([7], A)(VALUE)
    assert lis(None, norm(item('n')))({'n': None}) and lisnot(None, A)(VALUE)
    assert lsum(1, A, item('b'))(VALUE) == 19
    assert lcmp(1, '<', A, '<=', 13)(VALUE) is True and lcmp(1, '>', A)(VALUE) is False
    with pytest.raises(KeyError):
        lcmp(1, '<x', A)
    with pytest.raises(ValueError):
        lcmp(1, '<', A, '<')


def test_functions_lift_and_norms_become_loaders_again():
    assert normfunc(max)(A, B, 20)(VALUE) == 20
    loader = Loader(A + B) >> interval(0, 18)
    assert loader(VALUE) == 18
    with pytest.raises(ValueError):
        loader({'a': 13, 'b': 6})
