"""Layers of which every agent has its own weights, computed for all agents at once."""

import math

import torch
import torch.nn as nn
from torch import Tensor

from nervex.torch_utils.network.rnn import RNN


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
