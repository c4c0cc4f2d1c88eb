"""``Config``: the contents of a config file."""

import os
from typing import Any

from nervex.config.read import find_config, python_globals, read_config
from nervex.utils.errors import ConfigError


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
            with open(filename, encoding='utf-8') as file:
                cfg_text = file.read()
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
