import logging

import pytest

from nervex.utils import DuplicateNameError, Registry, UnknownNameError


class Builtin:
    pass


def fresh() -> Registry:
    return Registry('thing', {'built': f'{__name__}:Builtin', 'missing': 'nervex.no_such_module:X'})


def test_registers_by_call_and_by_stacked_decorators():
    registry = fresh()

    @registry.register('a')
    @registry.register('b')
    class Thing:
        pass

    registry.register('c', Thing)
    assert registry.get('a') is registry.get('b') is registry.get('c') is Thing


def test_listing_imports_nothing_and_get_imports_lazily():
    registry = fresh()
    assert registry.query() == ['built', 'missing']
    assert registry.query_details(['missing']) == {'missing': 'nervex.no_such_module:X'}
    with pytest.raises(ModuleNotFoundError):
        registry.get('missing')


def test_unknown_name_names_the_nearest():
    with pytest.raises(UnknownNameError, match="unknown thing 'bilt'; did you mean 'built'") as error:
        fresh().get('bilt')
    assert isinstance(error.value, KeyError)


def test_key_error_inside_a_constructor_passes_through():
    registry = fresh()

    @registry.register('broken')
    def build() -> None:
        raise KeyError('inside')

    with pytest.raises(KeyError, match='inside') as error:
        registry.build('broken')
    assert not isinstance(error.value, UnknownNameError)


def test_user_replaces_builtin_with_one_warning(caplog):
    registry = fresh()

    class Mine:
        pass

    with caplog.at_level(logging.WARNING):
        registry.register('built', Mine)
        registry.register('built', Mine)
    assert registry.get('built') is Mine
    assert len(caplog.records) == 1


def test_two_user_classes_under_one_name_are_an_error_naming_both():
    registry = fresh()
    registry.register('x', Builtin)

    class Other:
        pass

    with pytest.raises(DuplicateNameError, match=r'registered twice: .*Builtin \(.*test_registry.py\) and .*Other'):
        registry.register('x', Other)


@pytest.mark.parametrize('name', ['', None, 3])
def test_a_name_is_a_non_empty_string(name):
    with pytest.raises(TypeError, match='non-empty string'):
        fresh().register(name, Builtin)


def test_reads_like_a_dict():
    registry = fresh()
    assert registry['built'] is Builtin and 'built' in registry and len(registry) == 2
    assert list(registry.keys()) == list(registry) == ['built', 'missing']
    with pytest.raises(KeyError, match="unknown thing 'bilt'; did you mean 'built'"):
        registry['bilt']
    own = Registry()
    own.register('x', Builtin)
    assert dict(own.items()) == {'x': Builtin} and {own: 1}[own] == 1 and own != fresh()
