"""``policy.model`` is checked against the signature of the model that it builds."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from easydict import EasyDict

from nervex.config.sections import import_listed, look_up
from nervex.loader.base import Loader, instance_of, type_name
from nervex.loader.errors import mismatch
from nervex.loader.problems import Problems
from nervex.utils.declare import Section, Setting
from nervex.utils.registry_factory import MODEL_REGISTRY

#: Arguments that are taken from the env where the config leaves them out.
FROM_ENV = (
    *('obs_dim', 'obs_shape', 'action_dim', 'action_shape', 'act_shape'),
    *('agent_num', 'n_agent', 'global_obs_dim', 'alone_obs_dim'),
)
_PLAIN = (int, float, bool, str, list, dict)


def find_model(cfg_policy: Mapping, policy: Any, model: Any, problems: Problems) -> Any:
    """
    Overview:
        What ``policy.model`` will be passed to: the caller's class, the registered ``model_type``, or the policy's
        default. None where nobody can say: a model that is built already, or a policy that builds it in its own way.
    """
    section = cfg_policy.get('model')
    section = section if isinstance(section, Mapping) else {}
    if model is not None:
        return model if isinstance(model, type) else None
    import_listed('policy.model.import_names', section.get('import_names'), problems)
    if section.get('model_type') is not None:
        return look_up(MODEL_REGISTRY, 'policy.model.model_type', section['model_type'], problems)
    if policy is None or _builds_its_own(policy) or not hasattr(policy, 'default_model'):
        return None
    probe = policy.__new__(policy)
    probe._cfg = EasyDict(cfg_policy)
    try:
        name, import_names = probe.default_model()
    except NotImplementedError as error:
        problems.add('policy.model', str(error))
        return None
    except Exception as error:  # a user's hook may want more than a config to answer
        problems.add('policy.model', f'{policy.__name__}.default_model() failed: {type(error).__name__}: {error}')
        return None
    import_listed('policy.model', import_names, problems)
    return look_up(MODEL_REGISTRY, 'policy.model', name, problems)


def conv_name(model: Any) -> str | None:
    """The registered name of the net for images that takes the place of a dense one; None where there is none."""
    nets = MODEL_REGISTRY.query()
    convs = {name: name.replace('fc', 'conv') if 'fc' in name else f'conv_{name}' for name in nets}
    return next((convs[name] for name in nets if convs[name] in nets and MODEL_REGISTRY.get(name) is model), None)


def is_dense(model: Any) -> bool:
    """Whether a model is one of nerveX's that would flatten images."""
    of_nervex = getattr(model, '__module__', '').startswith('nervex.model')
    return of_nervex and 'channels' not in inspect.signature(model).parameters


def _builds_its_own(policy: type) -> bool:
    """Whether ``_create_model_from_cfg`` was overridden further down than ``default_model``."""
    for cls in policy.__mro__:
        if 'default_model' in vars(cls):
            return False
        if '_create_model_from_cfg' in vars(cls):
            return True
    return False


def model_section(model: Any, defaults: Mapping[str, Any]) -> Section:
    """
    Overview:
        What ``policy.model`` may contain: the named arguments of the model. Open where they cannot be known.
    Arguments:
        - defaults (:obj:`Mapping`): what the policy gives them
    """
    named = model if hasattr(model, '__name__') else getattr(model, 'func', model)  # a functools.partial has none
    section = signature_section(model, str(getattr(named, '__name__', 'the model')), FROM_ENV)
    if section is None:
        section = Section('the model', is_open=True)
    section.entries.update(model_type=Setting(needed=False), import_names=Setting(needed=False))
    section.declare(defaults)
    return section


def signature_section(thing: Any, owner: str, optional: Sequence[str] = ()) -> Section | None:
    """
    Overview:
        The named arguments of something that can be called, as settings; None where they cannot be known or any name
        is taken.
    Arguments:
        - optional (:obj:`Sequence[str]`): those that may be left out though they have no default
    """
    if thing is None:
        return None
    try:
        parameters = inspect.signature(thing, eval_str=True).parameters
    except NameError:  # an annotation that exists only for type checkers
        parameters = inspect.signature(thing).parameters
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return None
    named = {name: p for name, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    entries = {
        name: Setting(check=_check(p), needed=p.default is p.empty and name not in optional)
        for name, p in named.items()
    }
    return Section(owner, dict(entries), is_plain=False)


def _check(parameter: inspect.Parameter) -> Loader | None:
    annotation = parameter.annotation
    if annotation is parameter.empty:
        return None
    is_plain = isinstance(annotation, type) and annotation in _PLAIN
    words = type_name(annotation) if is_plain else str(annotation).replace('typing.', '')

    def load(value: Any) -> Any:
        if not (_fits(value, annotation) or (value is None and parameter.default is None)):
            raise mismatch(TypeError, value, words)
        return value

    return Loader(load, words)


def _fits(value: Any, annotation: Any) -> bool:
    """Whether a value fits an annotation; True for annotations that are more than plain types, unions and lists."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in arguments)
    if origin in (list, tuple, Sequence):
        each = arguments[0] if arguments else Any
        return isinstance(value, (list, tuple)) and all(_fits(item, each) for item in value)
    if annotation in (None, type(None)):
        return value is None
    if annotation is float:
        return instance_of(value, (int, float))
    return instance_of(value, annotation) if annotation in _PLAIN else True
