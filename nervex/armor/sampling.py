"""Plugins that turn ``logit`` into ``action``: greedy, epsilon-greedy, categorical."""
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .plugin import IArmorStatelessPlugin
from .rows import DrawsPerDevice, legal_logit, per_head, rows_of


class ArgmaxSamplePlugin(IArmorStatelessPlugin):
    """
    Overview:
        ``output['action']``: the legal action with the largest logit, for each row and head. A row without any legal
        action gets action 0.
    Shapes:
        - logit (:obj:`torch.FloatTensor`): :math:`(*, A)`, or a list of them; action_mask: 1 is legal, broadcasts
        - action (:obj:`torch.LongTensor`): :math:`(*)`, or a list of them
    """

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        def argmax_forward(data: Any, *args: Any, **kwargs: Any) -> dict:
            output = forward(data, *args, **kwargs)
            return _with_action(output, per_head(output, _argmax))
        return argmax_forward


class _DrawingPlugin(IArmorStatelessPlugin):
    """A sampler with a random generator of its own."""

    def __init__(self, seed: int | None = None, generator: torch.Generator | None = None) -> None:
        self._draws = DrawsPerDevice(seed, generator)

    def state_dict(self) -> dict[str, Any]:
        """State of the random generator."""
        return self._draws.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue the random sequence."""
        self._draws.load_state_dict(state)


class MultinomialSamplePlugin(_DrawingPlugin):
    """
    Overview:
        ``output['action']``: drawn from softmax(logit) over the legal actions, for each row and head. Draws by the
        exponential race: argmax(p_i / e_i) with e_i ~ Exp(1) has probabilities p, and needs no normalisation.
    Arguments:
        - seed (:obj:`int | None`), generator (:obj:`torch.Generator | None`): source of chance, see ``DrawsPerDevice``
    Shapes:
        - as ``argmax_sample``
    """

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        def draw(logit: Tensor, mask: Tensor | None) -> Tensor:
            logit = legal_logit(logit.detach(), mask)
            race = torch.empty_like(logit).exponential_(generator=self._draws.on(logit.device))
            return logit.sub(race.log_()).argmax(-1)

        def multinomial_forward(data: Any, *args: Any, **kwargs: Any) -> dict:
            output = forward(data, *args, **kwargs)
            return _with_action(output, per_head(output, draw))
        return multinomial_forward


class EpsGreedySamplePlugin(_DrawingPlugin):
    """
    Overview:
        With probability ``eps`` a random legal action, else the greedy one. Each row and each head tosses its own coin.
        ``eps`` is an argument of forward: a float, or an array with one value for each row (environment).
    Arguments:
        - seed (:obj:`int | None`), generator (:obj:`torch.Generator | None`): source of chance, see ``DrawsPerDevice``
    Shapes:
        - as ``argmax_sample``; eps: float, or the leading dims of logit, or the first ones of them
    """
    forward_kwargs = ('eps', )

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        def eps_greedy_forward(data: Any, *args: Any, eps: Any = None, **kwargs: Any) -> dict:
            if eps is None:
                raise TypeError("the plugin 'eps_greedy_sample' needs forward(..., eps=...)")
            if isinstance(eps, (float, int)) and not 0. <= eps <= 1.:
                raise ValueError(f'eps is the probability of a random action: between 0 and 1, got {eps}')
            output = forward(data, *args, **kwargs)
            return _with_action(output, per_head(output, lambda logit, mask: self._choose(logit, mask, eps)))
        return eps_greedy_forward

    def _choose(self, logit: Tensor, mask: Tensor | None, eps: Any) -> Tensor:
        """One number u for each row is enough: u < eps decides, and then u / eps, uniform again, picks the action."""
        greedy = _argmax(logit, mask)
        draws = self._draws.on(logit.device)
        coin = torch.rand(greedy.shape, dtype=torch.float64, device=logit.device, generator=draws)
        if isinstance(eps, (float, int)):
            if mask is None and logit.device.type == 'cpu' and logit.dim() == 2 and len(logit) <= 32:
                return _few_rows(coin.tolist(), eps, logit.shape[1], greedy)
            explores, share = coin < eps, coin.div_(max(eps, 1e-12))
        else:
            rows = rows_of(eps, logit)
            explores, share = coin < rows, coin.div_(rows.clamp(min=1e-12))
        return torch.where(explores, _pick(share, logit.shape[-1], mask, logit.shape), greedy)


def _few_rows(coins: list[float], eps: float, actions: int, greedy: Tensor) -> Tensor:
    """The same choice for a handful of rows, in plain Python: for these faster than five tensor calls."""
    if not coins or min(coins) >= eps:
        return greedy
    action = greedy.tolist()
    for row, coin in enumerate(coins):
        if coin < eps:
            action[row] = int(coin / max(eps, 1e-12) * actions)
    return torch.tensor(action)


def _pick(share: Tensor, actions: int, mask: Tensor | None, shape: torch.Size) -> Tensor:
    """The action that a number in [0, 1) stands for, uniform over the legal ones; from 1 on the last legal one."""
    if mask is None:
        return share.mul_(actions).long().clamp_(max=actions - 1)
    legal = (mask != 0).expand(shape)
    count = legal.sum(-1)
    nth = share.mul_(count).long().minimum(count - 1)
    return (legal.cumsum(-1) > nth.unsqueeze(-1)).long().argmax(-1)


def _argmax(logit: Tensor, mask: Tensor | None) -> Tensor:
    return (logit if mask is None else legal_logit(logit, mask)).argmax(-1)


def _with_action(output: dict, action: Any) -> dict:
    """The output with its action; the model's dict may be one that the model keeps, so it is not written to."""
    return {**output, 'action': action}
