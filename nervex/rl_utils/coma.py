"""Counterfactual multi-agent policy gradients."""

from collections import namedtuple

import torch
import torch.nn.functional as F

from nervex.rl_utils.categorical import log_prob_and_entropy
from nervex.rl_utils.checks import ShapeError, check_alike, check_rank, chosen
from nervex.rl_utils.scan import reverse_scan

coma_data = namedtuple(
    'coma_data',
    ['logit', 'action', 'q_value', 'target_q_value', 'reward', 'weight', 'done', 'mask', 'alive'],
    defaults=(None, None, None),
)
coma_loss = namedtuple('coma_loss', ['policy_loss', 'q_value_loss', 'entropy_loss'])


def coma_error(data: coma_data, gamma: float, lambda_: float) -> coma_loss:
    """
    Overview:
        The losses of COMA: the advantage of an agent's action over what its policy would have earned on average, all
        other actions equal, and TD(lambda) targets for the central critic:
        :math:`-mean(w \\log \\pi(a) (Q(a) - \\sum_b \\pi(b) Q(b)))` and :math:`mean(w (G^\\lambda - Q(a))^2)`
        (arXiv:1705.08926).
    Arguments:
        - data (:obj:`coma_data`): fields as below; ``weight`` may be None. Without ``done`` the last step, which
          nothing follows, does not train the critic; with it, it does where the episode ended there, and returns stop
          at ends. ``mask`` is False behind the last real step of a sequence: means are over the real steps, and the
          state behind the last one (with an action for it) ends the return by its target value, unless it is ``done``.
          ``alive`` is 0 where an agent has left: its steps count no more, and the others' mean target value is what
          its end is worth to it
        - gamma (:obj:`float`): discount factor in [0, 1]
        - lambda_ (:obj:`float`): 0 is the one-step target, 1 the full return
    Returns:
        - loss (:obj:`coma_loss`): policy_loss, q_value_loss, entropy_loss (to be subtracted), 0-dim
    Shapes:
        - logit, q_value, target_q_value (:obj:`torch.FloatTensor`): :math:`(T, B, A, N)`
        - action (:obj:`torch.LongTensor`): :math:`(T, B, A)`
        - weight (:obj:`torch.FloatTensor`): :math:`(T, B, A)` or :math:`(T, B)`
        - reward, done (:obj:`torch.FloatTensor`), mask (:obj:`torch.BoolTensor`): :math:`(T, B)`
        - alive (:obj:`torch.FloatTensor`): :math:`(T, B, A)`
    """
    logit, action, q_value, target_q_value, reward, weight, done, mask, alive = data
    check_rank('coma_error', 'logit', logit, 4, '(T, B, A, N)')
    shape, step_shape = logit.shape, logit.shape[:2]
    check_alike('coma_error', shape[:3], action=action, alive=alive)
    check_alike('coma_error', shape, q_value=q_value, target_q_value=target_q_value)
    check_alike('coma_error', step_shape, reward=reward, done=done, mask=mask)
    if weight is not None:
        if weight.shape not in (step_shape, shape[:3]):
            raise ShapeError(f'coma_error: weight has shape {tuple(weight.shape)}, expected {tuple(shape[:3])}')
        weight = weight.reshape(*step_shape, -1).expand(shape[:3])
    q_taken = chosen('coma_error', q_value, action)
    logp, entropy = log_prob_and_entropy(logit, action)
    with torch.no_grad():
        adv = q_taken - (torch.softmax(logit, dim=-1) * q_value).sum(-1)
        target_taken = of_the_living(chosen('coma_error', target_q_value, action), alive, each=False)
    real = torch.ones_like(logp) if mask is None else mask.to(logp.dtype).unsqueeze(-1).expand_as(logp)
    target, counts = _lambda_returns(target_taken, reward, done, real, gamma, lambda_)
    if alive is not None:
        real, counts = real * alive, counts * alive
    error = F.mse_loss(q_taken, target, reduction='none')
    losses = -logp.masked_fill(real == 0, 0.0) * adv, error, entropy
    return coma_loss(*(_mean(loss, weight, counted) for loss, counted in zip(losses, (real, counts, real))))


def of_the_living(value: torch.Tensor, alive: torch.Tensor | None, each: bool) -> torch.Tensor:
    """
    Overview:
        Values of states or actions, where those of agents that have left are what still comes to them: the mean of the
        others' if the team shares a reward, nothing if ``each`` has its own.
    Shapes:
        - value, alive and result: :math:`(*, A)`; alive None: all play
    """
    if alive is None:
        return value
    mean = (value * alive).sum(-1, keepdim=True) / alive.sum(-1, keepdim=True).clamp_min(1)
    return torch.where(alive > 0, value, torch.zeros_like(mean) if each else mean)


def _mean(loss: torch.Tensor, weight: torch.Tensor | None, counts: torch.Tensor) -> torch.Tensor:
    """Over the steps that count; weights scale them."""
    loss = loss if weight is None else loss * weight
    return (loss * counts).sum() / counts.sum().clamp_min(1.0)


def _lambda_returns(
    target_taken: torch.Tensor,
    reward: torch.Tensor,
    done: torch.Tensor | None,
    real: torch.Tensor,
    gamma: float,
    lambda_: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """TD(lambda) targets (T, B, A), and which of them count: of real steps with something behind them, or an end."""
    reward = reward.detach().unsqueeze(-1).expand_as(target_taken)
    ended = torch.zeros_like(reward) if done is None else done.to(reward.dtype).unsqueeze(-1).expand_as(target_taken)
    discount, trace = gamma * (1 - ended[:-1]), lambda_ * real[1:]
    added = reward[:-1] + discount * (1 - trace) * target_taken[1:]
    last = torch.where(ended[-1] > 0, reward[-1], target_taken[-1])
    target = torch.cat([reverse_scan(discount * trace, added, last), reward[-1:]])
    return target, torch.cat([real[:-1], real[-1:] * ended[-1:]])
