"""The losses of AlphaStar."""

from collections import namedtuple

import torch

from nervex.rl_utils import td_lambda_data, td_lambda_error, upgo_returns, vtrace_targets, vtrace_targets_data
from nervex.rl_utils.checks import check_shape

alphastar_data = namedtuple(
    'alphastar_data',
    [
        *['log_prob', 'behaviour_log_prob', 'entropy', 'divergence', 'value', 'reward', 'weight'],
        *['done', 'truncated', 'next_value'],
    ],
    defaults=(None, None, None),
)
alphastar_loss = namedtuple('alphastar_loss', ['policy', 'upgo', 'value', 'entropy', 'teacher'])


def alphastar_error(
    data: alphastar_data,
    gamma: float = 1.0,
    td_lambda: float = 0.8,
    trace_lambda: float = 1.0,
    clips: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> alphastar_loss:
    """
    Overview:
        For orders of several parts: the policy gradient with V-trace advantages and the upgoing one, each part with an
        importance weight of its own, :math:`-mean(w \\sum_p A_{t,p} \\log \\pi_p(a_t))`; half the squared error of
        TD(lambda) values; the entropy, to be subtracted; and the divergence from a teacher. Grandmaster level in
        StarCraft II (doi:10.1038/s41586-019-1724-z), methods.
    Arguments:
        - data (:obj:`alphastar_data`): fields as below; log-probability, entropy and divergence of a part that an
          order does not have are 0; ``divergence`` may be None, then its loss is 0; done, truncated, next_value as in
          :func:`nervex.rl_utils.gae`
        - gamma (:obj:`float`): discount factor in [0, 1]
        - td_lambda (:obj:`float`), trace_lambda (:obj:`float`): of the values, and of V-trace
        - clips (:obj:`tuple`): largest importance weights in V-trace's errors, its trace, and both policy gradients
    Returns:
        - loss (:obj:`alphastar_loss`): policy, upgo, value, entropy, teacher; 0-dim each
    Shapes:
        - log_prob, behaviour_log_prob, entropy, divergence (:obj:`torch.FloatTensor`): :math:`(T, B, P)`
        - value (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`; :math:`(T, B)` is enough beside next_value
        - reward, weight, done, truncated, next_value: :math:`(T, B)`
    """
    log_prob, weight, reward = data.log_prob, data.weight, data.reward
    check_shape('alphastar_error', behaviour_log_prob=(data.behaviour_log_prob, log_prob.shape))
    check_shape('alphastar_error', reward=(reward, log_prob.shape[:2]), weight=(weight, log_prob.shape[:2]))
    ends, parts = (data.done, data.truncated, data.next_value), log_prob.shape[-1]
    with torch.no_grad():
        log_rho = log_prob - data.behaviour_log_prob

        def each(column: torch.Tensor | None) -> torch.Tensor | None:
            return None if column is None else column.unsqueeze(-1).expand(*column.shape, parts)

        fields = vtrace_targets_data(log_rho, *map(each, (data.value, reward, *ends)))
        _, adv = vtrace_targets(fields, gamma, trace_lambda, *clips)
        above = upgo_returns(reward, data.value, gamma, *ends) - data.value[: len(reward)]
        upgoing = log_rho.exp().clamp_max(clips[2]) * above.unsqueeze(-1)

    def mean(parts_of: torch.Tensor) -> torch.Tensor:
        return (weight * parts_of.sum(-1)).mean()

    return alphastar_loss(
        policy=-mean(log_prob * adv),
        upgo=-mean(log_prob * upgoing),
        value=td_lambda_error(td_lambda_data(data.value, reward, weight, *ends), gamma, td_lambda),
        entropy=mean(data.entropy),
        teacher=reward.new_zeros(()) if data.divergence is None else mean(data.divergence),
    )
