import pytest
import torch

from nervex.rl_utils.scan import _solve_torch, reverse_scan


def loop(a, b, init):
    y, carry = [], init
    for t in reversed(range(b.shape[0])):
        carry = b[t] + a[t] * carry
        y.append(carry)
    return torch.stack(y[::-1])


def draw(length, width=3, dtype=torch.float32):
    generator = torch.Generator().manual_seed(length)
    a = torch.rand(length, width, generator=generator, dtype=dtype)
    a[torch.rand(length, width, generator=generator) < 0.1] = 0.  # episode ends anywhere
    b = torch.randn(length + 1, width, generator=generator, dtype=dtype)
    return a, b[1:], b[0]


def test_three_steps_by_hand():
    # y2 = 3 + 0.5 * 8 = 7; y1 = 2 + 0 * 7 = 2 (an end); y0 = 1 + 0.5 * 2 = 2
    y = reverse_scan(torch.tensor([0.5, 0., 0.5]), torch.tensor([1., 2., 3.]), 8.)
    assert y.tolist() == [2., 2., 7.]


@pytest.mark.parametrize('length', [*range(1, 35), 63, 64, 65, 1000, 4095, 4096])
def test_equals_the_loop(length):
    a, b, init = draw(length)
    expected = loop(a, b, init)
    assert torch.allclose(reverse_scan(a, b, init), expected, atol=1e-5, rtol=1e-5)
    bound = b.clone()
    bound[-1] += a[-1] * init
    assert torch.allclose(_solve_torch(a, bound), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize('length', [1, 2, 7, 8, 9, 30])
def test_gradients_of_all_arguments(length):
    a, b, init = (x.requires_grad_() for x in draw(length, 2, torch.float64))
    assert torch.autograd.gradcheck(reverse_scan, (a, b, init))
    assert torch.autograd.gradgradcheck(reverse_scan, (a, b, init))
    assert torch.autograd.gradcheck(lambda b, init: reverse_scan(0.9, b, init), (b, init))


def test_inputs_are_not_changed():
    a, b, init = draw(21)
    before = [x.clone() for x in (a, b, init)]
    reverse_scan(a, b, init)
    assert all(torch.equal(x, y) for x, y in zip((a, b, init), before))
