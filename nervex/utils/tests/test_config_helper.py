import pytest

from nervex.utils.config_helper import deep_merge_dicts, deep_update, read_config
from nervex.utils.errors import ConfigError


def test_merge_goes_deep_and_changes_neither():
    a, b = {'x': {'p': 1, 'q': [1]}, 'y': 2}, {'x': {'p': 9, 'r': None}, 'z': {}}
    merged = deep_merge_dicts(a, b)
    assert merged == {'x': {'p': 9, 'q': [1], 'r': None}, 'y': 2, 'z': {}}
    merged['x']['q'].append(5)
    assert a == {'x': {'p': 1, 'q': [1]}, 'y': 2} and b['x'] == {'p': 9, 'r': None}
    assert deep_merge_dicts(None, None) == {} and deep_merge_dicts(a, None) == a


def test_a_dict_replaces_a_number_and_the_other_way():
    assert deep_merge_dicts({'x': 1}, {'x': {'a': 1}}) == {'x': {'a': 1}}
    assert deep_merge_dicts({'x': {'a': 1}}, {'x': None}) == {'x': None}


def test_update_refuses_unknown_keys_with_their_path_unless_allowed():
    with pytest.raises(ConfigError, match=r"'x\.q' is not a known key; known here: p"):
        deep_update({'x': {'p': 1}}, {'x': {'q': 2}})
    assert deep_update({'x': {'p': 1}}, {'x': {'q': 2}}, whitelist=['x']) == {'x': {'p': 1, 'q': 2}}
    assert deep_update({}, {'q': 2}, new_keys_allowed=True) == {'q': 2}


def test_update_replaces_a_section_whose_type_changes():
    old = {'x': {'type': 'a', 'p': 1}}
    new = deep_update(old, {'x': {'type': 'b', 'q': 1}}, override_all_if_type_changes=['x'])
    assert new == {'x': {'type': 'b', 'q': 1}}
    same = deep_update({'x': {'type': 'a', 'p': 1}}, {'x': {'type': 'a', 'p': 2}}, override_all_if_type_changes=['x'])
    assert same == {'x': {'type': 'a', 'p': 2}}


def test_read_config(tmp_path):
    file = tmp_path / 'c.yaml'
    file.write_text('policy: {learn: {lr: 0.1}}')
    assert read_config(str(file)).policy.learn.lr == 0.1
    file.write_text('- 1')
    with pytest.raises(ConfigError, match='mapping'):
        read_config(str(file))
    file.write_text('a: [')
    with pytest.raises(ConfigError, match='not valid YAML'):
        read_config(str(file))
    file.write_text('a: !!python/object/apply:os.getcwd []')
    with pytest.raises(ConfigError, match='not valid YAML'):
        read_config(str(file))
