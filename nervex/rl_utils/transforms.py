"""Monotone functions of values and quantiles: the rescaling of values, and distortions of risk."""

from collections.abc import Callable

import torch


def value_transform(x: torch.Tensor, eps: float = 1e-2) -> torch.Tensor:
    """
    Overview:
        :math:`h(x) = sign(x) (\\sqrt{|x| + 1} - 1) + \\epsilon x`, written without the difference of two near
        numbers. Observe and Look Further (arXiv:1805.11593).
    Arguments:
        - x (:obj:`torch.Tensor`): values
        - eps (:obj:`float`): weight of the linear part, at least 0
    Shapes:
        - x, result (:obj:`torch.FloatTensor`): :math:`(*)`
    """
    return x / ((x.abs() + 1).sqrt() + 1) + eps * x


def value_inv_transform(x: torch.Tensor, eps: float = 1e-2) -> torch.Tensor:
    """
    Overview:
        The inverse of :func:`value_transform`, :math:`h^{-1}(x) = sign(x) ((\\frac{\\sqrt{1 + 4 \\epsilon (|x| + 1 +
        \\epsilon)} - 1} {2 \\epsilon})^2 - 1)`, in a form that keeps all digits near 0 and holds for eps = 0 as well
        (arXiv:1805.11593).
    Arguments:
        - x (:obj:`torch.Tensor`): transformed values
        - eps (:obj:`float`): as in :func:`value_transform`
    Shapes:
        - x, result (:obj:`torch.FloatTensor`): :math:`(*)`
    """
    root = (1 + 4 * eps * (x.abs() + 1 + eps)).sqrt()
    excess = 2 * x / (root + 1 + 2 * eps)  # (root - 1) / (2 eps) - 1, with the sign of x
    return excess * (excess.abs() + 2)


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
