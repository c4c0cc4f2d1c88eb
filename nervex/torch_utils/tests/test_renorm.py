"""Batch renormalisation beside its formula."""

import pytest
import torch

from nervex.torch_utils.network.mlp import MLP
from nervex.torch_utils.network.renorm import BatchRenorm, renormed_linear


def test_a_batch_is_scaled_by_its_own_statistics_at_first_and_by_all_in_eval_mode():
    norm = BatchRenorm(1, momentum=0.5, eps=0.0)
    # mean 2, variance 1; then (0 + 2) / 2 and (1 + 1) / 2 are the running ones
    assert norm(torch.tensor([[1.0], [3.0]])).tolist() == [[-1.0], [1.0]]
    assert (norm.running_mean.item(), norm.running_var.item()) == (1.0, 1.0)
    assert norm.eval()(torch.tensor([[4.0]])).tolist() == [[3.0]]
    assert norm.batches == 1


def test_after_the_warmup_training_equals_eval_mode_within_the_bounds():
    norm = BatchRenorm(3, warmup=0, eps=1e-3)
    norm.running_mean.copy_(torch.tensor([0.5, -0.2, 0.0]))
    norm.running_var.copy_(torch.tensor([1.5, 0.7, 1.0]))
    x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
    expected = norm.eval()(x)
    assert torch.allclose(norm.train()(x), expected, atol=1e-5)


def test_the_correction_is_bounded_and_has_no_gradient():
    norm = BatchRenorm(1, momentum=0.0, warmup=0, r_max=2.0, d_max=0.5, eps=0.0)
    x = torch.tensor([[90.0], [110.0]], requires_grad=True)  # mean 100, deviation 10, beside 0 and 1
    y = norm(x)
    # (x - 100) / 10 is -1 and 1; times 2 and plus 0.5
    assert y.flatten().tolist() == pytest.approx([-1.5, 2.5])
    own = torch.autograd.grad(y[1].sum(), x)[0]
    z = torch.tensor([[90.0], [110.0]], requires_grad=True)
    plain = (z - z.mean()) / z.var(correction=0).sqrt()
    assert torch.allclose(own, 2 * torch.autograd.grad(plain[1].sum(), z)[0], atol=1e-6)


def test_a_stack_of_them_normalises_in_front_of_each_layer_over_all_leading_axes():
    net = MLP(2, [5], 1, linear=renormed_linear)
    assert net(torch.randn(3, 4, 2)).shape == (3, 4, 1)
    assert [type(layer[0]) for layer in net] == [BatchRenorm, BatchRenorm] and net[0][0].batches == 1


def test_dropout_stands_before_the_norm_and_is_off_in_eval_mode():
    torch.manual_seed(0)
    net = MLP(2, [400], None, norm=True, dropout=0.5)
    linear, dropout, norm = net[0]
    assert (type(dropout), type(norm)) == (torch.nn.Dropout, torch.nn.LayerNorm)
    x = torch.randn(1, 2)
    assert 150 < (dropout(linear(x)) == 0).sum() < 250 and not torch.equal(net(x), net(x))
    assert torch.equal(net.eval()(x), torch.relu(norm(linear(x))))
