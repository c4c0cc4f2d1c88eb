import logging
import random
from collections import namedtuple

import numpy as np
import pytest
import torch

from nervex.utils.default_helper import (
    LimitedSpaceContainer,
    default_get,
    dicts_to_lists,
    error_wrapper,
    list_split,
    lists_to_dicts,
    override,
    set_pkg_seed,
    squeeze,
)


def draw():
    return random.random(), np.random.rand(), torch.rand(1).item()


def test_seed_repeats_all_three_generators():
    set_pkg_seed(3)
    first = draw()
    set_pkg_seed(3, use_cuda=True)
    assert draw() == first
    set_pkg_seed(4)
    assert all(a != b for a, b in zip(draw(), first))


@pytest.mark.parametrize('seed', [-1, 1.5, True, '0', 2**32])
def test_wrong_seed_is_refused(seed):
    with pytest.raises(ValueError, match='seed'):
        set_pkg_seed(seed)


def test_lists_and_dicts_turn_into_each_other():
    rows = [{'a': 1, 'b': {'c': 2}}, {'a': 3, 'b': {'c': 4}}]
    assert lists_to_dicts(rows) == {'a': [1, 3], 'b': [{'c': 2}, {'c': 4}]}
    assert lists_to_dicts(rows, recursive=True) == {'a': [1, 3], 'b': {'c': [2, 4]}}
    assert dicts_to_lists(lists_to_dicts(rows)) == rows
    pair = namedtuple('pair', ['x', 'y'])
    assert lists_to_dicts([pair(1, 2), pair(3, 4)]) == pair([1, 3], [2, 4])


def test_ragged_and_empty_data_are_refused():
    with pytest.raises(ValueError, match='one length'):
        dicts_to_lists({'a': [1], 'b': [1, 2]})
    with pytest.raises(ValueError, match='at least one'):
        lists_to_dicts([])
    with pytest.raises(TypeError, match='int'):
        lists_to_dicts([1])


def test_squeeze_opens_single_element_containers_only():
    assert squeeze((4,)) == 4 and squeeze([5]) == 5 and squeeze({'a': 6}) == 6
    assert squeeze((1, 2)) == (1, 2) and squeeze([]) == [] and squeeze(7) == 7


def test_default_get():
    assert default_get({'a': 0}, 'a', 1) == 0
    assert default_get({}, 'a', default_fn=lambda: [2]) == [2]
    with pytest.raises(ValueError, match='no default'):
        default_get({}, 'a')
    with pytest.raises(ValueError, match='own check'):
        default_get({}, 'a', -1, judge_fn=lambda v: v > 0)


def test_list_split():
    assert list_split([1, 2, 3, 4, 5], 2) == ([[1, 2], [3, 4]], [5])
    assert list_split([1, 2], 2) == ([[1, 2]], None)
    assert list_split([1], 2) == ([], [1])


def test_error_wrapper_logs_and_answers_the_default(caplog):
    with caplog.at_level(logging.WARNING):
        assert error_wrapper(int, -1, 'using no port', ValueError)('x') == -1
    assert 'using no port' in caplog.text and 'invalid literal' in caplog.text
    with pytest.raises(TypeError):
        error_wrapper(int, -1, errors=ValueError)([])


def test_limited_space():
    space = LimitedSpaceContainer(0, 2)
    assert [space.acquire_space() for _ in range(3)] == [True, True, False]
    space.release_space()
    space.increase_space()
    assert space.get_residual_space() == 2 and not space.acquire_space()
    for _ in range(5):
        space.release_space()
    assert space.cur == 3
    space.decrease_space()
    assert (space.cur, space.max_val) == (2, 2)


def test_override_refuses_a_misspelt_method():
    class Base:
        def step(self):
            """Something to override."""

    class Good(Base):
        @override(Base)
        def step(self):
            return 1

    assert Good().step() == 1
    with pytest.raises(NameError, match='stpe'):

        class Bad(Base):
            @override(Base)
            def stpe(self):
                """A misspelt name."""
