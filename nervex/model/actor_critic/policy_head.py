"""Heads of policies: logits for discrete actions, mean and deviation for continuous ones."""

from collections.abc import Sequence

import torch
import torch.nn as nn
from torch import Tensor

from nervex.model.common.initialise import orthogonal_out
from nervex.model.common.inputs import action_heads
from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import mlp
from nervex.torch_utils.network.shapes import as_size


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
        widths: Sequence[int] = (),
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
            self.log_sigma: nn.Module | Tensor = mlp(hidden_dim, widths, action_dim, activation)
            with torch.no_grad():
                next(reversed(list(self.log_sigma.parameters()))).add_(log_sigma)  # bias of the last layer
        elif sigma_type == 'independent':
            self.log_sigma = nn.Parameter(log_sigma)
        else:
            self.register_buffer('log_sigma', log_sigma)
        self._conditioned = sigma_type == 'conditioned'
        self._bound_mu = bound_mu

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mu = self.mu(x)
        if self._bound_mu:
            mu = torch.tanh(mu)
        if self._conditioned:
            return mu, self.log_sigma(x).clamp(-20.0, 2.0).exp()  # type: ignore[operator]
        return mu, self.log_sigma.exp().expand_as(mu)  # type: ignore[operator,union-attr]


class LogitHeads(nn.Module):
    """Several MLPs over the same features, their outputs as a list: one for each part of a multi-discrete action."""

    def __init__(self, heads: Sequence[nn.Module]) -> None:
        super().__init__()
        self.heads = nn.ModuleList(heads)

    def forward(self, x: Tensor) -> list[Tensor]:
        return [head(x) for head in self.heads]


def policy_head(
    hidden_dim: int,
    action_dim: int | Sequence[int],
    continuous: bool,
    widths: Sequence[int],
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
