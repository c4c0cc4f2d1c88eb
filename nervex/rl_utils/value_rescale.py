"""An invertible squashing of values for rewards of very different sizes."""

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
