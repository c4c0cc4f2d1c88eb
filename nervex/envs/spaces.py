"""
Between the spaces of Gymnasium (or the old gym) and EnvElementInfo.

Spaces are told apart by class name, never by isinstance: gym and gymnasium may both be installed, and their classes are
not related.
"""

import logging
from typing import Any

import numpy as np

from nervex.envs.common import EnvElementInfo

logger = logging.getLogger(__name__)

MASK = 'action_mask'  # the part of a dict observation that says which actions are legal
KINDS = ('Discrete', 'MultiDiscrete', 'MultiBinary', 'Box', 'Dict', 'Tuple', 'Text')


def space_kind(space: Any) -> str:
    """The name of the space's class, or of the known class that it inherits from."""
    return next((base.__name__ for base in type(space).__mro__ if base.__name__ in KINDS), type(space).__name__)


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
        self._scale: Any = None  # (low, half the width), if actions are scaled
        self.start: Any = 0
        if kind == 'Discrete':
            n, self.start = int(space.n), int(getattr(space, 'start', 0))
            self.info = _discrete(n)
            self.plain = self.start == 0
        elif kind in ('MultiDiscrete', 'MultiBinary') or self._is_tuple_of_discrete(space):
            self.nvec, self.start = self._sizes(space)
            if len(set(self.nvec)) == 0:
                raise ValueError(f'action space {space}: it has no part')
            value = {
                'min': 0,
                'max': tuple(n - 1 for n in self.nvec),
                'dtype': np.int64,
                'kind': 'multi_discrete',
                'n': self.nvec,
            }
            self.info = EnvElementInfo((len(self.nvec),), value)
            self.plain = False
        elif kind == 'Box':
            self.info, self.plain = self._describe_box(space, use_act_scale)
        else:
            raise TypeError(
                f'action space {space} is not supported: use Discrete, MultiDiscrete, MultiBinary, Box or a Tuple of '
                f'Discretes, or write a BaseEnv that translates the actions'
            )

    def to_env(self, action: Any) -> Any:
        """The env's own form of one action."""
        if self.kind == 'Discrete':
            return _as_int(action) + self.start
        if self.kind == 'Box':
            action = np.asarray(action, dtype=self._dtype).reshape(self._shape)
            if self._scale is not None:
                low, half = self._scale
                action = (low + half * (np.clip(action, -1.0, 1.0) + 1.0)).astype(self._dtype, copy=False)
            return action
        parts = np.asarray(action).reshape(-1).astype(np.int64)
        if len(parts) != len(self.nvec):
            raise ValueError(f'action {action!r}: {len(self.nvec)} parts expected, got {len(parts)}')
        parts = parts + self.start
        if self.kind == 'Tuple':
            return tuple(parts.tolist())
        return parts.reshape(self.space.shape).astype(self.space.dtype, copy=False)

    def _describe_box(self, space: Any, use_act_scale: bool) -> tuple[EnvElementInfo, bool]:
        self._shape, self._dtype = tuple(space.shape), np.dtype(space.dtype)
        low, high = np.asarray(space.low, np.float32), np.asarray(space.high, np.float32)
        rows = (int(np.prod(self._shape)),)  # a policy answers vectors, whatever the shape of the Box
        if use_act_scale:
            if not (np.isfinite(low).all() and np.isfinite(high).all()):
                raise ValueError(f'use_act_scale: the action space {space} has no finite bounds to scale to')
            self._scale = (low, (high - low) / 2)
            low, high = np.full_like(low, -1.0), np.full_like(high, 1.0)
        bounds = {'min': _scalar(low.reshape(-1)), 'max': _scalar(high.reshape(-1))}
        plain = self._scale is None and self._dtype == np.float32 and self._shape == rows
        return EnvElementInfo(rows, {**bounds, 'dtype': np.float32, 'kind': 'continuous'}), plain

    @staticmethod
    def _is_tuple_of_discrete(space: Any) -> bool:
        return space_kind(space) == 'Tuple' and all(space_kind(s) == 'Discrete' for s in space.spaces)

    @staticmethod
    def _sizes(space: Any) -> tuple[tuple[int, ...], np.ndarray]:
        kind = space_kind(space)
        if kind == 'Tuple':
            return tuple(int(s.n) for s in space.spaces), np.array([int(getattr(s, 'start', 0)) for s in space.spaces])
        if kind == 'MultiBinary':
            size = int(np.prod(space.shape))
            return (2,) * size, np.zeros(size, np.int64)
        nvec = np.asarray(space.nvec).reshape(-1)
        start = np.asarray(getattr(space, 'start', 0), np.int64)
        return tuple(int(n) for n in nvec), np.broadcast_to(start.reshape(-1), nvec.shape).astype(np.int64)


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
        self._one_hot, self._flatten = one_hot, flatten
        self._encode, info = self._leaf(space, 'observation')
        self.info: Any = info
        self.plain = space_kind(space) == 'Box' and not flatten and space.dtype != np.float64 and space.shape != ()
        self._masked = flatten and isinstance(info.shape, dict) and MASK in info.shape
        if flatten and (isinstance(info.shape, dict) or len(info.shape) > 1):
            mask = info.shape[MASK] if self._masked else ()
            size = _flat_size(info.shape) - (_flat_size(mask) if self._masked else 0)
            flat = EnvElementInfo((size,), {'min': -np.inf, 'max': np.inf, 'dtype': np.float32, 'kind': 'continuous'})
            beside = {'observation': flat.value, MASK: info.value[MASK]} if self._masked else {}
            info = EnvElementInfo({'observation': flat.shape, MASK: mask}, beside) if self._masked else flat
        self.info = info

    def __call__(self, obs: Any) -> Any:
        encoded = self._encode(obs)
        if not self._flatten:
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
            logger.warning('%s: the text part is left out, models take arrays', name)
            return None, None
        if kind == 'Box':
            dtype = np.dtype(np.float32) if space.dtype == np.float64 else np.dtype(space.dtype)
            low, high = np.asarray(space.low), np.asarray(space.high)
            value = {'min': _scalar(low), 'max': _scalar(high), 'dtype': dtype.type, 'kind': 'continuous'}
            if space.shape == ():  # a vector of one number, as networks take it
                return (lambda x: np.asarray(x, dtype).reshape(1)), EnvElementInfo((1,), value)
            return (lambda x: np.asarray(x, dtype)), EnvElementInfo(tuple(space.shape), value)
        if kind == 'MultiBinary':
            value = {'min': 0, 'max': 1, 'dtype': np.float32, 'kind': 'continuous'}
            return (lambda x: np.asarray(x, np.float32)), EnvElementInfo(tuple(space.shape), value)
        if kind in ('Discrete', 'MultiDiscrete'):
            return self._discrete_leaf(space, kind)
        raise TypeError(f'{name}: the space {space} is not supported; write a BaseEnv that turns it into arrays')

    def _branch(self, kind: str, items: list[tuple[str, Any]], name: str) -> tuple[Any, EnvElementInfo]:
        parts = [(key, index, *self._leaf(s, f'{name}[{key!r}]')) for index, (key, s) in enumerate(items)]
        parts = [p for p in parts if p[3] is not None]
        if not parts:
            raise TypeError(f'{name}: nothing that a model can take is left of it')
        info = EnvElementInfo({k: i.shape for k, _, _, i in parts}, {k: i.value for k, _, _, i in parts})
        if kind == 'Dict':
            return (lambda x: {k: encode(x[k]) for k, _, encode, _ in parts}), info
        return (lambda x: {k: encode(x[n]) for k, n, encode, _ in parts}), info

    def _discrete_leaf(self, space: Any, kind: str) -> tuple[Any, EnvElementInfo]:
        sizes = (int(space.n),) if kind == 'Discrete' else tuple(int(n) for n in np.asarray(space.nvec).reshape(-1))
        start = np.broadcast_to(np.asarray(getattr(space, 'start', 0), np.int64).reshape(-1), (len(sizes),))
        if not self._one_hot:
            shape = () if kind == 'Discrete' else tuple(space.shape)
            value = {
                'min': 0,
                'max': _scalar(np.asarray(sizes) - 1),
                'dtype': np.int64,
                'kind': 'discrete',
                'n': sizes[0] if kind == 'Discrete' else sizes,
            }
            return (lambda x: np.asarray(x, np.int64) - start.reshape(shape)), EnvElementInfo(shape, value)
        offset = np.concatenate([[0], np.cumsum(sizes)[:-1]]) - start
        total = sum(sizes)

        def encode(x: Any) -> np.ndarray:
            out = np.zeros(total, np.float32)
            out[np.asarray(x, np.int64).reshape(-1) + offset] = 1.0
            return out

        return encode, EnvElementInfo((total,), {'min': 0, 'max': 1, 'dtype': np.float32, 'kind': 'continuous'})


def reward_info(low: float = -np.inf, high: float = np.inf, shape: tuple[int, ...] = (1,)) -> EnvElementInfo:
    """The usual description of a reward."""
    return EnvElementInfo(shape, {'min': low, 'max': high, 'dtype': np.float32, 'kind': 'continuous'})


def to_gymnasium(info: EnvElementInfo) -> Any:
    """The Gymnasium space that an EnvElementInfo describes."""
    from gymnasium import spaces

    if isinstance(info.shape, dict):
        values = info.value or {}
        return spaces.Dict({k: to_gymnasium(EnvElementInfo(s, values.get(k))) for k, s in info.shape.items()})
    value = info.value or {}
    if value.get('kind') == 'discrete':
        return spaces.Discrete(int(value['n'])) if np.ndim(value['n']) == 0 else spaces.MultiDiscrete(value['n'])
    if value.get('kind') == 'multi_discrete':
        return spaces.MultiDiscrete(value['n'])
    dtype = np.dtype(value.get('dtype', np.float32))
    low, high = (np.asarray(value.get(k, d)) for k, d in (('min', -np.inf), ('max', np.inf)))
    return spaces.Box(
        np.broadcast_to(low, info.shape).astype(dtype),
        np.broadcast_to(high, info.shape).astype(dtype),
        shape=tuple(info.shape),
        dtype=dtype.type,
    )


def _discrete(n: int) -> EnvElementInfo:
    return EnvElementInfo((n,), {'min': 0, 'max': n - 1, 'dtype': np.int64, 'kind': 'discrete', 'n': n})


def _as_int(action: Any) -> int:
    """An int, a 0-d array or tensor, or an array with one element."""
    return int(action) if np.ndim(action) == 0 else int(np.asarray(action).reshape(-1).item())


def _scalar(bound: np.ndarray) -> Any:
    """One number if all bounds are equal, else the array."""
    bound = np.asarray(bound)
    if bound.size and (bound == bound.flat[0]).all():
        return bound.flat[0].item()
    return bound


def _flat(encoded: Any) -> np.ndarray:
    if isinstance(encoded, dict):
        return np.concatenate([_flat(v) for v in encoded.values()])
    return np.asarray(encoded, np.float32).reshape(-1)


def _flat_size(shape: Any) -> int:
    return sum(_flat_size(s) for s in shape.values()) if isinstance(shape, dict) else int(np.prod(shape))
