"""Soft actor-critic: a squashed Gaussian policy or logits, twin action values and, on request, a state value."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from nervex.model.common.encoder import conv, make_encoder
from nervex.model.common.heads import TwinQ
from nervex.model.common.modes import ModeNet, action_heads, as_flag, entry_of, obs_of, with_mask
from nervex.model.common.named import named_net
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import MLP, Layers
from nervex.torch_utils.network.renorm import renormed_linear
from nervex.torch_utils.network.shapes import as_size

_LOG_SIGMA_MIN, _LOG_SIGMA_MAX = -20.0, 2.0


class SquashedGaussianActor(nn.Module):
    """
    Overview:
        Mean and log deviation of a Gaussian whose sample goes through tanh.
    Shapes:
        - input :math:`(*, obs\\_dim)`, mu and log_sigma :math:`(*, action\\_dim)`
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int,
        hidden_dim_list: Layers,
        activation: str | Activation,
        **layers: Any,
    ) -> None:
        super().__init__()
        self.net = MLP(obs_dim, hidden_dim_list, 2 * action_dim, activation, name='obs', **layers)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs that the class describes."""
        mu, log_sigma = self.net(obs).chunk(2, -1)
        return mu, log_sigma.clamp(_LOG_SIGMA_MIN, _LOG_SIGMA_MAX)


class SACModel(ModeNet):
    """
    Overview:
        Networks of soft actor-critic (Haarnoja et al. 2018, https://arxiv.org/abs/1812.05905): ``model.actor``,
        ``model.critic`` (a list) and, with ``use_value_net``, ``model.value``, which share nothing.
    Arguments:
        - obs_dim (:obj:`int | Sequence[int]`): size of an observation
        - action_dim (:obj:`int | Sequence[int]`): size of an action
        - use_twin_q (:obj:`bool`): two critics
        - use_value_net (:obj:`bool`): a network of state values (the first version of the algorithm)
        - hidden_dim_list (:obj:`Sequence[int]`): widths of the hidden layers of all of them
        - activation (:obj:`str | Callable`): 'relu', 'tanh', ...
        - critic_hidden_dim_list (:obj:`Sequence[int] | None`): widths of the critics, where they differ
        - critic_num (:obj:`int | None`): number of critics; None is what ``use_twin_q`` says
        - num_quantiles (:obj:`int`): outputs of a critic; several are quantiles of the return
        - dropout (:obj:`float`): share of the critics' hidden units that training passes leave out
        - norm (:obj:`str | None`): 'layer': LayerNorm in the critics; 'batch': batch renormalisation in front of
          each layer of critics and actor
    Interfaces:
        forward, compute_action, evaluate, compute_q, compute_value
    """

    modes = ('compute_action', 'evaluate', 'compute_q', 'compute_value')

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        use_twin_q: bool = True,
        use_value_net: bool = False,
        hidden_dim_list: Layers = (256, 256),
        activation: str | Activation = 'relu',
        critic_hidden_dim_list: Layers | None = None,
        critic_num: int | None = None,
        num_quantiles: int = 1,
        dropout: float = 0.0,
        norm: str | None = None,
    ) -> None:
        super().__init__()
        if norm not in (None, 'layer', 'batch'):
            raise ValueError(f"norm is None, 'layer' or 'batch', got {norm!r}")
        count = (2 if as_flag(use_twin_q, 'use_twin_q') else 1) if critic_num is None else critic_num
        if count < 1 or num_quantiles < 1 or not 0.0 <= dropout < 1.0:
            got = f'critic_num {count}, num_quantiles {num_quantiles}, dropout {dropout}'
            raise ValueError(f'critics: critic_num and num_quantiles are at least 1, dropout is in [0, 1), got {got}')
        action_size, critic_widths = as_size(action_dim, 'action_dim'), critic_hidden_dim_list or hidden_dim_list
        layers: dict[str, Any] = dict(linear=renormed_linear) if norm == 'batch' else {}
        self.actor = SquashedGaussianActor(obs_dim, action_size, hidden_dim_list, activation, **layers)
        sizes = (obs_dim, action_size, critic_widths, activation, num_quantiles)
        self.critic = TwinQ(count, *sizes, norm=norm == 'layer', dropout=dropout, **layers)
        self.value = MLP(obs_dim, hidden_dim_list, 1, activation, name='obs') if use_value_net else None

    def compute_action(
        self, data: Tensor | dict[str, Any], deterministic: bool = False, generator: torch.Generator | None = None
    ) -> dict[str, Any]:
        """
        Overview:
            The action to play.
        Arguments:
            - data (:obj:`dict | torch.Tensor`): ``obs``
            - deterministic (:obj:`bool`): the mean instead of a sample
            - generator (:obj:`torch.Generator | None`): source of chance, None is torch's global one
        Shapes:
            - obs :math:`(B, obs\\_dim)`, action :math:`(B, action\\_dim)` within (-1, 1), logit: the pair (mu,
              sigma) of the Gaussian before tanh
        """
        mu, log_sigma = self.actor(obs_of(data))
        sigma = log_sigma.exp()
        raw = mu if deterministic else mu + sigma * noise_like(mu, generator)
        return {'action': torch.tanh(raw), 'logit': (mu, sigma)}

    def evaluate(self, data: Tensor | dict[str, Any], generator: torch.Generator | None = None) -> dict[str, Any]:
        """
        Overview:
            A reparameterized action and its log-probability, for the losses.
        Shapes:
            - obs :math:`(B, obs\\_dim)`, action, mean, log_std :math:`(B, action\\_dim)`, log_prob :math:`(B)`
        """
        mu, log_sigma = self.actor(obs_of(data))
        noise = noise_like(mu, generator)
        raw = mu + log_sigma.exp() * noise
        # log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2 x)), which stays finite where tanh is 1 in floats
        squash = 2.0 * (math.log(2.0) - raw - F.softplus(-2.0 * raw))
        log_prob = (-0.5 * noise * noise - log_sigma - 0.5 * math.log(2.0 * math.pi) - squash).sum(-1)
        return {'action': torch.tanh(raw), 'log_prob': log_prob, 'mean': mu, 'log_std': log_sigma}

    def compute_q(self, data: dict[str, Any]) -> dict[str, Any]:
        """
        Shapes:
            - obs :math:`(B, obs\\_dim)`, action :math:`(B, action\\_dim)`, q_value: a list of :math:`(B)`, or of
              :math:`(B, num\\_quantiles)`, one a critic; the tensor alone of a single one
        """
        q = self.critic(obs_of(data), entry_of(data, 'action'))
        return {'q_value': q if len(q) > 1 else q[0]}

    def compute_value(self, data: Tensor | dict[str, Any]) -> dict[str, Tensor]:
        """
        Shapes:
            - obs :math:`(B, obs\\_dim)`, value :math:`(B)`
        """
        if self.value is None:
            raise ValueError('this SACModel has no network of state values; build it with use_value_net=True')
        return {'value': self.value(obs_of(data)).squeeze(-1)}


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
        - encoder_kwargs (:obj:`Mapping | None`): see ``DiscreteNet``; each network has an encoder of its own
    Interfaces:
        forward, compute_action, compute_q
    """

    modes = ('compute_action', 'compute_q')

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        use_twin_q: bool = True,
        hidden_dim_list: Layers = (128, 128),
        activation: str | Activation = 'relu',
        encoder_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        heads = action_heads(action_dim)
        if not isinstance(heads, int):
            raise ValueError(f'soft actor-critic for discrete actions has one action head, got action_dim {action_dim}')

        def network() -> nn.Module:
            if encoder_kwargs is None:
                return MLP(obs_dim, hidden_dim_list, heads, activation, name='obs')
            encoder = make_encoder(obs_dim, 0, hidden_dim_list, (), activation, **encoder_kwargs)
            return nn.Sequential(encoder, nn.Linear(encoder.out_dim, heads))

        self.actor = network()
        self.critic = nn.ModuleList(network() for _ in range(2 if as_flag(use_twin_q, 'use_twin_q') else 1))

    def compute_action(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """
        Shapes:
            - obs :math:`(B, obs\\_dim)`, logit :math:`(B, A)`; an ``action_mask`` is passed on
        """
        return with_mask({'logit': self.actor(obs_of(data))}, data)

    def compute_q(self, data: Tensor | dict[str, Any]) -> dict[str, Any]:
        """
        Shapes:
            - obs :math:`(B, obs\\_dim)`, q_value: a list of two :math:`(B, A)`, or one tensor without twins
        """
        q_value = [critic(obs_of(data)) for critic in self.critic]
        return {'q_value': q_value if len(q_value) > 1 else q_value[0]}


@named_net({'hidden_dim_list': (512,)}, encoder_kwargs=conv)
class ConvDiscreteSACModel(DiscreteSACModel):
    """``DiscreteSACModel`` for images, with convolutions in each network."""


def noise_like(x: Tensor, generator: torch.Generator | None) -> Tensor:
    """Numbers of the unit normal distribution, one for each of ``x``; None is torch's global generator."""
    if generator is None:
        return torch.randn_like(x)
    return torch.randn(x.shape, dtype=x.dtype, device=x.device, generator=generator)
