"""Loaders about strings."""

import re
from typing import Any

from nervex.loader.base import Loader
from nervex.loader.exception import mismatch
from nervex.utils.errors import nearest


def enum(*items: Any, case_sensitive: bool = True) -> Loader:
    """
    Overview:
        One of ``items``, mostly strings, else ValueError. Without ``case_sensitive`` the answer is the item as it is
        written here. True and False are not taken for 1 and 0.
    """

    def key_of(item: Any) -> Any:
        return item.lower() if isinstance(item, str) and not case_sensitive else (isinstance(item, bool), item)

    allowed = {key_of(item): item for item in items}
    what = ('one of ' if len(items) > 1 else '') + ', '.join(repr(item) for item in items)

    def load(value: Any) -> Any:
        try:
            known = key_of(value) in allowed
        except TypeError:  # a list, say, cannot be looked up
            known = False
        if known:
            return allowed[key_of(value)]
        near = nearest(value, items) if isinstance(value, str) else None
        raise mismatch(ValueError, value, what, f"; did you mean '{near}'?" if near else '')

    return Loader(load, what)


def _pattern(regexp: str | re.Pattern) -> re.Pattern:
    if not isinstance(regexp, (str, re.Pattern)):
        raise TypeError(f'got {regexp!r}, must be a regular expression: a str or a compiled pattern')
    return re.compile(regexp)


def rematch(regexp: str | re.Pattern) -> Loader:
    """The whole string matches; answers it unchanged."""
    pattern = _pattern(regexp)
    what = f'a str that matches {pattern.pattern!r}'

    def load(value: Any) -> str:
        if not isinstance(value, str):
            raise mismatch(TypeError, value, what)
        if not pattern.fullmatch(value):
            raise mismatch(ValueError, value, what)
        return value

    return Loader(load, what)


def regrep(regexp: str | re.Pattern, group: int | str = 0) -> Loader:
    """The first match inside the string: that group of it."""
    pattern = _pattern(regexp)
    what = f'a str that contains {pattern.pattern!r}'

    def load(value: Any) -> str:
        if not isinstance(value, str):
            raise mismatch(TypeError, value, what)
        found = pattern.search(value)
        if not found:
            raise mismatch(ValueError, value, what)
        return found.group(group)

    return Loader(load, what)
