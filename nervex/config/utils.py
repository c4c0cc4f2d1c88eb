"""From the older form of a parallel config (coordinator, learner0, actor0, ...) to a serial one with ``parallel``."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from easydict import EasyDict

from nervex.config.parallel import NOTHING, OLDER_FORM, SECTIONS, TODAY
from nervex.config.tree import MISSING, get_path, has_path, plain_copy, pop_path, readable, set_path
from nervex.loader.problems import Problems
from nervex.loader.sections import merge_section
from nervex.utils.class_config import merge_config
from nervex.utils.slurm_helper import node_list
from nervex.utils.system_helper import find_free_port

logger = logging.getLogger(__name__)

ANY_HOST = '0.0.0.0'
ANYWHERE = ('auto', '', None, ANY_HOST, '127.0.0.1', 'localhost')
KINDS = ('learner', 'actor')
_COMMANDER = 'coordinator.commander'


def parallel_transform(
    cfg: Mapping, coordinator_host: str = ANY_HOST, learner_host: str = ANY_HOST, actor_host: str = ANY_HOST
) -> EasyDict:
    """
    Overview:
        A parallel config of either form as today's sections: the serial ones and ``parallel``. It may be called twice.
    Arguments:
        - coordinator_host (:obj:`str`): kept for older configs: the coordinator is where the program is started
        - learner_host, actor_host (:obj:`str`): machines of the learners and actors, separated by commas; ``0.0.0.0``
            leaves the choice to Ray
    """
    problems = Problems()
    given, hosts = readable(cfg, problems), dict(zip(KINDS, (learner_host.split(','), actor_host.split(','))))
    result = serial_form(given, problems, hosts)
    problems.raise_if_any()
    for kind in KINDS:
        _place(result, kind, hosts[kind])
    return EasyDict(result)


def parallel_transform_slurm(
    cfg: Mapping, coordinator_host: str = ANY_HOST, learner_node: str = ANY_HOST, actor_node: str = ANY_HOST
) -> EasyDict:
    """As ``parallel_transform``, with node names in slurm's short form, such as ``'gpu[1-3],login1'``."""
    return parallel_transform(cfg, coordinator_host, ','.join(node_list(learner_node)), ','.join(node_list(actor_node)))


#: The same, with the names of Kubernetes nodes.
parallel_transform_k8s = parallel_transform


def serial_form(
    given: dict[str, Any], problems: Problems, hosts: Mapping[str, list[str]] | None = None
) -> dict[str, Any]:
    """
    Overview:
        The same config as today's sections. What has no meaning any more (ports, folders) is dropped; what nobody knows
        is a problem; what is said in today's words beside the older ones counts. A config in today's form is answered
        as it is.
    Arguments:
        - given (:obj:`dict`): the config; it is taken apart
        - problems (:obj:`Problems`): gets one entry per mistake
        - hosts (:obj:`Mapping | None`): of each kind of role, where the config says ``'auto'``
    """
    if 'coordinator' not in given:
        return given
    roles = {kind: _role_sections(given, kind) for kind in KINDS}
    for kind, names in {'coordinator': ['coordinator'], **roles}.items():
        for name in names:
            merge_section(name, SECTIONS[kind], given[name], problems)
    problems.raise_if_any()  # without its sections there is nothing more to check
    made: dict[str, Any] = {}
    _count(given, made, roles)
    _import(given, made, roles)
    for kind in KINDS:
        _deal_hosts(given, kind, (hosts or {}).get(kind, [ANY_HOST]))
        _place(made, kind, [given[name]['host'] for name in roles[kind]])
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
    older = re.compile(r'coordinator|(?:learner|actor)[0-9]{1,6}|aggregator[0-9]*')
    return merge_config(made, {name: section for name, section in given.items() if not older.fullmatch(name)})


def _role_sections(given: Mapping, kind: str) -> list[str]:
    """The names of the sections of one kind, by their numbers."""
    names = [name for name in given if re.fullmatch(rf'{kind}[0-9]{{1,6}}', name)]
    return sorted(names, key=lambda name: int(name[len(kind) :]))


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


def _place(cfg: dict[str, Any], kind: str, hosts: list[Any]) -> None:
    """Let the roles of a kind run on these machines; ``'auto'``, ``'0.0.0.0'`` and the like say nothing."""
    named = list(dict.fromkeys(host for host in hosts if host not in ANYWHERE))
    if named and not has_path(cfg, f'parallel.resources.{kind}.hosts'):
        set_path(cfg, f'parallel.resources.{kind}.hosts', named)


def _deal_hosts(cfg: dict[str, Any], kind: str, hosts: list[str]) -> None:
    for index, name in enumerate(_role_sections(cfg, kind)):
        if cfg[name].get('host', 'auto') == 'auto':
            cfg[name]['host'] = hosts[index % len(hosts)]


# ---- what a config of the older form calls in its last lines
def set_host_port(
    cfg: Mapping, coordinator_host: str = ANY_HOST, learner_host: str = ANY_HOST, actor_host: str = ANY_HOST
) -> dict[str, Any]:
    """
    Overview:
        A copy of a config of the older form without ``'auto'``: hosts are those given (several, separated by commas,
        are dealt out in turn), ports are free ones of this machine; a learner section with ``repeat_num`` above 1 gets
        a list of ports and an ``aggregator`` section.
    """
    result = plain_copy(cfg)
    interaction = result['coordinator'].setdefault('interaction', {})
    if interaction.get('host', 'auto') == 'auto':
        interaction['host'] = coordinator_host
    sections = {'': interaction}
    for kind, hosts in zip(KINDS, (learner_host, actor_host)):
        _deal_hosts(result, kind, hosts.split(','))
        sections.update((name, result[name]) for name in _role_sections(result, kind))
    for name, section in sections.items():
        if section.get('port', 'auto') == 'auto':
            section['port'] = find_free_port()
        if section.get('repeat_num', 1) > 1 and isinstance(section['port'], int):
            master = {'host': section['host'], 'port': section['port']}
            result[name.replace('learner', 'aggregator')] = {'master': master}
            section['port'] = [find_free_port() for _ in range(section['repeat_num'])]
    return result


def set_learner_interaction_for_coordinator(cfg: Mapping, kind: str = 'learner') -> dict[str, Any]:
    """A copy whose ``coordinator.interaction.learner`` says ``{name: [name, host, port]}``."""
    result = plain_copy(cfg)
    rows = {name: [name, result[name].get('host'), result[name].get('port')] for name in _role_sections(result, kind)}
    result['coordinator'].setdefault('interaction', {})[kind] = rows
    return result


#: The same for ``coordinator.interaction.actor``.
set_actor_interaction_for_coordinator = partial(set_learner_interaction_for_coordinator, kind='actor')
