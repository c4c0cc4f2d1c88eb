import pytest
from easydict import EasyDict

from nervex.loader import fcall, fpartial, interval, is_callable, is_type, method, negative, prop, to_type


def test_is_type_takes_types_only():
    assert is_type((int, str))('a') == 'a'
    with pytest.raises(TypeError, match='must be a type'):
        is_type(lambda x: x)


def test_to_type_converts_and_lets_errors_through():
    assert (to_type(float) >> to_type(str))(1) == '1.0'
    with pytest.raises(ValueError):
        to_type(int)('x')
    with pytest.raises(TypeError):
        to_type(float)(None)


def test_is_callable():
    assert is_callable()(str.lower) is str.lower
    with pytest.raises(TypeError, match='callable'):
        is_callable()(1)


def test_prop_reads_an_attribute():
    thing = EasyDict(x=1, y='a')
    assert (prop('x') >> int)(thing) == 1
    assert ((prop('x') >> str) | (prop('y') >> str))(thing) == 'a'
    with pytest.raises(AttributeError, match="no attribute 'z'"):
        prop('z')(thing)


def test_method_needs_something_callable():
    assert method('lower')('AB')() == 'ab'
    for value in (2, EasyDict(lower=1)):
        with pytest.raises(TypeError, match="no method 'lower'"):
            method('lower')(value)


def test_fcall_and_fpartial():
    assert fcall('ABC')(str.lower) == 'abc'
    assert fpartial(x=2)(lambda x, y: x * y)(y=6) == 12
    both = fpartial(x=1) >> ((fcall(y=1) >> interval(0)) | (fcall(y=2) >> interval(None, 0) >> negative()))
    assert both(lambda x, y: x + y) == 2
    assert both(lambda x, y: 2 * x - 3 * y) == 4  # y=1 gives -1, so y=2: -4, and its negative
