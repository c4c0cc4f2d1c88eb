import re

import pytest

from nervex.loader import enum, regrep, rematch


def test_enum_answers_the_item_and_suggests_the_nearest():
    assert enum('exp', 'linear')('exp') == 'exp'
    with pytest.raises(ValueError, match="got 'exq', must be one of 'exp', 'linear'; did you mean 'exp'"):
        enum('exp', 'linear')('exq')
    for value in (1, None, str, 'EXP', ['exp']):
        with pytest.raises(ValueError):
            enum('exp', 'linear')(value)


def test_enum_of_other_things_than_strings():
    loader = enum(1, 2, None, 'x')
    assert [loader(value) for value in (1, 2, None, 'x')] == [1, 2, None, 'x']
    for value in (True, 3, '1', [1], (1, [2])):
        with pytest.raises(ValueError, match='must be one of 1, 2, None'):
            loader(value)


def test_enum_without_case_answers_its_own_spelling():
    loader = enum('Red', 'green', case_sensitive=False)
    assert loader('RED') == 'Red' and loader('GREEN') == 'green'
    assert not loader.check(1)


def test_rematch_needs_the_whole_string():
    assert rematch('[a-z]+')('abc') == 'abc'
    for value, error in (('abc1', ValueError), (3, TypeError)):
        with pytest.raises(error):
            rematch(re.compile('[a-z]+'))(value)
    with pytest.raises(TypeError, match='regular expression'):
        rematch(1)


def test_regrep_answers_a_group_of_the_first_match():
    assert regrep(r'(\d+)-(\d+)')('from 12-34 on') == '12-34'
    assert regrep(r'(\d+)-(\d+)', group=2)('from 12-34 on') == '34'
    with pytest.raises(ValueError, match='contains'):
        regrep(r'\d')('none')
