"""Networks whose head gives the distribution of the return: C51, IQN and QR-DQN."""

from collections.abc import Callable, Sequence

from torch import Tensor

from nervex.torch_utils.network.activation import Activation

from .discrete_net import DiscreteNet


class NoiseDistributionFCDiscreteNet(DiscreteNet):
    """
    Overview:
        Rainbow's network for vector observations: C51 with a dueling, noisy head.
    Arguments:
        - v_min, v_max (:obj:`float`), n_atom (:obj:`int`): see ``DistributionHead``
        - noise (:obj:`bool`), noise_sigma (:obj:`float`): noisy layers in the head, and their size
        - the others: see ``FCDiscreteNet``
    Shapes:
        - obs :math:`(*, obs\\_dim)`, logit :math:`(*, A)`, distribution :math:`(*, A, n\\_atom)`
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 64,
        hidden_dim_list: Sequence[int] | None = None,
        v_min: float = -10.0,
        v_max: float = 10.0,
        n_atom: int = 51,
        dueling: bool = True,
        head_layer_num: int | None = None,
        activation: str | Activation = 'relu',
        norm: bool = False,
        noise: bool = True,
        noise_sigma: float = 0.4,
    ) -> None:
        head = {
            'head_type': 'dist',
            'v_min': v_min,
            'v_max': v_max,
            'n_atom': n_atom,
            'noise': noise,
            'noise_sigma': noise_sigma,
        }
        super().__init__(
            obs_dim,
            action_dim,
            embedding_dim,
            hidden_dim_list,
            dueling,
            head_layer_num,
            activation,
            encoder_kwargs={'norm': norm},
            head_kwargs=head,
        )


class NoiseDistributionConvDiscreteNet(DiscreteNet):
    """
    Overview:
        Rainbow's network for images: C51 with a dueling, noisy head.
    Arguments:
        - see ``NoiseDistributionFCDiscreteNet`` and ``ConvDiscreteNet``
    Shapes:
        - obs :math:`(*, C, H, W)`, logit :math:`(*, A)`, distribution :math:`(*, A, n\\_atom)`
    """

    def __init__(
        self,
        obs_dim: Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 512,
        hidden_dim_list: Sequence[int] | None = None,
        v_min: float = -10.0,
        v_max: float = 10.0,
        n_atom: int = 51,
        dueling: bool = True,
        head_layer_num: int | None = None,
        activation: str | Activation = 'relu',
        noise: bool = True,
        noise_sigma: float = 0.4,
        channels: Sequence[int] = (32, 64, 64),
        kernels: Sequence[int] = (8, 4, 3),
        strides: Sequence[int] = (4, 2, 1),
    ) -> None:
        encoder = {'encoder_type': 'conv', 'channels': channels, 'kernels': kernels, 'strides': strides}
        head = {
            'head_type': 'dist',
            'v_min': v_min,
            'v_max': v_max,
            'n_atom': n_atom,
            'noise': noise,
            'noise_sigma': noise_sigma,
        }
        super().__init__(
            obs_dim,
            action_dim,
            embedding_dim,
            hidden_dim_list,
            dueling,
            head_layer_num,
            activation,
            encoder_kwargs=encoder,
            head_kwargs=head,
        )


class NoiseQuantileFCDiscreteNet(DiscreteNet):
    """
    Overview:
        Implicit quantile network (IQN) for vector observations, with a dueling, noisy head. ``forward`` takes
        ``num_quantiles`` for another number of draws than the net's own.
    Arguments:
        - num_quantiles, quantile_embedding_dim, beta_function_type, beta_eta: see ``QuantileHead``
        - noise (:obj:`bool`), noise_sigma (:obj:`float`): noisy layers in the head, and their size
        - the others: see ``FCDiscreteNet``
    Shapes:
        - obs :math:`(*, obs\\_dim)`, logit :math:`(*, A)`, q :math:`(\\tau, *, A)`, quantiles :math:`(\\tau B, 1)`
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 64,
        hidden_dim_list: Sequence[int] | None = None,
        num_quantiles: int = 32,
        quantile_embedding_dim: int = 128,
        beta_function_type: str | Callable[[Tensor], Tensor] = 'uniform',
        beta_eta: float = 0.71,
        dueling: bool = True,
        head_layer_num: int | None = None,
        activation: str | Activation = 'relu',
        norm: bool = False,
        noise: bool = True,
        noise_sigma: float = 0.4,
    ) -> None:
        head = {
            'head_type': 'quantile',
            'num_quantiles': num_quantiles,
            'quantile_embedding_dim': quantile_embedding_dim,
            'beta_function_type': beta_function_type,
            'beta_eta': beta_eta,
            'noise': noise,
            'noise_sigma': noise_sigma,
        }
        super().__init__(
            obs_dim,
            action_dim,
            embedding_dim,
            hidden_dim_list,
            dueling,
            head_layer_num,
            activation,
            encoder_kwargs={'norm': norm},
            head_kwargs=head,
        )


class NoiseQuantileConvDiscreteNet(DiscreteNet):
    """
    Overview:
        Implicit quantile network (IQN) for images, with a dueling, noisy head.
    Arguments:
        - see ``NoiseQuantileFCDiscreteNet`` and ``ConvDiscreteNet``
    Shapes:
        - obs :math:`(*, C, H, W)`, logit :math:`(*, A)`, q :math:`(\\tau, *, A)`, quantiles :math:`(\\tau B, 1)`
    """

    def __init__(
        self,
        obs_dim: Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 512,
        hidden_dim_list: Sequence[int] | None = None,
        num_quantiles: int = 32,
        quantile_embedding_dim: int = 128,
        beta_function_type: str | Callable[[Tensor], Tensor] = 'uniform',
        beta_eta: float = 0.71,
        dueling: bool = True,
        head_layer_num: int | None = None,
        activation: str | Activation = 'relu',
        noise: bool = True,
        noise_sigma: float = 0.4,
        channels: Sequence[int] = (32, 64, 64),
        kernels: Sequence[int] = (8, 4, 3),
        strides: Sequence[int] = (4, 2, 1),
    ) -> None:
        encoder = {'encoder_type': 'conv', 'channels': channels, 'kernels': kernels, 'strides': strides}
        head = {
            'head_type': 'quantile',
            'num_quantiles': num_quantiles,
            'quantile_embedding_dim': quantile_embedding_dim,
            'beta_function_type': beta_function_type,
            'beta_eta': beta_eta,
            'noise': noise,
            'noise_sigma': noise_sigma,
        }
        super().__init__(
            obs_dim,
            action_dim,
            embedding_dim,
            hidden_dim_list,
            dueling,
            head_layer_num,
            activation,
            encoder_kwargs=encoder,
            head_kwargs=head,
        )


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

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 64,
        hidden_dim_list: Sequence[int] | None = None,
        num_quantiles: int = 32,
        dueling: bool = False,
        head_layer_num: int | None = None,
        activation: str | Activation = 'relu',
        norm: bool = False,
    ) -> None:
        super().__init__(
            obs_dim,
            action_dim,
            embedding_dim,
            hidden_dim_list,
            dueling,
            head_layer_num,
            activation,
            encoder_kwargs={'norm': norm},
            head_kwargs={'head_type': 'qr', 'num_quantiles': num_quantiles},
        )


class QRConvDiscreteNet(DiscreteNet):
    """
    Overview:
        Quantile regression network (QR-DQN) for images.
    Arguments:
        - see ``QRFCDiscreteNet`` and ``ConvDiscreteNet``
    Shapes:
        - obs :math:`(*, C, H, W)`, logit :math:`(*, A)`, q :math:`(*, A, num\\_quantiles)`
    """

    def __init__(
        self,
        obs_dim: Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 512,
        hidden_dim_list: Sequence[int] | None = None,
        num_quantiles: int = 32,
        dueling: bool = False,
        head_layer_num: int | None = None,
        activation: str | Activation = 'relu',
        channels: Sequence[int] = (32, 64, 64),
        kernels: Sequence[int] = (8, 4, 3),
        strides: Sequence[int] = (4, 2, 1),
    ) -> None:
        encoder = {'encoder_type': 'conv', 'channels': channels, 'kernels': kernels, 'strides': strides}
        super().__init__(
            obs_dim,
            action_dim,
            embedding_dim,
            hidden_dim_list,
            dueling,
            head_layer_num,
            activation,
            encoder_kwargs=encoder,
            head_kwargs={'head_type': 'qr', 'num_quantiles': num_quantiles},
        )
