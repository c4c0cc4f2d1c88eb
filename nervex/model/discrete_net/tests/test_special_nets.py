import pytest
import torch

from nervex.armor import BaseArmor, add_plugin
from nervex.model import (
    DiscreteNet,
    NoiseDistributionConvDiscreteNet,
    NoiseDistributionFCDiscreteNet,
    NoiseQuantileConvDiscreteNet,
    NoiseQuantileFCDiscreteNet,
    QRConvDiscreteNet,
    QRFCDiscreteNet,
    SQNDiscreteNet,
)

CONV = {'embedding_dim': 16}


@pytest.mark.parametrize('obs_dim', [4, (4,)])
def test_categorical(obs_dim):
    output = NoiseDistributionFCDiscreteNet(obs_dim, 3, v_min=0.0, v_max=5.0, n_atom=11, noise=False)(torch.randn(5, 4))
    assert output['logit'].shape == (5, 3) and output['distribution'].shape == (5, 3, 11)
    assert (output['logit'] >= 0.0).all() and (output['logit'] <= 5.0).all()


def test_quantiles_may_be_chosen_in_a_call():
    net = NoiseQuantileFCDiscreteNet(4, 3, num_quantiles=8, noise=False)
    armor = BaseArmor(net)
    add_plugin(armor, 'argmax_sample')
    assert armor.forward({'obs': torch.randn(5, 4)})['q'].shape == (8, 5, 3)
    output = armor.forward({'obs': torch.randn(5, 4), 'action_mask': torch.ones(5, 3)}, param={'num_quantiles': 2})
    assert output['q'].shape == (2, 5, 3) and output['quantiles'].shape == (10, 1) and output['action'].shape == (5,)


def test_quantile_regression():
    output = QRFCDiscreteNet(4, 3, num_quantiles=6)(torch.randn(5, 4))
    assert output['q'].shape == (5, 3, 6) and output['logit'].shape == (5, 3)


def test_several_heads():
    for net in (
        NoiseDistributionFCDiscreteNet(4, [2, 3], noise=False),
        QRFCDiscreteNet(4, [2, 3]),
        NoiseQuantileFCDiscreteNet(4, [2, 3], noise=False),
        SQNDiscreteNet(4, [2, 3]),
    ):
        assert [x.shape[-1] for x in net(torch.randn(5, 4))['logit']] == [2, 3]


def test_parts_combine_freely():
    net = DiscreteNet(
        [1, 36, 36],
        [2, 3],
        16,
        encoder_kwargs={'encoder_type': 'conv'},
        lstm_kwargs={'lstm_type': 'gru'},
        head_kwargs={'head_type': 'dist', 'n_atom': 5},
    )
    output = net({'obs': torch.zeros(4, 2, 1, 36, 36, dtype=torch.uint8), 'prev_state': None})
    assert [tuple(x.shape) for x in output['distribution']] == [(4, 2, 2, 5), (4, 2, 3, 5)]
    assert len(output['next_state']) == 2 and net.initial_state().shape == (1, 1, 16)


@pytest.mark.parametrize(
    'kwargs, text',
    [
        ({'encoder_kwargs': {'encoder_type': 'cnn'}}, 'conv'),
        ({'lstm_kwargs': {'lstm_type': 'rnn'}}, 'lstm'),
        ({'head_kwargs': {'head_type': 'c51'}}, 'dist'),
    ],
)
def test_unknown_parts_say_what_exists(kwargs, text):
    with pytest.raises(KeyError, match=text):
        DiscreteNet(4, 2, **kwargs)


@pytest.mark.parametrize(
    'net_type, kwargs',
    [
        (NoiseDistributionConvDiscreteNet, {'noise': False}),
        (NoiseQuantileConvDiscreteNet, {'noise': False}),
        (QRConvDiscreteNet, {}),
    ],
)
def test_images(net_type, kwargs):
    net = net_type([1, 36, 36], 3, **CONV, **kwargs)
    assert net(torch.zeros(2, 1, 36, 36, dtype=torch.uint8))['logit'].shape == (2, 3)


def test_twins_are_independent_and_act_by_their_minimum():
    net = SQNDiscreteNet(4, 3)
    output = net({'obs': torch.randn(5, 4)})
    first, second = output['q_value']
    assert not torch.equal(first, second) and torch.equal(output['logit'], torch.minimum(first, second))
    assert len(SQNDiscreteNet(4, 3, use_twin_q=False)(torch.randn(5, 4))['q_value']) == 1
