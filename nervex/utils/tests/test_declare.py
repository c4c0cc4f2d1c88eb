"""What a declaration of settings is to those who read defaults, and how classes inherit it."""

import copy
import json
import pickle

import pytest
from easydict import EasyDict

from nervex.utils.declare import UNSET, Section, Setting, class_config, declared_by, declared_config, setting, settings

PART = settings(log_freq=setting(5, 'int >= 1', 'lines'))


class Base:
    config = settings(
        learn=dict(
            rate=setting(0.1, 'number > 0', 'step size'),
            steps=setting(check='int >= 1', meaning='updates; only where a subclass has a default'),
            algo={},
        ),
        monitor=PART,
        extra=setting({'a': 1}, 'dict', 'anything'),
    )


class Sub(Base):
    config = settings(learn=dict(rate=0.2, algo=dict(tau=setting(3, 'int', 'of the target'))))


class Plain(Sub):
    config = dict(learn=dict(steps=7, own=dict(x=1)), extra=dict(b=2))


def test_the_config_of_a_class_is_a_nested_dict_of_defaults():
    assert Base.config == dict(learn=dict(rate=0.1, algo={}), monitor=dict(log_freq=5), extra=dict(a=1))
    assert Sub.config['learn']['algo']['tau'] == 3 and EasyDict(Sub.config).learn.rate == 0.2
    assert json.loads(json.dumps(Base.config)) == Base.config
    for made in (copy.copy(Base.config), copy.deepcopy(Base.config), pickle.loads(pickle.dumps(Base.config))):
        assert type(made) is dict and made == Base.config
    assert declared_config(Plain)['learn'] == dict(rate=0.2, algo=dict(tau=3), steps=7, own=dict(x=1))
    assert class_config(Plain, dict(learn=dict(rate=1)))['learn']['rate'] == 1


def test_subclasses_inherit_checks_and_meanings_key_by_key():
    section = declared_by(Plain)
    assert section.at('learn.rate') == Setting(0.2, 'number > 0', 'step size')
    assert section.at('learn.steps').default == 7 and section.at('learn.steps').check == 'int >= 1'
    assert section.at('learn.own.x') == Setting(1)
    assert section.at('extra').default == dict(a=1, b=2)
    assert section.defaults() == declared_config(Plain)


def test_a_setting_without_a_default_exists_where_a_subclass_gives_it_one():
    assert declared_by(Sub).at('learn.steps') is None and 'steps' not in declared_by(Sub).defaults()['learn']
    assert declared_by(Base).entries['learn'].entries['steps'].default is UNSET
    assert [path for path, _ in declared_by(Base).leaves(hidden=True)][1] == 'learn.steps'


def test_a_dict_with_another_type_forgets_the_defaults_of_the_first_and_keeps_its_checks():
    class Eps:
        config = settings(eps=dict(type=setting('exp', 'str'), decay=setting(10, 'int >= 1')))

    class Other(Eps):
        config = dict(eps=dict(type='linear', slope=2))

    eps = declared_by(Other).at('eps')
    assert eps.defaults() == dict(type='linear', slope=2) and eps.entries['decay'].check == 'int >= 1'
    assert declared_config(Other) == dict(eps=dict(type='linear', slope=2))


def test_who_declares_nothing_of_its_own_is_open():
    class Silent(Sub):
        pass

    assert declared_by(Silent).is_open and declared_by(Silent).at('learn').is_open
    assert not declared_by(Silent, own_only=False).is_open and not declared_by(Sub).is_open
    assert declared_by(lambda: None).is_open and declared_by('text').entries == {}


def test_declaring_a_class_changes_no_other_one():
    section = declared_by(Sub)
    section.entries['learn'].entries['rate'] = Setting(9)
    section.defaults()['extra']['a'] = 9
    assert declared_by(Sub).at('learn.rate').default == 0.2 and Base.config['extra'] == dict(a=1)


def test_setting_without_settings_is_said():
    class Wrong:
        config = dict(x=setting(1, 'int', ''))

    with pytest.raises(TypeError, match=r'Wrong.config: x is a setting\(...\); write config = settings'):
        declared_by(Wrong)
    assert isinstance(declared_by(Base).at('monitor'), Section)
