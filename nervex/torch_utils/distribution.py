"""Categorical distributions over logits."""

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F


class Pd(ABC):
    """A probability distribution made from the output of a network by ``update_logits``."""

    @abstractmethod
    def neglogp(self, x: torch.Tensor) -> torch.Tensor:
        """Negative log-probability of a value."""

    @abstractmethod
    def sample(self) -> torch.Tensor | tuple[torch.Tensor, dict]:
        """A random value."""


class CategoricalPd(Pd):
    """
    Overview:
        Over the last axis of the logits; any leading axes. ``reduction`` is 'none' or 'mean' over them.
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
        log_p = self._log_p()
        return _reduced(-log_p.gather(-1, x.unsqueeze(-1)).squeeze(-1), reduction)

    def entropy(self, reduction: str = 'mean') -> torch.Tensor:
        """Entropy; a logit of -inf counts as an impossible value."""
        log_p = self._log_p()
        p = log_p.exp()
        return _reduced(-torch.where(p > 0, p * log_p, torch.zeros_like(p)).sum(-1), reduction)

    def mode(self, viz: bool = False) -> torch.Tensor | tuple[torch.Tensor, dict]:
        """The likeliest value; with ``viz`` also the logits, as ``{'logit': ...}``."""
        return self._shown(self._logits().argmax(-1), self._logits(), viz)

    def sample(
        self, viz: bool = False, generator: torch.Generator | None = None
    ) -> torch.Tensor | tuple[torch.Tensor, dict]:
        """A value drawn by its probability: the argmax of logits plus Gumbel noise."""
        logits = self._logits()
        uniform = torch.rand(logits.shape, generator=generator, dtype=logits.dtype, device=logits.device)
        noisy = logits - torch.log(-torch.log(uniform.clamp(torch.finfo(logits.dtype).tiny, 1.0 - 1e-7)))
        return self._shown(noisy.argmax(-1), noisy, viz)

    def noise_mode(
        self, viz: bool = False, generator: torch.Generator | None = None
    ) -> torch.Tensor | tuple[torch.Tensor, dict]:
        """The argmax of logits plus uniform noise from [0, 1): explores among near ties only."""
        logits = self._logits()
        noisy = logits + torch.rand(logits.shape, generator=generator, dtype=logits.dtype, device=logits.device)
        return self._shown(noisy.argmax(-1), noisy, viz)

    def _logits(self) -> torch.Tensor:
        if self.logits is None:
            raise ValueError('there are no logits yet; call update_logits first')
        return self.logits

    def _log_p(self) -> torch.Tensor:
        return F.log_softmax(self._logits(), dim=-1)

    @staticmethod
    def _shown(value: torch.Tensor, logits: torch.Tensor, viz: bool) -> torch.Tensor | tuple[torch.Tensor, dict]:
        return (value, {'logit': logits.detach()}) if viz else value


class CategoricalPdPytorch(Pd):
    """
    Overview:
        The same by ``torch.distributions.Categorical``.
    Interfaces:
        update_logits, update_probs, neglogp, entropy, mode, sample, noise_mode
    """

    def __init__(self, logits: torch.Tensor | None = None) -> None:
        self.distribution: torch.distributions.Categorical | None = None
        if logits is not None:
            self.update_logits(logits)

    def update_logits(self, logits: torch.Tensor) -> None:
        """From logits."""
        self.distribution = torch.distributions.Categorical(logits=logits)

    def update_probs(self, probs: torch.Tensor) -> None:
        """From probabilities, which are normalised."""
        self.distribution = torch.distributions.Categorical(probs=probs)

    def neglogp(self, x: torch.Tensor, reduction: str = 'mean') -> torch.Tensor:
        """Negative log-probability of a value."""
        return _reduced(-self._made().log_prob(x), reduction)

    def entropy(self, reduction: str = 'mean') -> torch.Tensor:
        """Entropy."""
        return _reduced(self._made().entropy(), reduction)

    def mode(self) -> torch.Tensor:
        """The likeliest value."""
        return self._made().probs.argmax(-1)

    def sample(self) -> torch.Tensor:
        """A value drawn by its probability."""
        return self._made().sample()

    def noise_mode(self, generator: torch.Generator | None = None) -> torch.Tensor:
        """As that of ``CategoricalPd``."""
        drawn = CategoricalPd(self._made().logits).noise_mode(generator=generator)
        assert isinstance(drawn, torch.Tensor)
        return drawn

    def _made(self) -> torch.distributions.Categorical:
        if self.distribution is None:
            raise ValueError('there are no logits yet; call update_logits first')
        return self.distribution


def _reduced(x: torch.Tensor, reduction: str) -> torch.Tensor:
    if reduction not in ('none', 'mean'):
        raise ValueError(f"reduction is 'none' or 'mean', got {reduction!r}")
    return x if reduction == 'none' else x.mean()
