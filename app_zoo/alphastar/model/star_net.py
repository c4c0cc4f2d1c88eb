"""The network: encoders, a memory, an order part by part, a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from app_zoo.alphastar.envs.orders import DELAYS, NAMES, PARTS
from app_zoo.alphastar.model.encoders import EntityEncoder, ScalarEncoder, SpatialEncoder
from app_zoo.alphastar.model.heads import Choice, OrderHeads
from nervex.torch_utils.network import MLP, RNN
from nervex.utils import MODEL_REGISTRY, tree


@MODEL_REGISTRY.register('alphastar')
class StarNet(nn.Module):
    """
    Overview:
        AlphaStar's network in small (Vinyals et al. 2019): encoders of numbers, units and the minimap, a memory, and
        heads that give an order part by part. Acting, and the probabilities of given orders, are the same code.
    Arguments:
        - action_dim (:obj:`Sequence[int]`): choices of each place of an order, as the env has them
        - width (:obj:`int`): size of the features of numbers, units and the minimap
        - core_dim (:obj:`int`): size of the core's output
        - lstm_layers (:obj:`int`): layers of the memory; 0: none
        - entity_layers (:obj:`int`), entity_heads (:obj:`int`): of the attention over units
        - map_channels (:obj:`int`), map_blocks (:obj:`int`): of the convolutions over the minimap
        - key_dim (:obj:`int`): size of the queries for units
    Interfaces:
        forward, initial_state
    """

    def __init__(
        self,
        action_dim: Sequence[int],
        width: int = 64,
        core_dim: int = 128,
        lstm_layers: int = 1,
        entity_layers: int = 2,
        entity_heads: int = 2,
        map_channels: int = 16,
        map_blocks: int = 2,
        key_dim: int = 32,
    ) -> None:
        super().__init__()
        kinds = (len(NAMES), DELAYS, 2)
        if len(action_dim) < len(PARTS) or tuple(action_dim[:3]) != kinds:
            text = f'choices of each place of an order, {", ".join(map(str, kinds))}, ..., got {list(action_dim)[:8]}'
            raise ValueError(f'action_dim: {text}; this network is for the envs of app_zoo.alphastar')
        self.scalar, self.entity = ScalarEncoder(width), EntityEncoder(width, entity_layers, entity_heads)
        self.spatial = SpatialEncoder(width, map_channels, map_blocks)
        self.core = MLP(3 * width, [core_dim])
        self.rnn = RNN(core_dim, core_dim, num_layers=lstm_layers) if lstm_layers else None
        self.heads = OrderHeads(core_dim, width, width, map_channels, len(action_dim) - 5, key_dim)
        self.value = MLP(core_dim + width, [core_dim], 1)

    @property
    def remembers(self) -> bool:
        """Whether it has a memory."""
        return self.rnn is not None

    def initial_state(self) -> Any:
        """The state of one row before its first step."""
        return self.rnn.initial_state() if self.rnn is not None else None

    def forward(self, data: dict[str, Any]) -> dict[str, Any]:
        """
        Overview:
            Orders and values of a block of observations; or of sequences (``enable_fast_timestep``), time first.
        Arguments:
            - data (:obj:`dict`): ``obs``; with ``action`` these orders are judged, which may be of fewer steps than
              the observations; with ``generator`` they are drawn from it, else they are the likeliest;
              ``prev_state`` with a memory
        Returns:
            - output (:obj:`dict`): what ``OrderHeads`` answers, ``value``, and ``next_state`` with a memory
        Shapes:
            - obs: columns :math:`([T], B, *)`; action :math:`([T], B, places)`; value :math:`([T], B)`
        """
        obs, order = data['obs'], data.get('action')
        lead = obs['scalar_info'].shape[:-1]
        flat = tree.map(lambda part: part.flatten(0, 1), obs) if len(lead) == 2 else obs
        scalar, (units, mean) = self.scalar(flat), self.entity(flat)
        spatial, *maps = self.spatial(flat, units)
        core, more = self.core(torch.cat([scalar, mean, spatial], -1)), {}
        if self.rnn is not None:
            steps = core.unflatten(0, lead) if len(lead) == 2 else core.unsqueeze(0)
            core, more['next_state'] = self.rnn(steps, data.get('prev_state'))
            core = core.flatten(0, 1)
        value = self.value(torch.cat([core, scalar], -1)).reshape(lead)

        judged = lead if order is None else order.shape[:-1]
        rows = judged.numel()
        parts = tree.map(lambda part: part[:rows], [core, scalar, units, maps, flat])
        given = None if order is None else order.reshape(rows, -1)
        output = self.heads(*parts, Choice(given, data.get('generator')))
        if len(lead) == 2:
            output = tree.map(lambda part: part.unflatten(0, judged), output)
        return {**output, 'value': value, **more}
