"""ATOC: actor and critic of agents that learn when to communicate."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from nervex.model.common.heads import QOfAction
from nervex.model.common.modes import ModeNet, entry_of, obs_of
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import MLP, Layers
from nervex.torch_utils.network.shapes import as_size


class ATOCActor(nn.Module):
    """
    Overview:
        ``thought`` makes a thought of each observation, a bidirectional LSTM passes over the thoughts of each
        initiator's group, and ``act`` takes own and joined thought to an action in (-1, 1). All agents share
        all weights.
    Arguments:
        - obs_dim (:obj:`int | Sequence[int]`), action_dim (:obj:`int`): sizes of an agent's observation and action
        - thought_dim (:obj:`int`): size of a thought, even
        - hidden_dim_list (:obj:`Sequence[int]`): widths of the hidden layers
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int,
        thought_dim: int,
        hidden_dim_list: Layers = (64,),
        activation: str | Activation = 'relu',
    ) -> None:
        super().__init__()
        if thought_dim % 2:
            raise ValueError(f'thought_dim must be even, half for each direction of the LSTM, got {thought_dim}')
        self.thought = MLP(obs_dim, hidden_dim_list, thought_dim, activation, name='obs')
        self.channel = nn.LSTM(thought_dim, thought_dim // 2, bidirectional=True)
        self.act = MLP(2 * thought_dim, hidden_dim_list, action_dim, activation)

    def action_of(self, own: Tensor, joined: Tensor) -> Tensor:
        """The action for an agent's own thought and the one after communication."""
        return torch.tanh(self.act(torch.cat([own, joined], -1)))

    def joined(self, thoughts: Tensor, is_initiator: Tensor, group: Tensor, alive: Tensor) -> Tensor:
        """
        Overview:
            The thoughts after communication, what was heard added to one's own: one initiator after the other, so that
            an agent in two groups carries thoughts from one to the next. Who has left is silent: zeros all along.
        Shapes:
            - thoughts and result :math:`(B, A, D)`, is_initiator, alive :math:`(B, A)`, group :math:`(B, A, G)`
        """
        there = alive.unsqueeze(-1)
        thoughts = thoughts * there
        for i in range(thoughts.shape[1]):
            members = group[:, i].unsqueeze(-1).expand(-1, -1, thoughts.shape[-1])
            own = thoughts.gather(1, members)
            heard = own + self.channel(own.transpose(0, 1))[0].transpose(0, 1)
            hears = is_initiator[:, i, None, None] & there
            thoughts = torch.where(hears, thoughts.scatter(1, members, heard), thoughts)
        return thoughts


class ATOCQAC(ModeNet):
    """
    Overview:
        Deterministic actor-critic with attentional communication (Jiang and Lu 2018, https://arxiv.org/abs/1805.07733):
        ``model.actor``, ``model.attention``, which decides from an agent's thought whether it initiates communication,
        and ``model.critic``, shared by all agents. An initiator's group are itself and the agents nearest to it, by
        the positions in observations (``agent_position``); of a bare tensor of observations, by their thoughts.
    Arguments:
        - obs_dim (:obj:`int | Sequence[int]`), action_dim (:obj:`int`): sizes of an agent's observation and action
        - thought_dim (:obj:`int`): size of a thought
        - n_agent (:obj:`int`): number of agents
        - agent_per_group (:obj:`int`): agents in a group, with its initiator; ``m_group`` is another name of it
        - T_initiate (:obj:`int`): steps for which groups stay
        - communication (:obj:`bool`): False makes the agents independent
        - hidden_dim (:obj:`int`): width of the hidden layers: one of actor and attention, two of the critic
        - hidden_dim_list (:obj:`Sequence[int] | None`): widths of the hidden layers of all of them instead
    Interfaces:
        forward, compute_action, compute_q, optimize_actor, optimize_actor_attention
    """

    modes = ('compute_action', 'compute_q', 'optimize_actor', 'optimize_actor_attention')
    continuous = True

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
        hidden_dim_list: Layers | None = None,
    ) -> None:
        super().__init__()
        widths = [hidden_dim] if hidden_dim_list is None else hidden_dim_list
        size = agent_per_group if m_group is None else m_group
        if not 1 <= size <= n_agent:
            raise ValueError(f'agent_per_group is between 1 and n_agent={n_agent}, got {size}')
        if T_initiate < 1:
            raise ValueError(f'T_initiate is at least 1 step, got {T_initiate}')
        action_size = as_size(action_dim, 'action_dim')
        self.actor = ATOCActor(obs_dim, action_size, thought_dim, widths, activation)
        self.attention = MLP(thought_dim, widths, 1, activation)
        self.critic = QOfAction(
            obs_dim, action_size, [hidden_dim] * 2 if hidden_dim_list is None else widths, activation
        )
        self.T_initiate, self.communication = T_initiate, communication
        self._agents, self._group_size = n_agent, size

    @property
    def state_shape(self) -> tuple[int, int]:
        """Of what is kept of one env, as a block: steps for which an agent's group stays, if it called it, members."""
        return self._agents, 2 + self._group_size if self.communication and self.T_initiate > 1 else 0

    def compute_action(self, data: Tensor | dict[str, Any], get_delta_q: bool = False) -> dict[str, Any]:
        """
        Arguments:
            - data (:obj:`dict | torch.Tensor`): ``obs``, a tensor (B, A, N) or a dict of ``agent_state`` and
              ``agent_position`` (B, A, k), and ``agent_alive`` (B, A) where agents may leave, who then neither call nor
              are called; optionally ``is_initiator`` and ``group`` of an earlier step, or, for
              ``T_initiate`` above 1, ``prev_state``, see ``state_shape`` (zeros: groups are chosen anew)
            - get_delta_q (:obj:`bool`): also ``delta_q`` (B, A): by how much communication raises the value of the
              actions of an agent's group, on average
        Returns:
            - output (:obj:`dict`): ``action`` (B, A, action_dim), ``old_thoughts`` and ``new_thoughts`` (B, A, D); with
              communication ``initiator_prob`` (B, A), ``is_initiator`` (B, A), ``group`` (B, A, agent_per_group), and
              ``next_state`` where there is one
        """
        seen, actor = _state_of(data), self.actor
        old = actor.thought(seen)
        if not self.communication:
            return {'action': actor.action_of(old, old), 'old_thoughts': old, 'new_thoughts': old}
        prob = torch.sigmoid(self.attention(old.detach())).squeeze(-1)  # it learns from its own loss only
        alive = _alive_of(data, prob)
        called, group, more = self._groups(data, old.detach(), prob, alive)
        called = called & alive
        new = actor.joined(old, called, group, alive)
        output = {'action': actor.action_of(old, new), 'old_thoughts': old, 'new_thoughts': new}
        output.update(initiator_prob=prob, is_initiator=called, group=group, **more)
        if get_delta_q:
            with torch.no_grad():
                gain = self.critic(seen, output['action']) - self.critic(seen, actor.action_of(old, old))
                gain, counts = (x.gather(1, group.flatten(1)).view(group.shape).sum(-1) for x in (gain * alive, alive))
                output['delta_q'] = gain / counts.clamp_min(1)
        return output

    def _groups(
        self, data: Any, thoughts: Tensor, prob: Tensor, alive: Tensor
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Who calls, whom each would call, and what is kept of it for the next step."""
        given = {} if isinstance(data, Tensor) else data
        if 'group' in given:
            return given['is_initiator'], given['group'], {}
        called, group = prob.detach() > 0.5, self._nearest(data, thoughts, alive)
        state = given.get('prev_state')
        if not self.state_shape[-1]:
            return called, group, {}
        if state is None:
            state = thoughts.new_zeros(len(thoughts), *self.state_shape)
        left, stays = state[..., 0], state[..., 0] > 0
        called = torch.where(stays, state[..., 1] > 0, called)
        group = torch.where(stays.unsqueeze(-1), state[..., 2:].long(), group)
        left = torch.where(stays, left, self.T_initiate) - 1
        kept = [part.to(state.dtype) for part in (left.unsqueeze(-1), called.unsqueeze(-1), group)]
        return called, group, {'next_state': torch.cat(kept, -1)}

    def _nearest(self, data: Any, thoughts: Tensor, alive: Tensor) -> Tensor:
        """For each agent itself and those who are nearest to it and still play, in the order of their numbers."""
        obs = obs_of(data)
        if self._group_size == thoughts.shape[1]:
            return torch.arange(self._group_size, device=thoughts.device).expand(*thoughts.shape[:2], -1)
        place = thoughts if isinstance(obs, Tensor) else entry_of(obs, 'agent_position')
        distance = torch.cdist(place, place).masked_fill(~alive.unsqueeze(1), torch.inf)
        distance.diagonal(dim1=1, dim2=2).fill_(-1.0)
        return distance.topk(self._group_size, -1, largest=False).indices.sort(-1).values

    def compute_q(self, data: dict[str, Any]) -> dict[str, Tensor]:
        """
        Shapes:
            - obs :math:`(B, A, N)`, action :math:`(B, A, action\\_dim)`, q_value :math:`(B, A)`
        """
        return {'q_value': self.critic(_state_of(data), entry_of(data, 'action'))}

    def optimize_actor(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """``q_value`` (B, A) of the actor's own actions, beside what ``compute_action`` gives."""
        output = self.compute_action(data)
        output['q_value'] = self.critic(_state_of(data), output['action'])
        return output

    def optimize_actor_attention(self, data: dict[str, Any]) -> dict[str, Tensor]:
        """
        Overview:
            Loss of the attention: binary cross-entropy between the probability to initiate and the gain that this
            brought, for those that did initiate, scaled over the batch: 1 for the largest gain, 1/2 for none, less for
            a loss. So an agent calls where talking is worth something.
        Arguments:
            - data (:obj:`dict`): ``initiator_prob``, ``is_initiator``, ``delta_q``, all (B, A)
        Returns:
            - output (:obj:`dict`): ``loss``, 0-dim; zero if nobody initiated
        """
        called = data['is_initiator'].to(data['delta_q'].dtype)
        gain = data['delta_q'].detach()
        wanted = (0.5 + 0.5 * gain / (gain.abs() * called).max().clamp(min=1e-8)).clamp(0.0, 1.0)
        prob = data['initiator_prob'].clamp(1e-6, 1.0 - 1e-6)
        loss = -(wanted * prob.log() + (1.0 - wanted) * (1.0 - prob).log())
        return {'loss': (loss * called).sum() / called.sum().clamp(min=1.0)}


def _alive_of(data: Any, prob: Tensor) -> Tensor:
    """Who still plays (B, A) bool: all where the observation does not say."""
    obs = obs_of(data)
    alive = None if isinstance(obs, Tensor) else obs.get('agent_alive')
    return torch.ones_like(prob, dtype=torch.bool) if alive is None else alive > 0


def _state_of(data: Any) -> Tensor:
    """What each agent sees (B, A, N)."""
    obs = obs_of(data)
    return obs if isinstance(obs, Tensor) else entry_of(obs, 'agent_state')


ATOC = ATOCQAC
