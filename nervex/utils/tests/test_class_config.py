from nervex.utils.class_config import merge_config
from nervex.utils.declare import class_config, declared_config


class Base:
    config = dict(a=1, deep=dict(x=1, y=2), items=[1, 2], eps=dict(type='exp', decay=3))


class Child(Base):
    config = dict(deep=dict(y=5), b=None)


def test_defaults_of_bases_come_first():
    assert declared_config(Child) == dict(a=1, deep=dict(x=1, y=5), items=[1, 2], eps=dict(type='exp', decay=3), b=None)


def test_dicts_merge_lists_replace_and_none_is_a_value():
    assert merge_config(Base.config, dict(deep=dict(x=9), items=[7], a=None)) == dict(
        a=None, deep=dict(x=9, y=2), items=[7], eps=dict(type='exp', decay=3)
    )


def test_another_type_replaces_the_whole_dict():
    assert merge_config(Base.config, dict(eps=dict(type='linear')))['eps'] == dict(type='linear')
    assert merge_config(Base.config, dict(eps=dict(type='exp', start=1)))['eps'] == dict(type='exp', decay=3, start=1)


def test_nothing_is_changed_or_shared():
    given = dict(deep=dict(z=[1]))
    merged = class_config(Child, given)
    merged['deep']['z'].append(2)
    merged['items'].append(3)
    assert given == dict(deep=dict(z=[1])) and Base.config['items'] == [1, 2]
