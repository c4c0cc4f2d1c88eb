"""What a policy answers in every round, whatever its algorithm."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from easydict import EasyDict

from nervex.utils.errors import unknown_name

FIELDS = ('learn', 'collect', 'eval', 'command')
#: mode -> (``policy.training``, ``policy.updating``) while it is in its forward
STATES = {'learn': (True, True), 'collect': (True, False), 'eval': (False, False)}


class Rounds:
    """The part of ``Policy`` that decides when to learn, from which batches, and takes the commander's settings."""

    _cfg: EasyDict
    #: what it is in: (True, False) the forward of the collect mode, (True, True) of the learn mode, (False, False) of
    #: the eval mode
    training = updating = False
    _obs_scaling: Any = None  # a Normalizer, where a checkpoint brought one

    def _told(self, mode: str, forward: Callable[..., dict]) -> Callable[..., dict]:
        """
        Overview:
            ``forward``, so that the policy knows what it is in; of the eval mode, with observations scaled where a
            checkpoint said how.
        """
        training, updating = STATES[mode]

        @functools.wraps(forward)
        def forward_told(*args: Any) -> dict:
            self.training, self.updating = training, updating
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
