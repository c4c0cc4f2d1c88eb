"""Plugins that act by the model's own distribution: its likeliest action, or one that is drawn from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from torch import Tensor

from .plugin import IArmorStatelessPlugin
from .sampling import DrawingPlugin, Draws, EpsGreedySamplePlugin, argmax, in_arrays, legal, logit_of, per_head


class ArgmaxSamplePlugin(IArmorStatelessPlugin):
    """
    Overview:
        ``output['action']``: the likeliest one. Of logits the legal action with the largest, for each row and head (a
        row without any legal action gets action 0); of a normal distribution, a pair (mu, sigma), the mean within
        [-1, 1].
    Shapes:
        - logit (:obj:`torch.FloatTensor`): :math:`(*, A)`, or a list of them; action_mask: 1 is legal, broadcasts; or a
          pair :math:`(*, D)`
        - action (:obj:`torch.LongTensor`): :math:`(*)`, or a list of them; or :math:`(*, D)`; arrays for arrays
    """

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The forward with this plugin around it."""

        def argmax_forward(data: Any, *args: Any, **kwargs: Any) -> dict:
            output = forward(data, *args, **kwargs)
            pair = mu_sigma_of(logit_of(output))
            return {**output, 'action': per_head(output, argmax) if pair is None else pair[0].clip(-1.0, 1.0)}

        return argmax_forward


class MultinomialSamplePlugin(DrawingPlugin):
    """
    Overview:
        ``output['action']`` drawn from the policy. Of logits from their softmax over the legal actions, for each row
        and head, by the exponential race: argmax(p_i / e_i) with e_i ~ Exp(1) has probabilities p, and needs no
        normalisation. Of a pair (mu, sigma) from the normal distribution: then ``action`` is the draw within [-1, 1],
        which is what an env may get, ``drawn`` the draw itself, whose probability is known, and ``logit`` a dict of
        ``mu`` and ``sigma``.
    Arguments:
        - seed (:obj:`int | None`): of the source of chance, see ``Draws``
    Shapes:
        - as ``argmax_sample``
    """

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The forward with this plugin around it."""

        def multinomial_forward(data: Any, *args: Any, **kwargs: Any) -> dict:
            output = forward(data, *args, **kwargs)
            pair = mu_sigma_of(logit_of(output))
            if pair is None:
                return {**output, 'action': per_head(output, self._choose)}
            mu, sigma = pair
            drawn = mu + sigma * self._draws.normal(mu)
            drawn = drawn.detach() if isinstance(drawn, Tensor) else drawn
            logit = {'mu': mu, 'sigma': sigma}
            return {**output, 'logit': logit, 'drawn': drawn, 'action': drawn.clip(-1.0, 1.0)}

        return multinomial_forward

    def _choose(self, logit: Any, mask: Any) -> Any:
        if type(logit) is not np.ndarray:
            return in_arrays(self._choose, logit, mask)
        return draw(logit, mask, self._draws)


class EpsMultinomialSamplePlugin(EpsGreedySamplePlugin):
    """
    Overview:
        As ``eps_greedy_sample``, but who does not explore draws from softmax(logit) over the legal actions: the policy
        is (1 - eps) softmax(logit) + eps / (number of legal actions).
    """

    def _own_choice(self, logit: np.ndarray, mask: Any) -> np.ndarray:
        return draw(logit, mask, self._draws)


def draw(logit: np.ndarray, mask: Any, draws: Draws) -> np.ndarray:
    """Legal actions drawn from the softmax of logits."""
    return (legal(logit, mask) - draws.races(logit)).argmax(-1)


def mu_sigma_of(logit: Any) -> tuple[Any, Any] | None:
    """The pair (mu, sigma) of a continuous policy, given as a tuple or a mapping; None for logits of actions."""
    if type(logit) is np.ndarray:
        return None
    if isinstance(logit, tuple):
        mu, sigma = logit
        return mu, sigma
    if isinstance(logit, Mapping) and 'mu' in logit:
        return logit['mu'], logit['sigma']
    return None
