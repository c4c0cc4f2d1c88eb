"""What workers hold of a policy: one small typed view per mode; and what it answers in every round."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from easydict import EasyDict
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from nervex.torch_utils.network.renorm import BatchRenorm
from nervex.utils.errors import unknown_name

FIELDS = ('learn', 'collect', 'eval', 'command')
#: mode -> (``policy.training``, ``policy.updating``) while it is in its forward
STATES = {'learn': (True, True), 'collect': (True, False), 'eval': (False, False)}


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


def _changing_layers(model: Any) -> list[nn.Module]:
    """Layers that do something else in training; not noisy ones, which explore while data is collected."""
    if not isinstance(model, nn.Module):
        return []
    kinds = (_DropoutNd, _NormBase, BatchRenorm)
    drops = (nn.RNNBase, nn.MultiheadAttention)
    return [m for m in model.modules() if isinstance(m, kinds) or (isinstance(m, drops) and m.dropout > 0)]


class HasModes:
    """The part of ``Policy`` that workers talk to: its modes, when it learns, and from which batches."""

    _cfg: EasyDict
    #: what it is in: (True, False) the forward of the collect mode, (True, True) of the learn mode, (False, False) of
    #: the eval mode
    training = updating = False
    #: False: the policy itself says when its Dropout, BatchNorm and the like are in training, not the forwards
    _layers_follow = True
    _model: Any = None
    _obs_scaling: Any = None  # a Normalizer, where a checkpoint brought one

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

    def _told(self, mode: str, forward: Callable[..., dict]) -> Callable[..., dict]:
        """
        Overview:
            ``forward``, so that the policy knows what it is in, and layers as Dropout and BatchNorm are in training
            in that of the learn mode only; of the eval mode, with observations scaled where a checkpoint said how.
        """
        training, updating = STATES[mode]
        layers = _changing_layers(self._model) if self._layers_follow else []

        @functools.wraps(forward)
        def forward_told(*args: Any) -> dict:
            self.training, self.updating = training, updating
            for layer in layers:
                layer.training = updating
            if not training and self._obs_scaling is not None:
                data_id, data = args
                args = data_id, {**data, 'obs': self._obs_scaling.model_input(data['obs'])}
            try:
                return forward(*args)
            finally:
                self.updating = False

        forward_told.__self__ = self  # type: ignore[attr-defined]  # messages name the hook by it
        return forward_told

    def set_setting(self, mode: str, setting: dict) -> None:
        """
        Overview:
            Sets attributes of a mode from outside: ``set_setting('collect', {'eps': .3})`` does ``self._eps = .3``.
            Only names that the policy lists in ``_<mode>_setting_set`` are accepted.
        """
        if mode not in FIELDS:
            raise ValueError(unknown_name('policy mode', mode, FIELDS))
        allowed = getattr(self, f'_{mode}_setting_set')
        for key, value in setting.items():
            if key not in allowed:
                raise KeyError(unknown_name(f'{mode} setting of {type(self).__name__}', key, allowed))
            setattr(self, f'_{key}', value)

    def may_learn(self, buffer: Any, train_iter: int) -> bool:
        """Whether ``buffer`` has what the next round of updates needs: on-policy, whatever was collected."""
        learn = self._cfg.learn
        if self._cfg.on_policy:
            return True
        first = learn.init_data_count if train_iter == 0 else 0
        size = self._get_batch_size() or 1
        return buffer.count() >= first and buffer.ready(size, train_iter, learn.train_step)

    def batches(self, buffer: Any, train_iter: int) -> Iterator[Any]:
        """
        Overview:
            The batches of one round of updates: ``learn.epochs`` passes over an on-policy buffer, which is then empty,
            or ``learn.train_step`` batches.
        """
        learn, size = self._cfg.learn, self._get_batch_size()
        epochs = learn.epochs if 'epochs' in learn else None
        if self._cfg.on_policy and epochs is None:
            yield from islice(buffer.batches(size, learn.train_step, train_iter), learn.train_step)
            buffer.clear()
        else:
            yield from buffer.batches(size, epochs or learn.train_step, train_iter)

    def _get_batch_size(self) -> int | dict[str, int] | None:
        """Rows of one update, or rows of each named buffer."""
        return self._cfg.learn.batch_size if 'batch_size' in self._cfg.learn else None

    def _get_on_policy(self) -> bool:
        return self._cfg.on_policy

    def _get_attribute(self, name: str) -> Any:
        """What a worker asks for by name: ``_get_<name>()`` if the policy has it, else ``_<name>``, else None."""
        getter = getattr(self, f'_get_{name}', None)
        return getter() if getter is not None else getattr(self, f'_{name}', None)

    def _get_setting_learn(self, command_info: dict) -> dict:
        return {}

    def _get_setting_collect(self, command_info: dict) -> dict:
        return {}

    def _get_setting_eval(self, command_info: dict) -> dict:
        return {}
