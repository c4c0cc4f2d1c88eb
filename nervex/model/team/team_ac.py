"""Decentral actors with a critic that sees everything: a value of the state (MAPPO), or of what all do (MADDPG)."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from nervex.model.common.encoder import widths_of
from nervex.model.common.modes import as_flag, entry_of
from nervex.model.qmix.qmix import AgentNet, TeamNet, linear_of
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import MLP, Layers
from nervex.torch_utils.network.shapes import as_size


class ValueScale(nn.Module):
    """
    Overview:
        Mean and deviation of the returns that a critic learned from, a running one: the critic's output is in units of
        them. Both travel with the model.
    """

    mean: Tensor
    square: Tensor
    weight: Tensor

    def __init__(self, keep: float = 0.999) -> None:
        super().__init__()
        self._keep = keep
        for name in ('mean', 'square', 'weight'):
            self.register_buffer(name, torch.zeros(()))

    def update(self, returns: Tensor) -> None:
        """Take these returns into account."""
        for old, new in ((self.mean, returns.mean()), (self.square, returns.pow(2).mean()), (self.weight, 1.0)):
            old.mul_(self._keep).add_((1 - self._keep) * new)

    def _moments(self) -> tuple[Tensor, Tensor]:
        weight = self.weight.clamp_min(1e-5)
        mean = self.mean / weight
        deviation = (self.square / weight - mean.pow(2)).clamp_min(1e-2).sqrt()
        return mean, torch.where(self.weight > 0, deviation, torch.ones_like(deviation))

    def inward(self, returns: Tensor) -> Tensor:
        """Returns in the critic's units."""
        mean, deviation = self._moments()
        return (returns - mean) / deviation

    def outward(self, value: Tensor) -> Tensor:
        """The critic's output as a return."""
        mean, deviation = self._moments()
        return value * deviation + mean


class TeamAC(TeamNet):
    """
    Overview:
        ``model.actor``, the agents' policy, and ``model.critic``, a value for each agent: of the global state (of what
        all agents see, where there is none; MAPPO), or of what the agent sees (IPPO).
    Arguments:
        - agent_num (:obj:`int`), obs_dim (:obj:`int | Sequence[int]`), global_obs_dim (:obj:`int | None`),
          action_dim (:obj:`int`): agents, size of what one sees, of the state, number of actions of an agent (of
          continuous ones their dimension)
        - embedding_dim (:obj:`int`), hidden_dim_list (:obj:`Sequence[int] | None`): widths of actor and critic; None is
          [embedding_dim, embedding_dim]
        - lstm_type (:obj:`str | None`): 'gru' or 'lstm' gives the actor a memory
        - central (:obj:`bool`): the critic sees the global state
        - agent_ids (:obj:`bool`): actor and critic also see which agent is meant
        - share (:obj:`bool`): all agents have the same weights; False: each its own, in actor and critic
        - value_scale (:obj:`bool`): the critic works in units of the returns, see ``ValueScale``
        - continuous (:obj:`bool`): continuous actions: ``logit`` is a pair (mu, sigma)
    Interfaces:
        forward, compute_action_value, compute_action, compute_value
    """

    modes = ('compute_action_value', 'compute_action', 'compute_value')

    def __init__(
        self,
        agent_num: int,
        obs_dim: int | Sequence[int],
        action_dim: int,
        global_obs_dim: int | None = None,
        embedding_dim: int = 64,
        hidden_dim_list: Layers | None = None,
        lstm_type: str | None = None,
        central: bool = True,
        agent_ids: bool = True,
        value_scale: bool = True,
        activation: str | Activation = 'relu',
        continuous: bool = False,
        share: bool = True,
    ) -> None:
        super().__init__()
        widths = widths_of(embedding_dim, hidden_dim_list, embedding_dim)
        self.agent_num, self._central = agent_num, central
        self.actor = AgentNet(
            obs_dim, action_dim, widths, lstm_type, activation, agent_num, agent_ids, continuous, share
        )
        seen = state_size(agent_num, obs_dim, global_obs_dim) if central else as_size(obs_dim)
        seen, name = seen + len(self.actor.ids), 'global_state' if central else 'agent_state'
        self.critic = MLP(seen, widths, 1, activation, linear=linear_of(agent_num, share), name=name)
        self.scale = ValueScale() if value_scale else None

    def compute_value(self, data: dict[str, Any]) -> dict[str, Tensor]:
        """``value`` (\\*, A), and ``scaled_value``, the same in the critic's own units."""
        obs = data['obs']
        seen = of_each(state_of(obs), self.agent_num) if self._central else obs['agent_state']
        scaled = self.critic(with_ids(seen, self.actor.ids)).squeeze(-1)
        return {'value': scaled if self.scale is None else self.scale.outward(scaled), 'scaled_value': scaled}

    def compute_action_value(self, data: dict[str, Any]) -> dict[str, Any]:
        """Both."""
        return {**self.compute_action(data), **self.compute_value(data)}


class TeamQAC(TeamNet):
    """
    Overview:
        ``model.actor``, which gives each agent logits of its actions, or a continuous action in (-1, 1), and
        ``model.critic``, a value for each agent (one network, or twins) of the global state, or of what all agents see
        where there is none, and of what all agents do.
    Arguments:
        - agent_num (:obj:`int`), obs_dim (:obj:`int | Sequence[int]`), action_dim (:obj:`int`), global_obs_dim
          (:obj:`int | None`), continuous (:obj:`bool`), embedding_dim, hidden_dim_list, lstm_type, agent_ids, share:
          see ``TeamAC``
        - use_twin_critic (:obj:`bool`): two critics, ``q_value`` is then a list
    Interfaces:
        forward, compute_action, compute_q
    """

    modes = ('compute_action', 'compute_q')

    def __init__(
        self,
        agent_num: int,
        obs_dim: int | Sequence[int],
        action_dim: int,
        global_obs_dim: int | None = None,
        continuous: bool = False,
        use_twin_critic: bool = False,
        embedding_dim: int = 64,
        hidden_dim_list: Layers | None = None,
        lstm_type: str | None = None,
        agent_ids: bool = True,
        share: bool = True,
        activation: str | Activation = 'relu',
    ) -> None:
        super().__init__()
        widths = widths_of(embedding_dim, hidden_dim_list, embedding_dim)
        self.agent_num, self.action_dim, self.continuous = agent_num, action_dim, continuous
        self.actor = AgentNet(
            obs_dim, action_dim, widths, lstm_type, activation, agent_num, agent_ids, share=as_flag(share, 'share')
        )
        judged = state_size(agent_num, obs_dim, global_obs_dim) + agent_num * action_dim + len(self.actor.ids)
        self.critic = nn.ModuleList(
            MLP(judged, widths, 1, activation, linear=linear_of(agent_num, share), name='state and actions')
            for _ in range(2 if as_flag(use_twin_critic, 'use_twin_critic') else 1)
        )

    def compute_action(self, data: dict[str, Any], single_step: bool | None = None) -> dict[str, Any]:
        """As of ``TeamNet``; continuous ones are ``action`` (\\*, A, k) in (-1, 1)."""
        output = super().compute_action(data, single_step)
        if not self.continuous:
            return output
        return {'action': torch.tanh(output['logit']), 'next_state': output['next_state']}

    def compute_q(self, data: dict[str, Any]) -> dict[str, Any]:
        """
        Shapes:
            - action :math:`(*, A, k)`, discrete ones one-hot; or :math:`(*, A, A, k)`, a row of all actions for the
              value of each agent
            - q_value :math:`(*, A)`, or a list of two
        """
        obs, action = entry_of(data, 'obs'), entry_of(data, 'action')
        state = of_each(state_of(obs), self.agent_num)
        done = action.flatten(-2)
        done = done if action.dim() > obs['agent_state'].dim() else of_each(done, self.agent_num)
        judged = with_ids(torch.cat([state, done], -1), self.actor.ids)
        q_value = [critic(judged).squeeze(-1) for critic in self.critic]
        return {'q_value': q_value if len(q_value) > 1 else q_value[0]}


def state_size(agent_num: int, obs_dim: int | Sequence[int], global_obs_dim: int | None) -> int:
    """Size of what ``state_of`` gives."""
    return agent_num * as_size(obs_dim) if global_obs_dim is None else as_size(global_obs_dim, 'global_obs_dim')


def state_of(obs: dict[str, Tensor]) -> Tensor:
    """What a central critic sees (*, S): the global state, or what all agents see that play where an env has none."""
    if 'global_state' in obs:
        return obs['global_state']
    alive = obs.get('agent_alive')
    return (obs['agent_state'] if alive is None else obs['agent_state'] * alive.unsqueeze(-1)).flatten(-2)


def of_each(x: Tensor, agent_num: int) -> Tensor:
    """The same (*, D) for every agent: (*, A, D)."""
    return x.unsqueeze(-2).expand(*x.shape[:-1], agent_num, -1)


def with_ids(x: Tensor, ids: Tensor) -> Tensor:
    """(*, A, D) with the number of the agent as a one-hot vector behind, where there are ids."""
    return torch.cat([x, ids.expand(*x.shape[:-2], -1, -1)], -1) if len(ids) else x
