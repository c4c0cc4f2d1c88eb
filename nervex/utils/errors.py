"""Error classes of the framework, and the did-you-mean text that they share."""

import difflib
from collections.abc import Iterable


class NervexError(Exception):
    """Root of the framework's own errors: catch this to catch them all."""


class ConfigError(NervexError, ValueError):
    """
    Overview:
        Everything that is wrong with a config, found in one pass. ``problems`` holds one line per mistake.
    """

    def __init__(self, problems: str | Iterable[str]) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__('\n'.join(self.problems))


class UnknownNameError(NervexError, KeyError):
    """A name that a registry, a buffer or a plugin table does not hold; the text names the nearest ones."""

    def __str__(self) -> str:  # KeyError would show the repr of the text
        return str(self.args[0]) if self.args else ''


class DuplicateNameError(NervexError, ValueError):
    """Two things were registered under one name."""


class ExtraMissingError(NervexError, ImportError):
    """An optional package is needed and not installed; the text says which extra brings it."""


class EnvError(NervexError, RuntimeError):
    """An environment failed for good: names the env, the phase and its own traceback."""


class CheckpointError(NervexError, ValueError):
    """A checkpoint file is missing, damaged, foreign or of another model."""


class NothingThereError(CheckpointError, FileNotFoundError):
    """A path that was given leads to nothing of the kind that is needed, or none was given: a matter of usage."""


class TrainingError(NervexError, RuntimeError):
    """Training cannot go on, e.g. because a loss is not finite."""


def nearest(name: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """
    Overview:
        The known name closest to a misspelt one.
    Arguments:
        - alike (:obj:`float`): how much of it must be the same
    Returns:
        - near (:obj:`str | None`): None when nothing is similar enough to be worth a suggestion
    """
    names = [str(k) for k in known]
    found = difflib.get_close_matches(str(name), names, n=1, cutoff=alike)
    if found:
        return found[0]
    folded = {n.lower().replace('-', '_'): n for n in names}
    return folded.get(str(name).lower().replace('-', '_'))


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """
    Overview:
        The sentence for an unknown name: what it is, the nearest known name, and all known ones.
    Arguments:
        - what (:obj:`str`): what the name should name, e.g. ``'policy'``
    """
    names = sorted(str(k) for k in known)
    near = nearest(name, names)
    hint = f"; did you mean '{near}'?" if near else '.'
    return f"unknown {what} '{name}'{hint} Known: {', '.join(names) or 'none'}"
