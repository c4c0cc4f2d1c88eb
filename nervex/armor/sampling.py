"""Plugins that turn ``logit`` into ``action``: greedy, epsilon-greedy, categorical."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .draws import Draws
from .plugin import IArmorStatelessPlugin
from .rows import legal_logit, per_head, rows_of


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
            return _with_action(output, per_head(output, _argmax, _few_argmax))

        return argmax_forward


class _DrawingPlugin(IArmorStatelessPlugin):
    """A sampler with a source of chance of its own."""

    def __init__(self, seed: int | None = None, generator: torch.Generator | None = None) -> None:
        self._draws = Draws(seed, generator)

    def state_dict(self) -> dict[str, Any]:
        """State of the source of chance."""
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
        - seed (:obj:`int | None`), generator (:obj:`torch.Generator | None`): source of chance, see ``Draws``
    Shapes:
        - as ``argmax_sample``
    """

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        def multinomial_forward(data: Any, *args: Any, **kwargs: Any) -> dict:
            output = forward(data, *args, **kwargs)
            return _with_action(output, per_head(output, self._choose, self._few))

        return multinomial_forward

    def _choose(self, logit: Tensor, mask: Tensor | None) -> Tensor:
        logit = legal_logit(logit.detach(), mask)
        race = torch.empty_like(logit).exponential_(generator=self._draws.on(logit.device))
        return logit.sub(race.log_()).argmax(-1)

    def _few(self, logit: np.ndarray) -> np.ndarray:
        return (logit - self._draws.races(logit.size).reshape(logit.shape)).argmax(1)


class EpsGreedySamplePlugin(_DrawingPlugin):
    """
    Overview:
        With probability ``eps`` a random legal action, else the greedy one. Each row and each head tosses its own coin.
        ``eps`` is an argument of forward: a float, or an array with one value for each row (environment).
    Arguments:
        - seed (:obj:`int | None`), generator (:obj:`torch.Generator | None`): source of chance, see ``Draws``
    Shapes:
        - as ``argmax_sample``; eps: float, or the leading dims of logit, or the first ones of them
    """

    forward_kwargs = ('eps',)

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        def eps_greedy_forward(data: Any, *args: Any, eps: Any = None, **kwargs: Any) -> dict:
            if eps is None:
                raise TypeError("the plugin 'eps_greedy_sample' needs forward(..., eps=...)")
            output = forward(data, *args, **kwargs)
            if not isinstance(eps, (float, int)):
                return _with_action(output, per_head(output, self._choose, self._few_by_row, eps))
            if not 0.0 <= eps <= 1.0:
                raise ValueError(f'eps is the probability of a random action: between 0 and 1, got {eps}')
            return _with_action(output, per_head(output, self._choose, self._few, eps))

        return eps_greedy_forward

    def _choose(self, logit: Tensor, mask: Tensor | None, eps: Any) -> Tensor:
        """One number u for each row is enough: u < eps decides, and then u / eps, uniform again, picks the action."""
        greedy = _argmax(logit, mask)
        draws = self._draws.on(logit.device)
        coin = torch.rand(greedy.shape, dtype=torch.float64, device=logit.device, generator=draws)
        if isinstance(eps, (float, int)):
            explores, share = coin < eps, coin.div_(max(eps, _TINY))
        else:
            rows = rows_of(eps, logit)
            explores, share = coin < rows, coin.div_(rows.clamp(min=_TINY))
        return torch.where(explores, _pick(share, logit.shape[-1], mask, logit.shape), greedy)

    def _few(self, logit: np.ndarray, eps: float) -> np.ndarray:
        """The same for a handful of rows."""
        action, coins = logit.argmax(1), self._draws.coins(len(logit))
        if coins and min(coins) < eps:
            for row, coin in enumerate(coins):
                if coin < eps:
                    action[row] = int(coin / eps * logit.shape[1])
        return action

    def _few_by_row(self, logit: np.ndarray, eps: Any) -> np.ndarray:
        """The same with an epsilon for each row."""
        action, rows = logit.argmax(1), rows_of(eps, torch.from_numpy(logit)).tolist()
        for row, (coin, row_eps) in enumerate(zip(self._draws.coins(len(logit)), rows)):
            if coin < row_eps:
                action[row] = int(coin / row_eps * logit.shape[1])
        return action


_TINY = 1e-12  # stands for a zero that is divided by


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


def _few_argmax(logit: np.ndarray) -> np.ndarray:
    return logit.argmax(1)


def _with_action(output: dict, action: Any) -> dict:
    """The output with its action; the model's dict may be one that the model keeps, so it is not written to."""
    return {**output, 'action': action}
