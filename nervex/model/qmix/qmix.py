"""QMIX and VDN: one recurrent network for all agents, and a mixer of their action values."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from nervex.model.common.encoder import widths_of
from nervex.model.common.modes import ModeNet, entry_of
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import MLP, Layers, LinearType
from nervex.torch_utils.network.rnn import RNN, AgentLinear, AgentRNN
from nervex.torch_utils.network.shapes import InputShapeError, as_shape, as_size, misfit
from nervex.utils import tree

#: value of an action that is not legal: below every real one, yet finite, so that losses stay finite
ILLEGAL_Q = -9999999.0


class AgentNet(nn.Module):
    """
    Overview:
        Encoder, on request a memory, and linear head, the same weights for every agent, or each agent its own.
    Arguments:
        - obs_dim (:obj:`int | Sequence[int]`): size of what one agent sees
        - action_dim (:obj:`int`): number of actions
        - hidden_dim_list (:obj:`Sequence[int]`): widths of the encoder; the last is also that of the state
        - lstm_type (:obj:`str | None`): 'lstm', 'gru', or None: no memory
        - agent_num (:obj:`int`): A
        - agent_ids (:obj:`bool`): each agent also sees which one it is
        - share (:obj:`bool`): one set of weights; False: one an agent
        - gaussian (:obj:`bool`): the output is a pair (mu, sigma); the deviations are parameters, 1 at the start
    Shapes:
        - obs :math:`(T, B, A, N)`, logit :math:`(T, B, A, P)`
    """

    ids: Tensor

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int,
        hidden_dim_list: Layers = (128, 64),
        lstm_type: str | None = 'gru',
        activation: str | Activation = 'relu',
        agent_num: int = 0,
        agent_ids: bool = False,
        gaussian: bool = False,
        share: bool = True,
    ) -> None:
        super().__init__()
        self.in_shape = as_shape(obs_dim)
        ids = agent_num if agent_ids and share else 0  # weights of its own tell an agent from others anyway
        self.register_buffer('ids', torch.eye(ids), persistent=False)
        linear, size = linear_of(agent_num, share), as_size(obs_dim) + ids
        self.encoder = MLP(size, hidden_dim_list, None, activation, linear=linear, name='agent_state')
        width, self.rnn = self.encoder.out_dim, None
        if lstm_type is not None:
            self.rnn = RNN(width, width, lstm_type) if share else AgentRNN(agent_num, width, width, lstm_type)
        self.head = linear(width, action_dim)
        own = () if share else (agent_num,)
        self.log_sigma = nn.Parameter(torch.zeros(*own, action_dim)) if gaussian else None

    @property
    def block_dim(self) -> int:
        """Size of an agent's state in a block; 0 without a memory."""
        return 0 if self.rnn is None else self.rnn.block_dim

    def forward(self, obs: Tensor, prev_state: Any = None) -> tuple[Any, Any]:
        """
        Arguments:
            - prev_state (:obj:`torch.Tensor | list | None`): the states as one block :math:`(B, A, F)`; or B lists of A
              states; None instead of a state or of all of them is zeros
        Returns:
            - logit (:obj:`torch.FloatTensor | tuple`), next_state: a block for a block, else B lists of A states
        """
        agents = obs.shape[2]
        if len(self.ids):
            obs = torch.cat([obs, self.ids.expand(*obs.shape[:2], -1, -1)], -1)
        x = self.encoder(obs)
        if self.rnn is None:
            return self._out(x), prev_state
        blocks = isinstance(prev_state, Tensor)
        x = x.flatten(1, 2)
        if blocks:
            x, state = self.rnn.run(x, self.rnn.from_block(prev_state.flatten(0, 1)))
            next_state: Any = self.rnn.to_block(state).unflatten(0, (-1, agents))
        else:
            x, states = self.rnn(x, flat_states(prev_state, obs.shape[1], agents))
            next_state = [states[i : i + agents] for i in range(0, len(states), agents)]
        return self._out(x.unflatten(1, (-1, agents))), next_state

    def _out(self, x: Tensor) -> Any:
        y = self.head(x)
        return y if self.log_sigma is None else (y, self.log_sigma.exp().expand_as(y))


class TeamNet(ModeNet):
    """
    Overview:
        What networks share in which agents act by ``self.actor``, and something else judges them.
    Interfaces:
        forward, compute_action
    """

    agent_num: int
    actor: AgentNet

    @property
    def state_shape(self) -> tuple[int, int]:
        """Of the states of one env, as a block."""
        return self.agent_num, self.actor.block_dim

    def compute_action(self, data: dict[str, Any], single_step: bool | None = None) -> dict[str, Any]:
        """
        Overview:
            What the actors say, for one step (B, ...) or a sequence (T, B, ...).
        Arguments:
            - data (:obj:`dict`): ``obs`` with ``agent_state`` and optionally ``action_mask``; ``prev_state``, a block,
              or a list of B lists of A states (None is zeros)
            - single_step (:obj:`bool | None`): without a time axis; None reads it from the rank
        Shapes:
            - agent_state :math:`(T, B, A, N)`, logit :math:`(T, B, A, P)`, of continuous actions a pair (mu, sigma);
              without T for a single step
        """
        obs, added = as_sequence(data, single_step, self.actor.in_shape, self.agent_num)
        logit, next_state = self.actor(obs['agent_state'], data.get('prev_state'))
        logit = tree.map(lambda x: x.squeeze(0), logit) if added else logit
        output = {'logit': logit, 'next_state': next_state}
        return {**output, 'action_mask': data['obs']['action_mask']} if 'action_mask' in obs else output


def linear_of(agent_num: int, share: bool) -> LinearType:
    """What makes the linear layers of agents that share their weights, or have their own."""
    return nn.Linear if share else partial(AgentLinear, agent_num)


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
        The observation with a time axis, without entries that are None. Whether it has one is read from the rank of
        ``agent_state``, (T, B, A, N) or (B, A, N), and must agree with ``single_step`` where that is given.
    Arguments:
        - agent_num (:obj:`int`): A
    Returns:
        - obs (:obj:`dict`): all tensors with (T, B) in front
        - added (:obj:`bool`): whether the time axis is new, so that outputs lose it again
    """
    obs = {key: value for key, value in entry_of(data, 'obs').items() if value is not None}
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


def team_values(
    data: dict[str, Any], obs: dict[str, Any], added: bool, mixer: nn.Module | None, logit: Tensor, **more: Tensor
) -> dict[str, Any]:
    """
    Overview:
        What a network of agents answers: ``total_q``, ``agent_q`` of the given or the best legal actions, ``logit``,
        ``action_mask`` where there is one, and what else it has; without the time axis that ``as_sequence`` added.
    """
    action, mask = data.get('action'), obs.get('action_mask')
    agent_q = taken_q(logit, action.unsqueeze(0) if added and action is not None else action, mask)
    total_q = agent_q.sum(-1) if mixer is None else mixer(agent_q, entry_of(obs, 'global_state'))
    output = {'total_q': total_q, 'agent_q': agent_q, 'logit': logit, **more}
    if mask is not None:
        output['action_mask'] = mask
    return {key: value.squeeze(0) for key, value in output.items()} if added else output


class Mixer(nn.Module):
    """
    Overview:
        Joins the action values of the agents into one value for the team; its weights are made from the global state
        and positive, so that no agent's value can lower the team's (Rashid et al. 2018,
        https://arxiv.org/abs/1803.11485).
    Arguments:
        - agent_num (:obj:`int`), state_dim (:obj:`int`): number of agents, size of the global state
        - embedding_dim (:obj:`int`): width of the mixing layer
        - hypernet_dim (:obj:`int`): width of the networks that make the weights
    Shapes:
        - agent_q :math:`(*, A)`, global_state :math:`(*, M)`, total_q :math:`(*)`
    """

    def __init__(self, agent_num: int, state_dim: int, embedding_dim: int = 32, hypernet_dim: int = 64) -> None:
        super().__init__()
        self._parts = hypernet_dim, hypernet_dim, embedding_dim, embedding_dim
        self.seen = nn.Linear(state_dim, sum(self._parts))
        self.weight_1 = nn.Linear(hypernet_dim, agent_num * embedding_dim)
        self.weight_2 = nn.Linear(hypernet_dim, embedding_dim)
        self.bias_2 = nn.Linear(embedding_dim, 1)

    def forward(self, agent_q: Tensor, global_state: Tensor) -> Tensor:
        """The outputs that the class describes."""
        if global_state.shape[-1] != self.seen.in_features:
            raise misfit(global_state, ['*', str(self.seen.in_features)], 'global_state')
        *hidden, bias_1 = self.seen(global_state).split(self._parts, -1)
        for_1, for_2, for_bias = (torch.relu(part) for part in hidden)
        weight_1 = self.weight_1(for_1).abs().unflatten(-1, (agent_q.shape[-1], -1))
        mixed = nn.functional.elu((agent_q.unsqueeze(-1) * weight_1).sum(-2) + bias_1)
        return (mixed * self.weight_2(for_2).abs()).sum(-1) + self.bias_2(for_bias).squeeze(-1)


class MixedNet(nn.Module):
    """What networks share whose agents' values are joined to one of the team."""

    mixer: nn.Module | None

    def joint(self, agent_q: Tensor, obs: dict[str, Tensor]) -> Tensor:
        """The team's value of the agents' values (*, A): by the mixer, or their sum."""
        return agent_q.sum(-1) if self.mixer is None else self.mixer(agent_q, obs['global_state'])


class QMix(MixedNet):
    """
    Overview:
        Action values of cooperating agents and of their team (QMIX, https://arxiv.org/abs/1803.11485; without the mixer
        the sum of the agents' values, VDN, https://arxiv.org/abs/1706.05296).
    Arguments:
        - agent_num (:obj:`int`): number of agents
        - obs_dim (:obj:`int | Sequence[int]`): size of what one agent sees
        - global_obs_dim (:obj:`int`): size of the global state
        - action_dim (:obj:`int`): number of actions of an agent
        - embedding_dim (:obj:`int`), hidden_dim_list (:obj:`Sequence[int] | None`): widths of the agents' encoder, None
          is [128, embedding_dim]; the last is also that of the state and of the mixer
        - use_mixer (:obj:`bool`): False sums the agents' values
        - lstm_type (:obj:`str`): 'gru' or 'lstm'
        - hypernet_dim (:obj:`int`): see ``Mixer``
        - agent_ids, share (:obj:`bool`): see ``AgentNet``
    """

    def __init__(
        self,
        agent_num: int,
        obs_dim: int | Sequence[int],
        global_obs_dim: int,
        action_dim: int,
        embedding_dim: int = 64,
        hidden_dim_list: Layers | None = None,
        use_mixer: bool = True,
        lstm_type: str | None = 'gru',
        activation: str | Activation = 'relu',
        hypernet_dim: int = 64,
        agent_ids: bool = False,
        mixing_dim: int | None = None,
        share: bool = True,
    ) -> None:
        super().__init__()
        widths = widths_of(embedding_dim, hidden_dim_list, 128)
        self.agent_num = agent_num
        self.agent_net = AgentNet(obs_dim, action_dim, widths, lstm_type, activation, agent_num, agent_ids, share=share)
        state_dim = as_size(global_obs_dim, 'global_obs_dim')
        self.mixer = (
            Mixer(agent_num, state_dim, mixing_dim or self.agent_net.encoder.out_dim, hypernet_dim)
            if use_mixer
            else None
        )

    @property
    def state_shape(self) -> tuple[int, int]:
        """Of the states of one env, as a block."""
        return self.agent_num, self.agent_net.block_dim

    def compute_action(self, data: dict[str, Any]) -> dict[str, Any]:
        """What acting needs of one step (B, ...): ``logit``, ``action_mask`` where there is one, and ``next_state``."""
        obs = data['obs']
        logit, next_state = self.agent_net(obs['agent_state'].unsqueeze(0), data.get('prev_state'))
        output = {'logit': logit.squeeze(0), 'next_state': next_state}
        return output if obs.get('action_mask') is None else {**output, 'action_mask': obs['action_mask']}

    def agent_values(self, obs: dict[str, Tensor], prev_state: Tensor | None = None) -> Tensor:
        """The values (T, B, A, P) of all actions of the agents along a sequence."""
        return self.agent_net(obs['agent_state'], prev_state)[0]

    def forward(self, data: dict[str, Any], single_step: bool | None = None) -> dict[str, Any]:
        """
        Overview:
            Values of one step (B, ...) or of a sequence (T, B, ...).
        Arguments:
            - data (:obj:`dict`): ``obs`` with ``agent_state``, ``global_state`` and optionally ``action_mask`` (1 is
              legal); ``prev_state``, a list of B lists of A states (None is zeros); optionally ``action``
            - single_step (:obj:`bool | None`): without a time axis; None reads it from the rank
        Returns:
            - output (:obj:`dict`): ``total_q``, the team's value of the given action, or of the best legal ones;
              ``agent_q``, the agents' values of it; ``logit``, all values; ``next_state``; ``action_mask`` if given
        Shapes:
            - agent_state :math:`(T, B, A, N)`, global_state :math:`(T, B, M)`, action_mask :math:`(T, B, A, P)`, action
              :math:`(T, B, A)`
            - total_q :math:`(T, B)`, agent_q :math:`(T, B, A)`, logit :math:`(T, B, A, P)`; without T for a single step
        """
        obs, added = as_sequence(data, single_step, self.agent_net.in_shape, self.agent_num)
        logit, next_state = self.agent_net(obs['agent_state'], data.get('prev_state'))
        return {**team_values(data, obs, added, self.mixer, logit), 'next_state': next_state}
