"""What workers hold of a policy: one small typed view per mode."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from nervex.policy.rounds import Rounds


@dataclass(frozen=True)
class _Mode:
    forward: Callable[..., dict]
    reset: Callable[..., None]
    data_preprocess: Callable[..., Any]
    get_attribute: Callable[[str], Any]
    set_setting: Callable[[str, dict], None]
    state_dict: Callable[[], dict]
    load_state_dict: Callable[[dict], None]


@dataclass(frozen=True)
class LearnMode(_Mode):
    """The learner's view."""

    monitor_vars: Callable[[], list[str]]
    info: Callable[[], str]


@dataclass(frozen=True)
class EvalMode(_Mode):
    """The evaluator's view."""

    data_postprocess: Callable[..., Any]


@dataclass(frozen=True)
class CollectMode(EvalMode):
    """The actor's view."""

    process_transition: Callable[..., Any]
    get_train_sample: Callable[..., Any]


@dataclass(frozen=True)
class CommandMode:
    """The commander's view."""

    get_setting_learn: Callable[[dict], dict]
    get_setting_collect: Callable[[dict], dict]
    get_setting_eval: Callable[[dict], dict]


V = TypeVar('V')


class HasModes(Rounds):
    """The part of ``Policy`` that workers talk to."""

    @property
    def learn_mode(self) -> LearnMode:
        """What a learner holds."""
        return self._view(LearnMode, 'learn')

    @property
    def collect_mode(self) -> CollectMode:
        """What an actor holds."""
        return self._view(CollectMode, 'collect')

    @property
    def eval_mode(self) -> EvalMode:
        """The evaluator's view; a whole checkpoint that it loads brings the scaling of its observations along."""
        return self._view(EvalMode, 'eval')

    @property
    def command_mode(self) -> CommandMode:
        """What a commander holds."""
        return self._view(CommandMode, 'command')

    def _view(self, kind: type[V], mode: str) -> V:
        """
        Overview:
            The field ``forward`` of the learn mode is the method ``_forward_learn``; what only one mode has stands
            without the mode, such as ``_process_transition``, and the eval mode shares hooks of the collect mode.
        """
        found = {}
        for field in dataclasses.fields(kind):  # type: ignore[arg-type]
            names = (f'_{field.name}_{mode}', f'_{field.name}', field.name, f'_{field.name}_collect')
            found[field.name] = next(getattr(self, name) for name in names if hasattr(self, name))
        if 'forward' in found:
            found['forward'] = self._told(mode, found['forward'])
        return kind(**found)

    def info(self) -> str:
        """One line for the log."""
        return repr(self)
