"""The rule of ``learner.hook``: names of one's own, each with a registered type and a position."""

from collections.abc import Mapping
from typing import Any

from nervex.config.tree import get_path
from nervex.loader import CompositeStructureError, Loader, enum, interval, is_type
from nervex.loader.exception import mismatch
from nervex.utils.errors import nearest, unknown_name
from nervex.utils.registry_factory import LEARNER_HOOK_REGISTRY

POSITIONS = ('before_run', 'before_iter', 'after_iter', 'after_run')


def _registered(value: Any) -> Any:
    if not isinstance(value, str):
        raise mismatch(TypeError, value, 'the name of a learner hook')
    if value not in LEARNER_HOOK_REGISTRY:
        raise ValueError(unknown_name('learner hook', value, LEARNER_HOOK_REGISTRY))
    return value


_FIELDS = {
    'name': is_type(str),
    'type': Loader(_registered),
    'priority': is_type(int),
    'position': enum(*POSITIONS),
    'ext_args': is_type(dict),
}
_FREQ = is_type(int) & interval(1)


def _check_hook(name: str, hook: Any) -> None:
    """Raise what is wrong with one hook; None, False and '' leave it out."""
    if hook is None or hook is False or hook == '':
        return
    if not isinstance(hook, Mapping):  # the short form, e.g. save_ckpt_after_iter=1000
        kind = next((name[: -len(position) - 1] for position in POSITIONS if name.endswith(f'_{position}')), None)
        if kind is None:
            ends = ', '.join(f'_{position}' for position in POSITIONS)
            raise mismatch(ValueError, hook, f'a dict with type and position, or the name must end in one of {ends}')
        _registered(kind)
        if kind == 'load_ckpt':
            is_type(str)(hook)
        elif hook is not True and not _FREQ.check(hook):
            raise mismatch(ValueError, hook, f'True or {_FREQ.what}: updates between two calls')
        return
    errors: list[tuple[Any, Exception]] = []
    for key, value in hook.items():
        if key not in _FIELDS:
            near = nearest(str(key), _FIELDS)
            hint = f"; did you mean '{near}'?" if near else ''
            errors.append((key, ValueError(f'unknown setting{hint} A hook has {", ".join(_FIELDS)}')))
            continue
        try:
            _FIELDS[key](value)
        except (TypeError, ValueError) as error:
            errors.append((key, error))
    errors += _unknown_ext_args(hook)
    freq = get_path(hook, 'ext_args.freq', 1)
    if not _FREQ.check(freq):
        errors.append(('ext_args.freq', mismatch(ValueError, freq, _FREQ.what)))
    errors += [(key, KeyError('missing; a hook needs it')) for key in ('type', 'position') if key not in hook]
    if errors:
        raise CompositeStructureError(errors)


def _unknown_ext_args(hook: Mapping) -> list[tuple[Any, Exception]]:
    """What stands in ``ext_args`` and the hook's class, if it says what it takes, does not know."""
    kind, given = hook.get('type'), hook.get('ext_args')
    if not isinstance(given, Mapping) or not isinstance(kind, str) or kind not in LEARNER_HOOK_REGISTRY:
        return []
    known = getattr(LEARNER_HOOK_REGISTRY.get(kind), 'ext_settings', None)
    unknown = [] if known is None else [key for key in given if key not in known]
    return [(f'ext_args.{key}', ValueError(unknown_name(f'setting of {kind}', key, known))) for key in unknown]


def _check_hooks(hooks: Any) -> Any:
    if not isinstance(hooks, Mapping):
        raise mismatch(TypeError, hooks, 'a dict of hooks by name')
    errors: list[tuple[Any, Exception]] = []
    for name, hook in hooks.items():
        try:
            _check_hook(name, hook)
        except (TypeError, ValueError) as error:
            errors.append((name, error))
    if errors:
        raise CompositeStructureError(errors)
    return hooks


HOOKS = Loader(_check_hooks)
