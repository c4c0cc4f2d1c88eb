"""Counters, and checkpoints of a model and its optimizer for scripts outside the learner."""

import functools
import logging
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from nervex.utils.errors import CheckpointError
from nervex.utils.file_helper import read_file, save_file

logger = logging.getLogger(__name__)

VERSION = 1


class CountVar:
    """
    Overview:
        A whole number shared by reference, e.g. the learner's iteration.
    Interfaces:
        val, add, update, state_dict, load_state_dict
    """

    def __init__(self, init_val: int) -> None:
        self.val = init_val

    def add(self, add_num: int) -> None:
        """Count up."""
        self.val += add_num

    def update(self, val: int) -> None:
        """Set."""
        self.val = val

    def state_dict(self) -> int:
        """The number."""
        return self.val

    load_state_dict = update


def build_checkpoint_helper(cfg: Any = None) -> 'CheckpointHelper':
    """A CheckpointHelper; ``cfg`` has no settings and may be left out."""
    return CheckpointHelper()


class CheckpointHelper:
    """
    Overview:
        One file with a model, and with the parts with a ``state_dict`` that are given: in this order, or by their
        names, ``optimizer`` and the counters ``last_iter``, ``last_epoch`` and ``last_frame``; by their names others:
        ``lr_scheduler``, ``dataset``, ``actor_info``. Files are written whole or not at all and read without running
        code from them.
    Interfaces:
        save, load
    """

    def save(
        self,
        path: str,
        model: torch.nn.Module,
        *given: Any,
        prefix_op: str | None = None,
        prefix: str | None = None,
        **parts: Any,
    ) -> None:
        """
        Arguments:
            - prefix_op (:obj:`str | None`): 'add' or 'remove' ``prefix`` at the names of the model's state
        """
        state = {'version': VERSION, 'model': _prefixed(model.state_dict(), prefix_op, prefix)}
        save_file(path, {**state, **{key: part.state_dict() for key, part in _named(given, parts).items()}})
        logger.info('saved %s', path)

    def load(
        self,
        load_path: str,
        model: torch.nn.Module,
        *given: Any,
        prefix_op: str | None = None,
        prefix: str | None = None,
        strict: bool = True,
        state_dict_mask: list[str] | None = None,
        **parts: Any,
    ) -> None:
        """
        Overview:
            Read a file of ``save``. What is asked for and not in the file is an error.
        Arguments:
            - strict (:obj:`bool`): the names of the file and of the model must be the same
            - state_dict_mask (:obj:`list[str] | None`): beginnings of names that are left out, e.g. ``['head.']``
            - parts: as of ``save``; ``lr_schduler`` is an older spelling of ``lr_scheduler``
        """
        state = read_file(load_path)
        if not isinstance(state, dict) or 'model' not in state:
            raise CheckpointError(f"'{load_path}' is no checkpoint: it holds no 'model'")
        if state.get('version', 0) > VERSION:
            raise CheckpointError(f"'{load_path}' has version {state['version']}; this nervex reads up to {VERSION}")
        masked, weights = tuple(state_dict_mask or ()), _prefixed(state['model'], prefix_op, prefix)
        weights = {k: v for k, v in weights.items() if not k.startswith(masked)} if masked else weights
        try:
            model.load_state_dict(weights, strict=strict and not masked)
        except RuntimeError as e:
            raise CheckpointError(f"'{load_path}' does not fit the model: {e}") from e
        if 'lr_schduler' in parts:
            parts['lr_scheduler'] = parts.pop('lr_schduler')
        for key, part in _named(given, parts).items():
            if key not in state:
                raise CheckpointError(f"'{load_path}' holds no '{key}'; it has {', '.join(sorted(state))}")
            part.load_state_dict(state[key])


def auto_checkpoint(method: Callable) -> Callable:
    """
    Overview:
        Decorator for a method of an object with ``save_checkpoint()``: an error, Ctrl-C or a request to end (SIGTERM)
        during the method saves first and then goes on its way.
    """

    @functools.wraps(method)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        old = signal.signal(signal.SIGTERM, _exit) if threading.current_thread() is threading.main_thread() else None
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            logger.warning('%s ends early; saving a checkpoint', method.__qualname__)
            self.save_checkpoint()
            raise
        finally:
            if old is not None:
                signal.signal(signal.SIGTERM, old)

    return wrapped


def _exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _named(given: tuple, parts: dict[str, Any]) -> dict[str, Any]:
    """The parts that are not None by their names, also those that were given by their places."""
    named = {**dict(zip(('optimizer', 'last_iter', 'last_epoch', 'last_frame'), given)), **parts}
    return {key: part for key, part in named.items() if part is not None}


def _prefixed(weights: dict, op: str | None, prefix: str | None) -> dict:
    if op is None:
        return weights
    if op not in ('add', 'remove') or not prefix:
        raise ValueError(f"prefix_op is 'add' or 'remove' and needs a prefix, got {op!r} and {prefix!r}")
    if op == 'add':
        return {prefix + k: v for k, v in weights.items()}
    return {k.removeprefix(prefix): v for k, v in weights.items()}
