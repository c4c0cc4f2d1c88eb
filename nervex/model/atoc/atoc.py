"""ATOC: actor and critic of agents that learn when to communicate."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from nervex.model.common.inputs import entry_of, obs_of
from nervex.model.common.modes import ModeNet
from nervex.model.common.q_of_action import QOfAction
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.shapes import as_size

from .communication import ATOCActor


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
