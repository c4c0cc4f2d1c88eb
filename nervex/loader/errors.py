"""What loaders raise: one failed check in words, and errors that gather what is wrong with all parts of a structure."""

from collections.abc import Callable, Iterable
from typing import Any


def mismatch(kind: type[Exception], value: Any, what: str, hint: str = '') -> Exception:
    """
    Overview:
        The error of one failed check: the value got and the rule. ``hint`` (a suggestion) stays readable as an
        attribute, so that a caller who words the rule in its own way can keep it.
    """
    error = kind(f'got {shown(value)}, must be {what}{hint}')
    error.hint = hint  # type: ignore[attr-defined]
    return error


def shown(value: Any, limit: int = 80) -> str:
    """``repr`` of a value, cut where it would fill the screen."""
    try:
        text = repr(value)
    except Exception as error:  # an int of too many digits, say
        text = f'<{type(value).__name__} that cannot be shown: {error}>'
    return shortened(text, limit)


def shortened(text: str, limit: int) -> str:
    """The beginning of a text that is longer."""
    return text if len(text) <= limit else text[: limit - 3] + '...'


class CompositeStructureError(ValueError):
    """
    Overview:
        Several children of one value failed. ``children`` holds the pairs (where, error), in order.
    """

    def __init__(self, children: Iterable[tuple[Any, Exception]]) -> None:
        self.children = list(children)
        super().__init__('; '.join(f'{where}: {error}' for where, error in self.flatten()))

    def flatten(self, prefix: str = '') -> list[tuple[str, Exception]]:
        """All single errors below this one, each with its dotted path."""
        flat: list[tuple[str, Exception]] = []
        for where, error in self.children:
            path = f'{prefix}{where}'
            flat += error.flatten(f'{path}.') if isinstance(error, CompositeStructureError) else [(path, error)]
        return flat


class CollectionError(CompositeStructureError):
    """Items of a collection failed; ``errors`` holds the pairs (index, error)."""

    @property
    def errors(self) -> list[tuple[int, Exception]]:
        """The errors of the parts, by their places."""
        return self.children


class DictError(CompositeStructureError):
    """Entries of a ``dict_`` failed; ``errors`` maps each key to its error."""

    @property
    def errors(self) -> dict[str, Exception]:
        """The errors of the parts, by their places."""
        return dict(self.children)


class MappingError(CompositeStructureError):
    """Keys or values of a mapping failed."""

    def __init__(self, key_errors: list[tuple[Any, Exception]], value_errors: list[tuple[Any, Exception]]) -> None:
        self._key_errors, self._value_errors = key_errors, value_errors
        super().__init__([(f'key {key!r}', e) for key, e in key_errors] + value_errors)

    def key_errors(self) -> list[tuple[Any, Exception]]:
        """Pairs (key, error) of the keys that failed."""
        return self._key_errors

    def value_errors(self) -> list[tuple[Any, Exception]]:
        """Pairs (key, error) of the values that failed."""
        return self._value_errors

    def errors(self) -> list[tuple[Any, Exception]]:
        """Both, keys first."""
        return self._key_errors + self._value_errors


def tried(
    jobs: Iterable[tuple[Any, Callable[[Any], Any], Any]],
) -> tuple[list[Any], list[tuple[Any, Exception]]]:
    """What every (where, loader, value) answers, and the pairs (where, error) of those that fail."""
    loaded, errors = [], []
    for where, loader, value in jobs:
        try:
            loaded.append(loader(value))
        except Exception as problem:
            errors.append((where, problem))
    return loaded, errors
