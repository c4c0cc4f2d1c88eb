"""What each section of a config may contain: found through the registries, imported only now."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from nervex.loader.errors import shown
from nervex.loader.problems import Problems
from nervex.loader.sections import merge_section
from nervex.utils.declare import UNSET, Section, declared_by, setting, settings
from nervex.utils.errors import unknown_name
from nervex.utils.import_helper import import_problem, load_attribute
from nervex.utils.registry import Registry
from nervex.utils.registry_factory import registries

SECTIONS = ('env', 'policy', 'replay_buffer', 'actor', 'evaluator', 'learner', 'commander', 'parallel')
MANDATORY = {
    'env': "it names the environment, e.g. env=dict(env_type='cartpole')",
    'policy': "it names the algorithm, e.g. policy=dict(policy_type='dqn')",
}
_NAMES = 'str | list of str | None'
TOP_SETTINGS = settings(
    exp_name=setting(
        '',
        'str',
        "folder of the run, '' for the current one; the blanks {env}, {policy} and {seed} are filled in, and where one "
        'of that name holds a run, _2, _3, ... is put behind it',
    ),
    seed=setting(None, 'int >= 0 | None', 'the seed that a saved config ran with'),
    import_names=setting(None, _NAMES, 'modules to import before anything is looked up'),
    events=setting([], 'list of str | dict', 'who is told what happens: names of event sinks, or name -> its settings'),
    mode=setting(
        None,
        "'train' | 'test' | 'serial' | 'parallel' | 'offline' | 'eval' | 'collect' | None",
        'what the command does where -m is left out: train (serial, or parallel by backend), test (eval), or a mode',
    ),
    backend=setting('single', "'single' | 'ray'", "where mode 'train' runs: in this process, or in several on Ray"),
)
#: section -> the class that declares it
SECTION_CLASSES = {
    'replay_buffer': 'nervex.data:BufferManager',
    'actor': 'nervex.worker.actor:BaseSerialActor',
    'evaluator': 'nervex.worker.actor:BaseSerialEvaluator',
    'learner': 'nervex.worker.learner:BaseLearner',
    'commander': 'nervex.worker.coordinator:BaseSerialCommander',
    'parallel': 'nervex.parallel.settings:ParallelSettings',
}

#: sections for which another class may be named, as ``actor_type`` of ``actor``
REPLACEABLE = ('actor', 'learner', 'commander')

#: settings of ``env`` that every env has, whatever its class declares
COMMON_ENV = settings(
    env_type=setting(
        None, 'str | class | None', 'registered name of the env; None when the caller passes the env itself'
    ),
    import_names=setting(None, _NAMES, 'modules to import first, so that their registrations happen'),
    env_manager_type=setting('base', 'str | class', 'registered name of the env manager: how the envs are run'),
    manager={},
    actor_env_num=setting(1, 'int in [1, 65536]', 'envs that collect'),
    evaluator_env_num=setting(1, 'int in [1, 65536]', 'envs that evaluate'),
    replay_path=setting(None, 'str | None', 'folder for videos of the first evaluating env, and of -m eval --video'),
    max_episode_steps=setting(check='int >= 1 | None', meaning='time limit of an episode'),
)
#: what an env that does not declare them says to settings of the envs that are made by an id
ELSEWHERE = {
    'env_id': 'it is one env, without an id; env_type: gym makes any env of Gymnasium by its id, pettingzoo any module',
    'render_mode': 'nervex -m eval --video films it, and env.replay_path; env_type: gym takes a render_mode',
}


def import_listed(path: str, names: Any, problems: Problems) -> None:
    """Import every module of the list; what is wrong with any of them becomes one problem each."""
    names = [names] if isinstance(names, str) else [] if names is None else names
    if not isinstance(names, (list, tuple)):
        problems.add(path, f'got {shown(names)}, must be a list of module names')
        return
    for name in names:
        if not isinstance(name, str) or not name:
            problems.add(path, f'got {shown(name)} in the list, must be the dotted name of a module')
            continue
        try:
            importlib.import_module(name)
        except Exception as error:  # a user's module may raise anything while it is imported
            problems.add(path, f"module '{name}' cannot be imported: {import_problem(name, error)}")


def sinks(given: Any, problems: Problems) -> dict[str, Any]:
    """The settings of each event sink that is named, complete."""
    named = given if isinstance(given, Mapping) else dict.fromkeys(given or ())
    found = {}
    for name, own in named.items():
        cls = look_up(registries['event'], 'events', name, problems)
        if cls is not None:
            found[name] = merge_section(f'events.{name}', declared_by(cls), {} if own is None else own, problems)
    return found


def look_up(registry: Registry, path: str, name: Any, problems: Problems) -> Any:
    """The class that a setting names (or is); None, and a problem, where there is none."""
    if isinstance(name, type):
        return name
    if not isinstance(name, str):
        problems.add(path, f'got {shown(name)}, must be the name of a {registry.what}: {", ".join(registry.query())}')
        return None
    if name not in registry:
        problems.add(path, unknown_name(registry.what, name, registry))
        return None
    try:
        return registry.get(name)
    except (ImportError, AttributeError) as error:
        problems.add(path, f"{registry.what} '{name}' cannot be loaded: {error}")
        return None


def section_declared(name: str, given: Mapping | None = None, problems: Problems | None = None) -> Section:
    """
    Overview:
        The declaration of one of the workers' sections.
    Arguments:
        - given (:obj:`Mapping | None`): what the user wrote there; it may name another class
    """
    cls = load_attribute(SECTION_CLASSES[name])
    named = (given or {}).get(f'{name}_type') if name in REPLACEABLE else None
    if named is not None:
        found = Problems() if problems is None else problems  # one without any is falsy
        cls = look_up(registries[name], f'{name}.{name}_type', named, found) or cls
    return declared_by(cls, own_only=False)


def env_declared(cfg_env: Mapping, env: Any, problems: Problems) -> Section:
    """
    Overview:
        Declaration of the env section: the common settings, the env's own, and the manager's.
    Arguments:
        - env (:obj:`Any`): what the caller passed: a class, a function, (function, actor cfgs, evaluator cfgs), or None
    """
    import_listed('env.import_names', cfg_env.get('import_names'), problems)
    if isinstance(env, (tuple, list)):
        env = env[0]
    elif env is None:
        env = _named('env', cfg_env, problems)
    section = declared_by('env' if env is None else env, common=COMMON_ENV)
    manager = cfg_env.get('env_manager_type', COMMON_ENV['env_manager_type'])
    cls = look_up(registries['env_manager'], 'env.env_manager_type', manager, problems)
    section.entries['manager'] = (
        Section('the env manager', is_open=True) if cls is None else declared_by(cls, own_only=False)
    )
    return section


def find_policy(cfg_policy: Mapping, policy: Any, problems: Problems) -> Any:
    """The policy class: the caller's, or the one that the config names; None where it cannot be found."""
    import_listed('policy.import_names', cfg_policy.get('import_names'), problems)
    if isinstance(policy, str):
        return look_up(registries['policy'], 'policy_fn', policy, problems)
    return policy if policy is not None else _named('policy', cfg_policy, problems)


def _named(name: str, section: Mapping, problems: Problems) -> Any:
    """The class that ``env.env_type`` or ``policy.policy_type`` names; None, and a problem, where there is none."""
    path, named = f'{name}.{name}_type', section.get(f'{name}_type')
    if named is None:
        problems.add(path, f'missing; must be one of: {", ".join(registries[name].query())}')
        return None
    return look_up(registries[name], path, named, problems)


def not_by_default(config: Mapping[str, Any], imports: bool) -> dict[str, Any]:
    """
    Overview:
        Path -> default of the settings of a complete config that are not as their classes declare them, and of the
        whole model, which has no defaults of its own ('').
    Arguments:
        - imports (:obj:`bool`): import the modules that it names; parts that are registered there are left out without
    """
    return {
        path: '' if default is UNSET else default
        for path, value, default in _beside_defaults(config, imports)
        if (default is not UNSET and value != default) or path.startswith('policy.model.')
    }


def by_default(config: Mapping[str, Any]) -> set[str]:
    """Paths of the settings of a complete config that are as their classes declare them."""
    return {
        path for path, value, default in _beside_defaults(config, True) if default is not UNSET and value == default
    }


def _beside_defaults(config: Mapping[str, Any], imports: bool) -> Iterator[tuple[str, Any, Any]]:
    problems = Problems()
    for name in SECTIONS:
        own = config.get(name) or {}
        given = own if imports else {**own, 'import_names': None}
        if name == 'env':
            declared = env_declared(given, None, problems)
        elif name == 'policy':
            declared = declared_by(find_policy(given, None, problems) or 'the policy', own_only=False)
        else:
            declared = section_declared(name, given, problems)
        yield from _leaves_beside(f'{name}.', own, declared.defaults())


def _leaves_beside(path: str, own: Mapping[str, Any], defaults: Any) -> Iterator[tuple[str, Any, Any]]:
    for key, value in own.items():
        default = defaults.get(key, UNSET) if isinstance(defaults, Mapping) else UNSET
        if isinstance(value, Mapping):
            yield from _leaves_beside(f'{path}{key}.', value, default)
        else:
            yield f'{path}{key}', value, default
