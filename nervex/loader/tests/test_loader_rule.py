import math

import pytest

from nervex.loader.rules import registered, rule, rule_schema
from nervex.utils.errors import UnknownNameError
from nervex.utils.registry import Registry


@pytest.mark.parametrize(
    'text, fit, unfit, words',
    [
        ('any', [None, 3, {}], [], ''),
        ('int', [3, -3], [3.0, True, 'x', None], 'an int'),
        ('int >= 1', [1], [0, 1.0, '1'], 'an int >= 1'),
        ('int in [2, 4]', [2, 4], [1, 5], 'an int in [2, 4]'),
        ('number', [1, 1.5, -2], ['x', True, math.inf, math.nan, None], 'a finite number'),
        ('number > 0', [1e-9], [0, math.inf, 'x'], 'a finite number > 0'),
        ('number < 0.5', [0.4], [0.5], 'a finite number < 0.5'),
        ('number in (0, 1]', [1, 0.1], [0, 1.1, math.nan, 'x'], 'a number in (0, 1]'),
        ('number >= 0 | inf', [0, 'inf', math.inf], [-1, -math.inf, 'x'], "a finite number >= 0 or 'inf'"),
        ('bool', [True], [1, 'x'], 'a bool'),
        ('str | None', ['', None], [3], 'a str or None'),
        ("'exp' | 'linear'", ['exp'], ['x', 3], "one of 'exp', 'linear'"),
        ("int >= 3 | 'auto' | False", [3, 'auto', False], [0, True, 2], "an int >= 3 or one of 'auto', False"),
        ('list of str', [['a'], ('a',), []], ['a', [3], {'a'}], 'a list of values that are a str'),
        ('dict of int >= 1', [{'a': 1}], [{'a': 0}, {3: 1}, []], 'a dict of values that are an int >= 1'),
        ('int | list of int', [1, [1]], ['x', ['x']], 'an int or a list of values that are an int'),
        ('callable', [len, 'math:floor'], [3, 'floor', 'math:flor'], "callable, or its name 'module:function'"),
        ('None', [None], [3], 'None'),
    ],
)
def test_a_rule_in_words(text, fit, unfit, words):
    assert all(rule(text).check(value) for value in fit)
    assert not any(rule(text).check(value) for value in unfit)
    assert rule(text).what == words


def test_whole_numbers_may_be_written_as_floats():
    assert rule('whole >= 1')(1e5) == 100000 and type(rule('whole >= 1')(1e5)) is int
    with pytest.raises(TypeError, match=r'got 1\.5, must be an int >= 1'):
        rule('whole >= 1')(1.5)


def test_a_function_may_be_given_by_its_name():
    assert rule('callable | None')('math:floor') is math.floor


def test_errors_say_all_of_the_rule_and_the_nearest_word():
    with pytest.raises(ValueError, match=r"got 'lineer', must be .*; did you mean 'linear'"):
        rule("'exp' | 'linear'")('lineer')
    with pytest.raises(ValueError, match=r'1: got 0, must be an int >= 1; 2: got .a., must be an int >= 1'):
        rule('list of int >= 1')([1, 0, 'a'])


@pytest.mark.parametrize('text', ['itn >= 1', 'int => 1', 'str >= 1', 'int>=1', "'exp' or 'linear'"])
def test_a_misspelt_rule_is_refused(text):
    with pytest.raises(ValueError, match='is no check'):
        rule(text)
    with pytest.raises(ValueError, match="did you mean 'int'"):
        rule('itn')


def test_schemas():
    assert rule_schema('int >= 1 | None') == {'anyOf': [{'type': 'integer', 'minimum': 1}, {'type': 'null'}]}
    assert rule_schema('number in (0, 1]') == {'type': 'number', 'exclusiveMinimum': 0, 'maximum': 1}
    assert rule_schema("'a' | 'b'") == {'enum': ['a', 'b']}
    assert rule_schema('list of str') == {'type': 'array', 'items': {'type': 'string'}}


def test_names_in_a_registry():
    loader = registered(Registry('fruit', {'apple': 'a:b'}))
    assert loader('apple') == 'apple' and loader.what == 'the name of a fruit'
    with pytest.raises(UnknownNameError, match="unknown fruit 'aple'; did you mean 'apple'"):
        loader('aple')
