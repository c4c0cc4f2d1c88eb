"""An order part by part: each is chosen by what was chosen before it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from app_zoo.alphastar.envs.features import COLUMN
from app_zoo.alphastar.envs.orders import DELAYS, NAMES, OBEYS, PARTS, PLACES, USES
from nervex.torch_utils.network import GLU, MLP, BilinearUpsample, ResBlock, conv2d_block

_NEVER = -1e9  # the logit of what is illegal: finite, so that it is 0 times something nowhere


class Choice:
    """
    Overview:
        How the parts of orders come about: they are given, drawn, or the likeliest.
    Arguments:
        - order (:obj:`Tensor | None`): given orders :math:`(B, places)`
        - generator (:obj:`torch.Generator | None`): what is drawn from; None: the likeliest
    """

    def __init__(self, order: Tensor | None, generator: torch.Generator | None) -> None:
        self.order, self.generator = order, generator

    def __call__(self, logit: Tensor, place: int) -> Tensor:
        """What stands at this place of the orders."""
        if self.order is not None:
            return self.order[:, place]
        if self.generator is None:
            return logit.argmax(-1)
        waits = torch.empty_like(logit).exponential_(generator=self.generator)
        return (logit.detach() - waits.clamp_min(1e-30).log()).argmax(-1)  # what is illegal stays so at a draw of 0


def _masked(logit: Tensor, legal: Tensor) -> Tensor:
    return logit.masked_fill(~legal, _NEVER)


class UnitSelection(nn.Module):
    """
    Overview:
        A pointer network: a query, which remembers who was selected, looks for the next unit or the end. The first one
        is a unit. Nobody is selected twice.
    Shapes:
        - features :math:`(B, F)`, units :math:`(B, N, width)`, able and used: bool :math:`(B, N)` and :math:`(B, )`
        - outputs: selected :math:`(B, S)`, where N means nobody; logits :math:`(B, S, N + 1)`; which of the S choices
          were made, bool :math:`(B, S)`; the sum of the selected units' keys :math:`(B, key_dim)`
    """

    def __init__(self, features: int, width: int, key_dim: int) -> None:
        super().__init__()
        self.key, self.end = nn.Linear(width, key_dim), nn.Parameter(torch.zeros(key_dim))
        self.query, self.cell = MLP(features, [key_dim]), nn.LSTMCell(key_dim, key_dim)

    def forward(
        self, features: Tensor, units: Tensor, able: Tensor, used: Tensor, choice: Choice, steps: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """One unit after the other."""
        batch, count = able.shape
        keys = torch.cat([self.key(units), self.end.expand(batch, 1, -1)], 1)
        rows, left, going = torch.arange(batch, device=able.device), able, used
        asked, total = self.query(features), keys.new_zeros(batch, keys.shape[-1])
        state, trace = (total, total), []
        first = PLACES['selected_units'].start
        for step in range(steps):
            state = self.cell(asked + total, state)
            end_too = ~left.any(1, keepdim=True) | (step > 0)
            logit = (keys @ state[0].unsqueeze(-1)).squeeze(-1) / math.sqrt(keys.shape[-1])
            logit = _masked(logit, torch.cat([left & going.unsqueeze(1), end_too | ~going.unsqueeze(1)], 1))
            picked = torch.where(going, choice(logit, first + step), count)
            trace.append((picked, logit, going))
            going = going & (picked < count)
            left = left & (torch.arange(count, device=able.device) != picked.unsqueeze(1))
            total = total + keys[rows, picked] * going.unsqueeze(1)
        chosen, logits, made = (torch.stack(column, 1) for column in zip(*trace))
        return chosen, logits, made, total


class LocationHead(nn.Module):
    """
    Overview:
        A map of logits, from the maps of the spatial encoder and the features of the order so far.
    Shapes:
        - features :math:`(B, F)`, coarse :math:`(B, C, M / 4, M / 4)`, fine :math:`(B, C, M, M)`; output
          :math:`(B, M M)`
    """

    def __init__(self, features: int, channels: int) -> None:
        super().__init__()
        self.asked, self.weighed = nn.Linear(features, channels), nn.Linear(features, channels)
        self.body = ResBlock(channels, norm_type=None)
        self.up = nn.Sequential(
            BilinearUpsample(2.0),
            conv2d_block(channels, channels, 3, padding=1, activation='relu'),
            BilinearUpsample(2.0),
            conv2d_block(channels, channels, 3, padding=1),
        )
        self.out = conv2d_block(channels, 1, 3, padding=1)

    def forward(self, features: Tensor, coarse: Tensor, fine: Tensor) -> Tensor:
        """The logits."""
        raised = self.up(self.body(F.relu(coarse + self.asked(features)[..., None, None])))
        return self.out(F.relu(raised + fine * self.weighed(features)[..., None, None])).flatten(1)


class OrderHeads(nn.Module):
    """
    Overview:
        Orders, or the probabilities of given ones: type -> delay -> queued -> selected units -> target unit -> target
        location. What is chosen changes the features that the next parts are chosen by, where the type of the order has
        such a part; none has both targets.
    Arguments:
        - features (:obj:`int`), context (:obj:`int`): sizes of the core's output and of the scalar features
        - width (:obj:`int`), channels (:obj:`int`): sizes of the features of units and maps
        - selected (:obj:`int`): units that an order selects at most
        - key_dim (:obj:`int`): size of the queries for units
    """

    def __init__(self, features: int, context: int, width: int, channels: int, selected: int, key_dim: int) -> None:
        super().__init__()
        self._selected = selected
        self.type_body, self.type_out = MLP(features, [features]), GLU(features, len(NAMES), context)
        self.delay, self.queued = MLP(features, [features], DELAYS), MLP(features, [features], 2)
        self.selection = UnitSelection(features, width, key_dim)
        self.target_query, self.target_key = MLP(features, [features], key_dim), nn.Linear(width, key_dim)
        self.location = LocationHead(features, channels)
        self.told = nn.ModuleDict(
            {
                'action_type': nn.Embedding(len(NAMES), features),
                'delay': nn.Embedding(DELAYS, features),
                'queued': nn.Embedding(2, features),
                'selected_units': nn.Linear(key_dim, features),
            }
        )
        self.register_buffer('uses', torch.from_numpy(USES), persistent=False)
        self.register_buffer('obeys', torch.from_numpy(np.ascontiguousarray(OBEYS)), persistent=False)

    def forward(
        self, core: Tensor, context: Tensor, units: Tensor, maps: tuple[Tensor, Tensor], obs: dict, choice: Choice
    ) -> dict[str, Any]:
        """
        Returns:
            - output (:obj:`dict`): ``action`` :math:`(B, places)`; ``logit``, a dict of the parts' logits, ``made``,
              which choices were made: bool :math:`(B, S)` for the selected units, else :math:`(B, )`; ``log_prob``
              and ``entropy`` of each part, 0 where an order has no such part: :math:`(B, parts)`
        """
        batch = len(core)
        logit, made, taken = {}, {}, {}

        def chosen(part: str, scores: Tensor, has: Tensor) -> Tensor:
            logit[part], made[part] = scores, has
            taken[part] = picked = torch.where(has, choice(scores, PLACES[part]), 0)
            return picked

        everybody = torch.ones(batch, dtype=torch.bool, device=core.device)
        scores = self.type_out(self.type_body(core), context)
        kind = chosen('action_type', _masked(scores, obs['type_mask'] > 0), everybody)
        uses = dict(zip(PARTS, self.uses[kind].unbind(1)))
        x = core + self.told['action_type'](kind)
        x = x + self.told['delay'](chosen('delay', self.delay(F.relu(x)), everybody))
        has = uses['queued']
        x = x + self.told['queued'](chosen('queued', self.queued(F.relu(x)), has)) * has.unsqueeze(1)

        has, types = uses['selected_units'], obs['entity_info'][..., COLUMN['unit_type']].long()
        able = (obs['select_mask'] > 0) & self.obeys[types.clamp(0, len(self.obeys) - 1), kind.unsqueeze(1)]
        selected, scores, steps, keys = self.selection(F.relu(x), units, able, has, choice, self._selected)
        logit['selected_units'], made['selected_units'], taken['selected_units'] = scores, steps, selected
        x = x + self.told['selected_units'](keys) * has.unsqueeze(1)

        has, keys = uses['target_unit'], self.target_key(units)
        scores = (keys @ self.target_query(F.relu(x)).unsqueeze(-1)).squeeze(-1) / math.sqrt(keys.shape[-1])
        chosen('target_unit', _masked(scores, obs['target_mask'] > 0), has)
        has = uses['target_location']
        rows = has.nonzero().squeeze(1)  # maps are most of the work: only of those orders that need one
        scores = x.new_zeros(batch, maps[1].shape[-2] * maps[1].shape[-1])
        scores = scores.index_copy(0, rows, self.location(F.relu(x[rows]), *(part[rows] for part in maps)))
        chosen('target_location', scores, has)

        order = torch.cat([taken[part].reshape(batch, -1) for part in PARTS], 1)
        return {'action': order, 'logit': logit, 'made': made, **of_parts(logit, made, taken)}


def of_parts(logit: dict[str, Tensor], made: dict[str, Tensor], taken: dict[str, Tensor]) -> dict[str, Tensor]:
    """
    Overview:
        Log-probability and entropy of each part of orders; those of the selected units are sums over the choices made.
    Shapes:
        - as ``OrderHeads`` answers them; results :math:`(B, parts)`
    """
    log_probs, entropies = [], []
    for part in PARTS:
        log_p = F.log_softmax(logit[part], -1)
        log_prob = log_p.gather(-1, taken[part].unsqueeze(-1)).squeeze(-1) * made[part]
        entropy = -(log_p.exp() * log_p).sum(-1) * made[part]
        log_probs.append(log_prob.reshape(len(log_prob), -1).sum(1))
        entropies.append(entropy.reshape(len(entropy), -1).sum(1))
    return {'log_prob': torch.stack(log_probs, 1), 'entropy': torch.stack(entropies, 1)}


def divergence(teacher: dict[str, Tensor], logit: dict[str, Tensor], made: dict[str, Tensor]) -> Tensor:
    """
    Overview:
        :math:`KL(teacher || policy)` of each part, over the choices made.
    Shapes:
        - logits as ``OrderHeads`` answers them, with any further axes in front; result :math:`(*, parts)`
    """
    found = []
    for part in PARTS:
        log_t, log_p = F.log_softmax(teacher[part], -1), F.log_softmax(logit[part], -1)
        each = (log_t.exp() * (log_t - log_p)).sum(-1) * made[part]
        found.append(each.sum(-1) if part == 'selected_units' else each)
    return torch.stack(found, -1)
