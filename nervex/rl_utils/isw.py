"""Importance weights of actions that another policy chose."""

from typing import Any

import torch

from nervex.rl_utils.categorical import check_logits, gaussian_log_prob, log_prob


def compute_importance_weights(
    target_output: Any,
    behaviour_output: Any,
    action: torch.Tensor,
    requires_grad: bool = False,
    continuous: bool = False,
) -> torch.Tensor:
    """
    Overview:
        :math:`\\pi(a) / \\mu(a)` of the target policy and the behaviour policy (arXiv:1802.01561).
    Arguments:
        - target_output, behaviour_output (:obj:`torch.Tensor | list`): logits, or a list of them, one per head; pairs
          (mu, sigma) when ``continuous``
        - action (:obj:`torch.Tensor`): the actions taken
        - requires_grad (:obj:`bool`): whether the weights carry a gradient
        - continuous (:obj:`bool`): actions come from a diagonal normal distribution
    Shapes:
        - target_output, behaviour_output (:obj:`torch.FloatTensor`): :math:`(T, B, N)`
        - action (:obj:`torch.LongTensor`), result (:obj:`torch.FloatTensor`): :math:`(T, B)`
    """
    density = gaussian_log_prob if continuous else log_prob
    if not continuous:
        check_logits('compute_importance_weights', 'behaviour_output', behaviour_output, target_output)
    with torch.set_grad_enabled(requires_grad and torch.is_grad_enabled()):
        return (density(target_output, action) - density(behaviour_output, action)).exp()
