"""The monotonic mixing network of QMIX."""

import torch
import torch.nn as nn
from torch import Tensor

from nervex.torch_utils.network.mlp import MLP


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
        self.weight_1 = MLP(state_dim, [hypernet_dim], agent_num * embedding_dim, name='global_state')
        self.bias_1 = nn.Linear(state_dim, embedding_dim)
        self.weight_2 = MLP(state_dim, [hypernet_dim], embedding_dim)
        self.bias_2 = MLP(state_dim, [embedding_dim], 1)

    def forward(self, agent_q: Tensor, global_state: Tensor) -> Tensor:
        weight_1 = self.weight_1(global_state).abs().unflatten(-1, (agent_q.shape[-1], -1))
        hidden = torch.einsum('...a,...ae->...e', agent_q, weight_1) + self.bias_1(global_state)
        weight_2 = self.weight_2(global_state).abs()
        return (nn.functional.elu(hidden) * weight_2).sum(-1) + self.bias_2(global_state).squeeze(-1)
