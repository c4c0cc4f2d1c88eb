"""What a change to samples is, and the chain of those that a config names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from easydict import EasyDict

from nervex.data import Batch
from nervex.loader.problems import Problems
from nervex.loader.rule import registered
from nervex.loader.sections import Parts, check_value, complete, merge_section
from nervex.utils import ConfigError
from nervex.utils.declare import Setting, declared_by
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
        self._cfg = EasyDict(complete(type(self), cfg, type(self).__name__))
        self._rng = np.random.default_rng(seed)

    def __call__(self, samples: Batch) -> Batch:
        raise NotImplementedError(f'{type(self).__name__} must say what becomes of samples')

    def state_dict(self) -> dict[str, Any]:
        """The state of the generator."""
        return {'generator': self._rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue the random sequence."""
        self._rng.bit_generator.state = state['generator']


def _kind(path: str, name: str, settings: Any, problems: Problems) -> Any:
    """The class of one entry of ``actor.transform``, with its settings checked; None where there is none."""
    if not isinstance(settings, Mapping) and settings is not None:
        problems.add(path, f'got {settings!r}, must be a dict: the settings of that transform')
        return None
    own = dict(settings or {})
    kind, before = own.pop('type', name), len(problems)
    if not isinstance(kind, type):
        check_value(path, Setting(check=registered(TRANSFORM_REGISTRY)), kind, problems)
        if len(problems) > before:
            return None
        kind = TRANSFORM_REGISTRY.get(kind)
    merge_section(path, declared_by(kind), own, problems)
    return kind


#: The check of ``actor.transform``.
TRANSFORMS = Parts(_kind, 'transforms')


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
        problems = Problems()
        kinds = [_kind(f'actor.transform.{name}', name, settings, problems) for name, settings in chosen.items()]
        problems.raise_if_any()
        for (name, settings), kind, child in zip(chosen.items(), kinds, seeds):
            own = {key: value for key, value in (settings or {}).items() if key != 'type'}
            transform = kind(own, child)
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
