import pytest

from nervex.loader import Loader, check, check_only, interval, is_positive, is_type, keep, optional, plus, raw, to_type


def test_a_type_checks_instances_and_answers_the_value():
    loader = Loader(int)
    assert loader(3) == 3 and loader.load(3) == 3
    assert loader.check(3) and not loader.check('3')
    with pytest.raises(TypeError, match="got '3', must be an int"):
        loader('3')


@pytest.mark.parametrize('wanted', [int, float, (int, float)])
def test_a_bool_is_not_a_number(wanted):
    assert not is_type(wanted).check(True)
    assert is_type(bool).check(True) and is_type((int, bool)).check(False)


def test_pipe_passes_the_new_value_on_and_stops_at_the_first_error():
    loader = to_type(int) >> plus(1) >> interval(0, 5)
    assert loader('4') == 5
    with pytest.raises(ValueError, match='got 6'):
        loader('5')


def test_and_gives_both_the_original_value():
    loader = plus(1) & plus(10)  # both see 1; the answer is the second one's
    assert loader(1) == 11
    both = Loader(int) & interval(1, 4)
    assert both(4) == 4
    with pytest.raises(TypeError):
        both(2.5)
    with pytest.raises(ValueError):
        both(5)


def test_or_takes_the_first_that_passes_and_names_all_when_none_does():
    loader = (is_type(int) & is_positive()) | 'never reached'
    assert loader(3) == 3
    assert loader(-3) == 'never reached'  # a plain value is a constant answer
    with pytest.raises(TypeError, match='must be an int or a str'):
        (Loader(int) | str)([])


def test_operators_lift_plain_operands_on_either_side():
    assert (int | Loader(str))('a') == 'a'
    assert (float & interval(1, 2))(1.5) == 1.5
    assert (str >> to_type(int))('7') == 7
    assert (None | Loader(int))(None) is None
    assert not (None | Loader(int)).check('x')


def test_true_passes_everything_and_false_nothing():
    assert (Loader(int) | True)('anything') == 'anything'
    with pytest.raises(ValueError):
        (Loader(int) & False)(1)


def test_none_accepts_only_none():
    assert Loader(None)(None) is None
    with pytest.raises(TypeError, match='must be None'):
        Loader(None)(0)


def test_tuples_are_predicate_and_error_or_predicate_function_and_error():
    assert Loader((lambda v: v > 0, 'must be > 0'))(1) == 1
    with pytest.raises(ValueError, match='must be > 0'):
        Loader((lambda v: v > 0, 'must be > 0'))(0)
    with pytest.raises(RuntimeError, match='bad'):
        Loader((lambda v: v > 0, RuntimeError('bad')))(0)
    with pytest.raises(KeyError, match='0 is bad'):
        Loader((lambda v: v > 0, lambda v: KeyError(f'{v} is bad')))(0)
    assert Loader((lambda v: v > 0, lambda v: -v, 'no'))(2) == -2
    for parts in ((), (bool,), (bool, bool, 'no', None)):
        with pytest.raises(ValueError, match='2 parts'):
            Loader(parts)


def test_a_loader_of_a_loader_is_the_same_loader():
    assert Loader(interval(0, 1))(1) == 1 and Loader(interval(0, 1)).what == 'a number in [0, 1]'


def test_the_rule_in_words_follows_the_operators():
    assert (is_type(int) & is_positive()).what == 'an int > 0'
    assert ((is_type(int) & interval(1)) | 'x').what == ''  # no words for one half: none for the whole
    assert optional(is_type((int, str))).what == 'an int or a str or None'


def test_keep_raw_optional_check_only_and_check():
    assert keep()([1]) == [1]
    assert raw(233)('x') == 233
    assert optional(float)(None) is None and not optional(float).check('x')
    assert check_only(to_type(int) >> interval(0, 9))('7') == '7'
    with pytest.raises(ValueError):
        check_only(to_type(int) >> interval(0, 9))('17')
    assert check(int)(1) is True and check(int)('a') is False
