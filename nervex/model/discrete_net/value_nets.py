"""Networks of action values by encoder and memory: FC or Conv, R with a memory, Noise with noisy layers."""

from collections.abc import Sequence

from nervex.torch_utils.network.activation import Activation

from .discrete_net import DiscreteNet


class FCDiscreteNet(DiscreteNet):
    """
    Overview:
        Action values from a vector observation.
    Arguments:
        - hidden_dim_list (:obj:`Sequence[int] | None`): widths of the encoder; None is [128, 128, embedding_dim]
        - norm (:obj:`bool`): LayerNorm in the encoder
        - the others: see ``DiscreteNet``
    Shapes:
        - obs :math:`(*, obs\\_dim)`, logit :math:`(*, A)`
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 64,
        hidden_dim_list: Sequence[int] | None = None,
        dueling: bool = True,
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
        )


class ConvDiscreteNet(DiscreteNet):
    """
    Overview:
        Action values from images.
    Arguments:
        - obs_dim (:obj:`Sequence[int]`): [C, H, W]
        - hidden_dim_list (:obj:`Sequence[int] | None`): linear layers after the convolutions; None is [embedding_dim]
        - channels, kernels, strides (:obj:`Sequence[int]`): the convolutions
        - the others: see ``DiscreteNet``
    Shapes:
        - obs :math:`(*, C, H, W)` uint8 or float, logit :math:`(*, A)`
    """

    def __init__(
        self,
        obs_dim: Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 512,
        hidden_dim_list: Sequence[int] | None = None,
        dueling: bool = True,
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
        )


class FCRDiscreteNet(DiscreteNet):
    """
    Overview:
        Action values from a sequence of vector observations.
    Arguments:
        - lstm_type (:obj:`str`): 'lstm' or 'gru'
        - lstm_hidden_dim (:obj:`int | None`): size of the state, None is the size of the features
        - lstm_layer_num (:obj:`int`): stacked recurrent layers
        - the others: see ``FCDiscreteNet``
    Shapes:
        - obs :math:`(B, obs\\_dim)` or :math:`(T, B, obs\\_dim)`, logit :math:`(B, A)` or :math:`(T, B, A)`
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 64,
        hidden_dim_list: Sequence[int] | None = None,
        dueling: bool = True,
        head_layer_num: int | None = None,
        activation: str | Activation = 'relu',
        norm: bool = False,
        lstm_type: str = 'lstm',
        lstm_hidden_dim: int | None = None,
        lstm_layer_num: int = 1,
    ) -> None:
        lstm = {'lstm_type': lstm_type, 'hidden_dim': lstm_hidden_dim, 'num_layers': lstm_layer_num}
        super().__init__(
            obs_dim,
            action_dim,
            embedding_dim,
            hidden_dim_list,
            dueling,
            head_layer_num,
            activation,
            encoder_kwargs={'norm': norm},
            lstm_kwargs=lstm,
        )


class ConvRDiscreteNet(DiscreteNet):
    """
    Overview:
        Action values from a sequence of images.
    Arguments:
        - see ``ConvDiscreteNet`` and ``FCRDiscreteNet``
    Shapes:
        - obs :math:`(B, C, H, W)` or :math:`(T, B, C, H, W)`, logit :math:`(B, A)` or :math:`(T, B, A)`
    """

    def __init__(
        self,
        obs_dim: Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 512,
        hidden_dim_list: Sequence[int] | None = None,
        dueling: bool = True,
        head_layer_num: int | None = None,
        activation: str | Activation = 'relu',
        lstm_type: str = 'lstm',
        lstm_hidden_dim: int | None = None,
        lstm_layer_num: int = 1,
        channels: Sequence[int] = (32, 64, 64),
        kernels: Sequence[int] = (8, 4, 3),
        strides: Sequence[int] = (4, 2, 1),
    ) -> None:
        encoder = {'encoder_type': 'conv', 'channels': channels, 'kernels': kernels, 'strides': strides}
        lstm = {'lstm_type': lstm_type, 'hidden_dim': lstm_hidden_dim, 'num_layers': lstm_layer_num}
        super().__init__(
            obs_dim,
            action_dim,
            embedding_dim,
            hidden_dim_list,
            dueling,
            head_layer_num,
            activation,
            encoder_kwargs=encoder,
            lstm_kwargs=lstm,
        )


class NoiseFCDiscreteNet(DiscreteNet):
    """
    Overview:
        Action values with noisy layers in the head (Fortunato et al. 2018, https://arxiv.org/abs/1706.10295):
        exploration that is learned. The noise acts in training mode; ``reset_noise`` of the layers draws it anew.
    Arguments:
        - noise_sigma (:obj:`float`): size of the noise at the start
        - the others: see ``FCDiscreteNet``
    Shapes:
        - obs :math:`(*, obs\\_dim)`, logit :math:`(*, A)`
    """

    def __init__(
        self,
        obs_dim: int | Sequence[int],
        action_dim: int | Sequence[int],
        embedding_dim: int = 64,
        hidden_dim_list: Sequence[int] | None = None,
        dueling: bool = True,
        head_layer_num: int | None = None,
        activation: str | Activation = 'relu',
        norm: bool = False,
        noise_sigma: float = 0.4,
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
            head_kwargs={'noise': True, 'noise_sigma': noise_sigma},
        )
