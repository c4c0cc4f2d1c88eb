"""AlphaZero: learn what a search has found."""

from collections import namedtuple

import torch.nn.functional as F

from nervex.rl_utils.checks import check_alike, weighted_mean

alphazero_data = namedtuple('alphazero_data', ['logit', 'policy', 'value', 'return_', 'weight'])
alphazero_loss = namedtuple('alphazero_loss', ['policy_loss', 'value_loss'])


def alphazero_error(data: alphazero_data) -> alphazero_loss:
    """
    Overview:
        Cross entropy with the policy that a search has found, :math:`-mean(w \\sum_a p_a \\log \\pi_a)`, and the error
        of the value, :math:`mean(w (R - V)^2)` (arXiv:1712.01815).
    Arguments:
        - data (:obj:`alphazero_data`): fields as below; ``weight`` may be None. Where ``policy`` is 0, a logit may be
          minus infinity
    Returns:
        - loss (:obj:`alphazero_loss`): policy_loss and value_loss, 0-dim
    Shapes:
        - logit, policy (:obj:`torch.FloatTensor`): :math:`(B, N)`
        - value, return\\_, weight (:obj:`torch.FloatTensor`): :math:`(B, )`
    """
    logit, policy, value, return_, weight = data
    check_alike('alphazero_error', logit.shape, policy=policy)
    check_alike('alphazero_error', logit.shape[:1], value=value, return_=return_, weight=weight)
    log_pi = F.log_softmax(logit, -1).masked_fill(policy == 0, 0.0)
    policy_loss = -weighted_mean((policy * log_pi).sum(-1), weight)
    return alphazero_loss(policy_loss, weighted_mean((return_ - value).pow(2), weight))
