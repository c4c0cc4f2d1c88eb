"""Decentral deterministic actors with a critic of what all of them see and do (MADDPG)."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn as nn

from nervex.model.common.encoder import widths_of
from nervex.model.common.modes import as_flag, entry_of
from nervex.model.qmix.qmix import AgentNet, TeamNet, linear_of
from nervex.model.team.team_ac import of_each, state_of, state_size, with_ids
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import MLP, Layers


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
