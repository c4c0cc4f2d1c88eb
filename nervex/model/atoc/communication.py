"""The actor of ATOC: agents think, some of them call a group, and the group's thoughts are joined."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import MLP


class ATOCActor(nn.Module):
    """
    Overview:
        ``thought`` makes a thought of each observation, ``attention`` decides from it who initiates communication, a
        bidirectional LSTM passes over the thoughts of each initiator's group (the agents whose thoughts are most like
        its own), and ``act`` takes own and joined thought to an action in (-1, 1). All agents share all weights.
    Arguments:
        - obs_dim (:obj:`int | Sequence[int]`), action_dim (:obj:`int`): sizes of an agent's observation and action
        - thought_dim (:obj:`int`): size of a thought, even
        - n_agent (:obj:`int`), agent_per_group (:obj:`int`): agents in all, and in a group with its initiator
        - hidden_dim (:obj:`int`): width of the hidden layers
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int,
        thought_dim: int,
        n_agent: int,
        agent_per_group: int,
        hidden_dim: int = 64,
        activation: str | Activation = 'relu',
    ) -> None:
        super().__init__()
        if not 1 <= agent_per_group <= n_agent:
            raise ValueError(f'agent_per_group is between 1 and n_agent={n_agent}, got {agent_per_group}')
        if thought_dim % 2:
            raise ValueError(f'thought_dim must be even, half for each direction of the LSTM, got {thought_dim}')
        self.thought = MLP(obs_dim, [hidden_dim], thought_dim, activation, name='obs')
        self.attention = MLP(thought_dim, [hidden_dim], 1, activation)
        self.channel = nn.LSTM(thought_dim, thought_dim // 2, bidirectional=True)
        self.act = MLP(2 * thought_dim, [hidden_dim], action_dim, activation)
        self._group_size = agent_per_group

    def forward(self, obs: Tensor, communicate: bool = True, groups: dict[str, Tensor] | None = None) -> dict[str, Any]:
        """
        Arguments:
            - obs (:obj:`torch.FloatTensor`): :math:`(B, A, N)`
            - communicate (:obj:`bool`): False leaves each agent with its own thought
            - groups (:obj:`dict | None`): ``is_initiator`` and ``group`` of an earlier step to be used again
        Returns:
            - output (:obj:`dict`): ``action`` (B, A, action_dim), ``old_thoughts`` and ``new_thoughts`` (B, A, D); with
              communication ``initiator_prob`` (B, A), ``is_initiator`` (B, A), ``group`` (B, A, agent_per_group)
        """
        old = self.thought(obs)
        if not communicate:
            return {'action': self.action_of(old, old), 'old_thoughts': old, 'new_thoughts': old}
        # the attention learns from its own loss only
        prob = torch.sigmoid(self.attention(old.detach())).squeeze(-1)
        if groups is None:
            groups = {'is_initiator': prob > 0.5, 'group': self._nearest(old.detach())}
        new = self._joined(old, groups['is_initiator'], groups['group'])
        return {
            'action': self.action_of(old, new),
            'old_thoughts': old,
            'new_thoughts': new,
            'initiator_prob': prob,
            'is_initiator': groups['is_initiator'],
            'group': groups['group'],
        }

    def action_of(self, own: Tensor, joined: Tensor) -> Tensor:
        """The action for an agent's own thought and the one after communication."""
        return torch.tanh(self.act(torch.cat([own, joined], -1)))

    def _nearest(self, thoughts: Tensor) -> Tensor:
        """For each agent itself and the agents with the most similar thoughts, in the order of their numbers."""
        likeness = thoughts @ thoughts.transpose(1, 2)
        likeness.diagonal(dim1=1, dim2=2).fill_(float('inf'))
        return likeness.topk(self._group_size, -1).indices.sort(-1).values

    def _joined(self, thoughts: Tensor, is_initiator: Tensor, group: Tensor) -> Tensor:
        """One initiator after the other, so that an agent in two groups carries thoughts from one to the next."""
        for i in range(thoughts.shape[1]):
            members = group[:, i].unsqueeze(-1).expand(-1, -1, thoughts.shape[-1])
            heard = self.channel(thoughts.gather(1, members).transpose(0, 1))[0].transpose(0, 1)
            calls = is_initiator[:, i, None, None]
            thoughts = torch.where(calls, thoughts.scatter(1, members, heard), thoughts)
        return thoughts
