"""``actor.beside_learning``: each round is collected in a thread while the learner works on the one before."""

from __future__ import annotations

import copy
import dataclasses
import functools
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from nervex.armor.sampling import Draws
from nervex.data import Batch
from nervex.graph.matmul import FastMatmul
from nervex.policy import Policy
from nervex.torch_utils.flat import FlatParameters
from nervex.utils import CheckpointError, ConfigError
from nervex.utils.part_state import put_back, restored, state_of
from nervex.worker.actor.base_serial_actor import COUNTERS, line_due

_ALIKE = {torch.randn_like: torch.randn, torch.rand_like: torch.rand}  # to functions that take a generator
_DRAWING = {torch.rand, torch.randn, torch.randint, torch.randperm, torch.normal, torch.bernoulli, torch.multinomial}
_DRAWING |= {getattr(torch.Tensor, f'{name}_') for name in ('normal', 'uniform', 'exponential', 'bernoulli', 'random')}


class BesideActor:
    """
    Overview:
        An actor whose ``generate_data`` answers a round and begins the next one, which is collected while the learner
        learns from the first: with the weights and settings of that moment, so exactly one round late. Its counters
        are those of the rounds that it has answered. Collecting shares nothing that learning changes: the actor acts by
        a policy of its own, always in the same thread, whose weights are brought up to date when a round begins.
    Arguments:
        - actor (:obj:`Any`): what collects; its env is set
        - learning, acting (:obj:`Policy`): the policy that learns; another one like it, with its collect mode
    Interfaces:
        generate_data, settle, policy, state_dict, load_state_dict, close; all else is the actor's
    """

    def __init__(self, actor: Any, learning: Policy, acting: Policy) -> None:
        self._actor, self._learning, self._acting = actor, learning.collect_mode, acting
        for name, module in learning._model.named_modules():
            if FlatParameters.of(module) is not None:
                FlatParameters(acting._model.get_submodule(name))
        self._mode, self._settings = acting.collect_mode, dict[str, dict]()  # settings that the next round begins with
        actor.policy = dataclasses.replace(self._mode, forward=self._unless_closing(self._mode.forward))
        self.policy = dataclasses.replace(self._mode, set_setting=self._note)
        self._log_every, actor._cfg.collect_print_freq = actor._cfg.collect_print_freq, 0
        self._fast, self._draws = _one_matmul(learning), Draws()
        self._fast.__enter__()
        self._thread = ThreadPoolExecutor(1, 'collecting', _leave_global_chance)
        self._round: Future | None = None  # the one that was begun and not answered
        self._closing = False
        self._count()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._actor, name)

    # ---- collecting ----
    def generate_data(self, iter_count: int) -> tuple[Batch, dict[str, Any]]:
        """Wait for the round that was begun, and begin the next one; see ``BaseSerialActor.generate_data``."""
        if self._round is None:
            self._begin_alone(iter_count)
        answer = self._round.result()  # type: ignore[union-attr]
        self._count()
        if line_due(self._log_every, self.rounds, answer[1]):
            self._actor.log.totals(self, self.last_iter)
        self._begin(iter_count)
        return answer

    def _begin(self, iter_count: int) -> None:
        self._mode.load_state_dict(self._learning.state_dict())
        for mode, given in self._settings.items():
            self._mode.set_setting(mode, given)
        self._settings.clear()
        self._round = self._thread.submit(self._collect, iter_count)

    def _collect(self, iter_count: int) -> tuple[Batch, dict[str, Any]]:
        with _OwnChance(self._draws):
            return self._actor.generate_data(iter_count)

    def _count(self) -> None:
        for name in COUNTERS:
            setattr(self, name, copy.copy(getattr(self._actor, name)))

    def _note(self, mode: str, setting: dict) -> None:
        self._settings.setdefault(mode, {}).update(setting)

    def _begin_alone(self, iter_count: int) -> None:
        """The first round, beside which nothing happens, shows whether acting draws from torch's global generator."""
        before = torch.get_rng_state()
        self._begin(iter_count)
        self.settle()
        if not torch.equal(before, torch.get_rng_state()):
            text = f"acting with {type(self._acting).__name__} draws from torch's global generator (as dropout does)"
            rest = 'and so may learning beside it, so that no run could be repeated; leave it False'
            raise ConfigError([f'actor.beside_learning: got True, but {text}, {rest}'])

    def _unless_closing(self, forward: Callable[..., dict]) -> Callable[..., dict]:
        @functools.wraps(forward)
        def stopped(*args: Any) -> dict:
            if self._closing:
                raise _Closing
            return forward(*args)

        return stopped

    def settle(self) -> None:
        """Wait until nothing is collected; what went wrong there is raised by ``generate_data``."""
        if self._round is not None:
            wait([self._round])

    # ---- life ----
    def state_dict(self) -> dict[str, Any]:
        """The actor's state behind the round that was begun, and that round."""
        self.settle()
        if self._round is not None and (error := self._round.exception()) is not None:
            raise CheckpointError(f'the round that was collected beside learning has failed: {error}') from error
        return {
            'actor': self._actor.state_dict(),
            'acting': self._acting.run_state_dict(),
            'counters': {name: state_of(getattr(self, name)) for name in COUNTERS},
            'settings': state_of(self._settings),
            'round': None if self._round is None else state_of(list(self._round.result())),
            'draws': self._draws.state_dict(),
            'onednn': self._fast.enabled,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        self._actor.load_state_dict(state['actor'])
        self._acting.load_run_state_dict(state['acting'])
        for name in COUNTERS:
            put_back(self, name, state['counters'][name])
        self._settings = state['settings']
        self._draws.load_state_dict(state['draws'])
        if state['round'] is not None:
            self._round = Future()
            self._round.set_result(tuple(restored(state['round'])))
        self._fast.__exit__()
        self._fast.enabled = state['onednn']  # also on a CPU for which the rule would choose otherwise
        self._fast.__enter__()

    def close(self) -> None:
        """Give up the round that was begun, and end the thread and the actor; closing twice is fine."""
        self._closing = True
        self._thread.shutdown(cancel_futures=True)
        self._fast.__exit__()
        self._fast.enabled = False
        for name in COUNTERS:  # which it logs
            setattr(self._actor, name, getattr(self, name))
        self._actor.close()


class SettledState:
    """The state of a part that ``actor`` changes, for those who save it while the learner learns."""

    def __init__(self, part: Any, actor: BesideActor) -> None:
        self._part, self._actor = part, actor
        self.load_state_dict = part.load_state_dict

    def state_dict(self) -> dict[str, Any]:
        """The part's, when nothing is collected."""
        self._actor.settle()
        return self._part.state_dict()


class _OwnChance(TorchFunctionMode):
    """What draws from torch's global generators within it, in this thread, draws from those of ``draws`` instead."""

    def __init__(self, draws: Draws) -> None:
        super().__init__()
        self._draws = draws

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in _ALIKE:
            like, *args = args
            kwargs = {'dtype': like.dtype, 'device': like.device, **kwargs}
            func, args = _ALIKE[func], (like.shape, *args)
        if func in _DRAWING and kwargs.get('generator') is None:
            first = args[0] if args else None
            device = first.device if isinstance(first, torch.Tensor) else torch.device(kwargs.get('device') or 'cpu')
            kwargs['generator'] = self._draws.on(device)
        return func(*args, **kwargs)


class _Closing(Exception):
    """Ends a round that nobody waits for."""


def _one_matmul(learning: Policy) -> FastMatmul:
    """
    Overview:
        What multiplies matrices, for the whole run: torch has one setting for all threads, so an update that switched
        to oneDNN and back would now and then change the rounding of an action beside it.
    """
    learn, size = learning._cfg.learn, learning._get_batch_size() or 1
    rows = min(size.values()) if isinstance(size, Mapping) else size
    fast = FastMatmul(learning._model.parameters(), rows, learn.matmul if 'matmul' in learn else 'mkl')
    learn.matmul = 'mkl'  # updates leave it as it is
    return fast


def _leave_global_chance() -> None:
    """Recording in this thread puts back no global generator: the learner's thread draws from that."""
    threading.current_thread().global_chance = False  # type: ignore[attr-defined]
