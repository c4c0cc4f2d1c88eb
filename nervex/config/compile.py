"""``compile_config``: what the user wrote -> everything that a run needs, checked."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Container, Iterable, Mapping
from typing import Any

from easydict import EasyDict

from nervex.config.aliases import ALIASES, POLICY_TYPES, STRUCTURE, rename
from nervex.config.config import read_config
from nervex.config.derive import cross_check, fill_ties, settle_exclusive
from nervex.config.model import FROM_ENV, conv_name, find_model, is_dense, model_section
from nervex.config.overrides import drop_outdone, override
from nervex.config.sections import (
    ELSEWHERE,
    MANDATORY,
    SECTIONS,
    TOP_SETTINGS,
    env_declared,
    find_policy,
    import_listed,
    section_declared,
    sinks,
)
from nervex.config.tree import get_path, readable
from nervex.config.utils import serial_form
from nervex.loader.errors import shown
from nervex.loader.problems import Problems
from nervex.loader.sections import check_value, merge_section
from nervex.utils.declare import Section, declared_by
from nervex.utils.errors import NervexError, nearest
from nervex.utils.import_helper import load_attribute, raised_at
from nervex.utils.registry_factory import ENV_REGISTRY, MODEL_REGISTRY, POLICY_REGISTRY

logger = logging.getLogger(__name__)
_STOPS = ('stop_val', 'stop_win_rate')


def compile_config(
    cfg: str | os.PathLike | Mapping,
    policy: Any = None,
    env: Any = None,
    model: Any = None,
    overrides: Iterable[str] = (),
    needs_env: bool = False,
) -> EasyDict:
    """
    Overview:
        Defaults of all classes, the user's config on top, overrides on top of that: with older spellings replaced,
        derived settings filled in and every setting checked, and with the sizes of a model that the config leaves out
        (one env is asked, if it can be made here). All mistakes are raised together, before anything starts,
        as one ConfigError. The caller's object is not changed.
    Arguments:
        - cfg (:obj:`str | os.PathLike | Mapping`): a config, or what ``read_config`` takes
        - policy (:obj:`type | str | None`): policy class (or name) that replaces ``policy.policy_type``
        - env (:obj:`Any`): env class, function or (function, actor cfgs, evaluator cfgs) that replaces ``env.env_type``
        - model (:obj:`Any`): model or model class that replaces the policy's default
        - overrides (:obj:`Iterable[str]`): ``'path=value'`` settings
        - needs_env (:obj:`bool`): that no env can be made here is a mistake, too: a run is about to begin
    Returns:
        - resolved (:obj:`EasyDict`): the complete config; compiling it again gives the same
    """
    if isinstance(cfg, (str, os.PathLike)):
        cfg = read_config(cfg)
    if not isinstance(cfg, Mapping):
        raise TypeError(f'config: got {type(cfg).__name__}, must be a dict, or the path or name of a config')
    problems = Problems()
    given = serial_form(readable(cfg, problems), problems)
    meant = env_named(given)
    strong = override(given, overrides, problems)
    rename(given, STRUCTURE, lambda old, new: True, problems, strong)
    passed = {name for name, value in (('env', env), ('policy', policy)) if value is not None}
    resolved = _top_level(given, passed, problems)
    compiler = _Compiler(given, strong, problems, policy, env, model)
    resolved.update(compiler.sections())
    compiler.across(resolved)
    complete = EasyDict(resolved)
    lacks_sizes = not problems and compiler.lacks_sizes(complete)
    asks = needs_env or lacks_sizes or problems.about('policy.model')  # what a net takes may follow from the env
    info = compiler.env_info(complete, env, needs_env) if asks else None
    if info is not None and (chosen := compiler.conv_net(given, info)):
        return compile_config(cfg, policy, env, model, [*overrides, *chosen], needs_env)
    problems.raise_if_any()
    tell_foreign_stop(complete, meant, strong)
    if lacks_sizes and info is not None:
        complete.policy.model = load_attribute('nervex.run.build:with_sizes')(complete, compiler.model, info)
    if info is not None:
        complete = load_attribute('nervex.run.build:settle_game')(complete, compiler.policy, info)
    return complete


def _env_class(section: Mapping) -> Any:
    kind = section.get('env_type')
    return ENV_REGISTRY.get(kind) if isinstance(kind, str) and kind in ENV_REGISTRY else None


def env_named(config: Mapping) -> str:
    """What a config, complete or not, calls its env; '' if it does not."""
    env = config.get('env')
    named = (env.get('env_id') or env.get('env_type')) if isinstance(env, Mapping) else None
    return named if isinstance(named, str) else ''


def _top_level(given: dict[str, Any], passed: set[str], problems: Problems) -> dict[str, Any]:
    """
    Overview:
        Check the keys at the top and the settings that stand there; answers these, complete.
    Arguments:
        - passed (:obj:`set[str]`): sections that may be missing, since the caller passed what they name
    """
    declared = Section('a config')
    declared.declare(TOP_SETTINGS)
    known = [*SECTIONS, *TOP_SETTINGS]
    misspelt = set()
    for key, value in given.items():
        if key not in known:
            problems.unknown(key, value, known, declared.owner)
            misspelt.add(nearest(key, known))
    for section in SECTIONS:
        if given.get(section) is None and section in given:
            given[section] = {}
        if section in MANDATORY and section not in given:
            if section in passed:
                given[section] = {}
            elif section not in misspelt:
                problems.add(section, f'missing section; {MANDATORY[section]}')
        if not isinstance(given.get(section, {}), dict):
            problems.add(section, f'got {shown(given[section])}, must be a dict')
            given[section] = {}
    top = {key: check_value(key, entry, given.get(key, entry.default), problems) for key, entry in declared.leaves()}
    import_listed('import_names', None if problems.about('import_names') else top['import_names'], problems)
    top['events'] = {} if problems.about('events') else sinks(top['events'], problems)
    return top


class _Compiler:
    """One compilation: the declarations of all sections, then the sections merged with them."""

    def __init__(
        self, given: dict[str, Any], strong: set[str], problems: Problems, policy: Any, env: Any, model: Any
    ) -> None:
        self._given, self._strong, self._problems = given, strong, problems
        self._declared: dict[str, Section] = {}
        if 'env' in given:
            if isinstance(env, (tuple, list)) and len(env) == 3:  # so many envs there are, whatever the config says
                given['env'].update(actor_env_num=len(env[1]), evaluator_env_num=len(env[2]))
            self._declared['env'] = env_declared(given['env'], env, problems)
            if env is None and self._settle_replaced_env(strong):
                self._declared['env'] = env_declared(given['env'], env, problems)
        self.model: Any = None
        self.policy: Any = None
        self._is_default = False  # the policy chooses the model
        self._is_built = model is not None and not isinstance(model, type)
        if 'policy' in given:
            self._policy_declared(policy, model)
        for section in ('learner', 'parallel'):
            import_listed(f'{section}.import_names', get_path(given, f'{section}.import_names'), problems)
        for name in SECTIONS:
            if name not in ('env', 'policy'):
                self._declared[name] = section_declared(name, given.get(name), problems)
        for name, declared in self._declared.items():
            problems.declared_paths.update(path for path, _ in declared.leaves(f'{name}.'))
        for key, note in ELSEWHERE.items():
            problems.notes[f'env.{key}'] = note
            if get_path(given, f'env.{key}', note) is None and not self._is_declared(f'env.{key}'):
                del given['env'][key]  # configs that were saved by earlier versions have it, empty, for every env
        rename(given, ALIASES, self._may_move, problems, strong)
        drop_outdone(given, strong)

    def _settle_replaced_env(self, strong: set[str]) -> bool:
        """
        Overview:
            What follows where an override names another env: the path of a module, for an env that has no ids, is one
            of PettingZoo; a vectorised ``env_manager_type`` of the config is for its own env. Whether anything does.
        """
        section, named = self._given['env'], {'env.env_type', 'env.env_id'} & strong
        before = dict(section)
        path = str(section.get('env_id')).split('.')
        is_module = len(path) > 1 and all(part.isidentifier() for part in path)
        if named == {'env.env_id'} and is_module and not self._is_declared('env.env_id'):
            section['env_type'] = 'pettingzoo'
        found = _env_class(section)
        vectors = ('vector', 'async_vector')
        vector = section.get('env_manager_type') in vectors and 'env.env_manager_type' not in strong
        if named and vector and found is not None and not hasattr(found, 'create_vector_env'):
            section['env_manager_type'] = 'base'
        for key in ('env_type', 'env_manager_type'):
            if section.get(key) != before.get(key):
                text = "env.%s: '%s' is taken in place of %s, as an override names another env"
                logger.warning(text, key, section[key], shown(before.get(key)))
        return section != before

    def _may_move(self, old: str, new: str | None) -> bool:
        """Whether a setting is an older spelling here, and not one that a class reads."""
        return not self._may_hold(old) if new is None else self._is_declared(new) and not self._is_declared(old)

    def _policy_declared(self, policy: Any, model: Any) -> None:
        given, problems = self._given['policy'], self._problems
        older = given.get('policy_type')
        if policy is None and isinstance(older, str) and older in POLICY_TYPES:
            import_listed('policy.import_names', given.get('import_names'), problems)
            if older not in POLICY_REGISTRY:
                given.update(POLICY_TYPES[older])
        found = self.policy = find_policy(given, policy, problems)
        declared = self._declared['policy'] = declared_by('the policy' if found is None else found)
        iqn = 'policy.learn.algo.use_iqn'  # it chooses the model
        rename(self._given, {iqn: ALIASES[iqn]}, self._may_move, problems, self._strong)
        section = given.get('model')
        chosen = model is not None or (isinstance(section, Mapping) and section.get('model_type') is not None)
        self._is_default = not chosen
        self.model = find_model({**declared.defaults(), **given}, found, model, problems)
        declared.entries['model'] = model_section(self.model, {} if chosen else declared.defaults().get('model', {}))

    def _is_declared(self, path: str) -> bool:
        """Whether a class declares the setting at ``path``."""
        section, _, rest = path.partition('.')
        declared = self._declared.get(section)
        if declared is None or not rest:
            return declared is not None
        if section == 'replay_buffer':
            rest = rest.rpartition('.')[2]
        return declared.at(rest) is not None

    def _may_hold(self, path: str) -> bool:
        declared = self._declared.get(path.partition('.')[0])
        return declared is not None and (declared.is_open or self._is_declared(path))

    def env_info(self, resolved: EasyDict, env: Any, needed: bool) -> Any:
        """What one env says of itself, which is made for that; None if it cannot be, a problem if it is needed."""
        if 'env' not in resolved or self._problems.about('import_names'):
            return None
        if self._problems.about('env'):
            found = _env_class(resolved.env)
            for path, text in found.check_config(resolved.env) if needed and hasattr(found, 'check_config') else ():
                self._problems.add(f'env.{path}', text)
            return None
        setting: Any = env if env is None or isinstance(env, (tuple, list)) else (env, [resolved.env], [])
        try:
            return load_attribute('nervex.run.build:env_info')(resolved, setting)
        except (Exception, SystemExit) as error:  # an env may raise anything
            if needed:
                self._problems.add('env', f'none can be made: {in_one_line(error)}')
            return None

    def conv_net(self, given: dict[str, Any], env_info: Any) -> list[str]:
        """The overrides that take the policy's net for images, where the env gives some and the config names no net."""
        shape = getattr(getattr(env_info, 'obs_space', None), 'shape', None)
        section = get_path(given, 'policy.model') or {}
        if not isinstance(shape, (tuple, list)) or len(shape) != 3:
            return []
        conv = conv_name(self.model) if self._is_default else None
        if conv is None:
            self._refuse_images(tuple(shape))
            return []
        layout = section.get('layout', 'auto')
        last = (
            load_attribute('nervex.model.common.encoder:channels_last')(shape) if layout == 'auto' else layout == 'hwc'
        )
        size = min(shape[:2] if last else shape[1:])
        small = size < 36 and not {'channels', 'kernels', 'strides'} & set(section)
        if size < 5 and small:
            return []
        logger.warning(
            "observations are images, %s: policy.model.model_type='%s' is taken, with layout='%s'; another one given, "
            "such as model_type='%s' for a dense net, overrules that",
            tuple(shape),
            conv,
            'hwc' if last else 'chw',
            self._own_net(),
        )
        sizes = ['channels=[16, 32]', 'kernels=[3, 3]', 'strides=[1, 1]'] if small else []
        return [f'policy.model.{text}' for text in (f'model_type={conv}', *sizes)]

    def _own_net(self) -> str:
        """The registered name of the model."""
        return next(name for name in MODEL_REGISTRY.query() if MODEL_REGISTRY.get(name) is self.model)

    def _refuse_images(self, shape: tuple[int, ...]) -> None:
        """A mistake where the policy's own net would flatten images, and nobody chose it."""
        if self._is_default and is_dense(self.model):
            self._problems.add(
                'policy.model.model_type',
                f'observations are images, {shape}, and the policy has no net for them; name a net of your own, '
                f"another policy ('dqn', 'ppo'), or '{self._own_net()}' to have them flattened",
            )

    def lacks_sizes(self, resolved: EasyDict) -> bool:
        """Whether the model takes sizes that only the env knows."""
        if self._is_built or 'env' not in resolved or 'policy' not in resolved:
            return False
        takes = FROM_ENV if self.model is None else inspect.signature(self.model).parameters
        known = (*FROM_ENV, 'continuous', 'continous')
        return any(name in takes and resolved.policy.model.get(name) is None for name in known)

    def sections(self) -> dict[str, Any]:
        """Every section, complete."""
        resolved: dict[str, Any] = {}
        for name in SECTIONS:
            declared, given = self._declared.get(name), self._given.get(name, {})
            if declared is None:
                continue
            if name == 'replay_buffer':
                merge_buffers = load_attribute('nervex.data.buffer_options:merge_buffers')
                resolved[name] = merge_buffers(given, declared, self._problems)
            else:
                resolved[name] = merge_section(name, declared, given, self._problems)
        return resolved

    def across(self, resolved: dict[str, Any]) -> None:
        """Derived settings and checks between sections."""
        fill_ties(resolved, self._given, self._declared, self._may_hold, self._problems, self._strong)
        settle_exclusive(resolved, self._given, self._problems, self._strong)
        cross_check(resolved, self._problems)
        if hasattr(self.policy, 'check_config') and not self._problems.about('policy'):
            for path, text in self.policy.check_config(EasyDict(resolved['policy'])):
                self._problems.add(f'policy.{path}', text)


def tell_foreign_stop(cfg: Mapping, meant: str, given: Container[str]) -> None:
    """Warn of a value that ends the run and is not among the paths given, if it was meant for another env."""
    now, evaluator = env_named(cfg), cfg.get('evaluator', {})
    stop = next((key for key in _STOPS if evaluator.get(key) is not None and f'evaluator.{key}' not in given), '')
    if stop and meant not in ('', now):
        text = 'evaluator.%s: %s of the config was meant for %s; for %s give one with -o evaluator.%s=..., or null'
        logger.warning(text, stop, evaluator[stop], meant, now, stop)


def in_one_line(error: BaseException) -> str:
    """What an env raised; with the place, unless it was raised with words for the user."""
    said = isinstance(error, (NervexError, ValueError))
    text = str(error) if said else f'{type(error).__name__}: {error} ({raised_at(error)})'
    return ' '.join(text.split())
