"""COMA: decentral actors and one critic that knows everything."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from nervex.model.common.encoder import widths_of
from nervex.model.common.modes import entry_of
from nervex.model.qmix.qmix import AgentNet, TeamNet, as_sequence
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import MLP, Layers
from nervex.torch_utils.network.shapes import as_size


class ComaCritic(nn.Module):
    """
    Overview:
        Q(state, what the others do, .) for each action of an agent. It sees the global state, the agent's observation,
        the actions of the others now and of all one step before, and which agent is meant. Actions before the first
        step are given, -1 where there were none.
    Shapes:
        - agent_state :math:`(T, B, A, N)`, global_state :math:`(T, B, M)`, action :math:`(T, B, A)`, last_action
          :math:`(B, A)`, q_value :math:`(T, B, A, P)`
    """

    agents: Tensor

    def __init__(
        self,
        agent_num: int,
        obs_dim: int,
        global_obs_dim: int,
        action_dim: int,
        hidden_dim_list: Layers,
        activation: str | Activation = 'relu',
    ) -> None:
        super().__init__()
        in_dim = global_obs_dim + obs_dim + 2 * agent_num * action_dim + agent_num
        self.net = MLP(in_dim, hidden_dim_list, action_dim, activation, name='state with actions')
        self._action_dim = action_dim
        self.register_buffer('agents', torch.eye(agent_num), persistent=False)

    def forward(
        self, agent_state: Tensor, global_state: Tensor, action: Tensor, last_action: Tensor | None = None
    ) -> Tensor:
        """The outputs that the class describes; ``last_action`` None: an episode begins."""
        steps, batch, agents = action.shape
        first = torch.full_like(action[0], -1) if last_action is None else last_action
        every = torch.cat([first.unsqueeze(0), action]).long()
        taken = F.one_hot(every + 1, self._action_dim + 1)[..., 1:].to(agent_state.dtype)
        joint = taken.flatten(2).unsqueeze(2).expand(-1, -1, agents, -1)
        others = joint[1:] * (1.0 - self.agents).repeat_interleave(self._action_dim, 1)
        last = joint[:-1]
        state = global_state.unsqueeze(2).expand(-1, -1, agents, -1)
        identity = self.agents.expand(steps, batch, -1, -1)
        return self.net(torch.cat([state, agent_state.flatten(3), others, last, identity], -1))


class ComaNetwork(TeamNet):
    """
    Overview:
        Counterfactual multi-agent policy gradients (Foerster et al. 2018, https://arxiv.org/abs/1705.08926):
        ``model.actor``, a recurrent policy that all agents share or have one each, and ``model.critic``.
    Arguments:
        - agent_num (:obj:`int`): number of agents
        - obs_dim (:obj:`int | Sequence[int] | Mapping`): size of what one agent sees; or both sizes,
          ``{'agent_state': ..., 'global_state': ...}``
        - action_dim (:obj:`int`): number of actions of an agent
        - embedding_dim (:obj:`int`), hidden_dim_list (:obj:`Sequence[int] | None`): widths of actor's encoder and
          critic, None is [128, embedding_dim]
        - global_obs_dim (:obj:`int | None`): size of the global state, if ``obs_dim`` does not say it
        - lstm_type (:obj:`str | None`): 'gru' or 'lstm' gives the actor a memory
        - agent_ids, share (:obj:`bool`): of the actor, see ``AgentNet``; the critic is one for all
    Interfaces:
        forward, compute_action, compute_q_value
    """

    modes = ('compute_action', 'compute_q_value')

    def __init__(
        self,
        agent_num: int,
        obs_dim: int | Sequence[int] | Mapping[str, Any],
        action_dim: int,
        embedding_dim: int = 64,
        hidden_dim_list: Layers | None = None,
        global_obs_dim: int | Sequence[int] | None = None,
        lstm_type: str | None = 'gru',
        activation: str | Activation = 'relu',
        agent_ids: bool = False,
        share: bool = True,
    ) -> None:
        super().__init__()
        own_dim: Any = obs_dim
        if isinstance(obs_dim, Mapping):
            own_dim, global_obs_dim = obs_dim['agent_state'], obs_dim['global_state']
        if global_obs_dim is None:
            raise ValueError(
                'the critic needs the size of the global state: global_obs_dim=..., or obs_dim='
                "{'agent_state': ..., 'global_state': ...}"
            )
        widths = widths_of(embedding_dim, hidden_dim_list, 128)
        self.agent_num = agent_num
        self.actor = AgentNet(own_dim, action_dim, widths, lstm_type, activation, agent_num, agent_ids, share=share)
        self.critic = ComaCritic(
            agent_num, as_size(own_dim), as_size(global_obs_dim, 'global_obs_dim'), action_dim, widths, activation
        )

    def compute_q_value(self, data: dict[str, Any], single_step: bool | None = None) -> dict[str, Tensor]:
        """
        Overview:
            Value of each action of an agent while the others do what they did.
        Arguments:
            - data (:obj:`dict`): ``obs`` with ``agent_state`` and ``global_state``; ``action``; optionally
              ``last_action``, what was done before the first step, -1 for nothing
        Shapes:
            - agent_state :math:`(T, B, A, N)`, global_state :math:`(T, B, M)`, action :math:`(T, B, A)`, last_action
              :math:`(B, A)`, q_value :math:`(T, B, A, P)`; without T for a single step
        """
        obs, added = as_sequence(data, single_step, self.actor.in_shape, self.agent_num)
        action = entry_of(data, 'action').unsqueeze(0) if added else entry_of(data, 'action')
        q_value = self.critic(obs['agent_state'], entry_of(obs, 'global_state'), action, data.get('last_action'))
        return {'q_value': q_value.squeeze(0) if added else q_value}
