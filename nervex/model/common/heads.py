"""Heads: what stands on the features of an encoder, and critics of continuous actions."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from nervex.model.common.modes import action_heads
from nervex.torch_utils.network.activation import Activation, get_activation
from nervex.torch_utils.network.mlp import MLP, Layers, LinearType, mlp
from nervex.torch_utils.network.shapes import InputShapeError, as_shape, as_size, flattened
from nervex.utils.errors import UnknownNameError, unknown_name


def orthogonal(module: nn.Module, gain: float = math.sqrt(2.0)) -> nn.Module:
    """Orthogonal weights and zero biases in all linear layers and convolutions of ``module``, which is returned."""
    for layer in module.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            nn.init.orthogonal_(layer.weight, gain)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return module


def orthogonal_out(module: nn.Module, gain: float) -> nn.Module:
    """As ``orthogonal``, with ``gain`` for the last linear layer only (0.01 makes a policy start almost uniform)."""
    orthogonal(module)
    last = [layer for layer in module.modules() if isinstance(layer, nn.Linear)][-1]
    nn.init.orthogonal_(last.weight, gain)
    return module


# ---- values of discrete actions ----
class LinearHead(nn.Linear):
    """Action values (or logits) :math:`(*, A)` as one linear layer over features :math:`(*, hidden\\_dim)`."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:  # type: ignore[override]
        """The outputs that the class describes."""
        return {'logit': F.linear(x, self.weight, self.bias)}


class DiscreteHead(nn.Module):
    """
    Overview:
        Action values (or logits) on top of ``layer_num`` hidden layers.
    Arguments:
        - hidden_dim (:obj:`int`): size of the features
        - action_dim (:obj:`int`): number of actions
        - layer_num (:obj:`int`): hidden layers in the head, 0 is a single linear layer
        - activation, linear: see ``MLP``
    Shapes:
        - input :math:`(*, hidden\\_dim)`, logit :math:`(*, A)`
    """

    def __init__(
        self,
        hidden_dim: int,
        action_dim: int,
        layer_num: int = 0,
        activation: str | Activation = 'relu',
        linear: LinearType = nn.Linear,
    ) -> None:
        super().__init__()
        self.q = mlp(hidden_dim, [hidden_dim] * layer_num, action_dim, activation, linear)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """The outputs that the class describes."""
        return {'logit': self.q(x)}


class Dueling(nn.Module):
    """
    Overview:
        V + A - mean(A) (Wang et al. 2016, https://arxiv.org/abs/1511.06581). The two streams see the same features, so
        their first layers are one layer of twice the width.
    Arguments:
        - layer_num (:obj:`int`): hidden layers of each of the two streams
        - outputs (:obj:`int`): numbers for each action, e.g. the atoms of a distribution
        - hidden_dim, action_dim, activation, linear: see ``DiscreteHead``
    Shapes:
        - input :math:`(*, hidden\\_dim)`, output :math:`(*, A)`, or :math:`(*, A, outputs)` if there are several
    """

    def __init__(
        self,
        hidden_dim: int,
        action_dim: int,
        layer_num: int = 1,
        activation: str | Activation = 'relu',
        linear: LinearType = nn.Linear,
        outputs: int = 1,
    ) -> None:
        super().__init__()
        self._shape = (action_dim, outputs)
        self._act = get_activation(activation)
        self.streams = None if layer_num == 0 else linear(hidden_dim, 2 * hidden_dim)
        widths = [hidden_dim] * (layer_num - 1)
        self.value = mlp(hidden_dim, widths, outputs, activation, linear)
        self.advantage = mlp(hidden_dim, widths, action_dim * outputs, activation, linear)

    def forward(self, x: Tensor) -> Any:
        """The outputs that the class describes."""
        features = (x, x) if self.streams is None else self._act(self.streams(x)).chunk(2, -1)
        value, advantage = self.value(features[0]), self.advantage(features[1])
        if self._shape[1] > 1:
            value, advantage = value.unsqueeze(-2), advantage.unflatten(-1, self._shape)
            return value + (advantage - advantage.mean(-2, keepdim=True))
        return value + (advantage - advantage.mean(-1, keepdim=True))


class DuelingHead(Dueling):
    """Dueling action values as ``logit``; arguments and shapes: see ``Dueling``."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """The outputs that the class describes."""
        return {'logit': super().forward(x)}


def make_q_head(
    hidden_dim: int,
    action_dim: int,
    dueling: bool,
    layer_num: int,
    activation: str | Activation = 'relu',
    linear: LinearType = nn.Linear,
) -> nn.Module:
    """The cheapest head that does what is asked."""
    if not dueling and layer_num == 0 and linear is nn.Linear:
        return LinearHead(hidden_dim, action_dim)
    return (DuelingHead if dueling else DiscreteHead)(hidden_dim, action_dim, layer_num, activation, linear)


class MultiHead(nn.Module):
    """
    Overview:
        Several heads over the same features; each key of their outputs becomes a list in the order of the heads.
    Arguments:
        - make_head (:obj:`Callable`): head for a number of actions
        - action_dims (:obj:`Sequence[int]`): numbers of actions
    """

    def __init__(self, make_head: Callable[[int], nn.Module], action_dims: Sequence[int]) -> None:
        super().__init__()
        self.heads = nn.ModuleList(make_head(n) for n in action_dims)

    def forward(self, x: Tensor, **kwargs: int) -> dict[str, list[Tensor]]:
        """The outputs that the class describes."""
        outputs = [head(x, **kwargs) for head in self.heads]
        return {key: [output[key] for output in outputs] for key in outputs[0]}


# ---- distributions of the return ----
def outputs_of_actions(
    hidden_dim: int,
    action_dim: int,
    outputs: int,
    dueling: bool = True,
    layer_num: int = 1,
    activation: str | Activation = 'relu',
    linear: LinearType = nn.Linear,
) -> nn.Module:
    """The layers of a head: (*, hidden_dim) -> (*, A, outputs), or (*, A) for a single output; see ``Dueling``."""
    if dueling:
        return Dueling(hidden_dim, action_dim, layer_num, activation, linear, outputs)
    last = mlp(hidden_dim, [hidden_dim] * layer_num, action_dim * outputs, activation, linear)
    return last if outputs == 1 else nn.Sequential(last, nn.Unflatten(-1, (action_dim, outputs)))


class DistributionHead(nn.Module):
    """
    Overview:
        Probabilities of ``n_atom`` returns between ``v_min`` and ``v_max`` for each action, and their mean (Bellemare
        et al. 2017, https://arxiv.org/abs/1707.06887).
    Arguments:
        - n_atom (:obj:`int`), v_min (:obj:`float`), v_max (:obj:`float`): the returns that have a probability
        - layers: ``dueling``, ``layer_num``, ``activation``, ``linear`` of ``outputs_of_actions``
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
        **layers: Any,
    ) -> None:
        super().__init__()
        if n_atom < 2 or v_min >= v_max:
            raise ValueError(f'a distribution needs n_atom >= 2 and v_min < v_max, got {n_atom}, {v_min}, {v_max}')
        self.atoms = outputs_of_actions(hidden_dim, action_dim, n_atom, **layers)
        self.register_buffer('support', torch.linspace(v_min, v_max, n_atom), persistent=False)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """The outputs that the class describes."""
        distribution = self.atoms(x).softmax(-1)
        return {'logit': (distribution * self.support).sum(-1), 'distribution': distribution}


class QuantileRegressionHead(nn.Module):
    """
    Overview:
        The return at ``num_quantiles`` fixed quantiles for each action (Dabney et al. 2018,
        https://arxiv.org/abs/1710.10044).
    Arguments:
        - layers: see ``DistributionHead``
    Shapes:
        - input :math:`(*, hidden\\_dim)`, q :math:`(*, A, num\\_quantiles)`, logit :math:`(*, A)`,
          tau :math:`(*, num\\_quantiles, 1)`: midpoints of the quantiles
    """

    midpoints: Tensor

    def __init__(self, hidden_dim: int, action_dim: int, num_quantiles: int = 32, **layers: Any) -> None:
        super().__init__()
        if num_quantiles < 2:
            raise ValueError(f'num_quantiles is at least 2, got {num_quantiles}')
        layers = {'dueling': False, 'layer_num': 0, **layers}
        self.quantiles = outputs_of_actions(hidden_dim, action_dim, num_quantiles, **layers)
        midpoints = (torch.arange(num_quantiles) + 0.5) / num_quantiles
        self.register_buffer('midpoints', midpoints.unsqueeze(-1), persistent=False)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """The outputs that the class describes."""
        q = self.quantiles(x)
        return {'logit': q.mean(-1), 'q': q, 'tau': self.midpoints.expand(*x.shape[:-1], -1, -1)}


class QuantileHead(nn.Module):
    """
    Overview:
        The return at quantiles drawn anew in every call (implicit quantile network, Dabney et al. 2018,
        https://arxiv.org/abs/1806.06923). The draws come from torch's global generator, as those of dropout do; in
        eval mode the quantiles lie evenly.
    Arguments:
        - num_quantiles (:obj:`int`): quantiles drawn for each row; an argument of forward may change it
        - quantile_embedding_dim (:obj:`int`): cosines that describe a quantile
        - beta_function_type (:obj:`str | Callable`): 'uniform', 'CPW', 'CVaR', 'Pow' or a function: distorts the
          quantiles, which makes the greedy action averse to risk or seek it
        - beta_eta (:obj:`float`): its parameter
        - activation, layers: see ``DistributionHead``
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
        activation: str | Activation = 'relu',
        **layers: Any,
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(quantile_embedding_dim, hidden_dim)
        self.q = outputs_of_actions(hidden_dim, action_dim, 1, activation=activation, **layers)
        self.register_buffer('frequencies', math.pi * torch.arange(1.0, quantile_embedding_dim + 1), persistent=False)
        self._num_quantiles = num_quantiles
        self._beta = _beta_function(beta_function_type, beta_eta)
        self._act = get_activation(activation)

    def forward(self, x: Tensor, num_quantiles: int | None = None) -> dict[str, Tensor]:
        """The outputs that the class describes."""
        count = self._num_quantiles if num_quantiles is None else num_quantiles
        lead = x.shape[:-1]
        quantiles = self._beta(self._fractions(count, lead, x))
        embedded = self._act(self.embed(torch.cos(quantiles * self.frequencies)))
        q = self.q(x.unsqueeze(0) * embedded.reshape(count, *lead, -1))
        return {'logit': q.mean(0), 'q': q, 'quantiles': quantiles}

    def _fractions(self, count: int, lead: torch.Size, x: Tensor) -> Tensor:
        if self.training:
            return torch.rand(count * lead.numel(), 1, dtype=x.dtype, device=x.device)
        even = (torch.arange(count, dtype=x.dtype, device=x.device) + 0.5) / count
        return even.view(count, *[1] * len(lead)).expand(count, *lead).reshape(-1, 1)


def _beta_function(kind: str | Callable[[Tensor], Tensor], eta: float) -> Callable[[Tensor], Tensor]:
    from nervex.rl_utils.transforms import beta_function_map as known  # no other network needs it

    if callable(kind):
        return kind
    if kind not in known:
        raise UnknownNameError(unknown_name('beta_function_type', kind, known))
    return known[kind] if kind == 'uniform' else partial(known[kind], eta=eta)


# ---- policies ----
class GaussianHead(nn.Module):
    """
    Overview:
        Mean and standard deviation of a diagonal Gaussian over actions.
    Arguments:
        - hidden_dim (:obj:`int`), action_dim (:obj:`int`): sizes of features and actions
        - widths (:obj:`Sequence[int]`): hidden layers before the mean
        - sigma_type (:obj:`str`): 'independent' (a parameter of its own), 'conditioned' (a function of the state) or
          'fixed'
        - sigma (:obj:`float`): the deviation at the start; for 'fixed' forever
        - bound_mu (:obj:`bool`): squash the mean by tanh
    Shapes:
        - input :math:`(*, hidden\\_dim)`, mu and sigma :math:`(*, action\\_dim)`
    """

    def __init__(
        self,
        hidden_dim: int,
        action_dim: int,
        widths: Layers = (),
        activation: str | Activation = 'relu',
        sigma_type: str = 'independent',
        sigma: float = 1.0,
        bound_mu: bool = False,
    ) -> None:
        super().__init__()
        if sigma_type not in ('independent', 'conditioned', 'fixed'):
            raise ValueError(f"sigma_type is 'independent', 'conditioned' or 'fixed', got {sigma_type!r}")
        if sigma <= 0.0:
            raise ValueError(f'sigma is a standard deviation: positive, got {sigma}')
        self.mu = mlp(hidden_dim, widths, action_dim, activation)
        log_sigma = torch.full((action_dim,), float(sigma)).log()
        if sigma_type == 'conditioned':
            self.log_sigma: Any = mlp(hidden_dim, widths, action_dim, activation)
            with torch.no_grad():
                list(self.log_sigma.parameters())[-1].add_(log_sigma)  # bias of the last layer
        elif sigma_type == 'independent':
            self.log_sigma = nn.Parameter(log_sigma)
        else:
            self.register_buffer('log_sigma', log_sigma)
        self._conditioned = sigma_type == 'conditioned'
        self._bound_mu = bound_mu

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs that the class describes."""
        mu = torch.tanh(self.mu(x)) if self._bound_mu else self.mu(x)
        if self._conditioned:
            return mu, self.log_sigma(x).clamp(-20.0, 2.0).exp()
        return mu, self.log_sigma.exp().expand_as(mu)


class LogitHeads(nn.Module):
    """Several MLPs over the same features, their outputs as a list: one for each part of a multi-discrete action."""

    def __init__(self, heads: Sequence[nn.Module]) -> None:
        super().__init__()
        self.heads = nn.ModuleList(heads)

    def forward(self, x: Tensor) -> list[Tensor]:
        """The outputs that the class describes."""
        return [head(x) for head in self.heads]


def policy_head(
    hidden_dim: int,
    action_dim: int | Sequence[int],
    continuous: bool,
    widths: Layers,
    activation: str | Activation,
    ortho_init: bool,
    sigma_type: str,
    sigma: float,
) -> nn.Module:
    """The head for an action space: features -> logit, list of logits, or (mu, sigma)."""

    def finished(head: nn.Module) -> nn.Module:
        return orthogonal_out(head, 0.01) if ortho_init else head

    if continuous:
        head = GaussianHead(hidden_dim, as_size(action_dim, 'action_dim'), widths, activation, sigma_type, sigma)
        finished(head.mu)
        return head
    heads = action_heads(action_dim)
    if isinstance(heads, int):
        return finished(mlp(hidden_dim, widths, heads, activation))
    return LogitHeads([finished(mlp(hidden_dim, widths, n, activation)) for n in heads])


class RegressionHead(MLP):
    """
    Overview:
        Linear layers with a number for each output, on request squashed into (-1, 1), as for bounded actions.
    Arguments:
        - final_tanh (:obj:`bool`): squash the outputs
        - the others: see ``MLP``
    Shapes:
        - input :math:`(*, hidden\\_dim)`, output :math:`(*, output\\_dim)`
    """

    def __init__(
        self,
        hidden_dim: int | Sequence[int],
        output_dim: int,
        widths: Layers = (),
        activation: str | Activation = 'relu',
        final_tanh: bool = False,
        name: str = 'features',
    ) -> None:
        super().__init__(hidden_dim, widths, output_dim, activation, name=name)
        self._final_tanh = final_tanh

    def forward(self, x: Tensor) -> Tensor:
        """The outputs that the class describes."""
        y = super().forward(x)
        return torch.tanh(y) if self._final_tanh else y


# ---- values of continuous actions ----
class QOfAction(nn.Module):
    """
    Overview:
        Q(s, a): one network over the joined observation and action.
    Arguments:
        - obs_dim, action_dim (:obj:`int | Sequence[int]`): sizes of observation and action
        - outputs (:obj:`int`): numbers for each pair, e.g. quantiles of its return
        - hidden_dim_list, activation, layers: see ``MLP``
    Shapes:
        - obs :math:`(*, obs\\_dim)`, action :math:`(*, action\\_dim)`, or :math:`(*)` if it has one dimension; q
          :math:`(*)`, or :math:`(*, outputs)` if there are several
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        hidden_dim_list: Layers = (256, 256),
        activation: str | Activation = 'relu',
        outputs: int = 1,
        **layers: Any,
    ) -> None:
        super().__init__()
        self._obs_shape, self._action_dim = as_shape(obs_dim), as_size(action_dim, 'action_dim')
        joined = as_size(obs_dim) + self._action_dim
        self.net = MLP(joined, hidden_dim_list, outputs, activation, name='obs with action', **layers)
        self._is_one = outputs == 1

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        """The outputs that the class describes."""
        obs = flattened(obs, self._obs_shape)
        if self._action_dim == 1 and action.dim() == obs.dim() - 1:
            action = action.unsqueeze(-1)
        if action.shape[-1:] != (self._action_dim,) or action.shape[:-1] != obs.shape[:-1]:
            raise InputShapeError(
                f'action of shape {tuple(action.shape)} does not fit: the critic expects '
                f'{(*obs.shape[:-1], self._action_dim)} beside obs {tuple(obs.shape)}'
            )
        q = self.net(torch.cat([obs, action.to(obs.dtype)], -1))
        return q.squeeze(-1) if self._is_one else q


class TwinQ(nn.ModuleList):
    """Several independent ``QOfAction`` (two against overestimation, Fujimoto et al. 2018): answers a list."""

    def __init__(self, count: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(QOfAction(*args, **kwargs) for _ in range(count))

    def forward(self, obs: Tensor, action: Tensor) -> list[Tensor]:
        """The outputs that the class describes."""
        return [q(obs, action) for q in self]
