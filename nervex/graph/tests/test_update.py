"""One update of a policy, alone and beside others."""

import pytest
import torch

from nervex.graph import update
from nervex.torch_utils import Adam
from nervex.torch_utils.flat import FlatParameters


def made(distributed):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)

    def loss_fn(data):
        return (model(data['obs']) - data['reward'][:, None]).pow(2).mean(), {}

    return model, update.Update(loss_fn, Adam(FlatParameters(model), lr=0.1), 'off', model, distributed)


@pytest.mark.parametrize('rows', [4, 7])
def test_gradients_are_averaged_by_rows_before_the_step(monkeypatch, rows):
    seen = []

    def doubled(flat, weight):
        seen.append(weight)
        flat.grad = 2 * flat.grad

    monkeypatch.setattr(update, 'allreduce_gradients', doubled)
    data = {'name': 'x', 'obs': torch.randn(rows, 3), 'reward': torch.randn(rows)}
    (_, alone), (_, together) = made(False), made(True)
    _, info = alone(data)
    _, both = together(data)
    assert seen == [rows] and both['grad_norm'].item() == pytest.approx(2 * info['grad_norm'].item())
