"""Plugins for policies over any action space: told apart by the form of ``logit``."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from .sampling import ArgmaxSamplePlugin, MultinomialSamplePlugin


class PolicySamplePlugin(MultinomialSamplePlugin):
    """
    Overview:
        ``output['action']`` drawn from the policy: from softmax(logit), for one head or a list of them, as
        ``multinomial_sample`` does; or from a normal distribution if ``logit`` is a pair (mu, sigma). Then ``action``
        is the draw within [-1, 1], which is what an env may get, ``drawn`` the draw itself, whose probability is known,
        and ``logit`` a dict of ``mu`` and ``sigma``.
    Arguments:
        - seed (:obj:`int | None`), generator (:obj:`torch.Generator | None`): source of chance, see ``Draws``
    Shapes:
        - logit: as in ``argmax_sample``, or a pair :math:`(*, D)`; action :math:`(*)`, or :math:`(*, D)`
    """

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        discrete = super().wrap(_same)

        def policy_sample_forward(data: Any, *args: Any, **kwargs: Any) -> dict:
            output = forward(data, *args, **kwargs)
            pair = mu_sigma_of(output['logit'])
            if pair is None:
                return discrete(output)
            mu, sigma = pair
            drawn = mu + sigma * self._draws.normal(mu)
            drawn = drawn.detach() if isinstance(drawn, Tensor) else drawn
            logit = {'mu': mu, 'sigma': sigma}
            return {**output, 'logit': logit, 'drawn': drawn, 'action': drawn.clip(-1.0, 1.0)}

        return policy_sample_forward


class PolicyModePlugin(ArgmaxSamplePlugin):
    """
    Overview:
        ``output['action']``: the likeliest one, the legal action with the largest logit or the mean within [-1, 1].
    Shapes:
        - as in ``policy_sample``
    """

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        discrete = super().wrap(_same)

        def policy_mode_forward(data: Any, *args: Any, **kwargs: Any) -> dict:
            output = forward(data, *args, **kwargs)
            pair = mu_sigma_of(output['logit'])
            return discrete(output) if pair is None else {**output, 'action': pair[0].clip(-1.0, 1.0)}

        return policy_mode_forward


def mu_sigma_of(logit: Any) -> tuple[Tensor, Tensor] | None:
    """The pair (mu, sigma) of a continuous policy, given as a tuple or a mapping; None for logits of actions."""
    if isinstance(logit, tuple):
        mu, sigma = logit
        return mu, sigma
    if isinstance(logit, Mapping) and 'mu' in logit:
        return logit['mu'], logit['sigma']
    return None


def _same(output: Any) -> Any:
    return output
