"""From the older form of a parallel config (coordinator, learner0, actor0, ...) to a serial one with ``parallel``."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from nervex.config.parallel import NOTHING, OLDER_FORM, OPEN, TODAY, parallel_local_default_config
from nervex.config.tree import MISSING, get_path, has_path, pop_path, set_path
from nervex.loader.problems import Problems
from nervex.utils.class_config import merge_config

logger = logging.getLogger(__name__)

ANYWHERE = ('auto', '', None, '0.0.0.0', '127.0.0.1', 'localhost')
KINDS = ('learner', 'actor')
_COMMANDER = 'coordinator.commander'


def is_older_form(given: Mapping) -> bool:
    """Whether a config is in the older form."""
    return 'coordinator' in given


def serial_form(given: dict[str, Any], problems: Problems) -> dict[str, Any]:
    """
    Overview:
        The same config as today's sections. What has no meaning any more (ports, folders) is dropped; what nobody knows
        is a problem; what is said in today's words beside the older ones counts. A config in today's form is answered
        as it is.
    Arguments:
        - given (:obj:`dict`): the config; it is taken apart
        - problems (:obj:`Problems`): gets one entry per mistake
    """
    if not is_older_form(given):
        return given
    check_keys(given, problems)
    problems.raise_if_any()  # without its sections there is nothing more to check
    roles = {kind: role_sections(given, kind) for kind in KINDS}
    made: dict[str, Any] = {}
    _count(given, made, roles)
    _import(given, made, roles)
    for kind in KINDS:
        place(made, kind, [given[name].get('host') for name in roles[kind]])
    for old, (_, new) in OLDER_FORM.items():
        section, _, rest = old.partition('.')
        for path in [f'{name}.{rest}' for name in roles.get(section, [section])]:
            value = pop_path(given, path, prune=False)
            if new is NOTHING and value is not MISSING:
                logger.info('%s means nothing any more', path)
            if new and value is not None and value is not MISSING and not has_path(made, new):
                set_path(made, new, TODAY.get(value, value) if isinstance(value, str) else value)
    made['env'] = {**made.get('env', {}), **(get_path(given, f'{_COMMANDER}.actor_cfg.env_kwargs') or {})}
    pop_path(made, 'learner.dataloader')  # batches come straight from the buffer
    older = ('coordinator', *roles['learner'], *roles['actor'])
    todays = {k: section for k, section in given.items() if k not in older and not re.fullmatch(r'aggregator\d*', k)}
    return merge_config(made, todays)


def check_keys(given: Mapping, problems: Problems) -> None:
    """What nobody knows in the sections of the older form, and sections that are none."""
    for kind in ('coordinator', *KINDS):
        for name in role_sections(given, kind) if kind in KINDS else [kind]:
            known = parallel_local_default_config[kind if kind == 'coordinator' else f'{kind}0']
            _check_section(name, given[name], known, f"the older form's {name}", problems)


def role_sections(given: Mapping, kind: str) -> list[str]:
    """The names of the sections of one kind, by their numbers."""
    numbers = [int(name[len(kind) :]) for name in given if re.fullmatch(rf'{kind}\d+', name)]
    return [f'{kind}{number}' for number in sorted(numbers)]


def _check_section(path: str, section: Any, known: Mapping, owner: str, problems: Problems) -> None:
    if not isinstance(section, Mapping):
        problems.add(path, f'got {section!r}, must be a dict')
        return
    for key, value in section.items():
        if key in KINDS and path == 'coordinator.interaction':
            continue  # who is where, as set_learner_interaction_for_coordinator writes it
        if key not in known:
            problems.unknown(f'{path}.{key}', value, known, owner)
        elif isinstance(known[key], Mapping) and key not in OPEN:
            _check_section(f'{path}.{key}', value, known[key], owner, problems)


def _count(given: dict[str, Any], made: dict[str, Any], roles: dict[str, list[str]]) -> None:
    """How many there are: numbers of envs were those of one actor, and episodes those of one env."""
    actor_cfg = get_path(given, f'{_COMMANDER}.actor_cfg') or {}
    envs = actor_cfg.get('env_kwargs') or {}
    per_actor, per_env = envs.get('actor_env_num'), envs.get('evaluator_episode_num')
    if isinstance(per_env, int):
        set_path(made, 'evaluator.n_episode', per_env * envs.get('evaluator_env_num', 1))
    if isinstance(per_actor, int):
        length = actor_cfg.get('traj_len')
        whole = 'inf' in (length, get_path(given, f'{_COMMANDER}.policy.collect.traj_len'))
        set_path(made, 'parallel.envs_per_actor', per_actor)
        if not has_path(given, 'actor.n_sample') and not has_path(given, 'actor.n_episode'):
            amount = per_actor if whole else per_actor * (length if isinstance(length, int) else 1)
            set_path(made, 'actor.n_episode' if whole else 'actor.n_sample', amount)
    learners = sum(given[name].get('repeat_num', 1) for name in roles['learner'])
    for kind, number in (('learner', learners), ('actor', len(roles['actor']))):
        space = get_path(given, f'{_COMMANDER}.{kind}_task_space', MISSING)
        if number or space is not MISSING:
            set_path(made, f'parallel.{kind}_num', number or space)


def _import(given: dict[str, Any], made: dict[str, Any], roles: dict[str, list[str]]) -> None:
    """Modules of this package register nothing any more: what is built in is known by name."""
    names: list[str] = []
    for section in (_COMMANDER, f'{_COMMANDER}.actor_cfg', *roles['learner'], *roles['actor']):
        found = get_path(given, f'{section}.import_names') or []
        names += [found] if isinstance(found, str) else list(found)
    if users := [name for name in dict.fromkeys(names) if str(name).split('.')[0] != 'nervex']:
        set_path(made, 'parallel.import_names', users)


def place(cfg: dict[str, Any], kind: str, hosts: list[Any]) -> None:
    """Let the roles of a kind run on these machines; ``'auto'``, ``'0.0.0.0'`` and the like say nothing."""
    named = list(dict.fromkeys(host for host in hosts if host not in ANYWHERE))
    if named and not has_path(cfg, f'parallel.resources.{kind}.hosts'):
        set_path(cfg, f'parallel.resources.{kind}.hosts', named)
