"""Networks whose head gives quantiles of the return: implicit (IQN) and fixed (QR-DQN)."""
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from nervex.model.common.activation import Activation
from nervex.model.common.distribution_head import QuantileHead, QuantileRegressionHead
from nervex.model.common.encoder import ConvEncoder, FCEncoder
from nervex.model.common.multi_head import one_or_many
from nervex.model.common.shapes import action_heads, obs_of

from .categorical_net import linear_type
from .discrete_net import DiscreteNet


class _QuantileNet(DiscreteNet):
    """A net whose number of drawn quantiles may be changed in a call."""

    def forward(self, data: Tensor | dict[str, Any], num_quantiles: int | None = None) -> dict[str, Any]:
        """
        Arguments:
            - data (:obj:`dict | torch.Tensor`): see ``DiscreteNet``
            - num_quantiles (:obj:`int | None`): quantiles drawn for each row, None is the net's own number
        """
        if num_quantiles is None:
            return super().forward(data)
        output = self.head(self.encoder(obs_of(data)), num_quantiles=num_quantiles)
        if not isinstance(data, Tensor) and 'action_mask' in data:
            output['action_mask'] = data['action_mask']
        return output


class NoiseQuantileFCDiscreteNet(_QuantileNet):
    """
    Overview:
        Implicit quantile network (IQN) for vector observations, with a dueling, noisy head.
    Arguments:
        - num_quantiles, quantile_embedding_dim, beta_function_type, beta_eta: see ``QuantileHead``
        - noise (:obj:`bool`), noise_sigma (:obj:`float`): noisy layers in the head, and their size
        - the others: see ``FCDiscreteNet``
    Shapes:
        - obs :math:`(*, obs\\_dim)`, logit :math:`(*, A)`, q :math:`(\\tau, *, A)`, quantiles :math:`(\\tau B, 1)`
    """

    def __init__(self, obs_dim: int | Sequence[int], action_dim: int | Sequence[int], embedding_dim: int = 64,
                 hidden_dim_list: Sequence[int] | None = None, num_quantiles: int = 32,
                 quantile_embedding_dim: int = 128,
                 beta_function_type: str | Callable[[Tensor], Tensor] = 'uniform', beta_eta: float = 0.71,
                 dueling: bool = True, head_layer_num: int = 1, activation: str | Activation = 'relu',
                 norm: bool = False, noise: bool = True, noise_sigma: float = 0.4) -> None:
        widths = [128, 128, embedding_dim] if hidden_dim_list is None else list(hidden_dim_list)
        linear = linear_type(noise, noise_sigma)
        head = one_or_many(lambda n: QuantileHead(
            widths[-1], n, num_quantiles, quantile_embedding_dim, beta_function_type, beta_eta, dueling, head_layer_num,
            activation, linear), action_heads(action_dim))
        super().__init__(FCEncoder(obs_dim, widths, activation, norm), head)


class NoiseQuantileConvDiscreteNet(_QuantileNet):
    """
    Overview:
        Implicit quantile network (IQN) for images, with a dueling, noisy head.
    Arguments:
        - see ``NoiseQuantileFCDiscreteNet`` and ``ConvDiscreteNet``
    Shapes:
        - obs :math:`(*, C, H, W)`, logit :math:`(*, A)`, q :math:`(\\tau, *, A)`, quantiles :math:`(\\tau B, 1)`
    """

    def __init__(self, obs_dim: Sequence[int], action_dim: int | Sequence[int], embedding_dim: int = 512,
                 hidden_dim_list: Sequence[int] | None = None, num_quantiles: int = 32,
                 quantile_embedding_dim: int = 128,
                 beta_function_type: str | Callable[[Tensor], Tensor] = 'uniform', beta_eta: float = 0.71,
                 dueling: bool = True, head_layer_num: int = 1, activation: str | Activation = 'relu',
                 noise: bool = True, noise_sigma: float = 0.4, channels: Sequence[int] = (32, 64, 64),
                 kernels: Sequence[int] = (8, 4, 3), strides: Sequence[int] = (4, 2, 1)) -> None:
        widths = [embedding_dim] if hidden_dim_list is None else list(hidden_dim_list)
        linear = linear_type(noise, noise_sigma)
        head = one_or_many(lambda n: QuantileHead(
            widths[-1], n, num_quantiles, quantile_embedding_dim, beta_function_type, beta_eta, dueling, head_layer_num,
            activation, linear), action_heads(action_dim))
        super().__init__(ConvEncoder(obs_dim, widths, channels, kernels, strides, activation), head)


class QRFCDiscreteNet(DiscreteNet):
    """
    Overview:
        Quantile regression network (QR-DQN) for vector observations.
    Arguments:
        - num_quantiles (:obj:`int`): see ``QuantileRegressionHead``
        - the others: see ``FCDiscreteNet``
    Shapes:
        - obs :math:`(*, obs\\_dim)`, logit :math:`(*, A)`, q :math:`(*, A, num\\_quantiles)`,
          tau :math:`(*, num\\_quantiles, 1)`
    """

    def __init__(self, obs_dim: int | Sequence[int], action_dim: int | Sequence[int], embedding_dim: int = 64,
                 hidden_dim_list: Sequence[int] | None = None, num_quantiles: int = 32, dueling: bool = False,
                 head_layer_num: int = 0, activation: str | Activation = 'relu', norm: bool = False) -> None:
        widths = [128, 128, embedding_dim] if hidden_dim_list is None else list(hidden_dim_list)
        head = one_or_many(lambda n: QuantileRegressionHead(widths[-1], n, num_quantiles, dueling, head_layer_num,
                                                            activation), action_heads(action_dim))
        super().__init__(FCEncoder(obs_dim, widths, activation, norm), head)


class QRConvDiscreteNet(DiscreteNet):
    """
    Overview:
        Quantile regression network (QR-DQN) for images.
    Arguments:
        - see ``QRFCDiscreteNet`` and ``ConvDiscreteNet``
    Shapes:
        - obs :math:`(*, C, H, W)`, logit :math:`(*, A)`, q :math:`(*, A, num\\_quantiles)`
    """

    def __init__(self, obs_dim: Sequence[int], action_dim: int | Sequence[int], embedding_dim: int = 512,
                 hidden_dim_list: Sequence[int] | None = None, num_quantiles: int = 32, dueling: bool = False,
                 head_layer_num: int = 0, activation: str | Activation = 'relu',
                 channels: Sequence[int] = (32, 64, 64), kernels: Sequence[int] = (8, 4, 3),
                 strides: Sequence[int] = (4, 2, 1)) -> None:
        widths = [embedding_dim] if hidden_dim_list is None else list(hidden_dim_list)
        head = one_or_many(lambda n: QuantileRegressionHead(widths[-1], n, num_quantiles, dueling, head_layer_num,
                                                            activation), action_heads(action_dim))
        super().__init__(ConvEncoder(obs_dim, widths, channels, kernels, strides, activation), head)
