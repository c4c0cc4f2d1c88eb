import itertools

import pytest
import torch
from torch import nn

from nervex.torch_utils import FlatParameters, GraphedLoss
from nervex.torch_utils import wide_matmul as module
from nervex.torch_utils.wide_matmul import fast_matmul, fast_matmul_pays


def linear(*sizes):
    return nn.Sequential(*[nn.Linear(a, b) for a, b in itertools.pairwise(sizes)])


@pytest.fixture
def gaining_machine(monkeypatch):
    monkeypatch.setattr(module, '_machine_gains', lambda threads: True)


def test_switch_is_local_and_goes_back_after_an_error():
    before = torch.get_float32_matmul_precision()
    with fast_matmul():
        assert torch.get_float32_matmul_precision() == 'medium'
    with pytest.raises(RuntimeError, match='boom'), fast_matmul():
        raise RuntimeError('boom')
    with fast_matmul(False):
        assert torch.get_float32_matmul_precision() == before
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize('sizes, rows, pays', [
    ((4, 256, 256, 1), 256, True), ((4, 128, 128, 2), 64, False), ((8, 64, 64, 2), 256, False),
    ((17, 400, 300, 6), 100, True), ((4, 256, 256, 1), 1, False),
])
def test_wide_layers_gain_and_narrow_ones_do_not(sizes, rows, pays, gaining_machine):
    assert fast_matmul_pays(linear(*sizes).parameters(), rows) is pays


def test_other_dtypes_and_convolutions_stay_as_they_are(gaining_machine):
    assert not fast_matmul_pays(linear(256, 256, 256).double().parameters(), 256)
    assert not fast_matmul_pays(nn.Conv2d(64, 64, 3).parameters(), 256)


@pytest.mark.parametrize('error, time_ratio, gains', [(1e-7, 0.5, True), (1e-3, 0.1, False), (1e-7, 0.9, False)])
def test_machine_is_judged_by_time_and_by_error(error, time_ratio, gains, monkeypatch):
    clock, state = [0.], {'fast': False}

    def set_precision(value):
        state['fast'] = value == 'medium'

    class Product:
        def __matmul__(self, other):
            clock[0] += time_ratio if state['fast'] else 1.
            return torch.full((2, 2), 1. + (error if state['fast'] else 0.))

        def double(self):
            return torch.ones(1, 1, dtype=torch.float64)

    monkeypatch.setattr(module, '_set_precision', set_precision)
    monkeypatch.setattr(module.time, 'perf_counter', lambda: clock[0])
    monkeypatch.setattr(module.torch, 'randn', lambda *a, **k: Product())
    assert module._machine_gains.__wrapped__(1) is gains


@pytest.mark.parametrize('matmul, seen', [('auto', 'medium'), ('fast', 'medium'), ('plain', 'highest')])
def test_update_runs_with_it_and_leaves_it_off(matmul, seen, gaining_machine):
    net, during = linear(4, 256, 256, 1), []
    before = torch.get_float32_matmul_precision()

    def loss_fn(b):
        during.append(torch.get_float32_matmul_precision())
        return net(b['x']).pow(2).mean()

    for backend in ('off', 'py'):
        update = GraphedLoss(loss_fn, FlatParameters(net), backend, matmul=matmul)
        for _ in range(3):
            update({'x': torch.randn(256, 4)})
    assert set(during) == {seen} and torch.get_float32_matmul_precision() == before


def test_recorded_and_eager_update_agree_with_it():
    net = linear(4, 256, 256, 1)
    flat, x = FlatParameters(net), torch.randn(256, 4)
    plain = GraphedLoss(lambda b: net(b['x']).pow(2).mean(), flat, 'off', matmul='plain')
    plain({'x': x})
    expected = flat.grad.clone()
    for backend in ('off', 'py', 'ts'):
        GraphedLoss(plain.loss_fn, flat, backend, matmul='fast')({'x': x})
        assert torch.allclose(flat.grad, expected, rtol=1e-4, atol=1e-5 * expected.abs().max().item())


def test_wrong_setting_is_refused():
    with pytest.raises(ValueError, match="did you mean 'plain'"):
        GraphedLoss(lambda b: b, FlatParameters(nn.Linear(1, 1)), matmul='plane')
