"""QMIX and VDN: one recurrent network for all agents, and a mixer of their action values."""

from collections.abc import Sequence
from typing import Any

import torch.nn as nn

from nervex.model.common.inputs import entry_of
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.shapes import as_size

from .agent_net import AgentNet, as_sequence, taken_q
from .mixer import Mixer


class QMix(nn.Module):
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
    """

    def __init__(
        self,
        agent_num: int,
        obs_dim: int | Sequence[int],
        global_obs_dim: int,
        action_dim: int,
        embedding_dim: int = 64,
        hidden_dim_list: Sequence[int] | None = None,
        use_mixer: bool = True,
        lstm_type: str = 'gru',
        activation: str | Activation = 'relu',
        hypernet_dim: int = 64,
    ) -> None:
        super().__init__()
        widths = [128, embedding_dim] if hidden_dim_list is None else list(hidden_dim_list)
        self.agent_num = agent_num
        self.agent_net = AgentNet(obs_dim, action_dim, widths, lstm_type, activation)
        state_dim = as_size(global_obs_dim, 'global_obs_dim')
        self.mixer = Mixer(agent_num, state_dim, widths[-1], hypernet_dim) if use_mixer else None

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
        obs, added = as_sequence(data, single_step, self.agent_net.encoder.in_shape, self.agent_num)
        action, mask = data.get('action'), obs.get('action_mask')
        logit, next_state = self.agent_net(obs['agent_state'], data.get('prev_state'))
        agent_q = taken_q(logit, action.unsqueeze(0) if added and action is not None else action, mask)
        total_q = agent_q.sum(-1) if self.mixer is None else self.mixer(agent_q, entry_of(obs, 'global_state'))
        output = {'total_q': total_q, 'agent_q': agent_q, 'logit': logit}
        if mask is not None:
            output['action_mask'] = mask
        if added:
            output = {key: value.squeeze(0) for key, value in output.items()}
        return {**output, 'next_state': next_state}
