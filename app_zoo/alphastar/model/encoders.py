"""Numbers, units and the minimap as features."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from app_zoo.alphastar.envs.features import COLUMN, LAYERS, SCALARS, UNIT
from app_zoo.alphastar.envs.orders import DELAYS, NAMES, UNIT_TYPES
from nervex.torch_utils.network import MLP, ResBlock, ScatterConnection, Transformer, conv2d_block

#: categories by name, and how many there are; everything else is a number
_CATEGORIES = {'alliance': 5, 'cloak': 5}
_EMBEDDED = {'unit_type': (UNIT_TYPES, 16), 'order_id_0': (1024, 8)}
#: what numbers of units are divided by; 1 where there is nothing. x and y: the edge of the map
_SCALE = {
    **dict.fromkeys(('health', 'shield'), 500.0),
    **dict.fromkeys(('health_ratio', 'shield_ratio', 'energy_ratio'), 255.0),
    **dict.fromkeys(('assigned_harvesters', 'ideal_harvesters', 'weapon_cooldown'), 16.0),
    **dict.fromkeys(('mineral_contents', 'vespene_contents'), 2000.0),
    **dict.fromkeys(('attack_upgrade_level', 'armor_upgrade_level', 'shield_upgrade_level'), 3.0),
    **{'energy': 200.0, 'build_progress': 100.0, 'cargo_space_taken': 8.0, 'order_length': 5.0},
}
_NUMBERS = [name for name in UNIT if name not in _CATEGORIES and name not in _EMBEDDED]
_LAYER_CLASSES = {'visibility_map': 4, 'player_relative': 5}  # the height is a number, the others yes or no
_LAST = 8  # size of the embeddings of the last order


class ScalarEncoder(nn.Module):
    """
    Overview:
        The numbers of the player, what could be ordered, and the type and delay of the last order.
    Shapes:
        - output :math:`(B, width)`
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.last_type, self.last_delay = nn.Embedding(len(NAMES), _LAST), nn.Embedding(DELAYS, _LAST)
        self.net = MLP(SCALARS + len(NAMES) + 2 * _LAST, [width, width])

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        """The features."""
        kind, delay = obs['last_order'].long().unbind(-1)
        parts = (obs['scalar_info'], obs['type_mask'].float(), self.last_type(kind), self.last_delay(delay))
        return self.net(torch.cat(parts, -1))


class EntityEncoder(nn.Module):
    """
    Overview:
        Layers of attention over the units.
    Shapes:
        - outputs: features of the units :math:`(B, N, width)`, zeros where there is none, and their mean
          :math:`(B, width)`
    """

    def __init__(self, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.embeddings = nn.ModuleDict({name: nn.Embedding(n, size) for name, (n, size) in _EMBEDDED.items()})
        size = len(_NUMBERS) + sum(_CATEGORIES.values()) + sum(size for _, size in _EMBEDDED.values())
        self.transformer = Transformer(size, max(width // heads, 1), 2 * width, width, heads, layer_num=layers)
        self.register_buffer('scale', torch.tensor([_SCALE.get(name, 1.0) for name in _NUMBERS]), persistent=False)
        self._columns = [COLUMN[name] for name in _NUMBERS]
        self._place = [_NUMBERS.index(axis) for axis in ('x', 'y')]

    def forward(self, obs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The features of each and of all."""
        units, there = obs['entity_info'], obs['target_mask'] > 0
        numbers = units[..., self._columns] / self.scale
        cells = obs['spatial_info'].shape[-1]
        numbers[..., self._place] /= cells
        parts = [numbers]
        for name, count in _CATEGORIES.items():
            parts.append(F.one_hot(units[..., COLUMN[name]].long().clamp(0, count - 1), count).to(numbers.dtype))
        for name, embedding in self.embeddings.items():
            parts.append(embedding(units[..., COLUMN[name]].long().clamp(0, _EMBEDDED[name][0] - 1)))
        each = self.transformer(torch.cat(parts, -1), there) * there.unsqueeze(-1)
        return each, each.sum(1) / there.sum(1, keepdim=True).clamp_min(1)


class SpatialEncoder(nn.Module):
    """
    Overview:
        Convolutions over the minimap, in which the units have written their features at their places.
    Shapes:
        - outputs: features :math:`(B, width)`; maps of them :math:`(B, C, M / 4, M / 4)`, and of the input
          :math:`(B, C, M, M)`
    """

    def __init__(self, width: int, channels: int, blocks: int) -> None:
        super().__init__()
        layers = sum(_LAYER_CLASSES.get(name, 1) for name in LAYERS)
        self.written, self.scatter = nn.Linear(width, channels), ScatterConnection('add')
        self.first = conv2d_block(layers + channels, channels, 1, activation='relu')
        self.down = nn.Sequential(
            conv2d_block(channels, channels, 4, 2, 1, activation='relu'),
            conv2d_block(channels, channels, 4, 2, 1, activation='relu'),
            *(ResBlock(channels, norm_type=None) for _ in range(blocks)),
        )
        self.pool, self.out = nn.AdaptiveAvgPool2d(4), MLP(16 * channels, [width])

    def forward(self, obs: dict[str, Tensor], units: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The features and the maps."""
        spatial = obs['spatial_info']
        place = obs['entity_info'][..., [COLUMN['y'], COLUMN['x']]].clamp(0, spatial.shape[-1] - 1)
        written = self.written(units) * (obs['target_mask'] > 0).unsqueeze(-1)
        maps = [self.scatter(written, tuple(spatial.shape[-2:]), place)]
        for k, name in enumerate(LAYERS):
            layer, count = spatial[:, k], _LAYER_CLASSES.get(name)
            if count is None:
                maps.append(layer.unsqueeze(1) / (255.0 if name == 'height_map' else 1.0))
            else:
                maps.append(F.one_hot(layer.long().clamp_max(count - 1), count).movedim(-1, 1).to(written.dtype))
        fine = self.first(torch.cat(maps, 1))
        coarse = self.down(fine)
        return self.out(self.pool(coarse).flatten(1)), coarse, fine
