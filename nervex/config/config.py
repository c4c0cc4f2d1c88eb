"""Configs from files: ``.py`` with ``main_config``, or YAML; a file's mistakes are ConfigErrors with file and line."""

import ast
import glob
import importlib.util
import os
import traceback
from typing import Any

from easydict import EasyDict

from nervex.config.tree import readable
from nervex.loader.problems import Problems
from nervex.utils.class_config import merge_config
from nervex.utils.config_helper import load_yaml
from nervex.utils.errors import ConfigError, nearest, unknown_name

SUFFIXES = ('.py', '.yaml', '.yml')


class Config:
    """
    Overview:
        A dict of settings together with where it came from.
    Arguments:
        - cfg_dict (:obj:`dict | None`): the settings
        - cfg_text (:obj:`str | None`): the text of the file
        - filename (:obj:`str | None`): its path
    """

    def __init__(self, cfg_dict: dict | None = None, cfg_text: str | None = None, filename: str | None = None) -> None:
        if cfg_dict is None:
            cfg_dict = {}
        if not isinstance(cfg_dict, dict):
            raise TypeError(f'cfg_dict: got {type(cfg_dict).__name__}, must be a dict')
        if cfg_text is None and filename is not None:
            cfg_text = _read_text(filename)
        self.cfg_dict, self.text, self.filename = cfg_dict, cfg_text or '', filename

    @staticmethod
    def file_to_dict(filename: str | os.PathLike) -> 'Config':
        """
        Overview:
            Run a ``.py`` config in a namespace of its own (or read a YAML one).
        Returns:
            - config (:obj:`Config`): ``cfg_dict`` holds the file's names without dunders, e.g. ``['main_config']``
        """
        path = find_config(filename)
        names: dict[str, Any] = python_globals(path) if path.endswith('.py') else {'main_config': read_config(path)}
        return Config(names, filename=path)

    def __getitem__(self, key: str) -> Any:
        if key not in self.cfg_dict:
            raise ConfigError(f"{self.filename or 'config'}: has no '{key}'; it has {', '.join(self.cfg_dict)}")
        return self.cfg_dict[key]

    def __repr__(self) -> str:
        return f'Config({self.filename or "dict"}: {", ".join(map(str, self.cfg_dict))})'


def read_config(path_or_name: str | os.PathLike) -> EasyDict:
    """
    Overview:
        The config in a file, or the built-in config of that name, as it is written: nothing is filled in or checked.
    Arguments:
        - path_or_name (:obj:`str | os.PathLike`): a ``.py`` file with ``main_config``, a ``.yaml`` / ``.yml`` file, or
          a name such as ``cartpole_dqn`` (``nervex -q config`` lists them)
    """
    path = find_config(path_or_name)
    config = _main_config(path, python_globals(path)) if path.endswith('.py') else _read_yaml(path)
    problems = Problems()
    config = readable(config, problems)
    problems.raise_if_any()
    return EasyDict(config)


def find_config(path_or_name: str | os.PathLike) -> str:
    """The file that a config argument means; ConfigError where there is none."""
    path, known = os.path.expanduser(os.fspath(path_or_name)), builtin_configs()
    if path in known:  # has no suffix, so that what lies here under this name is no config, but perhaps its run
        return known[path]
    if os.path.isfile(path):
        if not path.endswith(SUFFIXES):
            raise ConfigError(f'{path}: a config file ends in {", ".join(SUFFIXES)}')
        return path
    if os.path.isdir(path):
        raise ConfigError(f'{path}: is a folder, must be a config file or the name of a built-in config')
    if path.endswith(SUFFIXES) or os.sep in path:
        raise ConfigError(_no_file(path))
    raise ConfigError(unknown_name('config', path, known) + ' (or give the path of a .py or .yaml file)')


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
    except (RecursionError, MemoryError) as error:
        raise ConfigError(f'{path}: does not parse: it is nested too deep') from error
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
    if near is None:
        return f'{path}:{len(source.splitlines())}: no main_config; a .py config assigns its dict to that name'
    return f"{path}:{assigned[near]}: no main_config, but there is '{near}'; write main_config = {near}"


def _read_yaml(path: str) -> dict:
    config = load_yaml(_read_text(path), path)
    if not isinstance(config, dict):
        raise ConfigError(
            f'{path}: holds {"nothing" if config is None else f"a {type(config).__name__}"}, must hold '
            'the sections of a config (env:, policy:, ...)'
        )
    wrapped = config['main_config'] if list(config) == ['main_config'] else None
    return wrapped if isinstance(wrapped, dict) else config


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
    near = nearest(os.path.basename(path), [name for name in os.listdir(folder) if name.endswith(SUFFIXES)])
    return f'{path}: no such file' + (f"; did you mean '{os.path.join(os.path.dirname(path), near)}'?" if near else '')


def builtin_configs() -> dict[str, str]:
    """
    Overview:
        Name -> path of every ``<folder>/entry/*_config.py`` in the installed app_zoo package, sorted by name. The name
        is the file's, without ``_default_config.py`` or ``_config.py``. Nothing is imported.
    """
    spec = importlib.util.find_spec('app_zoo')
    roots = (spec.submodule_search_locations or []) if spec else []
    paths = [
        path
        for root in roots
        for path in sorted(glob.glob(f'{glob.escape(root)}/**/entry/*_config.py', recursive=True))
    ]
    named = {
        os.path.basename(path).removesuffix('_config.py').removesuffix('_default'): path for path in reversed(paths)
    }
    return dict(sorted(named.items()))
