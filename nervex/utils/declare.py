"""
Settings, each declared once, beside the code that reads it: its default, what it may be, and one line of meaning.

::

    config = settings(
        learn=dict(
            train_step=setting(1, 'int >= 1', 'updates per round of collecting'),
            batch_size=32,  # declared by a base class: only the default is another one here
        ),
    )

``config`` is then a plain nested dict of defaults, ``Cls.config['learn']['train_step'] == 1``; the declarations stand
behind it, and are inherited key by key. A plain ``config = dict(...)`` declares defaults without more: their types are
the checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nervex.utils.class_config import merge_config, plain_copy


class _Unset:
    def __repr__(self) -> str:
        return 'UNSET'


#: The default of a setting that has none.
UNSET: Any = _Unset()


@dataclass(frozen=True)
class Setting:
    """
    Overview:
        One setting.
    Arguments:
        - default (:obj:`Any`): UNSET for none
        - check (:obj:`Any`): what it may be: words as ``nervex.loader.rules`` reads them, a Loader, a type, None for
            the type of the default, or what ``settings`` made: a section, where a subclass gives it defaults
        - meaning (:obj:`str`): one line
        - same_as (:obj:`str`): path of the setting that says the same: what is given for one of them holds for both
        - needed (:obj:`bool | None`): of one without a default: True: it must be given; False: it may be; None: it
            exists only in subclasses that give it a default
    """

    default: Any = UNSET
    check: Any = None
    meaning: str = ''
    same_as: str = ''
    needed: bool | None = None


@dataclass
class Section:
    """
    Overview:
        The settings of a class, or a nested dict of them.
    Arguments:
        - owner (:obj:`str`): the class, for messages
        - entries (:obj:`dict`): name -> Setting or Section
        - is_open (:obj:`bool`): settings that are not declared are accepted
        - is_plain (:obj:`bool`): nobody declared more than defaults; if it is empty, too, it is open
    """

    owner: str
    entries: dict[str, Setting | Section] = field(default_factory=dict)
    is_open: bool = False
    is_plain: bool = True

    def known(self) -> dict[str, Setting | Section]:
        """The entries that a config may give."""
        return {key: entry for key, entry in self.entries.items() if self.is_open or _exists(entry)}

    def defaults(self) -> dict[str, Any]:
        """A new nested dict of all defaults."""
        return {
            key: entry.defaults() if isinstance(entry, Section) else plain_copy(entry.default)
            for key, entry in self.entries.items()
            if _exists(entry) and (isinstance(entry, Section) or entry.default is not UNSET)
        }

    def at(self, path: str) -> Setting | Section | None:
        """What exists at ``a.b.c``, or None."""
        node: Setting | Section | None = self
        for key in path.split('.') if path else ():
            node = node.entries.get(key) if isinstance(node, Section) else None
        return node if node is not None and _exists(node) else None

    def leaves(self, prefix: str = '', hidden: bool = False) -> Iterator[tuple[str, Setting]]:
        """Pairs (dotted path, setting), in the order of declaration; on request also what no default makes exist."""
        for key, entry in (self.entries if hidden else self.known()).items():
            if isinstance(entry, Section):
                yield from entry.leaves(f'{prefix}{key}.', hidden)
            else:
                yield f'{prefix}{key}', entry

    def declare(self, config: Mapping[str, Any]) -> None:
        """Add what ``config`` says: a dict of defaults, or what ``settings`` made."""
        declared = config.declared if isinstance(config, _Settings) else None
        self._declare(config if declared is None else declared, declared is None)

    def _declare(self, config: Mapping[str, Any], is_plain: bool) -> None:
        self.is_plain &= is_plain
        old_type, new_type = self.entries.get('type'), config.get('type', UNSET)
        new_type = new_type.default if isinstance(new_type, Setting) else new_type
        if (
            isinstance(old_type, Setting)
            and old_type.default is not UNSET
            and new_type not in (UNSET, old_type.default)
        ):
            self._forget_defaults()
        for key, value in config.items():
            old = self.entries.get(key)
            if isinstance(value, Setting):
                if is_plain:
                    raise TypeError(f'{self.owner}.config: {key} is a setting(...); write config = settings(...)')
                self.entries[key] = value
            elif isinstance(value, _Settings):
                self._section(key)._declare(value.declared, is_plain=False)
            elif isinstance(value, Mapping) and isinstance(old, Setting) and isinstance(old.check, _Settings):
                self.entries[key] = self.section_of(old)
                self._section(key)._declare(value, is_plain)
            elif isinstance(old, Setting):
                is_more = isinstance(old.default, Mapping) and isinstance(value, Mapping)
                self.entries[key] = replace(old, default=merge_config(old.default, value) if is_more else value)
            elif isinstance(value, Mapping):
                self._section(key)._declare(value, is_plain)
            else:
                self.entries[key] = Setting(value)

    def section_of(self, entry: Setting) -> Section:
        """The section that a setting is whose check is one."""
        section = Section(self.owner, is_open=self.is_open)
        section.declare(entry.check)
        return section

    def _section(self, key: str) -> Section:
        found = self.entries.get(key)
        if not isinstance(found, Section):
            found = self.entries[key] = Section(self.owner)
        return found

    def _forget_defaults(self) -> None:
        """Another ``type`` has other settings; of the old ones only the checks stay."""
        for key, entry in self.entries.items():
            if isinstance(entry, Section):
                entry._forget_defaults()
            else:
                self.entries[key] = replace(entry, default=UNSET)

    def open_up(self) -> None:
        """Accept settings that are not declared, here and below."""
        self.is_open = True
        for entry in self.entries.values():
            if isinstance(entry, Section):
                entry.open_up()


class _Settings(dict):
    """A dict of defaults that remembers its declarations. Its copies are plain dicts."""

    declared: dict[str, Any]

    def __reduce__(self) -> tuple:
        return dict, (dict(self),)


#: How a ``config = settings(...)`` spells it.
setting = Setting


def one_of(*values: Any) -> str:
    """The check of a setting that is one of these."""
    return ' | '.join(map(repr, values))


def settings(**entries: Any) -> dict[str, Any]:
    """
    Overview:
        The ``config`` of a class: a nested dict of defaults, with the declarations behind it. An entry is a
        ``setting(...)``, a dict of entries, or a plain value: the default of what a base class declares.
    """
    section = Section('settings')
    section._declare(entries, is_plain=False)
    made = _Settings(section.defaults())
    made.declared = entries
    return made


def _exists(entry: Setting | Section) -> bool:
    """Whether a config may give it."""
    return isinstance(entry, Section) or entry.needed is not None or entry.default is not UNSET


def declared_by(cls: Any, own_only: bool = True, common: Mapping[str, Any] | None = None) -> Section:
    """
    Overview:
        What a class declares: its ``config`` and those of its bases.
    Arguments:
        - common (:obj:`Mapping | None`): a ``config`` that lies below all of them
        - own_only (:obj:`bool`): a class that writes no ``config`` of its own keeps its section open, since its author
          may read any setting; if False, what its bases write closes it
    """
    section = Section(getattr(cls, '__name__', str(cls)))
    section.declare(common or {})
    bases = reversed(cls.__mro__) if isinstance(cls, type) else [cls]
    for base in bases:
        section.declare(vars(base).get('config') or {} if isinstance(base, type) else getattr(base, 'config', {}))
        if 'config_rules' in vars(base if isinstance(base, type) else type(base)):
            raise TypeError(f'{section.owner}.config_rules: checks stand beside the defaults; config = settings(...)')
    writers = (cls,) if own_only else getattr(cls, '__mro__', ())
    if not (isinstance(cls, type) and any('config' in vars(writer) for writer in writers)):
        section.open_up()
    return section


def declared_config(cls: type) -> dict[str, Any]:
    """The ``config`` dicts of a class and its bases, merged base first."""
    return declared_by(cls).defaults()


def class_config(cls: type, cfg: Mapping[str, Any] | None) -> dict[str, Any]:
    """What an object of ``cls`` runs with: the declared defaults with the user's settings on top."""
    return merge_config(declared_config(cls), cfg or {})
