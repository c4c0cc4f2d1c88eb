"""Older spellings of settings, all of them in one table."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from nervex.config.tree import MISSING, get_path, has_path, pop_path, set_path
from nervex.loader.exception import shown
from nervex.loader.problems import Problems
from nervex.utils.declare import declared_by
from nervex.utils.import_helper import load_attribute

#: Where whole sections were elsewhere, and the names of env, manager and policy. Applied first, whatever is declared.
STRUCTURE: dict[str, str] = {
    'collector': 'actor',
    'policy.collect.collector': 'actor',
    'policy.eval.evaluator': 'evaluator',
    'policy.learn.learner': 'learner',
    'policy.other.replay_buffer': 'replay_buffer',
    'policy.other.eps': 'policy.command.eps',
    'policy.type': 'policy.policy_type',
    'policy.other.commander': 'commander',
    'env.type': 'env.env_type',
    'env.manager.type': 'env.env_manager_type',
    'env.manager.env_manager_type': 'env.env_manager_type',
    'env_manager.type': 'env.env_manager_type',
    'env_manager': 'env.manager',
}

#: old path -> today's path; ``*`` is one name. Applied where a class declares today's name, and not the old one itself.
ALIASES: dict[str, str] = {
    'env.collector_env_num': 'env.actor_env_num',
    'env.stop_value': 'evaluator.stop_val',
    'env.stop_val': 'evaluator.stop_val',
    'env.manager.timeout': 'env.manager.step_wait_timeout',
    'env.n_evaluator_episode': 'evaluator.n_episode',
    'policy.cuda': 'policy.use_cuda',
    'policy.priority': 'policy.use_priority',
    'policy.multi_gpu': 'policy.use_distributed',
    'policy.learn.multi_gpu': 'policy.use_distributed',
    'learner.use_cuda': 'policy.use_cuda',
    'learner.use_distributed': 'policy.use_distributed',
    'policy.learn.train_iteration': 'policy.learn.train_step',
    'policy.learn.update_per_collect': 'policy.learn.train_step',
    'policy.learn.weight_decay_rate': 'policy.learn.weight_decay',
    'policy.learn.epoch_per_collect': 'policy.learn.epochs',
    'policy.random_collect_size': 'policy.learn.init_data_count',
    'policy.nstep': 'policy.learn.algo.nstep',
    'policy.learn.nstep': 'policy.learn.algo.nstep',
    'policy.collect.nstep': 'policy.collect.algo.nstep',
    'policy.discount_factor': 'policy.learn.algo.discount_factor',
    'policy.learn.discount_factor': 'policy.learn.algo.discount_factor',
    'policy.collect.discount_factor': 'policy.learn.algo.discount_factor',
    'policy.learn.target_update_freq': 'policy.learn.algo.target_update_freq',
    'policy.learn.value_weight': 'policy.learn.algo.value_weight',
    'policy.learn.entropy_weight': 'policy.learn.algo.entropy_weight',
    'policy.learn.clip_ratio': 'policy.learn.algo.clip_ratio',
    'policy.collect.gae_lambda': 'policy.learn.algo.gae_lambda',
    'policy.collect.algo.gae_lambda': 'policy.learn.algo.gae_lambda',
    'policy.collect.algo.discount_factor': 'policy.learn.algo.discount_factor',
    'policy.collect.n_sample': 'actor.n_sample',
    'policy.collect.n_episode': 'actor.n_episode',
    'policy.collect.collector_env_num': 'policy.collect.env_num',
    'policy.collect.actor_env_num': 'policy.collect.env_num',
    'policy.eval.evaluator_env_num': 'policy.eval.env_num',
    'policy.model.obs_shape': 'policy.model.obs_dim',
    'policy.model.action_shape': 'policy.model.action_dim',
    'policy.model.act_shape': 'policy.model.action_dim',
    'policy.model.encoder_hidden_size_list': 'policy.model.hidden_dim_list',
    'policy.model.hidden_size_list': 'policy.model.hidden_dim_list',
    'policy.model.agent_obs_shape': 'policy.model.obs_dim',
    'policy.model.global_obs_shape': 'policy.model.global_obs_dim',
    'policy.model.alone_obs_shape': 'policy.model.alone_obs_dim',
    'evaluator.stop_value': 'evaluator.stop_val',
}
for _old, _new in (
    ('maxlen', 'meta_maxlen'),
    ('replay_buffer_size', 'meta_maxlen'),
    ('buffer_length', 'meta_maxlen'),
    ('buffer_size', 'meta_maxlen'),
    ('max_use', 'max_reuse'),
):
    ALIASES[f'replay_buffer.{_old}'] = f'replay_buffer.{_new}'
    ALIASES[f'replay_buffer.*.{_old}'] = f'replay_buffer.*.{_new}'

#: Settings of which at most one may be given.
EXCLUSIVE: tuple[tuple[str, str], ...] = (('actor.n_sample', 'actor.n_episode'),)


def rename(
    given: dict[str, Any], table: Mapping[str, str], may_move: Callable[[str, str], bool], problems: Problems
) -> None:
    """Move what stands at the old paths of a table to today's, in place, where ``may_move(old, new)``."""
    for old, new in table.items():
        section = get_path(given, old.partition('.*')[0]) if '*' in old else None
        known = section.items() if isinstance(section, Mapping) else [('*', {})]
        names = [name for name, value in known if isinstance(value, Mapping)]
        for name in names:
            here, there = old.replace('*', name), new.replace('*', name)
            if may_move(here, there):
                move(given, here, there, problems)


def move(given: dict[str, Any], old: str, new: str, problems: Problems) -> None:
    """Move the value at ``old`` to ``new``; dicts merge, and two different values for one setting are a problem."""
    if not has_path(given, old):
        return
    value = get_path(given, old)
    if isinstance(value, Mapping) and isinstance(get_path(given, new), Mapping):
        for key in list(value):
            move(given, f'{old}.{key}', f'{new}.{key}', problems)
        if not get_path(given, old, MISSING):
            pop_path(given, old)
        return
    if has_path(given, new) and get_path(given, new) != value:
        problems.add(
            old,
            f'got {shown(value)}, but {new} is {shown(get_path(given, new))}; both are names of one '
            f'setting, so keep only {new}',
        )
        pop_path(given, old)
        return
    pop_path(given, old)
    if not set_path(given, new, value):
        problems.add(old, f'is now {new}, but the section there is not a dict')


@functools.cache
def ties() -> dict[str, str]:
    """Path -> the path of the setting that must agree with it, as the framework's own classes declare them."""
    classes = {'policy': 'nervex.policy.base_policy:Policy', 'actor': 'nervex.worker.actor:BaseSerialActor'}
    return {
        f'{section}.{path}': entry.same_as
        for section, where in classes.items()
        for path, entry in declared_by(load_attribute(where), own_only=False).leaves(hidden=True)
        if entry.same_as
    }


def same_setting(path: str) -> set[str]:
    """All other paths that mean, or must agree with, the setting at ``path``."""
    today = _today(path)
    source = ties().get(today, today)
    found = {today, source, *(path for path, other in ties().items() if other == source)}
    waiting = list(found)
    while waiting:
        here = waiting.pop()
        for old, new in _TABLE.items():
            spelling = _renamed(here, new, old)
            if spelling is not None and spelling not in found:
                found.add(spelling)
                waiting.append(spelling)
    return found - {path}


_TABLE = {**STRUCTURE, **ALIASES}


def _today(path: str) -> str:
    """Today's spelling of a path, also where one of its parents moved."""
    for old in sorted(_TABLE, key=len, reverse=True):
        new = _renamed(path, old, _TABLE[old])
        if new is not None:
            return _today(new)
    return path


def _renamed(path: str, old: str, new: str) -> str | None:
    """``path`` with its first parts ``old`` (``*``: any one) replaced by ``new``; None if it starts otherwise."""
    parts, wanted = path.split('.'), old.split('.')
    if len(parts) < len(wanted) or any(want not in ('*', part) for want, part in zip(wanted, parts)):
        return None
    star = next((part for want, part in zip(wanted, parts) if want == '*'), '')
    return '.'.join([star if part == '*' else part for part in new.split('.')] + parts[len(wanted) :])
