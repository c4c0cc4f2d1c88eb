"""A head whose outputs are plain numbers."""

from collections.abc import Sequence

import torch
from torch import Tensor

from nervex.torch_utils.network.activation import Activation
from nervex.torch_utils.network.mlp import MLP


class RegressionHead(MLP):
    """
    Overview:
        Linear layers with a number for each output, on request squashed into (-1, 1), as for bounded actions.
    Arguments:
        - hidden_dim (:obj:`int | Sequence[int]`): size or shape of the input
        - output_dim (:obj:`int`): number of outputs
        - widths (:obj:`Sequence[int]`): hidden layers
        - activation (:obj:`str | Callable`): 'relu', 'tanh', ...
        - final_tanh (:obj:`bool`): squash the outputs
        - name (:obj:`str`): what an error calls the input
    Shapes:
        - input :math:`(*, hidden\\_dim)`, output :math:`(*, output\\_dim)`
    """

    def __init__(
        self,
        hidden_dim: int | Sequence[int],
        output_dim: int,
        widths: Sequence[int] = (),
        activation: str | Activation = 'relu',
        final_tanh: bool = False,
        name: str = 'features',
    ) -> None:
        super().__init__(hidden_dim, widths, output_dim, activation, name=name)
        self._final_tanh = final_tanh

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return torch.tanh(y) if self._final_tanh else y
