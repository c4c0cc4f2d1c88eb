"""Distortions of quantile fractions: how much risk an agent takes."""

from collections.abc import Callable

import torch


def uniform(x: torch.Tensor) -> torch.Tensor:
    """
    Overview:
        Neutral: the fractions as they are, :math:`x`. Implicit Quantile Networks (arXiv:1806.06923), section 3.
    Shapes:
        - x, result (:obj:`torch.FloatTensor`): :math:`(*)`, in [0, 1]
    """
    return x


def cpw(x: torch.Tensor, eta: float = 0.71) -> torch.Tensor:
    """
    Overview:
        Cumulative probability weighting, :math:`x^\\eta / (x^\\eta + (1 - x)^\\eta)^{1 / \\eta}`: rare outcomes weigh
        more. Implicit Quantile Networks (arXiv:1806.06923), section 3.
    Shapes:
        - x, result (:obj:`torch.FloatTensor`): :math:`(*)`, in [0, 1]
    """
    power = x.pow(eta)
    return power / (power + (1 - x).pow(eta)).pow(1 / eta)


def cvar(x: torch.Tensor, eta: float = 0.71) -> torch.Tensor:
    """
    Overview:
        Conditional value at risk, :math:`\\eta x`: only the worst fraction eta of the outcomes (arXiv:1806.06923).
    Shapes:
        - x, result (:obj:`torch.FloatTensor`): :math:`(*)`, in [0, 1]
    """
    return x * eta


def power(x: torch.Tensor, eta: float = 0.0) -> torch.Tensor:
    """
    Overview:
        :math:`x^{1 / (1 + |\\eta|)}` for eta >= 0 (risk seeking), :math:`1 - (1 - x)^{1 / (1 + |\\eta|)}` below (risk
        averse) (arXiv:1806.06923).
    Shapes:
        - x, result (:obj:`torch.FloatTensor`): :math:`(*)`, in [0, 1]
    """
    exponent = 1 / (1 + abs(eta))
    return x.pow(exponent) if eta >= 0 else 1 - (1 - x).pow(exponent)


#: what a config may name
beta_function_map: dict[str, Callable[..., torch.Tensor]] = {
    'uniform': uniform,
    'CPW': cpw,
    'CVaR': cvar,
    'Pow': power,
}
