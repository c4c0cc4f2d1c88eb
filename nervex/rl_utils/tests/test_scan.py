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
    a[torch.rand(length, width, generator=generator) < 0.1] = 0.0  # episode ends anywhere
    b = torch.randn(length + 1, width, generator=generator, dtype=dtype)
    return a, b[1:], b[0]


def test_three_steps_by_hand():
    # y2 = 3 + 0.5 * 8 = 7; y1 = 2 + 0 * 7 = 2 (an end); y0 = 1 + 0.5 * 2 = 2
    y = reverse_scan(torch.tensor([0.5, 0.0, 0.5]), torch.tensor([1.0, 2.0, 3.0]), 8.0)
    assert y.tolist() == [2.0, 2.0, 7.0]


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


@pytest.mark.parametrize('length', [1, 2, 7, 8, 9, 16, 33, 100])
@pytest.mark.parametrize('scalar', [False, True])
def test_torch_and_numpy_give_the_same_bits(length, scalar):
    a = 0.93 if scalar else torch.rand(length, 5)
    b = torch.randn(length, 5)
    assert torch.equal(_solve_torch(a, b), reverse_scan(a, b))


def test_tracers_see_torch_operators():
    from torch.fx.experimental.proxy_tensor import make_fx

    a, b, _ = draw(20)
    graph = make_fx(lambda a, b: reverse_scan(a, b, 1.0))(a, b)
    fresh_a, fresh_b = a * 0.5, b + 1.0
    assert torch.allclose(graph(fresh_a, fresh_b), reverse_scan(fresh_a, fresh_b, 1.0), atol=1e-6)


def test_gradient_inside_a_traced_function():
    from torch.fx.experimental.proxy_tensor import make_fx

    a, b, _ = draw(20)

    def gradient(a, b):
        b = b.detach().requires_grad_()
        return torch.autograd.grad((reverse_scan(a, b) ** 2).sum(), b)[0]

    graph = make_fx(gradient)(a, b)
    assert torch.allclose(graph(a * 0.5, b + 1.0), gradient(a * 0.5, b + 1.0), atol=1e-5)


def test_vmap_over_envs():
    a, b, _ = draw(20)
    mapped = torch.vmap(reverse_scan, in_dims=1, out_dims=1)(a, b)
    assert torch.allclose(mapped, reverse_scan(a, b), atol=1e-6)


@pytest.mark.parametrize('shape', [(0, 3), (5, 0), (4,), (6, 2, 3)])
def test_any_shape(shape):
    b = torch.randn(shape)
    y = reverse_scan(0.5, b)
    assert y.shape == b.shape
    if shape[0]:
        assert torch.allclose(y, loop(torch.full(shape, 0.5), b, torch.zeros(shape[1:])))


def test_factors_and_init_are_broadcast_and_half_precision_works():
    b = torch.ones(4, 2)
    assert torch.equal(reverse_scan(torch.full((4, 1), 0.5), b, 2.0), reverse_scan(0.5, b, torch.tensor([2.0, 2.0])))
    half = reverse_scan(0.5, b.to(torch.bfloat16))
    assert half.dtype is torch.bfloat16 and half[0].tolist() == [1.875, 1.875]
    with pytest.raises(ValueError, match='float tensor'):
        reverse_scan(0.5, torch.ones(4, dtype=torch.long))
