import pytest
import torch

from nervex.model import NoiseFCDiscreteNet, NoiseLinearLayer


def test_output_by_hand():
    layer = NoiseLinearLayer(2, 1)
    with torch.no_grad():
        layer.weight_mu.copy_(torch.tensor([[1.0, 2.0]]))
        layer.weight_sigma.copy_(torch.tensor([[0.5, 0.25]]))
        layer.bias_mu.fill_(3.0)
        layer.bias_sigma.fill_(0.1)
        layer.noise_in.copy_(torch.tensor([2.0, -4.0]))
        layer.noise_out.fill_(3.0)
    x = torch.tensor([[10.0, 1.0]])
    # weights 1 + 0.5 * 3 * 2 = 4 and 2 - 0.25 * 3 * 4 = -1; bias 3 + 0.1 * 3
    assert layer(x).item() == pytest.approx(40.0 - 1.0 + 3.3)
    assert layer.eval()(x).item() == pytest.approx(15.0)


def test_noise_stays_until_it_is_reset():
    layer, x = NoiseLinearLayer(3, 4), torch.randn(5, 3)
    first = layer(x)
    assert torch.equal(first, layer(x))
    layer.reset_noise()
    assert not torch.equal(first, layer(x))


def test_factors_are_signed_roots_of_normal_numbers():
    torch.manual_seed(0)
    layer = NoiseLinearLayer(20000, 1)
    normal = layer.noise_in.sign() * layer.noise_in**2
    assert abs(normal.mean()) < 0.03 and abs(normal.std() - 1.0) < 0.03


def test_noise_may_change_between_forward_and_backward():
    layer, x = NoiseLinearLayer(3, 4), torch.randn(5, 3)
    expected = torch.autograd.grad(layer(x).pow(2).sum(), list(layer.parameters()))
    loss = layer(x).pow(2).sum()
    layer.reset_noise()
    layer(x)
    got = torch.autograd.grad(loss, list(layer.parameters()))
    assert all(torch.equal(a, b) for a, b in zip(expected, got))


def test_a_net_explores_in_training_mode_only():
    net, obs = NoiseFCDiscreteNet(4, 3), torch.randn(5, 4)
    layers = [module for module in net.modules() if hasattr(module, 'reset_noise')]
    assert len(layers) == 3  # joint first layer of the two streams, and one output each
    before = net(obs)['logit']
    for layer in layers:
        layer.reset_noise()
    assert not torch.equal(before, net(obs)['logit'])
    net.eval()
    quiet = net(obs)['logit']
    for layer in layers:
        layer.reset_noise()
    assert torch.equal(quiet, net(obs)['logit'])
    with pytest.raises(ValueError, match='sigma0'):
        NoiseLinearLayer(2, 2, sigma0=-1.0)
