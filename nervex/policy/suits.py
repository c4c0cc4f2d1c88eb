"""What goes together: a policy with its settings, and with the actions and observations of an env."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
from easydict import EasyDict

from nervex.utils import MODEL_REGISTRY, POLICY_REGISTRY, ConfigError
from nervex.utils.declare import class_config
from nervex.utils.import_helper import import_modules

logger = logging.getLogger(__name__)

_WORDS = {
    'discrete': 'discrete actions',
    'multi_discrete': 'discrete actions of several heads',
    'continuous': 'continuous actions',
    'team': 'one discrete action an agent of a team',
    'team_continuous': 'continuous actions of each agent of a team',
    'game': 'moves in a game whose rules it knows',
}

TEAMS = ('team', 'team_continuous')
_BOUNDED = {'continuous': 1, 'team_continuous': 2}  # kinds whose actions have bounds, and how many axes


def policy_config(policy: Any, cfg: Mapping, model: Any) -> dict[str, Any]:
    """
    Overview:
        What a policy of this class runs with: its defaults with ``cfg`` on top. Defaults for the arguments of its own
        model are left out where another model is chosen that does not take them.
    Arguments:
        - model (:obj:`Any`): the class of a model that the caller passed, or None
    """
    merged = class_config(policy, cfg)
    section, given = merged['model'], cfg.get('model') or {}
    if not isinstance(section, dict) or not set(section) - set(given):
        return merged
    chosen = model if isinstance(model, type) else None
    if chosen is None and section.get('model_type') is not None:
        import_modules(section.get('import_names') or [])
        chosen = MODEL_REGISTRY.get(section['model_type'])
    if chosen is not None:
        parameters = inspect.signature(chosen).parameters
        if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            merged['model'] = {key: value for key, value in section.items() if key in given or key in parameters}
    return merged


def misfits(policy: Any, cfg: EasyDict) -> list[tuple[str, str]]:
    """
    Overview:
        Settings of a policy class that make no sense for it: pairs (path in the policy's section, what is wrong).
    """
    problems = []
    if cfg.use_priority and policy.no_priority is not None:
        problems.append(('use_priority', f'got True, but {policy.no_priority}; set it to False'))
    elif cfg.use_priority and cfg.on_policy:
        text = 'got True, but an on-policy buffer gives out all samples equally; set one of the two to False'
        problems.append(('use_priority', text))
    algo: Any = cfg.learn.algo if 'algo' in cfg.learn else {}
    if policy.no_nstep is not None and 'nstep' in algo and algo.nstep != 1:
        problems.append(('learn.algo.nstep', f'got {algo.nstep}, but {policy.no_nstep}; leave it out'))
    return problems


def check_env(policy: Any, env_info: Any) -> None:
    """
    Overview:
        A ConfigError if the policy class cannot serve the actions of the env, or would not see its action mask. It
        names the policies that can. Where continuous actions have other bounds it names the setting that scales them.
    """
    kind, masked = action_kind(env_info), _masked(env_info)
    if env_info.rules is not None and kind in ('discrete', None) and 'game' in (policy.action_kinds or ()):
        return
    name = policy.config.get('policy_type') or policy.__name__
    if _serves(policy, kind, masked):
        if kind in _BOUNDED and getattr(policy, 'action_range', None) is not None:
            _check_range(name, policy.action_range, env_info.act_space, _BOUNDED[kind])
        return
    if masked and _serves(policy, kind, False):
        why = 'which does not keep to an action_mask, but the observations of the env have one'
    else:
        kinds = policy.action_kinds or [known for known in _WORDS if known not in (*TEAMS, 'game')]
        given = ' or '.join(_WORDS[k] for k in kinds)
        why = f'which gives {given}, but the env takes {_WORDS[str(kind)]}'
        if 'game' in kinds:
            why += ", and no rules are known (search_rules of the env, or policy.game='module:object')"
    others = [other for other in POLICY_REGISTRY.query() if _serves(POLICY_REGISTRY.get(other), kind, masked)]
    raise ConfigError([f'policy.policy_type: got {name}, {why}; take one of {", ".join(others)}'])


def _check_range(name: str, given: tuple[float, float], space: Any, axes: int) -> None:
    """The bounds of the env's actions beside those of the policy's: narrower is an error, wider a warning."""
    if len(space.shape) != axes:
        text = f'the env takes actions of shape {tuple(space.shape)}, but {name} gives one row of numbers'
        size = int(np.prod(space.shape[axes - 1 :]))
        text, shape = (text, f'({size}, )') if axes == 1 else (f'{text} an agent', f'({space.shape[0]}, {size})')
        raise ConfigError([f"policy.policy_type: {text}; describe them in the env's info() as shape {shape}"])
    low, high = (np.asarray(space.value.get(key, end)) for key, end in (('min', -np.inf), ('max', np.inf)))
    words = (
        f'actions of the env lie in [{_numbers(low)}, {_numbers(high)}], those of {name} in '
        f'[{given[0]:g}, {given[1]:g}]; set env.use_act_scale=True (of a Gymnasium env) to stretch them, or let the '
        'env scale them and say so in info()'
    )
    if (low > given[0]).any() or (high < given[1]).any():
        raise ConfigError([f'env.use_act_scale: {words}'])
    if ((low < given[0]) & np.isfinite(low)).any() or ((high > given[1]) & np.isfinite(high)).any():
        logger.warning('the policy will use a part of the actions only: %s', words)


def _numbers(bound: np.ndarray) -> str:
    return ' '.join(f'{x:g}' for x in bound.reshape(-1))


def suits(policy: Any, env_info: Any) -> bool:
    """Whether the policy class serves the actions of the env, and its action mask, if it has one."""
    return _serves(policy, action_kind(env_info), _masked(env_info))


def _serves(policy: Any, kind: str | None, masked: bool) -> bool:
    kinds = getattr(policy, 'action_kinds', None)
    fits = kind is None or (kind not in TEAMS if kinds is None else kind in kinds)
    return fits and (not masked or getattr(policy, 'takes_action_mask', True))


def action_kind(env_info: Any) -> str | None:
    """The kind of the env's actions; None: it does not say."""
    value = env_info.act_space.value
    kind = value.get('kind') if isinstance(value, dict) else None
    if 'agent_state' in (env_info.obs_space.shape or ()):
        kind = {'multi_discrete': 'team', 'continuous': 'team_continuous'}.get(str(kind), kind)
    return kind if kind in _WORDS else None


def _masked(env_info: Any) -> bool:
    shape = env_info.obs_space.shape
    return isinstance(shape, dict) and 'action_mask' in shape
