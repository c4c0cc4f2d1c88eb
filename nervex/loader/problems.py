"""The list of everything that is wrong with a config, gathered before any of it is raised."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nervex.loader.errors import CompositeStructureError, shortened, shown
from nervex.utils.errors import ConfigError, UnknownNameError, nearest

LONGEST = 2000  # characters of a line


@dataclass(frozen=True)
class _Unknown:
    """A setting that nobody declared. It is worded last, when all declared paths are known."""

    path: str
    value: Any
    known: tuple[str, ...]
    owner: str
    note: str

    def words(self, everywhere: set[str]) -> str:
        parent, _, key = self.path.rpartition('.')
        near = nearest(key, self.known)
        if near is None:  # perhaps it is a setting of another section, or of another level
            places = {path.rpartition('.')[2]: path for path in sorted(everywhere, reverse=True)}
            near = places.get(nearest(key, places) or '')
        hint = f"; did you mean '{near}'?" if near else ';'
        where = 'here' if parent else 'at the top'
        path = shortened(' '.join(self.path.splitlines()), LONGEST // 2)
        accepts = ', '.join(sorted(self.known)) or 'nothing'
        if self.note:
            return f'{path}: got {shown(self.value)}, but {self.owner} does not read it: {self.note}'
        return f'{path}: unknown setting{hint} got {shown(self.value)}; {self.owner} accepts {where}: {accepts}'


class Problems:
    """
    Overview:
        Collects one entry per mistake, each with the path of the setting.
    Interfaces:
        add, bad_value, unknown, about, lines, raise_if_any
    """

    def __init__(self) -> None:
        self._entries: list[str | _Unknown] = []
        self.declared_paths: set[str] = set()
        self.notes: dict[str, str] = {}  # by path: what to say where a setting is not known there

    def __len__(self) -> int:
        return len(self._entries)

    def about(self, path: str) -> bool:
        """Whether there is a problem at this path, or below it, already."""
        starts = (f'{path}:', f'{path}.')
        return any((e if isinstance(e, str) else f'{e.path}:').startswith(starts) for e in self._entries)

    def add(self, path: str, text: str) -> None:
        """A mistake in words."""
        entry = shortened(' '.join((f'{path}: {text}' if path else text).splitlines()), LONGEST)
        if entry not in self._entries:
            self._entries.append(entry)

    def bad_value(self, path: str, value: Any, error: Exception, what: str = '', remedy: str = '') -> None:
        """A value that a loader refused; ``what`` is the whole rule in words, where it is known."""
        if isinstance(error, UnknownNameError):
            self.add(path, str(error))
        elif isinstance(error, CompositeStructureError):
            for where, child in error.flatten(f'{path}.'):
                self.add(where, _text(child))
        elif what:
            self.add(path, f'got {shown(value)}, must be {what}{getattr(error, "hint", "")}{remedy}')
        else:
            self.add(path, f'got {shown(value)}; {_text(error)}')

    def unknown(self, path: str, value: Any, known: Iterable[str], owner: str) -> None:
        """A setting that ``owner`` does not declare."""
        self._entries.append(_Unknown(path, value, tuple(known), owner, self.notes.get(path, '')))

    def lines(self) -> list[str]:
        """One line per mistake."""
        return [e if isinstance(e, str) else e.words(self.declared_paths) for e in self._entries]

    def raise_if_any(self) -> None:
        """One ConfigError with all of them."""
        if self._entries:
            raise ConfigError(self.lines())


def _text(error: Exception) -> str:
    return str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
