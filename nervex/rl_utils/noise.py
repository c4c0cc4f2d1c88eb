"""Exploration: noise on continuous actions."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch

from nervex.utils.errors import UnknownNameError, unknown_name


class BaseNoise(ABC):
    """
    Overview:
        A source of noise with its own generator: two of them with one seed give the same numbers. ``noise(shape)``
        draws.
    Shapes:
        - result (:obj:`torch.FloatTensor`): the shape that is asked for
    """

    def __init__(self, seed: int = 0, generator: torch.Generator | None = None) -> None:
        """
        Arguments:
            - seed (:obj:`int`): of the own generator
            - generator (:obj:`torch.Generator | None`): draw from this one (on the CPU) instead
        """
        self._generator = torch.Generator().manual_seed(seed) if generator is None else generator

    @abstractmethod
    def __call__(self, shape: Sequence[int], device: torch.device | str = 'cpu') -> torch.Tensor:
        """
        Overview:
            Draw noise of a shape.
        """

    def reset(self) -> None:  # noqa: B027
        """Forget what was drawn before; nothing to do for noise without memory."""

    def _normal(self, shape: Sequence[int], device: torch.device | str) -> torch.Tensor:
        return torch.randn(tuple(shape), generator=self._generator).to(device)


class GaussianNoise(BaseNoise):
    """
    Overview:
        Independent normal noise, :math:`\\mu + \\sigma N`. Addressing Function Approximation Error in Actor-Critic
        Methods (arXiv:1802.09477).
    Shapes:
        - result (:obj:`torch.FloatTensor`): the shape that is asked for
    """

    def __init__(
        self, mu: float = 0.0, sigma: float = 1.0, seed: int = 0, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(seed, generator)
        if sigma < 0:
            raise ValueError(f'GaussianNoise: sigma must not be negative, got {sigma}')
        self._mu, self._sigma = mu, sigma

    def __call__(self, shape: Sequence[int], device: torch.device | str = 'cpu') -> torch.Tensor:
        return self._normal(shape, device) * self._sigma + self._mu


class OUNoise(BaseNoise):
    """
    Overview:
        Ornstein-Uhlenbeck noise, which drifts: :math:`x \\leftarrow x + \\theta (\\mu - x) dt + \\sigma \\sqrt{dt}
        N`. Continuous control with deep reinforcement learning (arXiv:1509.02971).
    Shapes:
        - result (:obj:`torch.FloatTensor`): the shape that is asked for
    """

    def __init__(
        self,
        mu: float = 0.0,
        sigma: float = 0.3,
        theta: float = 0.15,
        dt: float = 1e-2,
        x0: torch.Tensor | float = 0.0,
        seed: int = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        """
        Arguments:
            - mu, sigma (:obj:`float`): the value that it returns to, and its size
            - theta (:obj:`float`): how fast it returns
            - dt (:obj:`float`): time between two draws
            - x0 (:obj:`torch.Tensor | float`): where it starts, and starts again after ``reset`` or when another shape
              is asked for
        """
        super().__init__(seed, generator)
        if sigma < 0 or dt <= 0:
            raise ValueError(f'OUNoise: needs sigma >= 0 and dt > 0, got {sigma} and {dt}')
        self._mu, self._sigma, self._theta, self._dt, self._x0 = mu, sigma, theta, dt, x0
        self._x: torch.Tensor | None = None

    def __call__(self, shape: Sequence[int], device: torch.device | str = 'cpu') -> torch.Tensor:
        if self._x is None or self._x.shape != torch.Size(shape):
            self._x = torch.as_tensor(self._x0, dtype=torch.float32).expand(tuple(shape))
        x = self._x.to(device)
        drift = self._theta * (self._mu - x) * self._dt
        self._x = x + drift + self._sigma * self._dt**0.5 * self._normal(shape, device)
        return self._x

    def reset(self) -> None:
        """Start again from ``x0``."""
        self._x = None


#: what a config may name
noise_mapping: dict[str, type[BaseNoise]] = {'gauss': GaussianNoise, 'ou': OUNoise}


def create_noise_generator(noise_type: str, noise_kwargs: dict[str, Any] | None = None) -> BaseNoise:
    """
    Overview:
        Build noise by its name.
    Arguments:
        - noise_type (:obj:`str`): ``'gauss'`` or ``'ou'``
        - noise_kwargs (:obj:`dict | None`): arguments of its class
    """
    if noise_type not in noise_mapping:
        raise UnknownNameError(unknown_name('noise_type', noise_type, noise_mapping))
    return noise_mapping[noise_type](**(noise_kwargs or {}))
