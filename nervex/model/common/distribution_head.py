"""Heads that give the distribution of the return: categorical (C51) and by quantiles (QR, IQN)."""

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn as nn
from torch import Tensor

from nervex.torch_utils.network.activation import Activation, get_activation
from nervex.torch_utils.network.mlp import LinearType, mlp
from nervex.utils.errors import UnknownNameError, unknown_name

from .q_head import DuelingHead


def _outputs(
    hidden_dim: int,
    action_dim: int,
    outputs: int,
    dueling: bool,
    layer_num: int,
    activation: str | Activation,
    linear: LinearType,
) -> nn.Module:
    """A module (*, hidden_dim) -> (*, A, outputs), or (*, A) for a single output."""
    if dueling:
        return DuelingHead(hidden_dim, action_dim, layer_num, activation, linear, outputs)
    last = mlp(hidden_dim, [hidden_dim] * layer_num, action_dim * outputs, activation, linear)
    return last if outputs == 1 else nn.Sequential(last, nn.Unflatten(-1, (action_dim, outputs)))


def _run(module: nn.Module, x: Tensor) -> Tensor:
    y = module(x)
    return y['logit'] if isinstance(y, dict) else y


class DistributionHead(nn.Module):
    """
    Overview:
        Probabilities of ``n_atom`` returns between ``v_min`` and ``v_max`` for each action, and their mean (Bellemare
        et al. 2017, https://arxiv.org/abs/1707.06887).
    Arguments:
        - n_atom (:obj:`int`), v_min (:obj:`float`), v_max (:obj:`float`): the returns that have a probability
        - dueling, layer_num, activation, linear: see ``DuelingHead``
    Shapes:
        - input :math:`(*, hidden\\_dim)`, distribution :math:`(*, A, n\\_atom)`, logit :math:`(*, A)`
    """

    support: Tensor

    def __init__(
        self,
        hidden_dim: int,
        action_dim: int,
        n_atom: int = 51,
        v_min: float = -10.0,
        v_max: float = 10.0,
        dueling: bool = True,
        layer_num: int = 1,
        activation: str | Activation = 'relu',
        linear: LinearType = nn.Linear,
    ) -> None:
        super().__init__()
        if n_atom < 2 or v_min >= v_max:
            raise ValueError(f'a distribution needs n_atom >= 2 and v_min < v_max, got {n_atom}, {v_min}, {v_max}')
        self.atoms = _outputs(hidden_dim, action_dim, n_atom, dueling, layer_num, activation, linear)
        self.register_buffer('support', torch.linspace(v_min, v_max, n_atom), persistent=False)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        distribution = _run(self.atoms, x).softmax(-1)
        return {'logit': (distribution * self.support).sum(-1), 'distribution': distribution}


class QuantileRegressionHead(nn.Module):
    """
    Overview:
        The return at ``num_quantiles`` fixed quantiles for each action (Dabney et al. 2018,
        https://arxiv.org/abs/1710.10044).
    Shapes:
        - input :math:`(*, hidden\\_dim)`, q :math:`(*, A, num\\_quantiles)`, logit :math:`(*, A)`,
          tau :math:`(*, num\\_quantiles, 1)`: midpoints of the quantiles
    """

    midpoints: Tensor

    def __init__(
        self,
        hidden_dim: int,
        action_dim: int,
        num_quantiles: int = 32,
        dueling: bool = False,
        layer_num: int = 0,
        activation: str | Activation = 'relu',
        linear: LinearType = nn.Linear,
    ) -> None:
        super().__init__()
        if num_quantiles < 2:
            raise ValueError(f'num_quantiles is at least 2, got {num_quantiles}')
        self.quantiles = _outputs(hidden_dim, action_dim, num_quantiles, dueling, layer_num, activation, linear)
        midpoints = (torch.arange(num_quantiles) + 0.5) / num_quantiles
        self.register_buffer('midpoints', midpoints.unsqueeze(-1), persistent=False)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        q = _run(self.quantiles, x)
        return {'logit': q.mean(-1), 'q': q, 'tau': self.midpoints.expand(*x.shape[:-1], -1, -1)}


class QuantileHead(nn.Module):
    """
    Overview:
        The return at quantiles drawn anew in every call (implicit quantile network, Dabney et al. 2018,
        https://arxiv.org/abs/1806.06923). The draws come from torch's global generator, as those of dropout do.
    Arguments:
        - num_quantiles (:obj:`int`): quantiles drawn for each row; an argument of forward may change it
        - quantile_embedding_dim (:obj:`int`): cosines that describe a quantile
        - beta_function_type (:obj:`str | Callable`): 'uniform', 'CPW', 'CVaR', 'Pow' or a function: distorts the
          quantiles, which makes the greedy action averse to risk or seek it
        - beta_eta (:obj:`float`): its parameter
        - dueling, layer_num, activation, linear: see ``DuelingHead``
    Shapes:
        - input :math:`(*, hidden\\_dim)` of B rows, q :math:`(\\tau, *, A)`, quantiles :math:`(\\tau B, 1)`,
          logit :math:`(*, A)`
    """

    frequencies: Tensor

    def __init__(
        self,
        hidden_dim: int,
        action_dim: int,
        num_quantiles: int = 32,
        quantile_embedding_dim: int = 128,
        beta_function_type: str | Callable[[Tensor], Tensor] = 'uniform',
        beta_eta: float = 0.71,
        dueling: bool = True,
        layer_num: int = 1,
        activation: str | Activation = 'relu',
        linear: LinearType = nn.Linear,
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(quantile_embedding_dim, hidden_dim)
        self.q = _outputs(hidden_dim, action_dim, 1, dueling, layer_num, activation, linear)
        self.register_buffer('frequencies', math.pi * torch.arange(1.0, quantile_embedding_dim + 1), persistent=False)
        self._num_quantiles = num_quantiles
        self._beta = _beta_function(beta_function_type, beta_eta)
        self._act = get_activation(activation)

    def forward(self, x: Tensor, num_quantiles: int | None = None) -> dict[str, Tensor]:
        count = self._num_quantiles if num_quantiles is None else num_quantiles
        lead = x.shape[:-1]
        quantiles = self._beta(torch.rand(count * lead.numel(), 1, dtype=x.dtype, device=x.device))
        embedded = self._act(self.embed(torch.cos(quantiles * self.frequencies)))
        q = _run(self.q, x.unsqueeze(0) * embedded.reshape(count, *lead, -1))
        return {'logit': q.mean(0), 'q': q, 'quantiles': quantiles}


def _beta_function(kind: str | Callable[[Tensor], Tensor], eta: float) -> Callable[[Tensor], Tensor]:
    """The distortions of section 3.2 of the paper."""
    if callable(kind):
        return kind
    known = {'uniform': _uniform, 'CPW': _cpw, 'CVaR': _cvar, 'Pow': _pow}
    if kind not in known:
        raise UnknownNameError(unknown_name('beta_function_type', kind, known))
    return partial(known[kind], eta=eta)


def _uniform(tau: Tensor, eta: float) -> Tensor:
    return tau


def _cpw(tau: Tensor, eta: float) -> Tensor:
    return tau**eta / (tau**eta + (1.0 - tau) ** eta) ** (1.0 / eta)


def _cvar(tau: Tensor, eta: float) -> Tensor:
    return tau * eta


def _pow(tau: Tensor, eta: float) -> Tensor:
    exponent = 1.0 / (1.0 + abs(eta))
    return tau**exponent if eta >= 0.0 else 1.0 - (1.0 - tau) ** exponent
