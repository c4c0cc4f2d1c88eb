"""What a change to samples is, and the chain of those that a config names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from easydict import EasyDict

from nervex.data import Batch
from nervex.utils import ConfigError, unknown_name
from nervex.utils.class_config import class_config
from nervex.utils.registry_factory import TRANSFORM_REGISTRY

Samples: TypeAlias = Batch | list[dict]


class SampleTransform:
    """
    Overview:
        Takes the samples of one round of collecting and answers what is stored instead: more, fewer, or changed ones.
        A subclass declares its settings in ``config`` and writes ``__call__`` for a Batch; rows are converted for it.
    Arguments:
        - cfg (:obj:`Mapping | None`): settings
        - seed (:obj:`Any`): of its own generator ``self._rng``
    """

    config: dict[str, Any] = {}
    needs_whole_episodes = False  # whether the samples of a round must be the steps of whole episodes, in order

    def __init__(self, cfg: Mapping | None = None, seed: Any = None) -> None:
        self._cfg = EasyDict(class_config(type(self), cfg))
        known = type(self).config
        problems = [
            f'actor.transform: {unknown_name(f"setting of {type(self).__name__}", key, known)}'
            for key in self._cfg
            if key not in known
        ]
        if problems:
            raise ConfigError(problems)
        self._rng = np.random.default_rng(seed)

    def __call__(self, samples: Batch) -> Batch:
        raise NotImplementedError(f'{type(self).__name__} must say what becomes of samples')

    def state_dict(self) -> dict[str, Any]:
        """The state of the generator."""
        return {'generator': self._rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue the random sequence."""
        self._rng.bit_generator.state = state['generator']


class SampleTransforms:
    """
    Overview:
        The chain of ``actor.transform``: a dict from registered names (or from any name, where the settings have a
        class as ``type``) to settings. Without any, samples pass as they are.
    Arguments:
        - cfg (:obj:`Mapping`): the actor's section
    """

    def __init__(self, cfg: Mapping, seed: int | None = None) -> None:
        chosen = cfg['transform'] or {}
        seeds = np.random.SeedSequence(seed).spawn(len(chosen))
        self._chain: dict[str, SampleTransform] = {}
        for (name, settings), child in zip(chosen.items(), seeds):
            settings = dict(settings or {})
            kind = settings.pop('type', name)
            if isinstance(kind, str) and kind not in TRANSFORM_REGISTRY:
                raise ConfigError([f'actor.transform.{name}: {unknown_name("transform", kind, TRANSFORM_REGISTRY)}'])
            transform = (TRANSFORM_REGISTRY.get(kind) if isinstance(kind, str) else kind)(settings, child)
            if transform.needs_whole_episodes and cfg['n_episode'] is None:
                raise ConfigError(
                    [f'actor.n_sample: got {cfg["n_sample"]}, but transform {name!r} works on whole episodes; '
                     'give actor.n_episode instead']
                )  # fmt: skip
            self._chain[name] = transform

    def __bool__(self) -> bool:
        """Whether anything is changed at all."""
        return bool(self._chain)

    def __call__(self, samples: Samples) -> Samples:
        """The samples after all changes, in the form in which they came."""
        if not self._chain or not len(samples):
            return samples
        batch = samples if isinstance(samples, Batch) else Batch.from_rows(samples)
        for transform in self._chain.values():
            batch = transform(batch)
        return batch if isinstance(samples, Batch) else [dict(batch[i].items()) for i in range(len(batch))]

    def state_dict(self) -> dict[str, Any]:
        """The states of all of them."""
        return {name: transform.state_dict() for name, transform in self._chain.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        for name, transform in self._chain.items():
            transform.load_state_dict(state[name])
