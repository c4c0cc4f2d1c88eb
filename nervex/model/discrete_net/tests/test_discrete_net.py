import pytest
import torch

from nervex.model import FCPPG, ConvDiscreteNet, FCDiscreteNet, FCValueAC


@pytest.mark.parametrize('obs_dim', [4, (4,), [4]])
@pytest.mark.parametrize('dueling', [True, False])
def test_dict_or_tensor_in_dict_out(obs_dim, dueling):
    net, obs = FCDiscreteNet(obs_dim, 3, dueling=dueling), torch.randn(5, 4)
    output = net({'obs': obs})
    assert set(output) == {'logit'} and output['logit'].shape == (5, 3)
    assert torch.equal(net(obs)['logit'], output['logit'])


def test_several_action_dims_make_a_list_of_logits():
    logit = FCDiscreteNet(4, [2, 5])(torch.randn(3, 4))['logit']
    assert [tuple(x.shape) for x in logit] == [(3, 2), (3, 5)]


def test_action_mask_is_passed_on():
    mask = torch.ones(3, 2)
    assert FCDiscreteNet(4, 2)({'obs': torch.randn(3, 4), 'action_mask': mask})['action_mask'] is mask


@pytest.mark.parametrize('shape', [(3, 5), (3,), (2, 7, 1)])
def test_wrong_observation_names_what_is_expected(shape):
    with pytest.raises(ValueError, match=r'expects \(\.\.\., 4\)'):
        FCDiscreteNet(4, 2)(torch.zeros(*shape))


def test_bytes_are_scaled_inside_the_conv_encoder():
    net = ConvDiscreteNet([1, 36, 36], 2)
    image = torch.randint(0, 256, (3, 1, 36, 36), dtype=torch.uint8)
    assert torch.allclose(net(image)['logit'], net(image.float() / 255)['logit'])


def test_conv_net_keeps_leading_dims():
    net, image = ConvDiscreteNet([1, 36, 36], 2), torch.rand(2, 3, 1, 36, 36)
    logit = net(image)['logit']
    assert logit.shape == (2, 3, 2) and torch.allclose(logit[1], net(image[1])['logit'], atol=1e-6)


@pytest.mark.parametrize('net', [FCDiscreteNet, FCValueAC, FCPPG])
def test_widths_in_the_place_of_the_size_of_the_features_are_named(net):
    with pytest.raises(ValueError, match=r'embedding_dim is .* one positive int, got \[8\]; .*hidden_dim_list'):
        net(4, 2, [8])
