"""V-trace, the off-policy correction of IMPALA."""

from collections import namedtuple

import torch
import torch.nn.functional as F

from nervex.hpc_rl import hpc_wrapper
from nervex.rl_utils.categorical import check_logits, log_prob, log_prob_and_entropy
from nervex.rl_utils.checks import check_alike, check_shape, weighted_mean
from nervex.rl_utils.gae import successors
from nervex.rl_utils.scan import reverse_scan

vtrace_data = namedtuple(
    'vtrace_data',
    ['target_output', 'behaviour_output', 'action', 'value', 'reward', 'weight', 'done', 'truncated', 'next_value'],
    defaults=(None, None, None),
)
vtrace_loss = namedtuple('vtrace_loss', ['policy_loss', 'value_loss', 'entropy_loss'])
vtrace_targets_data = namedtuple(
    'vtrace_targets_data',
    ['log_rho', 'value', 'reward', 'done', 'truncated', 'next_value'],
    defaults=(None, None, None),
)

_LEAST_LAMBDA = 0.5  # below it, dividing by lambda costs more than a digit


@hpc_wrapper()
def vtrace_error(
    data: vtrace_data,
    gamma: float = 0.99,
    lambda_: float = 0.95,
    rho_clip_ratio: float = 1.0,
    c_clip_ratio: float = 1.0,
    rho_pg_clip_ratio: float = 1.0,
) -> vtrace_loss:
    """
    Overview:
        The losses of IMPALA with V-trace targets for discrete actions, :math:`-mean(w A_t \\log \\pi(a_t))`,
        :math:`mean(w (vs_t - V_t)^2)` and :math:`mean(w H)` (arXiv:1802.01561).
    Arguments:
        - data (:obj:`vtrace_data`): fields as below; ``weight`` may be None; optional done, truncated, next_value as in
          :func:`nervex.rl_utils.gae`. Logits may be lists, one tensor per head
        - gamma (:obj:`float`): discount factor in [0, 1]
        - lambda_ (:obj:`float`): additional factor of the trace
        - rho_clip_ratio, c_clip_ratio, rho_pg_clip_ratio (:obj:`float`): upper bounds of the importance weights in
          the TD errors, in the trace, and in the policy gradient
    Returns:
        - loss (:obj:`vtrace_loss`): policy_loss -mean(w log pi(a) adv), value_loss mean(w (vs - V)^2), entropy_loss
          mean(w H), to be subtracted; 0-dim
    Shapes:
        - target_output, behaviour_output (:obj:`torch.FloatTensor`): :math:`(T, B, N)`
        - action (:obj:`torch.LongTensor`): :math:`(T, B)`
        - value (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`
        - reward, weight, done, truncated, next_value (:obj:`torch.FloatTensor`): :math:`(T, B)`
    """
    logp, entropy = log_prob_and_entropy(data.target_output, data.action)
    reward, weight = data.reward, data.weight
    check_alike('vtrace_error', logp.shape, reward=reward, weight=weight)
    check_logits('vtrace_error', 'behaviour_output', data.behaviour_output, data.target_output)
    with torch.no_grad():
        log_rho = logp - log_prob(data.behaviour_output, data.action)
        fields = (log_rho, data.value, reward, data.done, data.truncated, data.next_value)
        return_, adv = vtrace_targets(
            vtrace_targets_data(*fields), gamma, lambda_, rho_clip_ratio, c_clip_ratio, rho_pg_clip_ratio
        )
    value = data.value[: reward.shape[0]]
    policy_loss = -weighted_mean(logp * adv, weight)
    value_loss = weighted_mean(F.mse_loss(value, return_, reduction='none'), weight)
    return vtrace_loss(policy_loss, value_loss, weighted_mean(entropy, weight))


@hpc_wrapper()
def vtrace_targets(
    data: vtrace_targets_data,
    gamma: float = 0.99,
    lambda_: float = 0.95,
    rho_clip_ratio: float = 1.0,
    c_clip_ratio: float = 1.0,
    rho_pg_clip_ratio: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """
    Overview:
        The value targets :math:`vs_t = V_t + \\sum_{k \\ge t} \\gamma^{k-t} (\\prod_{i=t}^{k-1} \\lambda c_i)
        \\delta_k` and the advantages of the policy gradient :math:`\\rho_t (r_t + \\gamma vs_{t+1} - V_t)` from the
        log-ratios of the two policies (arXiv:1802.01561, equation 1 and section 4.2).
    Arguments:
        - data (:obj:`vtrace_targets_data`): ``log_rho`` is :math:`\\log \\pi(a) - \\log \\mu(a)`; the rest as in
          :func:`vtrace_error`
    Returns:
        - return_, adv (:obj:`torch.Tensor`): value targets and advantages
    Shapes:
        - value (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`
        - everything else (:obj:`torch.FloatTensor`): :math:`(T, B)`
    """
    log_rho, value, reward, done, truncated, next_value = data
    check_shape('vtrace_targets', log_rho=(log_rho, reward.shape))
    value, following, bootstrap, trace = successors('vtrace_targets', value, reward, done, truncated, next_value)
    rho = log_rho.exp()
    td_rho, trace_rho, pg_rho = _clipped(rho, rho_clip_ratio, c_clip_ratio, rho_pg_clip_ratio)
    base = reward - value
    if next_value is None and td_rho is trace_rho is pg_rho and lambda_ >= _LEAST_LAMBDA:
        carried = pg_rho * gamma if trace is None else pg_rho * (gamma * trace)
        added = torch.addcmul(pg_rho * base, carried, following)
        correction = reverse_scan(carried if lambda_ == 1 else carried * lambda_, added)
        # The scan has computed added + lambda carried (vs - V)_{t+1}; the advantage is the same without lambda.
        adv = correction if lambda_ == 1 else torch.lerp(added, correction, 1 / lambda_)
        return value + correction, adv
    discount = gamma if bootstrap is None else gamma * bootstrap
    carried = trace_rho * (gamma * lambda_) if trace is None else trace_rho * trace.mul(gamma * lambda_)
    return_ = value + reverse_scan(carried, td_rho * (base + discount * following))
    next_return = torch.cat([return_[1:], following[-1:]])
    if truncated is not None and trace is not None:
        next_return = torch.where(trace > 0, next_return, following)
    return return_, pg_rho * (base + discount * next_return)


def _clipped(rho: torch.Tensor, *bounds: float) -> list[torch.Tensor]:
    """Clip once for each different bound; usually there is one."""
    clipped = {bound: rho.clamp_max(bound) for bound in set(bounds)}
    return [clipped[bound] for bound in bounds]


def vtrace_nstep_return(
    clipped_rhos: torch.Tensor,
    clipped_cs: torch.Tensor,
    reward: torch.Tensor,
    bootstrap_values: torch.Tensor,
    gamma: float = 0.99,
    lambda_: float = 0.95,
) -> torch.Tensor:
    """
    Overview:
        The V-trace value targets, :math:`vs_t = V_t + \\delta_t + \\gamma \\lambda c_t (vs_{t+1} - V_{t+1})` with
        :math:`\\delta_t = \\rho_t (r_t + \\gamma V_{t+1} - V_t)` (arXiv:1802.01561).
    Shapes:
        - clipped_rhos, clipped_cs, reward, result (:obj:`torch.FloatTensor`): :math:`(T, B)`
        - bootstrap_values (:obj:`torch.FloatTensor`): :math:`(T + 1, B)`
    """
    shape = reward.shape
    check_alike('vtrace_nstep_return', shape, clipped_rhos=clipped_rhos, clipped_cs=clipped_cs)
    value, following, _, _ = successors('vtrace_nstep_return', bootstrap_values, reward, None, None, None)
    delta = clipped_rhos * (reward + gamma * following - value)
    return value + reverse_scan((gamma * lambda_) * clipped_cs, delta)


def vtrace_advantage(
    clipped_pg_rhos: torch.Tensor,
    reward: torch.Tensor,
    return_: torch.Tensor,
    bootstrap_values: torch.Tensor,
    gamma: torch.Tensor | float,
) -> torch.Tensor:
    """
    Overview:
        The advantages of the policy gradient, :math:`\\rho_t (r_t + \\gamma vs_{t+1} - V_t)` (arXiv:1802.01561).
    Arguments:
        - return_ (:obj:`torch.Tensor`): the value targets of the *next* steps
        - gamma (:obj:`torch.Tensor | float`): discount factor, or one for each step
    Shapes:
        - all tensors and the result (:obj:`torch.FloatTensor`): :math:`(T, B)`
    """
    shape = reward.shape
    check_alike(
        'vtrace_advantage', shape, clipped_pg_rhos=clipped_pg_rhos, return_=return_, bootstrap_values=bootstrap_values
    )
    return clipped_pg_rhos * (reward + gamma * return_ - bootstrap_values)
