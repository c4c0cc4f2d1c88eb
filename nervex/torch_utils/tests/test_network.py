import pytest
import torch
from torch import nn

from nervex.torch_utils.network import (
    GLU,
    Attention,
    BilinearUpsample,
    NearestUpsample,
    ResBlock,
    ResFCBlock,
    ScatterConnection,
    SoftArgmax,
    Transformer,
    binary_encode,
    build_activation,
    build_normalization,
    conv1d_block,
    conv2d_block,
    deconv2d_block,
    fc_block,
    one_hot,
    sequence_mask,
)


def test_one_hot_by_hand():
    assert one_hot(torch.tensor([[0, 2]]), 3).tolist() == [[[1, 0, 0], [0, 0, 1]]]
    assert one_hot(torch.tensor([0, 2]), 3, num_first=True).tolist() == [[1, 0], [0, 0], [0, 1]]
    assert one_hot(torch.zeros(0, dtype=torch.long), 3).shape == (0, 3)
    for wrong in ([3], [-1]):
        with pytest.raises(ValueError, match=r'\[0, 3\)'):
            one_hot(torch.tensor(wrong), 3)


def test_binary_encode_by_hand():
    assert binary_encode(torch.tensor([0, 1, 5, 9]), 6).tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 1], [1, 1, 0]]
    assert binary_encode(torch.tensor([8]), torch.tensor(8)).tolist() == [[1, 0, 0, 0]]
    with pytest.raises(ValueError, match='max_val'):
        binary_encode(torch.tensor([0]), 0)


def test_sequence_mask_by_hand():
    expected = [[True, False, False], [True, True, True], [False, False, False]]
    assert sequence_mask(torch.tensor([1, 3, 0])).tolist() == expected
    assert sequence_mask(torch.tensor([[1], [3]]), 2).tolist() == [[True, False], [True, True]]


def test_soft_argmax_finds_the_peak_and_the_middle_of_two():
    x = torch.zeros(2, 1, 4, 6)
    x[0, 0, 2, 5] = 100.0
    x[1, 0, 0, 1] = x[1, 0, 2, 3] = 100.0
    x.requires_grad_()
    out = SoftArgmax()(x)
    assert torch.allclose(out, torch.tensor([[2.0, 5.0], [1.0, 2.0]]))
    out.sum().backward()
    assert x.grad is not None


def test_activations_and_normalizations_by_name():
    assert isinstance(build_activation('relu'), nn.ReLU) and isinstance(build_activation(None), nn.Identity)
    assert build_normalization('BN', 2) is nn.BatchNorm2d and build_normalization('LN') is nn.LayerNorm
    with pytest.raises(ValueError, match="did you mean 'relu'"):
        build_activation('rela')
    with pytest.raises(ValueError, match='dim 1, 2, got 3'):
        build_normalization('BN', 3)
    with pytest.raises(ValueError, match='norm_type'):
        build_normalization('XN')


@pytest.mark.parametrize(
    'block, shape, expected',
    [
        (fc_block(3, 5, 'relu', 'LN', use_dropout=True), (4, 3), (4, 5)),
        (conv1d_block(3, 5, 3, stride=2, activation='relu', norm_type='BN'), (4, 3, 9), (4, 5, 4)),
        (conv2d_block(3, 5, 3, padding=1, activation='relu', norm_type='IN'), (4, 3, 6, 7), (4, 5, 6, 7)),
        (deconv2d_block(3, 5, 2, stride=2, activation='relu'), (4, 3, 6, 7), (4, 5, 12, 14)),
    ],
)
def test_blocks_have_their_shape_and_end_with_the_activation(block, shape, expected):
    out = block(torch.randn(shape))
    assert out.shape == expected and (out >= 0).all()


@pytest.mark.parametrize(
    'block, shape',
    [
        (ResBlock(4), (2, 4, 5, 5)),
        (ResBlock(4, res_type='bottleneck', norm_type=None), (2, 4, 5, 5)),
        (ResFCBlock(6), (2, 6)),
    ],
)
def test_residual_blocks_pass_the_input_when_their_weights_are_zero(block, shape):
    for p in block.parameters():
        nn.init.zeros_(p)
    x = torch.randn(shape)
    assert torch.equal(block(x), torch.relu(x))
    with pytest.raises(ValueError, match='res_type'):
        ResBlock(4, res_type='other')


def test_what_build_activation_gives_is_taken_wherever_a_name_is():
    act = build_activation('tanh')
    blocks = [fc_block(4, 4, act), conv1d_block(4, 4, 1, activation=act), conv2d_block(4, 4, 1, activation=act)]
    blocks += [deconv2d_block(4, 4, 1, activation=act), ResBlock(4, act), ResFCBlock(4, act)]
    shapes = [(2, 4), (2, 4, 3), (2, 4, 3, 3), (2, 4, 3, 3), (2, 4, 3, 3), (2, 4)]
    for block, shape in zip(blocks, shapes):
        assert act in block.modules() and block(torch.randn(shape) * 9).abs().max() <= 1.0
    assert act in Transformer(3, 2, 4, 4, layer_num=1, activation=act).modules()
    assert isinstance(fc_block(2, 2, build_activation(None))[1], nn.Identity)


@pytest.mark.parametrize(
    'kind, x, context',
    [
        ('fc', torch.randn(2, 3), torch.randn(2, 5)),
        ('conv2d', torch.randn(2, 3, 4, 4), torch.randn(2, 5, 4, 4)),
    ],
)
def test_glu_gates_its_input(kind, x, context):
    glu = GLU(3, 4, 5, kind)
    assert glu(x, context).shape == (2, 4, *x.shape[2:])
    nn.init.zeros_(glu.gate.weight)
    nn.init.constant_(glu.gate.bias, 100.0)
    assert torch.allclose(glu(x, context), glu.out(x))
    with pytest.raises(ValueError, match='input_type'):
        GLU(1, 1, 1, 'conv')


def test_attention_equals_torch():
    torch.manual_seed(0)
    mine, theirs = Attention(6, 3, 6, 2), nn.MultiheadAttention(6, 2, batch_first=True)
    theirs.load_state_dict(
        {
            'in_proj_weight': mine.qkv.weight,
            'in_proj_bias': mine.qkv.bias,
            'out_proj.weight': mine.out.weight,
            'out_proj.bias': mine.out.bias,
        }
    )
    x = torch.randn(4, 5, 6)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 0, 0, 0, 0], [1, 1, 0, 1, 0], [0, 1, 1, 1, 1]]).bool()
    for m in (None, mask):
        expected = theirs(x, x, x, key_padding_mask=None if m is None else ~m, need_weights=False)[0]
        assert torch.allclose(mine(x, m), expected, atol=1e-6)


def test_transformer_ignores_masked_entities_and_the_order_of_the_others():
    torch.manual_seed(0)
    net = Transformer(3, head_dim=4, hidden_dim=8, output_dim=6, layer_num=2).eval()
    x, mask = torch.randn(2, 4, 3), torch.tensor([[True, True, False, True]] * 2)
    out = net(x, mask)
    other = x.clone()
    other[:, 2] = 100.0
    assert out.shape == (2, 4, 6)
    assert torch.allclose(net(other, mask)[:, [0, 1, 3]], out[:, [0, 1, 3]], atol=1e-5)
    order = torch.tensor([3, 0, 2, 1])
    assert torch.allclose(net(x[:, order], mask[:, order]), out[:, order], atol=1e-5)


def test_scatter_connection_by_hand():
    x = torch.tensor([[[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]]], requires_grad=True)
    location = torch.tensor([[[0, 1], [1, 0], [0, 1]]])
    cover, add = (ScatterConnection(kind)(x, (2, 2), location) for kind in ('cover', 'add'))
    assert cover[0, 0].tolist() == [[0.0, 4.0], [2.0, 0.0]] and cover[0, 1].tolist() == [[0.0, 40.0], [20.0, 0.0]]
    assert add[0, 0].tolist() == [[0.0, 5.0], [2.0, 0.0]]
    cover.sum().backward()
    assert x.grad.tolist() == [[[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]]]
    with pytest.raises(ValueError, match='outside of the map of 2 x 2'):
        ScatterConnection()(x, (2, 2), location + 1)
    with pytest.raises(ValueError, match='scatter_type'):
        ScatterConnection('sum')


def test_upsampling_by_hand():
    x = torch.tensor([[[[0.0, 4.0]]]])
    assert NearestUpsample((1, 2))(x).tolist() == [[[[0.0, 0.0, 4.0, 4.0]]]]
    # old pixel centres lie at 1 and 3 eighths times 2; new ones at odd eighths: a quarter of the way, three quarters
    assert BilinearUpsample((1, 2))(x).tolist() == [[[[0.0, 1.0, 3.0, 4.0]]]]
    assert BilinearUpsample(2)(torch.zeros(2, 3, 4, 5)).shape == (2, 3, 8, 10)
