"""One update of a policy, alone and beside others."""

import pytest
import torch

from nervex.graph import matmul, update
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


@pytest.mark.parametrize('here, there', [('AuthenticAMD', 'GenuineIntel'), ('GenuineIntel', 'AuthenticAMD')])
def test_a_resumed_update_multiplies_by_the_same_library_on_another_cpu(monkeypatch, here, there):
    def wide(setting='auto'):
        model = torch.nn.Linear(256, 256)
        return update.Update(
            lambda d: (model(d['obs']).mean(), {}), Adam(FlatParameters(model)), 'off', model, matmul=setting
        )

    monkeypatch.setattr(torch.backends.cpu, 'get_cpu_capability', lambda: 'AVX512')
    monkeypatch.setattr(matmul, '_is_exact', lambda: True)
    monkeypatch.setattr(matmul, '_vendor', lambda: here)
    first, data = wide(), {'obs': torch.randn(256, 256)}
    assert first.state_dict()['matmul'] == 'auto'
    first(data)
    state = first.state_dict()
    monkeypatch.setattr(matmul, '_vendor', lambda: there)
    resumed, told = wide(), wide('mkl')
    resumed.load_state_dict(state)
    told.load_state_dict(state)
    assert resumed.state_dict() == state == {'calls': 1, 'matmul': 'onednn' if here == 'AuthenticAMD' else 'mkl'}
    resumed(data)
    told(data)
    assert resumed.state_dict()['matmul'] == state['matmul'] and told.state_dict()['matmul'] == 'mkl'
