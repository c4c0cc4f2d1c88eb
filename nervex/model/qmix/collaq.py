"""CollaQ: what an agent is worth alone, and what it is worth to the others."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn as nn
from torch import Tensor

from nervex.model.common.encoder import widths_of
from nervex.model.common.modes import entry_of
from nervex.model.qmix.qmix import AgentNet, MixedNet, Mixer, as_sequence, team_values
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import Layers
from nervex.torch_utils.network.shapes import InputShapeError, as_shape, as_size

#: what the three recurrent states of an agent belong to
_STATES = ('colla', 'alone', 'colla_alone')


class AllyAttention(nn.Module):
    """
    Overview:
        Replaces the features of the allies in an observation by one summary: the allies weighted by how much the
        agent's own features ask for them.
    Arguments:
        - obs_dim (:obj:`int`), ally_num (:obj:`int`): size of an observation, number of allies in it
        - self_range, ally_range (:obj:`Sequence[int]`): begin and end of the agent's and of all allies' features
        - attention_dim (:obj:`int`): size of the summary
    Shapes:
        - obs :math:`(*, N)`, result :math:`(*, out\\_dim)`
    """

    def __init__(
        self, obs_dim: int, ally_num: int, self_range: Sequence[int], ally_range: Sequence[int], attention_dim: int = 32
    ) -> None:
        super().__init__()
        width = ally_range[1] - ally_range[0]
        if width <= 0 or width % ally_num or not 0 <= self_range[0] < self_range[1] <= obs_dim >= ally_range[1]:
            raise ValueError(
                f'self_feature_range {list(self_range)} and ally_feature_range {list(ally_range)} must '
                f'lie in the observation of {obs_dim}, the latter in equal parts for {ally_num} allies'
            )
        self.query = nn.Linear(self_range[1] - self_range[0], attention_dim)
        self.key = nn.Linear(width // ally_num, attention_dim)
        self.value = nn.Linear(width // ally_num, attention_dim)
        self.out_dim = obs_dim - width + attention_dim
        self._self, self._allies, self._ally_num = slice(*self_range), slice(*ally_range), ally_num

    def forward(self, obs: Tensor) -> Tensor:
        """The outputs that the class describes."""
        allies = obs[..., self._allies].unflatten(-1, (self._ally_num, -1))
        query = self.query(obs[..., self._self]).unsqueeze(-2)
        summary = nn.functional.scaled_dot_product_attention(query, self.key(allies), self.value(allies)).squeeze(-2)
        return torch.cat([obs[..., : self._allies.start], obs[..., self._allies.stop :], summary], -1)


class CollaQ(MixedNet):
    """
    Overview:
        QMIX whose agents' values are a sum, Q = Q_alone(own observation) + Q_colla(observation) (Zhang et al. 2020,
        https://arxiv.org/abs/2010.08531). Q_colla of an agent that sees no others, ``agent_colla_alone_q``, should be
        zero: the loss pulls it there.
    Arguments:
        - alone_obs_dim (:obj:`int | Sequence[int]`): size of what concerns an agent alone
        - attention (:obj:`bool`): summarise the allies by attention before Q_colla, see ``AllyAttention``
        - self_feature_range, ally_feature_range (:obj:`Sequence[int] | None`), attention_dim (:obj:`int`): its settings
        - the others: see ``QMix``
    Interfaces:
        forward, compute_action, agent_values, colla_alone_values, joint
    """

    def __init__(
        self,
        agent_num: int,
        obs_dim: int | Sequence[int],
        alone_obs_dim: int | Sequence[int],
        global_obs_dim: int,
        action_dim: int,
        embedding_dim: int = 64,
        hidden_dim_list: Layers | None = None,
        attention: bool = False,
        self_feature_range: Sequence[int] | None = None,
        ally_feature_range: Sequence[int] | None = None,
        attention_dim: int = 32,
        use_mixer: bool = True,
        lstm_type: str | None = 'gru',
        activation: str | Activation = 'relu',
        hypernet_dim: int = 64,
        agent_ids: bool = False,
        mixing_dim: int | None = None,
        share: bool = True,
    ) -> None:
        super().__init__()
        widths = widths_of(embedding_dim, hidden_dim_list, 128)
        self.agent_num = agent_num
        self._obs_shape = as_shape(obs_dim)
        self.attention = None
        if attention:
            if self_feature_range is None or ally_feature_range is None:
                raise ValueError('attention=True needs self_feature_range and ally_feature_range')
            self.attention = AllyAttention(
                as_size(obs_dim), agent_num - 1, self_feature_range, ally_feature_range, attention_dim
            )
        colla_dim = obs_dim if self.attention is None else self.attention.out_dim
        rest: tuple = (action_dim, widths, lstm_type, activation, agent_num, agent_ids, False, share)
        self.colla_net, self.alone_net = AgentNet(colla_dim, *rest), AgentNet(alone_obs_dim, *rest)
        state_dim = as_size(global_obs_dim, 'global_obs_dim')
        mixing_dim = mixing_dim or self.colla_net.encoder.out_dim
        self.mixer = Mixer(agent_num, state_dim, mixing_dim, hypernet_dim) if use_mixer else None

    @property
    def state_shape(self) -> tuple[int, int]:
        """Of the states of one env, as a block: those of an agent side by side."""
        return self.agent_num, len(_STATES) * self.colla_net.block_dim

    def compute_action(self, data: dict[str, Any]) -> dict[str, Any]:
        """What acting needs of one step (B, ...): ``logit``, ``action_mask`` where there is one, and ``next_state``."""
        obs = {key: value.unsqueeze(0) for key, value in data['obs'].items() if value is not None}
        (alone, colla, _), next_state = self._parts(obs, data.get('prev_state'))
        output = {'logit': (alone + colla).squeeze(0), 'next_state': next_state}
        return output if 'action_mask' not in obs else {**output, 'action_mask': data['obs']['action_mask']}

    def _parts(self, obs: dict[str, Tensor], prev_state: Any) -> tuple[tuple[Tensor, Tensor, Tensor], Any]:
        """Q_alone, Q_colla and Q_colla without the others along a sequence, and the states behind it."""
        states = _by_net(prev_state)
        seen, padded = (self._attended(entry_of(obs, key)) for key in ('agent_state', 'agent_alone_padding_state'))
        colla, colla_state = self.colla_net(seen, states['colla'])
        alone, alone_state = self.alone_net(entry_of(obs, 'agent_alone_state'), states['alone'])
        blank, blank_state = self.colla_net(padded, states['colla_alone'])
        ahead = None if colla_state is None else _together((colla_state, alone_state, blank_state))
        return (alone, colla, blank), ahead

    def agent_values(self, obs: dict[str, Tensor], prev_state: Tensor | None = None) -> Tensor:
        """The values (T, B, A, P) of all actions of the agents along a sequence."""
        states = _by_net(prev_state)
        alone, _ = self.alone_net(entry_of(obs, 'agent_alone_state'), states['alone'])
        return alone + self.colla_net(self._attended(obs['agent_state']), states['colla'])[0]

    def colla_alone_values(self, obs: dict[str, Tensor], prev_state: Tensor | None = None) -> Tensor:
        """Q_colla (T, B, A, P) of agents that see no others, along a sequence."""
        padded = self._attended(entry_of(obs, 'agent_alone_padding_state'))
        return self.colla_net(padded, _by_net(prev_state)['colla_alone'])[0]

    def _attended(self, seen: Tensor) -> Tensor:
        return seen if self.attention is None else self.attention(seen)

    def forward(self, data: dict[str, Any], single_step: bool | None = None) -> dict[str, Any]:
        """
        Arguments:
            - data (:obj:`dict`): as for ``QMix``; ``obs`` also has ``agent_alone_state`` and
              ``agent_alone_padding_state``, the observation with the others blanked; ``prev_state`` is a block, see
              ``state_shape``, or a list of B entries with three lists of A states each, None is zeros
            - single_step (:obj:`bool | None`): without a time axis; None reads it from the rank
        Returns:
            - output (:obj:`dict`): as for ``QMix``, and ``agent_colla_alone_q``
        Shapes:
            - agent_state, agent_alone_padding_state :math:`(T, B, A, N)`, agent_alone_state :math:`(T, B, A, N_1)`,
              agent_colla_alone_q :math:`(T, B, A, P)`; the others as for ``QMix``
        """
        obs, added = as_sequence(data, single_step, self._obs_shape, self.agent_num)
        (alone, colla, blank), next_state = self._parts(obs, data.get('prev_state'))
        output = team_values(data, obs, added, self.mixer, alone + colla, agent_colla_alone_q=blank)
        return {**output, 'next_state': next_state}


def _by_net(prev_state: Any) -> dict[str, Any]:
    """B rows of three lists of agents' states as three lists of B rows; of a block its three parts."""
    if prev_state is None:
        return dict.fromkeys(_STATES)
    if isinstance(prev_state, Tensor):
        return dict(zip(_STATES, prev_state.chunk(len(_STATES), -1)))
    if any(row is not None and len(row) != len(_STATES) for row in prev_state):
        raise InputShapeError(f"prev_state: each row has {len(_STATES)} lists of agents' states: {', '.join(_STATES)}")
    return {name: [None if row is None else row[i] for row in prev_state] for i, name in enumerate(_STATES)}


def _together(states: tuple[Any, ...]) -> Any:
    """The inverse of ``_by_net``."""
    return torch.cat(states, -1) if isinstance(states[0], Tensor) else [list(row) for row in zip(*states)]
