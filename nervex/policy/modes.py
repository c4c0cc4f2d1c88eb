"""What workers hold of a policy: one small typed view per mode, so that no worker reaches into a policy's inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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


def learn_mode(policy: Policy) -> LearnMode:
    """The bound methods of ``policy`` that a learner needs."""
    p = policy
    return LearnMode(
        p._data_preprocess_learn,
        p._forward_learn,
        p._reset_learn,
        p._monitor_vars_learn,
        p._get_attribute,
        p.set_setting,
        p._state_dict_learn,
        p._load_state_dict_learn,
        p.__repr__,
    )


def collect_mode(policy: Policy) -> CollectMode:
    """The bound methods of ``policy`` that an actor needs."""
    p = policy
    return CollectMode(
        p._data_preprocess_collect,
        p._forward_collect,
        p._data_postprocess_collect,
        p._process_transition,
        p._get_train_sample,
        p._reset_collect,
        p._get_attribute,
        p.set_setting,
        p._state_dict_collect,
        p._load_state_dict_collect,
    )


def eval_mode(policy: Policy) -> EvalMode:
    """The bound methods of ``policy`` that an evaluator needs."""
    p = policy
    return EvalMode(
        p._data_preprocess_eval,
        p._forward_eval,
        p._data_postprocess_eval,
        p._reset_eval,
        p._get_attribute,
        p.set_setting,
        p._state_dict_eval,
        p._load_state_dict_eval,
    )


def command_mode(policy: Policy) -> CommandMode:
    """The bound methods of ``policy`` that a commander needs."""
    return CommandMode(policy._get_setting_learn, policy._get_setting_collect, policy._get_setting_eval)
