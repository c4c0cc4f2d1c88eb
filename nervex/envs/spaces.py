"""
Between the spaces of Gymnasium (or the old gym) and EnvElementInfo.

Spaces are told apart by class name, never by isinstance: gym and gymnasium may both be installed, and their classes are
not related.
"""

import functools
import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from nervex.envs.common import EnvElementInfo

logger = logging.getLogger(__name__)

MASK = 'action_mask'  # the part of a dict observation that says which actions are legal
KINDS = ('Discrete', 'MultiDiscrete', 'MultiBinary', 'Box', 'Dict', 'Tuple', 'Text')


def space_kind(space: Any) -> str:
    """The name of the space's class, or of the known class that it inherits from."""
    return next((base.__name__ for base in type(space).__mro__ if base.__name__ in KINDS), type(space).__name__)


# ---- descriptions
def reward_info(low: Any = -np.inf, high: Any = np.inf, shape: tuple = (1,), dtype: Any = np.float32) -> EnvElementInfo:
    """The description of numbers in that range; by default of a reward."""
    return EnvElementInfo(shape, {'min': low, 'max': high, 'dtype': dtype, 'kind': 'continuous'})


def choices_info(n: int | tuple[int, ...]) -> EnvElementInfo:
    """The description of a choice between n actions, or of several choices."""
    if isinstance(n, int):
        return EnvElementInfo((n,), {'min': 0, 'max': n - 1, 'dtype': np.int64, 'kind': 'discrete', 'n': n})
    value = {'min': 0, 'max': tuple(size - 1 for size in n), 'dtype': np.int64, 'kind': 'multi_discrete', 'n': n}
    return EnvElementInfo((len(n),), value)


def to_gymnasium(info: EnvElementInfo) -> Any:
    """The Gymnasium space that an EnvElementInfo describes."""
    from gymnasium import spaces

    value = info.value or {}
    if isinstance(info.shape, dict):
        return spaces.Dict({k: to_gymnasium(EnvElementInfo(s, value.get(k))) for k, s in info.shape.items()})
    if value.get('kind') in ('discrete', 'multi_discrete'):
        return spaces.Discrete(int(value['n'])) if np.ndim(value['n']) == 0 else spaces.MultiDiscrete(value['n'])
    dtype = np.dtype(value.get('dtype', np.float32))
    bounds = (np.asarray(value.get(k, default)) for k, default in (('min', -np.inf), ('max', np.inf)))
    low, high = (np.broadcast_to(bound, info.shape).astype(dtype) for bound in bounds)
    return spaces.Box(low, high, shape=tuple(info.shape), dtype=dtype.type)


def random_action(info: EnvElementInfo, rng: np.random.Generator, mask: Any = None) -> np.ndarray:
    """
    Overview:
        A random action, in the form that a manager takes, each as likely as the others; ``mask`` says which are legal.
        Bounds of numbers count up to a thousand. ValueError for a space that is no space of actions.
    """
    value = info.value if isinstance(info.value, dict) else {}
    n, kind = value.get('n'), value.get('kind')
    if kind == 'discrete' and n:
        return np.array(rng.integers(n) if mask is None else _legal(rng, np.ravel(mask)))
    if kind == 'multi_discrete':
        masked = isinstance(mask, np.ndarray) and mask.shape[:-1] == info.shape
        return np.array([_legal(rng, row) for row in mask]) if masked else rng.integers(np.asarray(n))
    if kind == 'continuous':
        bounds = (np.clip(np.asarray(value.get(k, d), np.float64), -1e3, 1e3) for k, d in (('min', -1), ('max', 1)))
        return rng.uniform(*(np.broadcast_to(b, info.shape) for b in bounds)).astype(np.float32)
    raise ValueError(f"act_space.value['kind'] must be 'discrete', 'multi_discrete' or 'continuous', got {kind!r}")


def _legal(rng: np.random.Generator, mask: np.ndarray) -> int:
    """One of the choices that a mask allows."""
    return int(rng.choice(np.flatnonzero(mask))) if mask.any() else 0


def sizes_of(space: Any) -> tuple[tuple[int, ...], np.ndarray] | None:
    """How many choices each part of a discrete space has, and the first value of each; None for another space."""
    kind = space_kind(space)
    if kind == 'Tuple' and all(space_kind(part) == 'Discrete' for part in space.spaces):
        parts = [sizes_of(part) for part in space.spaces]
        return tuple(part[0][0] for part in parts), np.array([part[1][0] for part in parts])  # type: ignore[index]
    if kind not in ('Discrete', 'MultiDiscrete', 'MultiBinary'):
        return None
    sizes = {'Discrete': 'n', 'MultiDiscrete': 'nvec'}
    nvec = np.full(space.shape, 2) if kind == 'MultiBinary' else np.asarray(getattr(space, sizes[kind]))
    first = 0 if kind == 'MultiBinary' else np.asarray(getattr(space, 'start', 0), np.int64).reshape(-1)
    nvec = nvec.reshape(-1)
    return tuple(int(n) for n in nvec), np.broadcast_to(first, nvec.shape).astype(np.int64)


def _scalar(bound: np.ndarray) -> Any:
    """One number if all bounds are equal, else the array."""
    bound = np.asarray(bound)
    return bound.flat[0].item() if bound.size and (bound == bound.flat[0]).all() else bound


class ActionCodec:
    """
    Overview:
        Describes an action space, and turns what a policy answers (int, vector of ints, float vector) into what the env
        takes: an int with the space's own first value, a tuple of ints, floats in the shape of the Box, on request
        scaled to its bounds.
    Arguments:
        - space (:obj:`Any`): Discrete, MultiDiscrete, MultiBinary, Box, or a Tuple of Discretes
        - use_act_scale (:obj:`bool`): the policy speaks [-1, 1]; the env gets [low, high]
    """

    def __init__(self, space: Any, use_act_scale: bool = False) -> None:
        self.space = space
        self.kind = kind = space_kind(space)
        self.scale: Any = None  # (low, half the width), if actions are scaled
        sizes = sizes_of(space)
        if kind == 'Box':
            self.info, self.plain = self._describe_box(space, use_act_scale)
        elif sizes is None:
            raise TypeError(
                f'action space {space} is not supported: use Discrete, MultiDiscrete, MultiBinary, Box or a Tuple of '
                f'Discretes, or write a BaseEnv that translates the actions'
            )
        elif not sizes[0]:
            raise ValueError(f'action space {space}: it has no part')
        elif kind == 'Discrete':
            self.start: Any = int(sizes[1][0])
            self.info, self.plain = choices_info(sizes[0][0]), self.start == 0
        else:
            self.nvec, self.start = sizes
            self.info, self.plain = choices_info(self.nvec), False

    def to_env(self, action: Any) -> Any:
        """The env's own form of one action."""
        if self.kind == 'Discrete':
            return (int(action) if np.ndim(action) == 0 else int(np.asarray(action).item())) + self.start
        if self.kind == 'Box':
            action = np.asarray(action, dtype=self._dtype).reshape(self._shape)
            if self.scale is not None:
                low, half = self.scale
                action = (low + half * (np.clip(action, -1.0, 1.0) + 1.0)).astype(self._dtype, copy=False)
            return action
        parts = np.asarray(action).reshape(-1).astype(np.int64)
        if len(parts) != len(self.nvec):
            raise ValueError(f'action {action!r}: {len(self.nvec)} parts expected, got {len(parts)}')
        parts = parts + self.start
        if self.kind == 'Tuple':
            return tuple(parts.tolist())
        return parts.reshape(self.space.shape).astype(self.space.dtype, copy=False)

    def from_env(self, actions: Any) -> np.ndarray:
        """Rows of the env's own actions -> what a policy would have answered: the inverse of ``to_env``."""
        if self.kind == 'Box':
            rows = np.asarray(actions, np.float32)
            if self.scale is not None:
                low, half = self.scale
                rows = np.clip((rows - low) / half - 1.0, -1.0, 1.0)
            return rows.reshape(len(rows), -1).astype(np.float32, copy=False)
        if self.kind == 'Discrete':
            return np.asarray(actions, np.int64).reshape(-1) - self.start
        parts = np.stack(list(actions), 1) if self.kind == 'Tuple' else np.asarray(actions)
        return parts.reshape(len(parts), -1).astype(np.int64) - self.start

    def _describe_box(self, space: Any, use_act_scale: bool) -> tuple[EnvElementInfo, bool]:
        self._shape, self._dtype = tuple(space.shape), np.dtype(space.dtype)
        low, high = np.asarray(space.low, np.float32), np.asarray(space.high, np.float32)
        rows = (int(np.prod(self._shape)),)  # a policy answers vectors, whatever the shape of the Box
        if use_act_scale:
            if not (np.isfinite(low).all() and np.isfinite(high).all()):
                raise ValueError(f'use_act_scale: the action space {space} has no finite bounds to scale to')
            self.scale = (low, (high - low) / 2)
            low, high = np.full_like(low, -1.0), np.full_like(high, 1.0)
        plain = self.scale is None and self._dtype == np.float32 and self._shape == rows
        return reward_info(_scalar(low.reshape(-1)), _scalar(high.reshape(-1)), rows), plain


class ObsCodec:
    """
    Overview:
        Describes an observation space and turns an env's observation into arrays: float64 becomes float32, uint8 stays,
        Discrete and MultiDiscrete become one-hot vectors, Dict a dict, Tuple a dict with the keys '0', '1', ...
        Text is left out, with one warning.
    Arguments:
        - one_hot (:obj:`bool`): False leaves discrete observations as ints
        - flatten (:obj:`bool`): True joins all parts into one float32 vector; an ``action_mask`` stays beside it
    """

    def __init__(self, space: Any, one_hot: bool = True, flatten: bool = False) -> None:
        self.one_hot, self.flatten = one_hot, flatten
        self._encode, self.info = self._leaf(space, 'observation')
        self.plain = space_kind(space) == 'Box' and not flatten and space.dtype != np.float64 and space.shape != ()
        shape = self.info.shape
        self._masked = flatten and isinstance(shape, dict) and MASK in shape
        if self._masked:
            flat, mask = reward_info(shape=(_flat_size(shape) - _flat_size(shape[MASK]),)), self.info.value[MASK]
            shapes = {'observation': flat.shape, MASK: shape[MASK]}
            self.info = EnvElementInfo(shapes, {'observation': flat.value, MASK: mask})
        elif flatten and (isinstance(shape, dict) or len(shape) > 1):
            self.info = reward_info(shape=(_flat_size(shape),))

    def __call__(self, obs: Any) -> Any:
        encoded = self._encode(obs)
        if not self.flatten:
            return encoded
        if self._masked:
            rest = {key: part for key, part in encoded.items() if key != MASK}
            return {'observation': _flat(rest), MASK: encoded[MASK]}
        return _flat(encoded)

    def _leaf(self, space: Any, name: str) -> tuple[Any, Any]:
        kind = space_kind(space)
        if kind in ('Dict', 'Tuple'):
            items = space.spaces.items() if kind == 'Dict' else ((str(i), s) for i, s in enumerate(space.spaces))
            return self._branch(kind, list(items), name)
        if kind == 'Text' or getattr(getattr(space, 'dtype', None), 'kind', '') == 'U':
            _warn_of_text(name)
            return None, None
        if kind == 'Box':
            dtype = np.dtype(np.float32) if space.dtype == np.float64 else np.dtype(space.dtype)
            low, high = _scalar(np.asarray(space.low)), _scalar(np.asarray(space.high))
            if space.shape == ():  # a vector of one number, as networks take it
                return (lambda x: np.asarray(x, dtype).reshape(1)), reward_info(low, high, (1,), dtype.type)
            return (lambda x: np.asarray(x, dtype)), reward_info(low, high, tuple(space.shape), dtype.type)
        if kind == 'MultiBinary':
            return (lambda x: np.asarray(x, np.float32)), reward_info(0, 1, tuple(space.shape))
        if kind in ('Discrete', 'MultiDiscrete'):
            return self._discrete_leaf(space, kind)
        raise TypeError(f'{name}: the space {space} is not supported; write a BaseEnv that turns it into arrays')

    def _branch(self, kind: str, items: list[tuple[str, Any]], name: str) -> tuple[Any, EnvElementInfo]:
        parts = []
        for index, (key, part) in enumerate(items):
            encode, info = self._leaf(part, f'{name}[{key!r}]')
            if info is not None:
                parts.append((key, key if kind == 'Dict' else index, encode, info))
        if not parts:
            raise TypeError(f'{name}: nothing that a model can take is left of it')
        whole = EnvElementInfo({k: i.shape for k, _, _, i in parts}, {k: i.value for k, _, _, i in parts})
        return (lambda x: {k: encode(x[n]) for k, n, encode, _ in parts}), whole

    def _discrete_leaf(self, space: Any, kind: str) -> tuple[Callable[[Any], np.ndarray], EnvElementInfo]:
        sizes, start = sizes_of(space) or ((), np.zeros(0))
        if not self.one_hot:
            shape = () if kind == 'Discrete' else tuple(space.shape)
            value = {**choices_info(sizes[0] if kind == 'Discrete' else sizes).value, 'kind': 'discrete'}
            value['max'] = _scalar(np.asarray(sizes) - 1)
            return (lambda x: np.asarray(x, np.int64) - start.reshape(shape)), EnvElementInfo(shape, value)
        offset = np.concatenate([[0], np.cumsum(sizes)[:-1]]) - start
        total = sum(sizes)

        def encode(x: Any) -> np.ndarray:
            out = np.zeros(total, np.float32)
            out[np.asarray(x, np.int64).reshape(-1) + offset] = 1.0
            return out

        return encode, reward_info(0, 1, (total,))


@functools.lru_cache  # once
def _warn_of_text(name: str) -> None:
    logger.warning('%s: the text part is left out, models take arrays', name)


def _flat(encoded: Any) -> np.ndarray:
    if isinstance(encoded, dict):
        return np.concatenate([_flat(v) for v in encoded.values()])
    return np.asarray(encoded, np.float32).reshape(-1)


def _flat_size(shape: Any) -> int:
    return sum(_flat_size(s) for s in shape.values()) if isinstance(shape, dict) else int(np.prod(shape))
