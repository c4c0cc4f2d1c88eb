"""What workers hold of a policy: one small typed view per mode, so that no worker reaches into a policy's inside."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from nervex.policy.base_policy import Policy


@dataclass(frozen=True)
class LearnMode:
    """The learner's view."""

    data_preprocess: Callable[..., dict]
    forward: Callable[[dict], dict]
    reset: Callable[..., None]
    monitor_vars: Callable[[], list[str]]
    get_attribute: Callable[[str], Any]
    set_setting: Callable[[str, dict], None]
    state_dict: Callable[[], dict]
    load_state_dict: Callable[[dict], None]
    info: Callable[[], str]


@dataclass(frozen=True)
class CollectMode:
    """The actor's view."""

    data_preprocess: Callable[..., Any]
    forward: Callable[..., dict]
    data_postprocess: Callable[..., Any]
    process_transition: Callable[..., Any]
    get_train_sample: Callable[..., Any]
    reset: Callable[..., None]
    get_attribute: Callable[[str], Any]
    set_setting: Callable[[str, dict], None]
    state_dict: Callable[[], dict]
    load_state_dict: Callable[[dict], None]


@dataclass(frozen=True)
class EvalMode:
    """The evaluator's view."""

    data_preprocess: Callable[..., Any]
    forward: Callable[..., dict]
    data_postprocess: Callable[..., Any]
    reset: Callable[..., None]
    get_attribute: Callable[[str], Any]
    set_setting: Callable[[str, dict], None]
    state_dict: Callable[[], dict]
    load_state_dict: Callable[[dict], None]


@dataclass(frozen=True)
class CommandMode:
    """The commander's view."""

    get_setting_learn: Callable[[dict], dict]
    get_setting_collect: Callable[[dict], dict]
    get_setting_eval: Callable[[dict], dict]


V = TypeVar('V')


def view(kind: type[V], policy: Policy, mode: str) -> V:
    """
    Overview:
        A view of ``policy``: the field ``forward`` of the learn mode is its method ``_forward_learn``; what only one
        mode has stands without the mode, such as ``_process_transition``.
    """
    found: dict[str, Any] = {'info': policy.__repr__, 'set_setting': policy.set_setting}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if field.name not in found:
            hook = getattr(policy, f'_{field.name}_{mode}', None)
            found[field.name] = getattr(policy, f'_{field.name}') if hook is None else hook
    if 'forward' in found:
        found['forward'] = told(policy, mode, found['forward'])
    return kind(**{field.name: found[field.name] for field in dataclasses.fields(kind)})  # type: ignore[arg-type]


#: mode -> (``policy.training``, ``policy.updating``) while it is in its forward
STATES = {'learn': (True, True), 'collect': (True, False), 'eval': (False, False)}


def told(policy: Policy, mode: str, forward: Callable[..., dict]) -> Callable[..., dict]:
    """
    Overview:
        ``forward``, so that the policy knows what it is in; of the eval mode, with observations scaled where a
        checkpoint said how.
    """
    training, updating = STATES[mode]

    @functools.wraps(forward)
    def forward_told(*args: Any) -> dict:
        policy.training, policy.updating = training, updating
        if not training and policy._obs_scaling is not None:
            data_id, data = args
            args = data_id, {**data, 'obs': policy._obs_scaling.model_input(data['obs'])}
        try:
            return forward(*args)
        finally:
            policy.updating = False

    forward_told.__self__ = policy  # type: ignore[attr-defined]  # messages name the hook by it
    return forward_told
