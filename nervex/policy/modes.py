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
    return kind(**{field.name: found[field.name] for field in dataclasses.fields(kind)})  # type: ignore[arg-type]


def scaled(policy: Policy, forward: Callable[..., dict]) -> Callable[..., dict]:
    """``forward`` of observations as the env gives them, where a checkpoint said how the policy saw them scaled."""

    @functools.wraps(forward)
    def forward_scaled(data_id: list[int], data: dict) -> dict:
        if policy._obs_scaling is not None:
            data = {**data, 'obs': policy._obs_scaling.model_input(data['obs'])}
        return forward(data_id, data)

    return forward_scaled
