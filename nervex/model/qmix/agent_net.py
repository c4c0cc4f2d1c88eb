"""A recurrent network that all agents share, and what the multi-agent models do with its output."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from nervex.model.common.inputs import entry_of
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import MLP
from nervex.torch_utils.network.rnn import RNN
from nervex.torch_utils.network.shapes import InputShapeError, misfit

#: value of an action that is not legal: below every real one, yet finite, so that losses stay finite
ILLEGAL_Q = -9999999.0


class AgentNet(nn.Module):
    """
    Overview:
        Encoder, LSTM or GRU and linear head, the same weights for every agent. The state of an environment is a list
        with one state for each agent.
    Arguments:
        - obs_dim (:obj:`int | Sequence[int]`): size of what one agent sees
        - action_dim (:obj:`int`): number of actions
        - hidden_dim_list (:obj:`Sequence[int]`): widths of the encoder; the last is also that of the state
        - lstm_type (:obj:`str`): 'lstm' or 'gru'
    Shapes:
        - obs :math:`(T, B, A, N)`, logit :math:`(T, B, A, P)`
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int,
        hidden_dim_list: Sequence[int] = (128, 64),
        lstm_type: str = 'gru',
        activation: str | Activation = 'relu',
    ) -> None:
        super().__init__()
        self.encoder = MLP(obs_dim, hidden_dim_list, None, activation, name='agent_state')
        self.rnn = RNN(self.encoder.out_dim, self.encoder.out_dim, lstm_type)
        self.head = nn.Linear(self.encoder.out_dim, action_dim)

    def forward(self, obs: Tensor, prev_state: Any = None) -> tuple[Tensor, list[list[Any]]]:
        """
        Arguments:
            - prev_state (:obj:`list | None`): B lists of A states; None instead of a state or of all of them is zeros
        Returns:
            - logit (:obj:`torch.FloatTensor`), next_state (:obj:`list`): B lists of A states
        """
        agents = obs.shape[2]
        x = self.encoder(obs)
        x, states = self.rnn(x.flatten(1, 2), flat_states(prev_state, obs.shape[1], agents))
        next_state = [states[i : i + agents] for i in range(0, len(states), agents)]
        return self.head(x.unflatten(1, (-1, agents))), next_state


def flat_states(prev_state: Any, batch: int, agents: int) -> list[Any] | None:
    """B lists of A states as one list of B * A states."""
    if prev_state is None:
        return None
    rows = [[None] * agents if row is None else row for row in prev_state]
    if len(rows) != batch or any(not isinstance(row, (list, tuple)) or len(row) != agents for row in rows):
        lengths = [len(row) if isinstance(row, (list, tuple)) else type(row).__name__ for row in rows]
        raise InputShapeError(f'prev_state: expected {batch} lists of {agents} states, one an agent, got {lengths}')
    return [state for row in rows for state in row]


def as_sequence(
    data: dict[str, Any], single_step: bool | None, obs_shape: tuple[int, ...], agent_num: int
) -> tuple[dict, bool]:
    """
    Overview:
        The observation with a time axis. Whether it has one is read from the rank of ``agent_state``, (T, B, A, N) or
        (B, A, N), and must agree with ``single_step`` where that is given.
    Arguments:
        - agent_num (:obj:`int`): A
    Returns:
        - obs (:obj:`dict`): all tensors with (T, B) in front
        - added (:obj:`bool`): whether the time axis is new, so that outputs lose it again
    """
    obs = entry_of(data, 'obs')
    rank = entry_of(obs, 'agent_state').dim() - len(obs_shape)
    fits = rank in (2, 3) and obs['agent_state'].shape[rank - 1] == agent_num
    if not fits or (single_step is not None and single_step != (rank == 2)):
        axes = ['B', str(agent_num)] if single_step else ['T', 'B', str(agent_num)]
        raise misfit(obs['agent_state'], [*axes, *map(str, obs_shape)], 'agent_state')
    return ({key: value.unsqueeze(0) for key, value in obs.items()} if rank == 2 else obs), rank == 2


def taken_q(logit: Tensor, action: Tensor | None, mask: Tensor | None) -> Tensor:
    """
    Overview:
        The value of the action of each agent: of the given one, or of the best legal one.
    Shapes:
        - logit, mask :math:`(*, A, P)`, action and result :math:`(*, A)`
    """
    if action is None:
        return (logit if mask is None else logit.masked_fill(mask == 0, ILLEGAL_Q)).max(-1).values
    return torch.gather(logit, -1, action.long().unsqueeze(-1)).squeeze(-1)
