"""Soft actor-critic for discrete actions: logits, and twin values of every action."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from nervex.model.common.inputs import action_heads, obs_of
from nervex.model.common.modes import ModeNet
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import MLP


class DiscreteSACModel(ModeNet):
    """
    Overview:
        Networks of soft actor-critic for discrete actions (Christodoulou 2019, https://arxiv.org/abs/1910.07207):
        ``model.actor`` gives logits, ``model.critic`` (a list of one or two) the value of each action.
    Arguments:
        - obs_dim (:obj:`int | Sequence[int]`): size of an observation
        - action_dim (:obj:`int`): number of actions
        - use_twin_q (:obj:`bool`): two critics
        - hidden_dim_list (:obj:`Sequence[int]`): widths of the hidden layers of all of them
        - activation (:obj:`str | Callable`): 'relu', 'tanh', ...
    Interfaces:
        forward, compute_action, compute_q
    """

    modes = ('compute_action', 'compute_q')

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        use_twin_q: bool = True,
        hidden_dim_list: Sequence[int] = (128, 128),
        activation: str | Activation = 'relu',
    ) -> None:
        super().__init__()
        heads = action_heads(action_dim)
        if not isinstance(heads, int):
            raise ValueError(f'soft actor-critic for discrete actions has one action head, got action_dim {action_dim}')
        parts = [MLP(obs_dim, hidden_dim_list, heads, activation, name='obs') for _ in range(3 if use_twin_q else 2)]
        self.actor = parts[0]
        self.critic = nn.ModuleList(parts[1:])

    def compute_action(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """
        Shapes:
            - obs :math:`(B, obs\\_dim)`, logit :math:`(B, A)`; an ``action_mask`` is passed on
        """
        output = {'logit': self.actor(obs_of(data))}
        if not isinstance(data, Tensor) and 'action_mask' in data:
            output['action_mask'] = data['action_mask']
        return output

    def compute_q(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """
        Shapes:
            - obs :math:`(B, obs\\_dim)`, q_value: a list of two :math:`(B, A)`, or one tensor without twins
        """
        q_value = [critic(obs_of(data)) for critic in self.critic]
        return {'q_value': q_value if len(q_value) > 1 else q_value[0]}
