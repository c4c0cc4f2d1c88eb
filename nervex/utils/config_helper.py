"""Reading of YAML configs, and merging of nested dicts."""

import copy
import re
from typing import Any

import yaml
from easydict import EasyDict

from nervex.utils.class_config import other_type
from nervex.utils.errors import ConfigError

LONGEST_NUMBER = 300  # characters; a longer scalar is text, which no pattern has to be tried on
MOST_TEXT = 1_000_000  # characters of a config
MOST_MERGED = 10_000  # keys that '<<' may bring into one mapping


class ConfigYamlLoader(yaml.SafeLoader):
    """
    Overview:
        safe_load with the scalars of YAML 1.2: ``1e-4`` is a number, ``off`` is a word, and so is a date; and a key
        given twice is refused.
    """

    def resolve(self, kind: type, value: Any, implicit: Any) -> str:
        """The tag of a node."""
        if kind is yaml.ScalarNode and len(value) > LONGEST_NUMBER:
            return self.DEFAULT_SCALAR_TAG
        return super().resolve(kind, value, implicit)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Replace '<<' by what it brings."""
        super().flatten_mapping(node)
        if len(node.value) > MOST_MERGED:
            raise yaml.constructor.ConstructorError(None, None, "'<<' brings too many keys", node.start_mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        """A dict whose keys stand once."""
        seen: set = set()
        for key_node, _ in node.value:
            if key_node.tag == 'tag:yaml.org,2002:merge':
                continue  # what '<<' brings may be given again
            key = self.construct_object(key_node, deep=True)
            try:
                twice = key in seen
                seen.add(key)
            except TypeError:
                continue  # an unhashable key: the base class words the error
            if twice:
                problem = f'the key {key!r} is given twice'
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
        return super().construct_mapping(node, deep)


_BOOL, _TIME = 'tag:yaml.org,2002:bool', 'tag:yaml.org,2002:timestamp'
ConfigYamlLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_BOOL, _TIME)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
ConfigYamlLoader.add_implicit_resolver(_BOOL, re.compile('^(?:true|True|TRUE|false|False|FALSE)$'), list('tTfF'))
FLOAT = re.compile(r"""^[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)$""")
ConfigYamlLoader.add_implicit_resolver('tag:yaml.org,2002:float', FLOAT, list('-+0123456789.'))


def load_yaml(text: str, where: str = '') -> Any:
    """
    Overview:
        What a YAML text holds; a ConfigError, with line and column, where it is none.
    Arguments:
        - where (:obj:`str`): the path of the file, for messages
    """
    mark: Any = None
    problem: str | None = ''
    if len(text) > MOST_TEXT:
        problem = f'{len(text)} characters are too many for a config'
    try:
        if not problem:
            return yaml.load(text, Loader=ConfigYamlLoader)
    except yaml.MarkedYAMLError as error:
        mark, problem = error.problem_mark or error.context_mark, error.problem or error.context
    except RecursionError:
        problem = 'it is nested too deep'
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        problem = str(error)  # of Python's own conversions, such as int('x') of '!!int x'
    place = where + (f':{mark.line + 1}:{mark.column + 1}' if mark and where else '')
    raise ConfigError((f'{place}: ' if place else '') + 'not valid YAML: ' + ' '.join(str(problem).split()))


def read_config(path: str) -> EasyDict:
    """Read a YAML file, whose tags make no objects, as an EasyDict."""
    with open(path, encoding='utf-8') as f:
        found = load_yaml(f.read(), path)
    if not isinstance(found, dict):
        raise ConfigError(f"'{path}' must hold a mapping at its top level, found {type(found).__name__}")
    return EasyDict(found)


def deep_merge_dicts(original: dict | None, new_dict: dict | None) -> dict:
    """
    Overview:
        A new dict with the keys of both; where both have a dict they are merged, else ``new_dict`` wins. Neither is
        changed.
    """
    merged = copy.deepcopy(original or {})
    return deep_update(merged, copy.deepcopy(new_dict or {}), new_keys_allowed=True)


def deep_update(
    original: dict,
    new_dict: dict,
    new_keys_allowed: bool = False,
    whitelist: list[str] | None = None,
    override_all_if_type_changes: list[str] | None = None,
    _path: str = '',
) -> dict:
    """
    Overview:
        Merge ``new_dict`` into ``original`` in place, and return it.
    Arguments:
        - new_keys_allowed (:obj:`bool`): whether keys that ``original`` does not have may come in, at any depth
        - whitelist (:obj:`list[str] | None`): top-level keys below which new keys are allowed anyway
        - override_all_if_type_changes (:obj:`list[str] | None`): top-level keys of dicts that are replaced as a \
            whole when their ``type`` differs
    """
    for key, value in new_dict.items():
        where = f'{_path}{key}'
        if key not in original and not new_keys_allowed:
            raise ConfigError(f"'{where}' is not a known key; known here: {', '.join(map(str, original)) or 'none'}")
        old = original.get(key)
        replaceable = key in (override_all_if_type_changes or ())
        if isinstance(old, dict) and isinstance(value, dict) and not (replaceable and other_type(old, value)):
            deep_update(old, value, new_keys_allowed or key in (whitelist or ()), _path=f'{where}.')
        else:
            original[key] = value
    return original
