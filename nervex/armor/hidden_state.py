"""The plugin of recurrent models: one hidden state for each environment."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nervex.armor.plugin import IArmorStatefulPlugin, row_ids
from nervex.torch_utils.crossing import to_arrays
from nervex.utils import tree
from nervex.utils.errors import UnknownNameError


def _no_state() -> None:
    """The state before the first step, as recurrent models take it."""


class HiddenStatePlugin(IArmorStatefulPlugin):
    """
    Overview:
        Keeps the state of each row between calls: gives the model ``data['prev_state']`` and takes back
        ``output['next_state']``, both lists with one entry for each row. An entry is whatever the model uses: None,
        a tensor, a tuple (h, c), a dict, or a list of one state for each agent.
    Arguments:
        - state_num (:obj:`int`): number of rows (environments); their ids are 0 ... state_num - 1
        - save_prev_state (:obj:`bool`): put ``output['prev_state']``, the detached states before this step, aside for
          the transition
        - init_fn (:obj:`Callable`): makes the state of a row that starts
    """

    reset_kwargs, resume_parts = ('state',), ('_states',)

    def __init__(self, state_num: int, save_prev_state: bool = False, init_fn: Callable[[], Any] = _no_state) -> None:
        if not isinstance(state_num, int) or state_num < 1:
            raise ValueError(f'state_num is the number of rows: an integer of at least 1, got {state_num!r}')
        self._save_prev_state = save_prev_state
        self._init_fn = init_fn
        self._states = [init_fn() for _ in range(state_num)]

    def reset(self, data_id: Any = None, state: Any = None) -> None:
        """
        Arguments:
            - data_id (:obj:`Iterable[int] | None`): rows that start anew, None means all
            - state (:obj:`Any`): None makes new states; a list gives one for each row; for a single row also the bare
              state
        """
        ids = self._ids(data_id)
        if state is None:
            states = [self._init_fn() for _ in ids]
        elif isinstance(state, list) and len(state) == len(ids):
            states = state
        elif len(ids) == 1:
            states = [state]
        else:
            got = f'a list of {len(state)}' if isinstance(state, list) else f'one {type(state).__name__}'
            raise ValueError(f'reset of {len(ids)} rows needs a list of {len(ids)} states, got {got}')
        for i, row_state in zip(ids, states):
            self._states[i] = row_state

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The forward with this plugin around it."""

        def hidden_state_forward(data: Any, *args: Any, data_id: Any = None, **kwargs: Any) -> dict:
            ids = self._ids(data_id)
            if data_id is not None:
                kwargs['data_id'] = data_id  # an inner plugin may ask for it too
            states = [self._states[i] for i in ids]
            with_state = {**_as_dict(data), 'prev_state': states}
            output = dict(forward(with_state, *args, **kwargs))
            if 'next_state' not in output:
                raise UnknownNameError(f"'hidden_state' needs a model that returns 'next_state', got {sorted(output)}")
            next_states = output.pop('next_state')
            if not isinstance(next_states, list) or len(next_states) != len(ids):
                got = type(next_states).__name__
                got = f'a {got} of {len(next_states)}' if hasattr(next_states, '__len__') else got
                raise ValueError(
                    f"{len(ids)} rows {ids} were asked for: 'next_state' must be a list of {len(ids)} "
                    f'states, got {got}; pass data_id=... with the ids of the rows in the batch'
                )
            for i, state in zip(ids, next_states):
                self._states[i] = state
            if self._save_prev_state:
                output['prev_state'] = _detached(states)
            return output

        return hidden_state_forward

    def _ids(self, data_id: Any) -> list[int] | range:
        count = len(self._states)
        if data_id is None:
            return range(count)
        ids = row_ids(data_id)
        if ids and not 0 <= min(ids) <= max(ids) < count:
            raise UnknownNameError(f'data_id {ids}: state_num is {count}, so the rows are 0 ... {count - 1}')
        return ids


class StateBlockPlugin(IArmorStatefulPlugin):
    """
    Overview:
        Keeps the states of all rows as one tensor: gives the model the rows of this call as ``data['prev_state']``
        (B, *), and takes ``output['next_state']`` back in the same form. A row that starts has zeros.
    Arguments:
        - state_num (:obj:`int`): number of rows (environments)
        - shape (:obj:`Sequence[int]`): of the state of one row
        - save_prev_state (:obj:`bool`): leave the states before this step in ``output['prev_state']``
    """

    reset_kwargs = ('state',)

    def __init__(self, state_num: int, shape: Any, save_prev_state: bool = False) -> None:
        self._states: Any = np.zeros((state_num, *shape), np.float32)  # a tensor where the model is on another device
        self._save_prev_state = save_prev_state

    def bind(self, armor: Any) -> None:
        device = next(armor.model.parameters()).device
        if device.type != 'cpu':
            self._states = torch.as_tensor(self._states, device=device)

    def reset(self, data_id: Any = None, state: Any = None) -> None:
        """Rows that start anew, None means all: from zeros, or from these states."""
        rows = slice(None) if data_id is None else row_ids(data_id)
        given = state if isinstance(self._states, Tensor) else to_arrays(state)
        self._states[rows] = 0.0 if state is None else given

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The forward with this plugin around it."""

        def state_block_forward(data: Any, *args: Any, data_id: Any = None, **kwargs: Any) -> dict:
            ids = list(range(len(self._states)) if data_id is None else row_ids(data_id))
            before = self._states[ids]
            arrays = any(isinstance(leaf, np.ndarray) for leaf in tree.leaves(data))
            given = before if arrays else torch.as_tensor(before)
            output = dict(forward({**_as_dict(data), 'prev_state': given}, *args, **kwargs))
            after = output.pop('next_state')
            self._states[ids] = after if isinstance(self._states, Tensor) else to_arrays(after)
            if self._save_prev_state:
                output['prev_state'] = to_arrays(before)
            return output

        return state_block_forward

    def state_dict(self) -> dict[str, Any]:
        """The states of all rows."""
        return {'states': torch.tensor(self._states)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue with these states."""
        self._states[:] = state['states'] if isinstance(self._states, Tensor) else to_arrays(state['states'])


def _as_dict(data: Any) -> dict:
    return {'obs': data} if isinstance(data, Tensor) else {key: data[key] for key in data.keys()}


def _detached(state: Any) -> Any:
    """The same nested state without its graph."""
    return tree.map(lambda part: part.detach() if isinstance(part, Tensor) else part, state)
