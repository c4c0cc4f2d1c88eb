"""A recurrent layer between encoder and head, for each agent too, and the forms in which its state travels."""

import math
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from nervex.torch_utils.network.shapes import InputShapeError
from nervex.utils.errors import UnknownNameError, unknown_name

_TYPES = {'lstm': nn.LSTM, 'normal': nn.LSTM, 'pytorch': nn.LSTM, 'hpc': nn.LSTM, 'gru': nn.GRU}


class RNN(nn.Module):
    """
    Overview:
        LSTM or GRU over (T, B) whose state is a list with one entry for each row of the batch, as the armor plugin
        ``hidden_state`` keeps it: (h, c) for an LSTM, h for a GRU, each of shape (num_layers, 1, H).
    Arguments:
        - in_dim (:obj:`int`), hidden_dim (:obj:`int`): sizes of input and state
        - lstm_type (:obj:`str`): 'lstm' or 'gru'; 'normal', 'pytorch' and 'hpc' are older names of 'lstm'
        - num_layers (:obj:`int`): stacked layers
    """

    def __init__(self, in_dim: int, hidden_dim: int, lstm_type: str = 'lstm', num_layers: int = 1) -> None:
        super().__init__()
        if lstm_type not in _TYPES:
            raise UnknownNameError(unknown_name('lstm_type', lstm_type, _TYPES))
        self.rnn = _TYPES[lstm_type](in_dim, hidden_dim, num_layers)
        self.out_dim = hidden_dim
        self._parts = 1 if lstm_type == 'gru' else 2
        self._num_layers = num_layers

    def forward(self, x: Tensor, prev_state: Any = None) -> tuple[Tensor, Any]:
        """
        Arguments:
            - x (:obj:`torch.FloatTensor`): :math:`(T, B, N)`
            - prev_state (:obj:`Any`): None (zeros); a list of B states, where None is zeros; the stacked state, a
              tensor or tuple of tensors :math:`(layers, B, H)`; or a block :math:`(B, F)`, see ``to_block``
        Returns:
            - y (:obj:`torch.FloatTensor`): :math:`(T, B, H)`
            - next_state (:obj:`list | torch.FloatTensor`): B states; a block for a block
        """
        if isinstance(prev_state, Tensor) and prev_state.dim() == 2:
            y, state = self.run(x, self.from_block(prev_state))
            return y, self.to_block(state)
        y, state = self.run(x, self.joined(prev_state, x))
        return y, self.split(state)

    def run(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """The same with the state in the stacked form, in and out; None is zeros."""
        return self._one_step(x[0], state) if len(x) == 1 else self.rnn(x, state)

    def to_block(self, state: Any) -> Tensor:
        """The stacked state as one tensor (B, F), its parts and layers side by side."""
        parts = [state] if self._parts == 1 else list(state)
        return torch.cat([part.transpose(0, 1).flatten(1) for part in parts], 1)

    def from_block(self, block: Tensor) -> Any:
        """The inverse of ``to_block``."""
        parts = block.unflatten(1, (self._parts, self._num_layers, self.out_dim)).permute(1, 2, 0, 3)
        return self._of_parts([parts[k].contiguous() for k in range(self._parts)])

    @property
    def block_dim(self) -> int:
        """F of ``to_block``."""
        return self._parts * self._num_layers * self.out_dim

    def initial_state(self) -> Any:
        """The state of one row before its first step: zeros."""
        weight = next(self.parameters())
        return self._of_parts([weight.new_zeros(self._num_layers, 1, self.out_dim) for _ in range(self._parts)])

    def _one_step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """A single step of all layers by torch's cells: a third of the cost of its layers for sequences."""
        if state is None:
            zeros = x.new_zeros(self._num_layers, len(x), self.out_dim)
            state = self._of_parts([zeros] * self._parts)
        results: list[Any] = []
        for layer, weights in enumerate(self.rnn.all_weights):
            if self._parts == 1:
                x = torch.gru_cell(x, state[layer], *weights)
                results.append((x,))
            else:
                results.append(torch.lstm_cell(x, (state[0][layer], state[1][layer]), *weights))
                x = results[-1][0]
        return x.unsqueeze(0), self._of_parts([torch.stack(part) for part in zip(*results)])

    def joined(self, prev_state: Any, x: Tensor) -> Any:
        """The states of the rows of ``x`` (T, B, N) as the one stacked state that torch takes; None is zeros."""
        if prev_state is None or not isinstance(prev_state, list):
            return self._of_parts(self._to_parts(prev_state)) if prev_state is not None else None
        if len(prev_state) != x.shape[1]:
            raise InputShapeError(f'prev_state is a list of {len(prev_state)} states, the batch has {x.shape[1]} rows')
        if all(state is None for state in prev_state):
            return None
        zeros = x.new_zeros(self._num_layers, 1, self.out_dim)
        rows = [[zeros] * self._parts if state is None else self._to_parts(state) for state in prev_state]
        try:
            return self._of_parts([torch.cat([self._as_row(row[k]) for row in rows], 1) for k in range(self._parts)])
        except (RuntimeError, IndexError) as error:
            raise InputShapeError(
                f'prev_state: this layer expects {self._parts} tensors of shape ({self._num_layers}, '
                f'1, {self.out_dim}) a row'
            ) from error

    def split(self, state: Any) -> list[Any]:
        """The stacked state as a list of one state a row."""
        parts = [part.split(1, 1) for part in ([state] if self._parts == 1 else state)]
        return list(parts[0]) if self._parts == 1 else list(zip(*parts))

    def _to_parts(self, state: Any) -> list[Tensor]:
        if isinstance(state, Tensor):
            return [state]
        return [state[key] for key in ('h', 'c') if key in state] if isinstance(state, dict) else list(state)

    def _of_parts(self, parts: list[Tensor]) -> Any:
        return parts[0] if self._parts == 1 else tuple(parts)

    @staticmethod
    def _as_row(part: Tensor) -> Tensor:
        return part if part.dim() == 3 else part.unsqueeze(1)


def get_lstm(lstm_type: str, input_size: int, hidden_size: int, num_layers: int = 1) -> RNN:
    """The recurrent layer of that name, see ``RNN``."""
    return RNN(input_size, hidden_size, lstm_type, num_layers)


def unrolled(rnn: RNN, x: Tensor, obs: Tensor, obs_shape: tuple[int, ...], data: dict[str, Any]) -> tuple[Tensor, Any]:
    """
    Overview:
        The memory of a network over the features of one step or of a sequence.
    Arguments:
        - x (:obj:`Tensor`), obs (:obj:`Tensor`): features, and the observations that they were made of
        - data (:obj:`dict`): the network's input: ``prev_state``, see ``RNN``, and ``enable_fast_timestep``
          (:obj:`bool`), which says that a sequence is meant
    Shapes:
        - obs :math:`(B, *)` or :math:`(T, B, *)`; x and the result :math:`(B, N)` or :math:`(T, B, N)`
    """
    rank = obs.dim() - len(obs_shape)
    if rank not in (1, 2) or (data.get('enable_fast_timestep') and rank != 2):
        shape = ', '.join(map(str, obs_shape))
        raise InputShapeError(
            f'obs of shape {tuple(obs.shape)} does not fit: expected (B, {shape}), or (T, B, {shape}) for a sequence '
            '(enable_fast_timestep)'
        )
    y, next_state = rnn(x.unsqueeze(0) if rank == 1 else x, data.get('prev_state'))
    return (y.squeeze(0) if rank == 1 else y), next_state


class AgentLinear(nn.Module):
    """
    Overview:
        A linear layer an agent, as one batched product.
    Arguments:
        - agent_num (:obj:`int`): A
        - in_dim (:obj:`int`), out_dim (:obj:`int`): sizes of input and output
    Shapes:
        - input :math:`(*, A, in\\_dim)`, output :math:`(*, A, out\\_dim)`
    """

    def __init__(self, agent_num: int, in_dim: int, out_dim: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(in_dim)  # as nn.Linear begins
        self.weight = nn.Parameter(torch.empty(agent_num, in_dim, out_dim).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(agent_num, 1, out_dim).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """The outputs that the class describes."""
        rows = x.reshape(-1, *x.shape[-2:]).transpose(0, 1)
        return torch.baddbmm(self.bias, rows, self.weight).transpose(0, 1).reshape(*x.shape[:-1], -1)


class AgentRNN(RNN):
    """
    Overview:
        An LSTM or GRU of one layer an agent. Rows are envs and, within them, agents: row b A + a is that of agent a.
    Arguments:
        - agent_num (:obj:`int`): A
        - in_dim, hidden_dim, lstm_type: see ``RNN``
    """

    def __init__(self, agent_num: int, in_dim: int, hidden_dim: int, lstm_type: str) -> None:
        super().__init__(in_dim, hidden_dim, lstm_type)
        del self.rnn
        gates = (3 if self._parts == 1 else 4) * hidden_dim
        self.of_input = AgentLinear(agent_num, in_dim, gates)
        self.of_state = AgentLinear(agent_num, hidden_dim, gates)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -1 / math.sqrt(hidden_dim), 1 / math.sqrt(hidden_dim))  # as nn.GRU begins
        self._agents = agent_num

    def run(self, x: Tensor, state: object = None) -> tuple[Tensor, object]:
        """See ``RNN``: x :math:`(T, B A, N)`, the state in the stacked form."""
        parts = [x.new_zeros(x.shape[1], self.out_dim)] * self._parts if state is None else self._rows(state)
        parts = [part.unflatten(0, (-1, self._agents)) for part in parts]
        step, outputs = self._gru if self._parts == 1 else self._lstm, []
        for given in self.of_input(x.unflatten(1, (-1, self._agents))).unbind(0):
            parts = step(given, self.of_state(parts[0]), *parts)
            outputs.append(parts[0])
        return torch.stack(outputs).flatten(1, 2), self._of_parts([part.flatten(0, 1).unsqueeze(0) for part in parts])

    def _rows(self, state: object) -> list[Tensor]:
        """The parts of a stacked state without its axis of layers."""
        return [part.squeeze(0) for part in self._to_parts(state)]

    @staticmethod
    def _gru(given: Tensor, kept: Tensor, h: Tensor) -> list[Tensor]:
        (r, z, n), (r_h, z_h, n_h) = given.chunk(3, -1), kept.chunk(3, -1)
        n = torch.tanh(n + torch.sigmoid(r + r_h) * n_h)
        return [n + torch.sigmoid(z + z_h) * (h - n)]

    @staticmethod
    def _lstm(given: Tensor, kept: Tensor, h: Tensor, c: Tensor) -> list[Tensor]:
        i, f, g, o = (given + kept).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return [torch.sigmoid(o) * torch.tanh(c), c]
