"""ATOC: actor and critic of agents that learn when to communicate."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from nervex.model.common.heads import QOfAction
from nervex.model.common.modes import ModeNet, entry_of, obs_of
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import MLP
from nervex.torch_utils.network.shapes import as_size


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
        distance = torch.cdist(thoughts, thoughts)
        distance.diagonal(dim1=1, dim2=2).fill_(-1.0)
        return distance.topk(self._group_size, -1, largest=False).indices.sort(-1).values

    def _joined(self, thoughts: Tensor, is_initiator: Tensor, group: Tensor) -> Tensor:
        """One initiator after the other, so that an agent in two groups carries thoughts from one to the next."""
        for i in range(thoughts.shape[1]):
            members = group[:, i].unsqueeze(-1).expand(-1, -1, thoughts.shape[-1])
            heard = self.channel(thoughts.gather(1, members).transpose(0, 1))[0].transpose(0, 1)
            calls = is_initiator[:, i, None, None]
            thoughts = torch.where(calls, thoughts.scatter(1, members, heard), thoughts)
        return thoughts


class ATOCQAC(ModeNet):
    """
    Overview:
        Deterministic actor-critic with attentional communication (Jiang and Lu 2018, https://arxiv.org/abs/1805.07733):
        ``model.actor`` with ``model.actor.attention``, and ``model.critic``, shared by all agents.
    Arguments:
        - obs_dim (:obj:`int | Sequence[int]`), action_dim (:obj:`int`): sizes of an agent's observation and action
        - thought_dim (:obj:`int`): size of a thought
        - n_agent (:obj:`int`): number of agents
        - agent_per_group (:obj:`int`): agents in a group, with its initiator; ``m_group`` is another name of it
        - T_initiate (:obj:`int`): steps for which groups stay; who calls the model keeps count, and gives
          ``is_initiator`` and ``group`` back in between
        - communication (:obj:`bool`): False makes the agents independent
        - hidden_dim (:obj:`int`): width of the hidden layers
    Interfaces:
        forward, compute_action, compute_q, optimize_actor, optimize_actor_attention
    """

    modes = ('compute_action', 'compute_q', 'optimize_actor', 'optimize_actor_attention')

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        thought_dim: int = 16,
        n_agent: int = 5,
        agent_per_group: int = 2,
        T_initiate: int = 1,
        m_group: int | None = None,
        communication: bool = True,
        hidden_dim: int = 64,
        activation: str | Activation = 'relu',
    ) -> None:
        super().__init__()
        size = agent_per_group if m_group is None else m_group
        action_size = as_size(action_dim, 'action_dim')
        self.actor = ATOCActor(obs_dim, action_size, thought_dim, n_agent, size, hidden_dim, activation)
        self.critic = QOfAction(obs_dim, action_size, [hidden_dim, hidden_dim], activation)
        self.T_initiate = T_initiate
        self._communication = communication

    def compute_action(self, data: Tensor | dict[str, Any], get_delta_q: bool = False) -> dict[str, Any]:
        """
        Arguments:
            - data (:obj:`dict | torch.Tensor`): ``obs`` (B, A, N); optionally ``is_initiator`` and ``group`` of an
              earlier step
            - get_delta_q (:obj:`bool`): also ``delta_q`` (B, A): by how much communication raises the value of the
              actions of an agent's group, on average
        Returns:
            - output (:obj:`dict`): see ``ATOCActor``
        """
        obs = obs_of(data)
        kept = None
        if not isinstance(data, Tensor) and 'group' in data:
            kept = {'is_initiator': data['is_initiator'], 'group': data['group']}
        output = self.actor(obs, self._communication, kept)
        if get_delta_q and self._communication:
            with torch.no_grad():
                silent = self.actor.action_of(output['old_thoughts'], output['old_thoughts'])
                gain = self.critic(obs, output['action']) - self.critic(obs, silent)
                members = output['group'].flatten(1)
                output['delta_q'] = gain.gather(1, members).view(output['group'].shape).mean(-1)
        return output

    def compute_q(self, data: dict[str, Any]) -> dict[str, Tensor]:
        """
        Shapes:
            - obs :math:`(B, A, N)`, action :math:`(B, A, action\\_dim)`, q_value :math:`(B, A)`
        """
        return {'q_value': self.critic(obs_of(data), entry_of(data, 'action'))}

    def optimize_actor(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """``q_value`` (B, A) of the actor's own actions, beside what ``compute_action`` gives."""
        output = self.compute_action(data)
        output['q_value'] = self.critic(obs_of(data), output['action'])
        return output

    def optimize_actor_attention(self, data: dict[str, Any]) -> dict[str, Tensor]:
        """
        Overview:
            Loss of the attention: binary cross-entropy between the probability to initiate and the gain that this
            brought, scaled to [0, 1] over the batch, for those that did initiate. Equal gains count by their sign.
        Arguments:
            - data (:obj:`dict`): ``initiator_prob``, ``is_initiator``, ``delta_q``, all (B, A)
        Returns:
            - output (:obj:`dict`): ``loss``, 0-dim; zero if nobody initiated
        """
        called = data['is_initiator'].to(data['delta_q'].dtype)
        gain = data['delta_q'].detach()
        infinity = torch.full_like(gain, float('inf'))
        low = torch.where(called > 0, gain, infinity).min()
        high = torch.where(called > 0, gain, -infinity).max()
        scaled = ((gain - low) / (high - low).clamp(min=1e-8)).clamp(0.0, 1.0)
        wanted = torch.where(high > low, scaled, (gain > 0.0).to(gain.dtype))
        prob = data['initiator_prob'].clamp(1e-6, 1.0 - 1e-6)
        loss = -(wanted * prob.log() + (1.0 - wanted) * (1.0 - prob).log())
        return {'loss': (loss * called).sum() / called.sum().clamp(min=1.0)}


ATOC = ATOCQAC
