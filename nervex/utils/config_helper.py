"""Merging of nested dicts, and reading of YAML configs."""

import copy

import yaml
from easydict import EasyDict

from nervex.utils.errors import ConfigError


def read_config(path: str) -> EasyDict:
    """Read a YAML file (``yaml.safe_load``) as an EasyDict."""
    with open(path, encoding='utf-8') as f:
        try:
            found = yaml.safe_load(f)
        except yaml.YAMLError as e:
            raise ConfigError(f"'{path}' is not valid YAML: {e}") from e
    if not isinstance(found, dict):
        raise ConfigError(f"'{path}' must hold a mapping at its top level, found {type(found).__name__}")
    return EasyDict(found)


def deep_merge_dicts(original: dict | None, new_dict: dict | None) -> dict:
    """
    Overview:
        A new dict with the keys of both; where both have a dict they are merged, else ``new_dict`` wins. Neither is
        changed.
    """
    original, new_dict = original or {}, new_dict or {}
    merged = copy.deepcopy(original)
    return deep_update(merged, copy.deepcopy(new_dict), new_keys_allowed=True)


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
        if isinstance(old, dict) and isinstance(value, dict) and not (replaceable and _type_changes(old, value)):
            deep_update(old, value, new_keys_allowed or key in (whitelist or ()), _path=f'{where}.')
        else:
            original[key] = value
    return original


def _type_changes(old: dict, new: dict) -> bool:
    return 'type' in new and 'type' in old and old['type'] != new['type']
