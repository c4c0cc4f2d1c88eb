"""From a policy's action columns to what each env's step takes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

PLAIN, NUMPY, ARRAY = 'plain', 'numpy', 'array'
KEPT = 256  # the discrete actions whose NumPy ints are made once
INT64 = np.dtype(np.int64)


class ActionRows:
    """
    Overview:
        Splits a block of actions into rows. Discrete actions become Python ints for envs with ``step_into``, NumPy ints
        for Gymnasium envs that are stepped directly (their spaces check those fastest) and 0-d arrays for the others
        (never arrays of one element, which Gymnasium refuses).
    Arguments:
        - act_space (:obj:`Any`): the ``act_space`` of ``env.info()``
    """

    def __init__(self, act_space: Any) -> None:
        self.act_space = act_space
        value = getattr(act_space, 'value', None)
        value = value if isinstance(value, dict) else {}
        self.kind = value.get('kind')
        shape = getattr(act_space, 'shape', None)
        self.shape: Any = tuple(shape) if isinstance(shape, (tuple, list)) else None
        if self.kind == 'discrete':
            self.shape = ()
        elif self.kind is None:
            self.shape = None  # the env says too little: pass actions on as they come
        self._numpy_int = {i: np.int64(i) for i in range(KEPT)}.__getitem__ if self.kind == 'discrete' else None

    def memory(self) -> tuple[tuple[int, ...], Any] | None:
        """Shape and dtype of one action in shared memory; None if the env says too little: then they are pickled."""
        if self.kind not in ('discrete', 'multi_discrete', 'continuous') or self.shape is None:
            return None
        return self.shape, np.float32 if self.kind == 'continuous' else np.int64

    def block(self, actions: Any) -> Any:
        """The actions as one array (or a dict of arrays, or a list if they are objects), trailing axes as declared."""
        if isinstance(actions, dict):
            return {k: self._array(v) for k, v in actions.items()}
        if type(actions) is np.ndarray and (self.shape is None or actions.shape[1:] == self.shape):
            return actions
        if not isinstance(actions, np.ndarray):
            actions = self._array(actions)
        if self.shape is not None and isinstance(actions, np.ndarray) and actions.shape[1:] != self.shape:
            actions = self._fit(actions)
        return actions

    def split(self, actions: Any, form: str) -> Sequence[Any]:
        """One action a row; ``form`` is what single numbers become: PLAIN, NUMPY or ARRAY."""
        if type(actions) is not np.ndarray or (self.shape is not None and actions.shape[1:] != self.shape):
            actions = self.block(actions)
            if isinstance(actions, dict):
                return [{k: v[i] for k, v in actions.items()} for i in range(len(next(iter(actions.values()))))]
            if not isinstance(actions, np.ndarray):
                return actions
        if actions.ndim > 1 or form == ARRAY:
            actions = actions.copy()  # an env may keep its action, and this memory is written again
            return [actions[i, ...] for i in range(len(actions))]
        if form == PLAIN:
            return actions.tolist()
        if self._numpy_int is not None and actions.dtype is INT64:
            try:
                return list(map(self._numpy_int, actions.tolist()))
            except KeyError:  # a large or a negative number
                pass
        return list(actions)

    def stack(self, actions: Sequence[Any]) -> Any:
        """One block from single actions: ints, arrays, tensors, dicts of them."""
        if isinstance(actions[0], dict):
            return {k: self.stack([a[k] for a in actions]) for k in actions[0]}
        arrays = [self._array(a) for a in actions]
        if self.shape is not None:
            arrays = [self._fit(a[None])[0, ...] if isinstance(a, np.ndarray) else a for a in arrays]
        if any(not isinstance(a, np.ndarray) or a.dtype == object or a.shape != arrays[0].shape for a in arrays):
            return list(actions)
        return np.stack(arrays)

    def _fit(self, actions: np.ndarray) -> np.ndarray:
        size = int(np.prod(self.shape))
        if actions.size == len(actions) * size:
            return actions.reshape(len(actions), *self.shape)
        raise ValueError(f'actions of shape {actions.shape} do not fit: the env takes {self.shape or "one int"} each')

    @staticmethod
    def _array(actions: Any) -> Any:
        if hasattr(actions, 'detach'):
            actions = actions.detach().cpu().numpy()
        if isinstance(actions, np.ndarray):
            return actions
        try:
            return np.asarray(actions)
        except ValueError:  # ragged: left as a list
            return actions


def rows_of(block: Any, index: Any) -> Any:
    """Rows of an action block, whatever it is."""
    if isinstance(block, dict):
        return {k: v[index] for k, v in block.items()}
    if isinstance(block, np.ndarray) or isinstance(index, slice):
        return block[index]
    return [block[i] for i in index]
