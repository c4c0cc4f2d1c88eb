"""From the older form of a parallel config (coordinator, learner0, actor0, ...) to a serial one with ``parallel``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nervex.config.aliases import move
from nervex.config.parallel import actor_default_config, coordinator_default_config, learner_default_config
from nervex.config.tree import MISSING, get_path, has_path, pop_path, set_path
from nervex.loader.problems import Problems

#: path in the older form -> today's path
MOVES: dict[str, str] = {
    'coordinator.commander.parallel_commander_type': 'parallel.commander_type',
    'coordinator.commander.learner_cfg': 'learner',
    'coordinator.commander.replay_buffer_cfg': 'replay_buffer',
    'coordinator.commander.policy': 'policy',
    'coordinator.commander.max_iterations': 'commander.max_train_iter',
    'coordinator.commander.eval_interval': 'evaluator.eval_freq',
    'coordinator.commander.actor_cfg.print_freq': 'actor.collect_print_freq',
    'coordinator.commander.actor_cfg.traj_len': 'actor.traj_len',
    'coordinator.commander.actor_cfg.env_kwargs.eval_stop_val': 'evaluator.stop_val',
    'coordinator.commander.actor_cfg.env_kwargs': 'env',
}
#: names of the roles of the older form that mean the ones of today
TODAY = {'flask_fs': 'ray', 'solo': 'naive'}
ANYWHERE = ('auto', '', None, '0.0.0.0', '127.0.0.1', 'localhost')

_OPEN = ('learner_cfg', 'replay_buffer_cfg', 'policy', 'env_kwargs')  # sections that today's sections check
_ROLE = re.compile(r'(learner|actor)(\d+)')
_ROLE_DEFAULTS = {'learner': learner_default_config, 'actor': actor_default_config}


def is_older_form(given: Mapping) -> bool:
    """Whether a config is in the older form."""
    return 'coordinator' in given


def serial_form(given: dict[str, Any], problems: Problems) -> dict[str, Any]:
    """
    Overview:
        The same config as today's sections. What has no meaning any more (ports, folders) is dropped; what nobody knows
        is a problem. A config in today's form is answered as it is.
    Arguments:
        - given (:obj:`dict`): the config; it is taken apart
        - problems (:obj:`Problems`): gets one entry per mistake
    """
    if not is_older_form(given):
        return given
    roles = {kind: role_sections(given, kind) for kind in _ROLE_DEFAULTS}
    older = ('coordinator', *roles['learner'], *roles['actor'])
    result = {name: section for name, section in given.items() if not re.fullmatch(r'aggregator\d*', name)}
    check_keys(given, problems)
    problems.raise_if_any()  # without its sections there is nothing more to check
    _envs(result)
    _counts(result, roles)
    _imports(result, roles)
    for old, new in MOVES.items():
        if get_path(result, old) is None:
            pop_path(result, old)
        move(result, old, new, problems)
    _roles(result, roles)
    pop_path(result, 'learner.dataloader')  # batches come straight from the buffer
    _rename(result, 'parallel.commander_type')
    return {name: section for name, section in result.items() if name not in older}


def check_keys(given: Mapping, problems: Problems) -> None:
    """What nobody knows in the sections of the older form, and sections that are none."""
    _check_section('coordinator', given['coordinator'], coordinator_default_config, problems)
    for kind, known in _ROLE_DEFAULTS.items():
        for name in role_sections(given, kind):
            _check_section(name, given[name], known, problems)


def role_sections(given: Mapping, kind: str) -> list[str]:
    """The names of the sections of one kind, by their numbers."""
    found = [name for name in given if (match := _ROLE.fullmatch(name)) and match.group(1) == kind]
    return sorted(found, key=lambda name: int(name[len(kind) :]))


def _check_section(path: str, section: Any, known: Mapping, problems: Problems) -> None:
    if not isinstance(section, Mapping):
        problems.add(path, f'got {section!r}, must be a dict')
        return
    for key, value in section.items():
        if key in ('learner', 'actor') and path == 'coordinator.interaction':
            continue  # who is where, as set_learner_interaction_for_coordinator writes it
        if key not in known:
            problems.unknown(f'{path}.{key}', value, known, f"the older form's {path.split('.')[0]}")
        elif isinstance(known[key], Mapping) and key not in _OPEN:
            _check_section(f'{path}.{key}', value, known[key], problems)


def _envs(cfg: dict[str, Any]) -> None:
    """Numbers of envs were those of one actor, and episodes those of one env."""
    path = 'coordinator.commander.actor_cfg.env_kwargs'
    envs = get_path(cfg, path) or {}
    per_actor, per_env = envs.get('actor_env_num'), envs.pop('evaluator_episode_num', None)
    envs.pop('actor_episode_num', None)
    if isinstance(per_actor, int):
        _set_default(cfg, 'parallel.envs_per_actor', per_actor)
    if isinstance(per_env, int):
        _set_default(cfg, 'evaluator.n_episode', per_env * envs.get('evaluator_env_num', 1))
    if isinstance(per_actor, int) and not has_path(cfg, 'actor.n_sample') and not has_path(cfg, 'actor.n_episode'):
        length = get_path(cfg, 'coordinator.commander.actor_cfg.traj_len')
        whole = length == 'inf' or get_path(cfg, 'coordinator.commander.policy.collect.traj_len') == 'inf'
        amount = per_actor if whole else per_actor * (length if isinstance(length, int) else 1)
        set_path(cfg, 'actor.n_episode' if whole else 'actor.n_sample', amount)


def _counts(cfg: dict[str, Any], roles: dict[str, list[str]]) -> None:
    learners = sum(get_path(cfg, f'{name}.repeat_num', 1) for name in roles['learner'])
    spaces = {'learner': 'learner_task_space', 'actor': 'actor_task_space'}
    for kind, count in (('learner', learners), ('actor', len(roles['actor']))):
        space = pop_path(cfg, f'coordinator.commander.{spaces[kind]}', prune=False)
        if count or space is not MISSING:
            _set_default(cfg, f'parallel.{kind}_num', count or space)


def _imports(cfg: dict[str, Any], roles: dict[str, list[str]]) -> None:
    """Modules of this package register nothing any more: what is built in is known by name."""
    sections = ['coordinator.commander', 'coordinator.commander.actor_cfg', *roles['learner'], *roles['actor']]
    names: list[str] = []
    for section in sections:
        found = get_path(cfg, f'{section}.import_names') or []
        names += [found] if isinstance(found, str) else list(found)
    users = [name for name in dict.fromkeys(names) if str(name).split('.')[0] != 'nervex']
    if users:
        _set_default(cfg, 'parallel.import_names', users)


def _roles(cfg: dict[str, Any], roles: dict[str, list[str]]) -> None:
    """What the sections of the roles say, once for all of a kind."""
    for kind, key in (('learner', 'comm_learner_type'), ('actor', 'comm_actor_type')):
        for name in roles[kind]:
            if has_path(cfg, f'{name}.{key}'):
                _set_default(cfg, f'parallel.{key}', get_path(cfg, f'{name}.{key}'))
            if has_path(cfg, f'{name}.send_policy_freq'):
                _set_default(cfg, 'parallel.publish_iters', get_path(cfg, f'{name}.send_policy_freq'))
        place(cfg, kind, [get_path(cfg, f'{name}.host') for name in roles[kind]])
        _rename(cfg, f'parallel.{key}')


def place(cfg: dict[str, Any], kind: str, hosts: list[Any]) -> None:
    """Let the roles of a kind run on these machines; ``'auto'``, ``'0.0.0.0'`` and the like say nothing."""
    named = list(dict.fromkeys(host for host in hosts if host not in ANYWHERE))
    if named:
        _set_default(cfg, f'parallel.resources.{kind}.hosts', named)


def _rename(cfg: dict[str, Any], path: str) -> None:
    value = get_path(cfg, path)
    if isinstance(value, str) and value in TODAY:
        set_path(cfg, path, TODAY[value])


def _set_default(cfg: dict[str, Any], path: str, value: Any) -> None:
    if not has_path(cfg, path):
        set_path(cfg, path, value)
