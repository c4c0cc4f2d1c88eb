"""Configs from files: ``.py`` with ``main_config``, or YAML; a file's mistakes are ConfigErrors with file and line."""

import ast
import os
import re
import traceback
from typing import Any

import yaml
from easydict import EasyDict

from nervex.config.builtin import builtin_configs
from nervex.config.tree import plain_copy
from nervex.utils.class_config import merge_config
from nervex.utils.errors import ConfigError, nearest, unknown_name

SUFFIXES = ('.py', '.yaml', '.yml')


class ConfigYamlLoader(yaml.SafeLoader):
    """
    Overview:
        safe_load with the scalars of YAML 1.2: ``1e-4`` is a number and ``off`` is a word; and a key given twice is
        refused.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        """A dict whose keys are strings and stand once."""
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


BOOL = 'tag:yaml.org,2002:bool'
ConfigYamlLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != BOOL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
ConfigYamlLoader.add_implicit_resolver(BOOL, re.compile('^(?:true|True|TRUE|false|False|FALSE)$'), list('tTfF'))
FLOAT = re.compile(r"""^[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)$""")
ConfigYamlLoader.add_implicit_resolver('tag:yaml.org,2002:float', FLOAT, list('-+0123456789.'))


def read_config(path_or_name: str | os.PathLike) -> EasyDict:
    """
    Overview:
        The config in a file, or the built-in config of that name, as it is written: nothing is filled in or checked.
    Arguments:
        - path_or_name (:obj:`str | os.PathLike`): a ``.py`` file with ``main_config``, a ``.yaml`` / ``.yml`` file, or
          a name such as ``cartpole_dqn`` (``nervex -q config`` lists them)
    """
    path = find_config(path_or_name)
    if path.endswith('.py'):
        config = _main_config(path, python_globals(path))
    else:
        config = _read_yaml(path)
    return EasyDict(plain_copy(config))


def find_config(path_or_name: str | os.PathLike) -> str:
    """The file that a config argument means; ConfigError where there is none."""
    path = os.path.expanduser(os.fspath(path_or_name))
    if os.path.isfile(path):
        if not path.endswith(SUFFIXES):
            raise ConfigError(f'{path}: a config file ends in {", ".join(SUFFIXES)}')
        return path
    if os.path.isdir(path):
        raise ConfigError(f'{path}: is a folder, must be a config file or the name of a built-in config')
    if path.endswith(SUFFIXES) or os.sep in path:
        raise ConfigError(_no_file(path))
    known = builtin_configs()
    if path not in known:
        raise ConfigError(unknown_name('config', path, known) + ' (or give the path of a .py or .yaml file)')
    return known[path]


def python_globals(path: str) -> dict[str, Any]:
    """Run a ``.py`` config in a namespace of its own; answers that namespace without its dunder names."""
    source = _read_text(path)
    namespace: dict[str, Any] = {'__name__': '__nervex_config__', '__file__': os.path.abspath(path)}
    try:
        code = compile(source, path, 'exec')
    except (SyntaxError, ValueError) as error:
        line = getattr(error, 'lineno', None) or 1
        column = getattr(error, 'offset', None) or 1
        raise ConfigError(f'{path}:{line}:{column}: does not parse: {getattr(error, "msg", error)}') from error
    try:
        exec(code, namespace)
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        raise ConfigError(f'{path}:{lines[-1] if lines else 1}: {type(error).__name__}: {error}') from error
    return {key: value for key, value in namespace.items() if not (key.startswith('__') and key.endswith('__'))}


def _main_config(path: str, namespace: dict[str, Any]) -> dict:
    if 'main_config' not in namespace:
        raise ConfigError(_no_main_config(path))
    config = namespace['main_config']
    if not isinstance(config, dict):
        raise ConfigError(f'{path}: main_config is a {type(config).__name__}, must be a dict')
    create = namespace.get('create_config')  # the names of env, manager and policy in a second dict
    return merge_config(config, create) if isinstance(create, dict) else config


def _no_main_config(path: str) -> str:
    source = _read_text(path)
    assigned = {}
    for node in ast.parse(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, 'target', None)]
        assigned.update({t.id: t.lineno for t in targets if isinstance(t, ast.Name)})
    near = nearest('main_config', assigned) or next((name for name in assigned if 'config' in name), None)
    last = source.count('\n') + (not source.endswith('\n'))
    if near is None:
        return f'{path}:{last}: no main_config; a .py config assigns its dict to that name'
    return f"{path}:{assigned[near]}: no main_config, but there is '{near}'; write main_config = {near}"


def _read_yaml(path: str) -> dict:
    try:
        config = yaml.load(_read_text(path), Loader=ConfigYamlLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f'{path}:{mark.line + 1}:{mark.column + 1}' if mark else path
        raise ConfigError(f'{where}: not valid YAML: {error.problem or error.context}') from error
    except yaml.YAMLError as error:
        raise ConfigError(f'{path}: not valid YAML: {error}') from error
    if not isinstance(config, dict):
        raise ConfigError(
            f'{path}: holds {"nothing" if config is None else f"a {type(config).__name__}"}, must hold '
            'the sections of a config (env:, policy:, ...)'
        )
    wrapped = config['main_config'] if list(config) == ['main_config'] else None
    return wrapped if isinstance(wrapped, dict) else config


def parse_value(text: str) -> Any:
    """A value from the command line, read as YAML: ``3e-4``, ``true``, ``null``, ``[64, 64]``, ``exp``."""
    return yaml.load(text, Loader=ConfigYamlLoader) if text.strip() else text.strip()


def _read_text(path: str) -> str:
    try:
        with open(path, encoding='utf-8') as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise ConfigError(f'{path}: is not a UTF-8 text file (byte {error.start})') from error
    except OSError as error:
        raise ConfigError(f'{path}: cannot be read: {error.strerror}') from error


def _no_file(path: str) -> str:
    folder = os.path.dirname(path) or '.'
    if not os.path.isdir(folder):
        return f"{path}: no such file; the folder '{folder}' does not exist"
    names = [name for name in os.listdir(folder) if name.endswith(SUFFIXES)]
    near = nearest(os.path.basename(path), names)
    return f'{path}: no such file' + (f"; did you mean '{os.path.join(os.path.dirname(path), near)}'?" if near else '')
