"""Learner hooks: code that runs before or after the run, or before or after an update."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from nervex.loader.errors import shown
from nervex.loader.problems import Problems
from nervex.loader.rules import registered
from nervex.loader.sections import Parts, check_value, merge_section
from nervex.utils import LEARNER_HOOK_REGISTRY
from nervex.utils.declare import Section, Setting, declared_by, setting, settings
from nervex.worker.learner.checkpoints import BEST, LAST

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

    #: what ``ext_args`` may hold; a hook that declares nothing of its own may read anything there
    config = settings(freq=setting(1, 'int >= 1', 'updates between two calls'))

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
    """Before the run: load ``load_path`` if it is set. Step sizes and the like are those of this run's settings."""

    config = settings(load_path=setting(None, 'str | None', "checkpoint; None: the learner's load_path"))

    def __call__(self, learner: Any) -> None:
        path = self.ext_args.get('load_path') or learner.cfg.load_path
        if path:
            groups = partial(learner.policy.get_attribute, 'param_groups')
            own = [{name: value for name, value in group.items() if name != 'params'} for group in groups() or ()]
            learner.load_checkpoint(path)
            for group, values in zip(groups() or (), own):
                group.update(values)


@LEARNER_HOOK_REGISTRY.register('save_ckpt')
class SaveCkptHook(LearnerHook):
    """Save ``iteration_<n>.pth.tar``, whose largest n is the best: the end behind it is ``ckpt_last.pth.tar``."""

    config = settings()

    def __call__(self, learner: Any) -> None:
        mine, best = (os.path.join(learner.ckpt_path, n) for n in (f'iteration_{learner.train_iter}.pth.tar', BEST))
        behind = self.position == 'after_run' and os.path.exists(best) and not os.path.exists(mine)
        learner.save_checkpoint(LAST if behind else None)


@LEARNER_HOOK_REGISTRY.register('log_show')
class LogShowHook(LearnerHook):
    """Instant values to the text log, window means to TensorBoard."""

    config = settings()

    def __call__(self, learner: Any) -> None:
        learner.write_log()


@LEARNER_HOOK_REGISTRY.register('log_reduce')
class LogReduceHook(LearnerHook):
    """Average the log values over the processes of torch.distributed."""

    config = settings()

    def __call__(self, learner: Any) -> None:
        from nervex.utils.dist_helper import allreduce, get_world_size

        if get_world_size() > 1:
            learner.log.reduce(allreduce)


_TYPE = setting(check=registered(LEARNER_HOOK_REGISTRY), meaning='what it does', needed=True)
_HOOK = Section('a hook')
_HOOK.declare(
    settings(
        name=setting('', 'str', 'for messages; its key if left out'),
        type=_TYPE,
        priority=setting(20, 'int', 'of several hooks at one position the lower one runs first'),
        position=setting(check=' | '.join(map(repr, POSITIONS)), meaning='when it runs', needed=True),
        ext_args=setting({}, 'dict', 'settings of that type of hook'),
    )
)


def _complete(path: str, name: str, item: Any, problems: Problems) -> dict[str, Any] | None:
    """One hook of a config in the long form, checked; None for one that is left out."""
    if item is None or item is False or item == '':
        return None
    before = len(problems)
    if not isinstance(item, Mapping):
        position = next((p for p in POSITIONS if name.endswith(f'_{p}')), None)
        if position is None:
            ends = ', '.join(f'_{p}' for p in POSITIONS)
            rule = f'a dict with type and position, or the name must end in one of {ends}'
            problems.add(path, f'got {shown(item)}, must be {rule}')
            return None
        kind = check_value(path, _TYPE, name[: -len(position) - 1], problems)
        key, rule = ('load_path', 'str') if kind == 'load_ckpt' else ('freq', 'True | int >= 1')
        if len(problems) == before:
            item = check_value(path, Setting(check=rule), item, problems)
        item = dict(type=kind, position=position, ext_args={} if item is True else {key: item})
    if len(problems) > before:
        return None
    hook = merge_section(path, _HOOK, item, problems)
    if len(problems) == before or not problems.about(f'{path}.type'):
        settings_of_kind = declared_by(LEARNER_HOOK_REGISTRY.get(hook['type']))
        hook['ext_args'] = merge_section(f'{path}.ext_args', settings_of_kind, hook['ext_args'], problems)
    return {**hook, 'name': hook['name'] or name}


#: The check of ``learner.hook``.
HOOKS = Parts(_complete, 'hooks')


def build_learner_hook_by_cfg(cfg: Mapping[str, Any]) -> Hooks:
    """
    Overview:
        The hooks of a config section. The long form is ``name: {type, priority, position, ext_args}``; the short form
        is ``log_show_after_iter: 100``, ``save_ckpt_after_iter: 1000``, ``save_ckpt_after_run: True``,
        ``load_ckpt_before_run: path``. A value of None (or False) leaves the hook out.
    """
    problems = Problems()
    found = [_complete(f'learner.hook.{name}', name, item, problems) for name, item in cfg.items()]
    problems.raise_if_any()
    hooks: Hooks = {position: [] for position in POSITIONS}
    for hook in filter(None, found):
        cls = LEARNER_HOOK_REGISTRY.get(hook['type'])
        add_learner_hook(hooks, cls(hook['name'], hook['priority'], hook['position'], hook['ext_args']))
    return hooks


def add_learner_hook(hooks: Hooks, hook: LearnerHook) -> None:
    """Add a hook in the order of its priority."""
    hooks[hook.position].append(hook)
    hooks[hook.position].sort(key=lambda h: h.priority)


def merge_hooks(first: Hooks, second: Hooks) -> Hooks:
    """All hooks of both, in the order of their priority."""
    return {p: sorted(first.get(p, []) + second.get(p, []), key=lambda h: h.priority) for p in POSITIONS}
