"""Categorical distributions over logits."""

import torch
import torch.nn.functional as F

Chosen = torch.Tensor | tuple[torch.Tensor, dict]


class Pd:
    """A probability distribution made from the output of a network by ``update_logits``."""

    def neglogp(self, x: torch.Tensor) -> torch.Tensor:
        """Negative log-probability of a value."""
        raise NotImplementedError

    def sample(self) -> Chosen:
        """A random value."""
        raise NotImplementedError


class CategoricalPd(Pd):
    """
    Overview:
        Over the last axis of the logits; any leading axes. ``reduction`` is 'none' or 'mean' over them. With ``viz`` a
        value comes with the logits that it was chosen by, as ``{'logit': ...}``.
    Interfaces:
        update_logits, neglogp, entropy, mode, sample, noise_mode
    """

    def __init__(self, logits: torch.Tensor | None = None) -> None:
        self.logits = logits

    def update_logits(self, logits: torch.Tensor) -> None:
        """
        Shapes:
            - logits (:obj:`torch.FloatTensor`): :math:`(*, N)`
        """
        self.logits = logits

    def neglogp(self, x: torch.Tensor, reduction: str = 'mean') -> torch.Tensor:
        """
        Shapes:
            - x (:obj:`torch.LongTensor`): :math:`(*)`
        """
        log_p = F.log_softmax(self._given(), dim=-1)
        return _reduced(-log_p.gather(-1, x.unsqueeze(-1)).squeeze(-1), reduction)

    def entropy(self, reduction: str = 'mean') -> torch.Tensor:
        """Entropy; a logit of -inf counts as an impossible value."""
        log_p = F.log_softmax(self._given(), dim=-1)
        return _reduced(torch.special.entr(log_p.exp()).sum(-1), reduction)

    def mode(self, viz: bool = False) -> Chosen:
        """The likeliest value."""
        return _chosen(self._given(), viz)

    def sample(self, viz: bool = False, generator: torch.Generator | None = None) -> Chosen:
        """A value drawn by its probability: the argmax of logits plus Gumbel noise."""
        uniform = self._uniform(generator)
        uniform = uniform.clamp(torch.finfo(uniform.dtype).tiny, 1.0 - 1e-7)
        return _chosen(self._given() - torch.log(-torch.log(uniform)), viz)

    def noise_mode(self, viz: bool = False, generator: torch.Generator | None = None) -> Chosen:
        """The argmax of logits plus uniform noise from [0, 1): explores among near ties only."""
        return _chosen(self._given() + self._uniform(generator), viz)

    def _given(self) -> torch.Tensor:
        if self.logits is None:
            raise ValueError('there are no logits yet; call update_logits first')
        return self.logits

    def _uniform(self, generator: torch.Generator | None) -> torch.Tensor:
        logits = self._given()
        return torch.rand(logits.shape, generator=generator, dtype=logits.dtype, device=logits.device)


class CategoricalPdPytorch(CategoricalPd):
    """
    Overview:
        The same, made from probabilities, which need not be normalised.
    Interfaces:
        update_probs, and those of ``CategoricalPd``
    """

    def __init__(self, probs: torch.Tensor | None = None) -> None:
        super().__init__()
        if probs is not None:
            self.update_probs(probs)

    def update_probs(self, probs: torch.Tensor) -> None:
        """
        Shapes:
            - probs (:obj:`torch.FloatTensor`): :math:`(*, N)`, none of them negative
        """
        if (probs < 0).any():
            raise ValueError(f'got the probability {probs.min().item():g}, must be at least 0; is it a logit?')
        self.logits = probs.log()


def _chosen(logits: torch.Tensor, viz: bool) -> Chosen:
    action = logits.argmax(-1)
    return (action, {'logit': logits.detach()}) if viz else action


def _reduced(x: torch.Tensor, reduction: str) -> torch.Tensor:
    if reduction not in ('none', 'mean'):
        raise ValueError(f"reduction is 'none' or 'mean', got {reduction!r}")
    return x if reduction == 'none' else x.mean()
