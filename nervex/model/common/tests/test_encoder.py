import pytest
import torch
import torch.nn as nn

from nervex.model import MLP, ConvEncoder, FCEncoder, InputShapeError


def test_mlp_equals_the_same_sequential():
    net = MLP(3, [5, 4], 2, activation='tanh')
    same = nn.Sequential(net[0], nn.Tanh(), net[1], nn.Tanh(), net[2])
    x = torch.randn(6, 3)
    assert torch.equal(net(x), same(x))


def test_encoder_ends_with_an_activation_and_may_normalise():
    net = FCEncoder(3, [5, 4], norm=True)
    x = torch.randn(6, 3)
    expected = net[1][1](net[1][0](torch.relu(net[0][1](net[0][0](x))))).relu()
    assert torch.equal(net(x), expected) and net.out_dim == 4 and (net(x) >= 0).all()


@pytest.mark.parametrize('dtype', [torch.float64, torch.int64, torch.uint8, torch.bool])
def test_other_dtypes_become_that_of_the_weights(dtype):
    net, obs = FCEncoder(3), torch.tensor([[1, 0, 1]])
    assert torch.equal(net(obs.to(dtype)), net(obs.float()))
    assert net.double()(obs.to(dtype)).dtype == torch.float64


def test_shapes_of_rank_two_are_flattened():
    net, obs = FCEncoder((2, 3), [4]), torch.randn(5, 7, 2, 3)
    assert torch.equal(net(obs), net[0](obs.flatten(2)).relu())
    with pytest.raises(InputShapeError, match=r'\(5, 6\).*expects \(\.\.\., 2, 3\)'):
        net(torch.randn(5, 6))


def test_misfit_is_a_value_error_that_keeps_torchs_own_as_cause():
    text = r'obs of shape \(2, 4\) does not fit: the first layer expects \(\.\.\., 3\)'
    with pytest.raises(ValueError, match=text) as error:
        FCEncoder(3)(torch.zeros(2, 4))
    assert isinstance(error.value.__cause__, RuntimeError) and isinstance(error.value, RuntimeError)


def test_other_errors_of_a_layer_pass_through():
    class Broken(nn.Linear):
        def forward(self, x):
            raise RuntimeError('out of memory')

    with pytest.raises(RuntimeError, match='out of memory'):
        FCEncoder(3, [4], linear=Broken)(torch.zeros(2, 3))


def test_default_convolutions_have_the_size_of_the_paper():
    net = ConvEncoder([4, 84, 84])
    assert net.fc.in_shape == (64 * 7 * 7,) and net.out_dim == 512
    assert [tuple(c.kernel_size) for c in net.convs] == [(8, 8), (4, 4), (3, 3)]
    assert net(torch.zeros(2, 4, 84, 84, dtype=torch.uint8)).shape == (2, 512)


@pytest.mark.parametrize(
    'shape, text',
    [
        ((2, 36, 36, 1), 'movedim'),
        ((2, 1, 36, 35), r'expects \(\.\.\., 1, 36, 36\)'),
        ((36, 36), r'expects \(\.\.\., 1, 36, 36\)'),
    ],
)
def test_wrong_images_name_what_is_expected(shape, text):
    with pytest.raises(InputShapeError, match=text):
        ConvEncoder([1, 36, 36])(torch.zeros(*shape))


def test_one_image_without_batch():
    net, image = ConvEncoder([1, 36, 36]), torch.rand(1, 36, 36)
    assert torch.allclose(net(image), net(image.unsqueeze(0))[0], atol=1e-6)


@pytest.mark.parametrize(
    'build, text',
    [
        (lambda: ConvEncoder(4), r'obs_dim = \[C, H, W\]'),
        (lambda: ConvEncoder([4, 20, 20]), 'too small'),
        (lambda: ConvEncoder([4, 84, 84], kernels=[3]), 'one entry for each layer'),
        (lambda: FCEncoder(0), 'positive int or a shape'),
        (lambda: FCEncoder('4x'), 'positive int or a shape'),
        (lambda: FCEncoder(4, []), 'at least one width'),
        (lambda: FCEncoder(4, activation='rellu'), "did you mean 'relu'"),
    ],
)
def test_wrong_settings_are_named(build, text):
    with pytest.raises((ValueError, KeyError), match=text):
        build()


def test_bfloat16_convolves_nearly_as_float32_and_answers_in_the_dtype_of_the_weights():
    torch.manual_seed(0)
    plain, short = ConvEncoder([4, 84, 84], [16]), ConvEncoder([4, 84, 84], [16], bfloat16=True)
    short.load_state_dict(plain.state_dict())
    frames = torch.randint(0, 255, (3, 4, 84, 84), dtype=torch.uint8)
    ways = [net(frames) for net in (plain, short)]
    assert ways[1].dtype is torch.float32 and not torch.equal(*ways)
    assert torch.allclose(*ways, atol=0.02 * ways[0].abs().max().item())
    for out in ways:
        out.square().sum().backward()
    for one, other in zip(plain.parameters(), short.parameters()):
        assert other.grad.dtype is torch.float32
        assert (one.grad - other.grad).norm() < 0.05 * one.grad.norm()


def test_the_same_numbers_come_out_however_images_lie_in_memory():
    torch.manual_seed(0)
    net, frames = ConvEncoder([4, 84, 84], [16]), torch.rand(3, 4, 84, 84)
    with torch.no_grad():
        acting = net(frames)
    assert torch.allclose(net(frames), acting, atol=1e-6)  # one of both has the channels last
