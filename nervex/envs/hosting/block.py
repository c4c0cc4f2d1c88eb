"""
The memory that steps write to, one row an env: observations, rewards, and what is known about episodes that have ended.

An observation is an array, or a dict (of dicts) of arrays; each has an array of its own in a block. Whatever is not a
numeric array (text, ragged lists, objects) is kept in an object column.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nervex.utils import tree

SLOTS = 3  # a block stays valid while the next one is written, and the one after that
FINAL = SLOTS  # the place behind the slots: the last observations of episodes that have ended
ALIGNMENT = 64  # of every array, so that sums over slots are rounded alike in each (exact resume)


class InvalidStepError(ValueError):
    """An env answered something that its description does not allow."""


class Leaf:
    """Shape and dtype of one array of an observation; ``dtype`` object for what is no numeric array."""

    __slots__ = ('dtype', 'shape')

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)

    @property
    def is_object(self) -> bool:
        """Whether it is no numeric array."""
        return self.dtype == object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Leaf) and (self.shape, self.dtype) == (other.shape, other.dtype)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple:
        """By name: a dtype that was pickled is another object than that of arrays, and ``is`` is the quick question."""
        return Leaf, (self.shape, self.dtype.str)

    def __repr__(self) -> str:
        return f'{self.dtype.name}{list(self.shape)}'


def layout_of(obs: Any, declared: Any = None) -> Any:
    """
    Overview:
        The tree of Leafs that holds observations like this one. float64 becomes float32 unless a dtype is declared.
        (It walks by itself: an observation's lists are values, not containers.)
    Arguments:
        - obs (:obj:`Any`): a first observation
        - declared (:obj:`Any`): the ``value`` of an ``EnvElementInfo``, or None; its ``dtype`` decides
    """
    if isinstance(obs, dict):
        return {str(k): layout_of(v, declared.get(k) if isinstance(declared, dict) else None) for k, v in obs.items()}
    array = _as_array(obs)
    if array is None:
        return Leaf((), object)
    dtype = array.dtype
    if dtype == np.float64:
        dtype = np.dtype(np.float32)
    wanted = declared.get('dtype') if isinstance(declared, dict) else None
    if wanted is None and array.size == 0 and isinstance(obs, (list, tuple)):
        return Leaf((), object)  # an empty list now, and probably a longer one later
    if wanted is not None and not isinstance(wanted, dict):
        wanted = np.dtype(wanted)
        if not _may_become(array, wanted):
            raise InvalidStepError(f'the observation has dtype {array.dtype}, but info() says {wanted}')
        dtype = wanted
    return Leaf(array.shape, dtype)


def layout_from(info: Any, obs: Any) -> Any:
    """The layout of a manager's observations; an observation that contradicts ``info()`` is an InvalidStepError."""
    space = getattr(info, 'obs_space', None)
    layout = layout_of(obs, getattr(space, 'value', None))
    _agrees(layout, getattr(space, 'shape', None), obs, 'the observation')
    return layout


def _agrees(layout: Any, shape: Any, obs: Any, name: str) -> None:
    """An InvalidStepError if what was seen has another shape than ``info()`` says."""
    if isinstance(layout, dict):  # what is declared and not there, or the reverse, is for check_env
        for key in layout.keys() & shape.keys() if isinstance(shape, dict) else ():
            _agrees(layout[key], shape[key], obs[key], f'{key} of the observation')
    elif isinstance(shape, (tuple, list)) and not layout.is_object and tuple(shape) != layout.shape:
        raise InvalidStepError(f'{name} has shape {layout.shape}, but info() says {tuple(shape)}')
    elif isinstance(shape, (tuple, list)) and layout.is_object and isinstance(obs, (tuple, list)):
        sizes = [np.shape(row) for row in obs]
        if differs := next((k for k, size in enumerate(sizes) if size != sizes[0]), None):
            raise InvalidStepError(
                f'{name} must be one array of shape {tuple(shape)}, but row {differs} has shape {sizes[differs]}, '
                f'row 0 {sizes[0]}; nervex.envs.common.padded makes rows of one length'
            )


def reward_size(info: Any) -> int:
    """1 for the usual scalar reward, else the length of the vector that ``rew_space`` declares."""
    shape = getattr(getattr(info, 'rew_space', None), 'shape', None)
    return 1 if shape is None or isinstance(shape, dict) else max(1, int(np.prod(shape)))


def write_row(row: Any, obs: Any) -> None:
    """
    Overview:
        Store one observation. Nothing is broadcast: another shape, kind of number or set of keys is an
        InvalidStepError. (It walks by itself, once for every step of every env.)
    """
    if type(row) is np.ndarray:
        if type(obs) is np.ndarray and obs.dtype is row.dtype and obs.shape == row.shape:
            row[...] = obs
        elif row.dtype == object:
            row[()] = obs
        else:
            row[...] = _checked(obs, row.shape, row.dtype)
        return
    if not isinstance(obs, dict) or len(obs) != len(row):
        raise InvalidStepError(f'the observation must be a dict with the keys {list(row)}, got {_describe(obs)}')
    for key, part in row.items():
        if key not in obs:
            raise InvalidStepError(f'the observation lacks the key {key!r}; it has {list(obs)}')
        try:
            write_row(part, obs[key])
        except InvalidStepError as error:
            raise InvalidStepError(f'{key}: {error}') from None


def copy_row(target: Any, source: Any) -> None:
    """Copy one row to another row of the same layout."""
    if type(target) is np.ndarray:
        target[...] = source
    else:
        tree.write(target, ..., source)


def nothing_legal(mask: np.ndarray) -> str | None:
    """
    Overview:
        Who may take no action at all by these masks, (n, ) or (A, n) of one env, in words; None: everybody may.
    """
    stuck = np.flatnonzero(~mask.any(-1))
    if not len(stuck):
        return None
    who = f' for agent {stuck[0]}' if mask.ndim > 1 else ''
    return f"action_mask has no legal action{who}; let one stand for 'nothing'"


def _checked(obs: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The observation as an array of this shape that may be stored as this dtype, or an InvalidStepError."""
    array = _as_array(obs)
    if array is None:
        raise InvalidStepError(f'the observation must be an array of shape {shape} and {dtype}, got {_describe(obs)}')
    if array.shape != shape:
        raise InvalidStepError(f'the observation must have shape {shape}, got {array.shape}')
    if not _may_become(array, dtype):
        raise InvalidStepError(f'the observation must have dtype {dtype}, got {array.dtype}')
    return array


def _as_array(obs: Any) -> np.ndarray | None:
    """None for what is no array of numbers."""
    if obs is None or isinstance(obs, (str, bytes)):
        return None
    try:
        array = np.asarray(obs)
    except (ValueError, TypeError):  # ragged lists
        return None
    return array if array.dtype.kind in 'biuf' else None


def _may_become(array: np.ndarray, dtype: np.dtype) -> bool:
    if np.can_cast(array.dtype, dtype, 'same_kind'):
        return True
    if array.dtype.kind in 'iu' and dtype.kind in 'iu':
        limits = np.iinfo(dtype)
        return array.size == 0 or bool(array.min() >= limits.min and array.max() <= limits.max)
    return False


def _describe(obs: Any) -> str:
    text = repr(obs)
    return f'{type(obs).__name__} {text if len(text) <= 80 else text[:77] + "..."}'


class Memory:
    """
    Overview:
        Cuts zeroed arrays, one after the other, from zeroed bytes that begin at a page. Without them each array has
        memory of its own, and ``used`` still tells how many bytes it takes.
    """

    def __init__(self, buffer: Any = None) -> None:
        self._bytes = None if buffer is None else np.frombuffer(buffer, np.uint8)
        self.used = 0

    def array(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """The next array."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        source, start = self._bytes, self.used
        self.used += size + -size % ALIGNMENT
        if source is None:
            source = np.zeros(size + ALIGNMENT, np.uint8)
            start = -source.ctypes.data % ALIGNMENT
        return source[start : start + size].view(dtype).reshape(shape)


class BlockStore:
    """
    Overview:
        ``obs`` has a block of observations for each of the SLOTS, ``reward`` has (N, ) or (N, k) numbers: a step writes
        one slot, and steps go round the slots. ``rows`` are the single rows of each slot. ``final``, ``done``,
        ``truncated``, ``episode_return`` and ``episode_length`` describe the episodes that ended last.
    Arguments:
        - layout (:obj:`Any`): tree of Leafs, see ``layout_of``
        - num (:obj:`int`): envs
        - reward_size (:obj:`int`): 1, or the length of a vector reward
        - memory (:obj:`Memory | None`): what processes may share; None: private. Object columns always are
        - private (:obj:`bool`): True keeps all observations out of it
    """

    def __init__(
        self, layout: Any, num: int, reward_size: int = 1, memory: Memory | None = None, private: bool = False
    ) -> None:
        self.layout, self.num, self.reward_size = layout, num, reward_size
        memory = memory or Memory()
        own = Memory() if private else memory

        def column(leaf: Leaf) -> np.ndarray:
            return np.zeros(num, object) if leaf.is_object else own.array((num, *leaf.shape), leaf.dtype)

        *self.obs, self.final = (tree.map(column, layout) for _ in range(SLOTS + 1))
        rewards = (num,) if reward_size == 1 else (num, reward_size)
        self.reward = [memory.array(rewards, np.float32) for _ in range(SLOTS)]
        self.done, self.truncated = memory.array((num,), bool), memory.array((num,), bool)
        self.episode_return, self.episode_length = memory.array((num,), np.float64), memory.array((num,), np.int64)
        # a row of an object column is an array without axes, whose only element is the object
        *self.rows, self.final_rows = (
            [tree.index(block, (k, ...)) for k in range(num)] for block in (*self.obs, self.final)
        )

    def take(self, slot: int, ids: np.ndarray | None, ended: Sequence[tuple[int, int]] = ()) -> Any:
        """
        Overview:
            A copy of the observations of envs (None: of all); those ``ended`` (place, env) show their episode's last.
        """

        def copied(leaf: np.ndarray, final: np.ndarray) -> np.ndarray:
            block = leaf.copy() if ids is None else leaf[ids]
            for k, i in ended:
                block[k] = final[i]
            return block

        obs = self.obs[slot]
        return copied(obs, self.final) if type(obs) is np.ndarray else tree.map(copied, obs, self.final)

    def carry(self, ids: Iterable[int], before: int, slot: int) -> None:
        """Copy the observations of envs that a step leaves out to its slot."""
        for i in ids:
            copy_row(self.rows[slot][i], self.rows[before][i])


class Check:
    """
    Overview:
        What must hold of rows ``low .. high`` of a slot: observations and rewards are finite, and where observations
        have an ``action_mask`` everybody may do something. ``floats``, pairs of a flat view and zeros of its length,
        and ``mask`` are of all rows: 0 * x is 0 for every finite x and NaN for the others, which ``view.dot(zeros)``
        tells in one pass. The methods look at row k, of an env and at a step that an InvalidStepError then names.
    Arguments:
        - rewards (:obj:`bool`): whether scalar rewards are in ``floats``, too; who adds them up sees NaN in the sums
    """

    def __init__(self, store: BlockStore, slot: int, low: int, high: int, rewards: bool) -> None:
        obs, reward = store.obs[slot], store.reward[slot][low:high]
        leaves = [leaf[low:high] for leaf in tree.leaves(obs) if leaf.dtype.kind == 'f']
        wide = leaves if reward.ndim == 1 and not rewards else [*leaves, reward]
        self.floats = [(leaf.reshape(-1), np.zeros(leaf.size, leaf.dtype)) for leaf in wide if leaf.size]
        zeros = [np.zeros(leaf[0].size, leaf.dtype) for leaf in leaves]
        self._rows = [[(leaf[k].reshape(-1), zero) for leaf, zero in zip(leaves, zeros)] for k in range(high - low)]
        mask = obs.get('action_mask') if isinstance(obs, dict) else None
        self.mask = None if not isinstance(mask, np.ndarray) or mask.dtype == object else mask[low:high]
        # memoryviews take single numbers faster than NumPy's arrays do
        self.rewards: Any = reward.data if reward.ndim == 1 else reward

    def finite(self, k: int, env: int, step: int, what: str = 'the observation') -> None:
        """The observation of a row."""
        for view, zeros in self._rows[k]:
            if view.dot(zeros):
                raise _not_finite(what, view, env, step)

    def legal(self, k: int, env: int, step: int) -> None:
        """The mask of a row."""
        if self.mask is not None and (text := nothing_legal(self.mask[k])):
            raise InvalidStepError(f'{text} (env {env}, step {step} of the episode)')

    def paid(self, k: int, env: int, step: int) -> None:
        """The reward of a row."""
        reward = self.rewards[k]
        if type(reward) is float and -math.inf < reward < math.inf:  # 3 us faster, once an episode
            return
        if not np.isfinite(reward).all():
            raise _not_finite('the reward', np.reshape(reward, -1), env, step)


def _not_finite(what: str, view: np.ndarray, env: int, step: int) -> InvalidStepError:
    bad, shown = view[~np.isfinite(view)][0], f': {view.tolist()}' if 1 < view.size <= 8 else ''
    return InvalidStepError(f'{what} of env {env} at step {step} of the episode has {bad} in it{shown}')
