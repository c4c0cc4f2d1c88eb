from collections import namedtuple

import pytest

from nervex.loader import (
    CollectionError,
    Loader,
    check_only,
    cofilter,
    collection,
    contains,
    interval,
    length,
    length_is,
    optional,
    plus,
    to_type,
    tpselector,
    tuple_,
)


@pytest.mark.parametrize('value', [[1, 2], (1, 2), {1, 2}, frozenset([1, 2]), namedtuple('P', 'x y')(1, 2)])
def test_collection_keeps_the_type_of_the_collection(value):
    loaded = collection(int)(value)
    assert loaded == value and type(loaded) is type(value)


def test_collection_reports_every_item_that_fails():
    with pytest.raises(CollectionError) as caught:
        collection(Loader(int) | str)([None, 1, 'a', 2.5])
    assert [index for index, _ in caught.value.errors] == [0, 3]
    assert all(isinstance(error, TypeError) for _, error in caught.value.errors)
    assert '0: got None' in str(caught.value) and '3: got 2.5' in str(caught.value)


def test_nested_collections_report_paths():
    with pytest.raises(CollectionError) as caught:
        collection(collection(int))([[1], ['a', 2, 'b']])
    assert [path for path, _ in caught.value.flatten()] == ['1.0', '1.2']


@pytest.mark.parametrize('value', [1, None, 'text', b'bytes'])
def test_collection_refuses_what_is_none(value):
    with pytest.raises(TypeError, match='collection'):
        collection(keep_anything)(value)


def keep_anything(value):
    return value


def test_collection_converts_and_can_answer_a_list():
    assert collection(to_type(int), type_back=False)(('1', 2.0)) == [1, 2]


def test_tuple_has_one_loader_a_position_and_reports_all():
    loader = tuple_(int, optional(float), plus(1) >> interval(2, 3))
    assert loader((1, None, 2)) == (1, None, 3) and loader([1, 2.5, 1]) == (1, 2.5, 2)
    with pytest.raises(CollectionError) as caught:
        loader(('a', 'b', 1))
    assert [index for index, _ in caught.value.errors] == [0, 1]
    with pytest.raises(ValueError, match='3 items, not 2'):
        loader((1, None))
    with pytest.raises(TypeError):
        loader('abc')


def test_length():
    assert length(2)('ab') == 'ab' and length(max=2)([]) == [] and length(2, 3)((1, 2, 3)) == (1, 2, 3)
    for bad in ('a', 'abcd'):
        with pytest.raises(ValueError, match='of length'):
            length(2, 3)(bad)
    assert length_is(2)('ab') == 'ab'
    with pytest.raises(ValueError, match='of length 2, not 3'):
        length_is(2)('abc')
    with pytest.raises(TypeError):
        length(1)(5)
    with pytest.raises(ValueError, match='above'):
        length(3, 2)


def test_contains_cofilter_and_tpselector():
    loader = contains('item') & list & collection(str)
    assert loader(['item', 'b']) == ['item', 'b']
    for bad, error in ((['b'], ValueError), (('item',), TypeError), (['item', 1], CollectionError), (1, TypeError)):
        with pytest.raises(error):
            loader(bad)
    assert cofilter(lambda x: x > 0)((1, -2, 3)) == (1, 3)
    ones, zeros = cofilter(lambda x: x == 1), cofilter(lambda x: x == 0)
    halves = list & check_only((ones >> length_is(2)) & (zeros >> length_is(1)))
    assert halves([1, 0, 1]) == [1, 0, 1] and not halves.check([1, 0, 0])
    assert tpselector(0, 2)((1, 2, 3)) == (1, 3)
    with pytest.raises(IndexError):
        tpselector(5)((1,))
