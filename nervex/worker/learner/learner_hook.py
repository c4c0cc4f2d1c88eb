"""Learner hooks: code that runs before or after the run, or before or after an update."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from nervex.utils import LEARNER_HOOK_REGISTRY

logger = logging.getLogger(__name__)
POSITIONS = ('before_run', 'before_iter', 'after_iter', 'after_run')
Hooks = dict[str, list['LearnerHook']]


class LearnerHook:
    """
    Overview:
        One action at one position. It runs when the learner's iteration is a multiple of ``freq``; of several at one
        position the lower ``priority`` runs first.
    Arguments:
        - name (:obj:`str`): for messages
        - priority (:obj:`int`): order within the position
        - position (:obj:`str`): before_run, before_iter, after_iter or after_run
        - ext_args (:obj:`dict | None`): ``freq`` (updates between two calls) and what the hook itself takes
    """

    #: what ``ext_args`` may hold; None: anything, the hook reads it
    ext_settings: tuple[str, ...] | None = None

    def __init__(self, name: str, priority: int, position: str, ext_args: Mapping[str, Any] | None = None) -> None:
        if position not in POSITIONS:
            raise ValueError(f'hook {name}: position {position!r} is not one of {", ".join(POSITIONS)}')
        self.name, self.priority, self.position = name, priority, position
        self.ext_args = dict(ext_args or {})
        self.freq = int(self.ext_args.get('freq', 1))
        if self.freq < 1:
            raise ValueError(f'hook {name}: freq is {self.freq}, must be an int > 0')

    def __call__(self, learner: Any) -> None:
        raise NotImplementedError(f'{type(self).__name__}.__call__')

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.name}, {self.position}, priority={self.priority}, freq={self.freq})'


def register_learner_hook(name: str, cls: type[LearnerHook]) -> None:
    """Make a hook type known to configs: ``learner.hook.<any name>.type``."""
    if not (isinstance(cls, type) and issubclass(cls, LearnerHook)):
        raise TypeError(f'learner hook {name!r}: got {cls!r}, must be a subclass of LearnerHook')
    LEARNER_HOOK_REGISTRY.register(name, cls)


@LEARNER_HOOK_REGISTRY.register('load_ckpt')
class LoadCkptHook(LearnerHook):
    """Before the run: load ``load_path`` if it is set."""

    ext_settings = ('freq', 'load_path')

    def __call__(self, learner: Any) -> None:
        path = self.ext_args.get('load_path') or learner.cfg.load_path
        if path:
            learner.load_checkpoint(path)


@LEARNER_HOOK_REGISTRY.register('save_ckpt')
class SaveCkptHook(LearnerHook):
    """Save ``iteration_<n>.pth.tar``."""

    ext_settings = ('freq',)

    def __call__(self, learner: Any) -> None:
        learner.save_checkpoint()


@LEARNER_HOOK_REGISTRY.register('log_show')
class LogShowHook(LearnerHook):
    """Instant values to the text log, window means to TensorBoard."""

    ext_settings = ('freq',)

    def __call__(self, learner: Any) -> None:
        learner.write_log()


@LEARNER_HOOK_REGISTRY.register('log_reduce')
class LogReduceHook(LearnerHook):
    """Average the log values over the processes of torch.distributed."""

    ext_settings = ('freq',)

    def __call__(self, learner: Any) -> None:
        from nervex.utils.dist_helper import allreduce, get_world_size

        if get_world_size() > 1:
            learner.reduce_log(allreduce)


def build_learner_hook_by_cfg(cfg: Mapping[str, Any]) -> Hooks:
    """
    Overview:
        The hooks of a config section. The long form is ``name: {type, priority, position, ext_args}``; the short form
        is ``log_show_after_iter: 100``, ``save_ckpt_after_iter: 1000``, ``save_ckpt_after_run: True``,
        ``load_ckpt_before_run: path``. A value of None (or False) leaves the hook out.
    """
    hooks: Hooks = {position: [] for position in POSITIONS}
    for name, item in cfg.items():
        if item is None or item is False or item == '':
            continue
        add_learner_hook(hooks, _long_form(name, item) if isinstance(item, Mapping) else _short_form(name, item))
    return hooks


def _long_form(name: str, item: Mapping[str, Any]) -> LearnerHook:
    missing = [key for key in ('type', 'position') if key not in item]
    if missing:
        raise ValueError(
            f"learner.hook.{name}: '{missing[0]}' is missing; a hook has type, priority, position, ext_args"
        )
    return LEARNER_HOOK_REGISTRY.get(item['type'])(
        item['name'] if 'name' in item else name,
        item['priority'] if 'priority' in item else 20,
        item['position'],
        item['ext_args'] if 'ext_args' in item else {},
    )


def _short_form(name: str, item: Any) -> LearnerHook:
    for position in POSITIONS:
        if name.endswith('_' + position):
            hook_type = name[: -len(position) - 1]
            ext_args = {'load_path': item} if hook_type == 'load_ckpt' else {} if item is True else {'freq': item}
            return LEARNER_HOOK_REGISTRY.get(hook_type)(name, 20, position, ext_args)
    raise ValueError(
        f'learner.hook.{name}: the name must end with one of {", ".join("_" + p for p in POSITIONS)}, or '
        'its value must be a dict with type and position'
    )


def add_learner_hook(hooks: Hooks, hook: LearnerHook) -> None:
    """Add a hook in the order of its priority."""
    hooks[hook.position].append(hook)
    hooks[hook.position].sort(key=lambda h: h.priority)


def merge_hooks(first: Hooks, second: Hooks) -> Hooks:
    """All hooks of both, in the order of their priority."""
    return {p: sorted(first.get(p, []) + second.get(p, []), key=lambda h: h.priority) for p in POSITIONS}
