import math

import pytest
import torch

from nervex.model import (
    DistributionHead,
    DuelingHead,
    MultiHead,
    QuantileHead,
    QuantileRegressionHead,
    RegressionHead,
)


def test_dueling_is_value_plus_centred_advantage():
    head = DuelingHead(4, 3, layer_num=0)
    with torch.no_grad():
        head.value.weight.zero_()
        head.value.bias.fill_(10.0)
        head.advantage.weight.zero_()
        head.advantage.bias.copy_(torch.tensor([1.0, 2.0, 6.0]))
    assert head(torch.randn(1, 4))['logit'].tolist() == [[8.0, 9.0, 13.0]]  # 10 + (1, 2, 6) - 3


def test_dueling_streams_are_independent_after_their_joint_first_layer():
    head, x = DuelingHead(4, 3, layer_num=2), torch.randn(5, 4)
    for_value, for_advantage = torch.relu(head.streams(x)).chunk(2, -1)
    value, advantage = head.value(for_value), head.advantage(for_advantage)
    assert torch.allclose(head(x)['logit'], value + advantage - advantage.mean(-1, keepdim=True))
    assert torch.allclose(head(x)['logit'].mean(-1, keepdim=True), value, atol=1e-6)


@pytest.mark.parametrize('dueling', [True, False])
def test_distribution_sums_to_one_and_logit_is_its_mean(dueling):
    output = DistributionHead(4, 3, n_atom=5, v_min=-1.0, v_max=3.0, dueling=dueling)(torch.randn(6, 2, 4))
    distribution = output['distribution']
    assert distribution.shape == (6, 2, 3, 5) and torch.allclose(distribution.sum(-1), torch.ones(6, 2, 3))
    assert torch.allclose(output['logit'], (distribution * torch.tensor([-1.0, 0.0, 1.0, 2.0, 3.0])).sum(-1), atol=1e-6)


def test_dueling_distribution_centres_each_atom():
    head = DistributionHead(4, 3, n_atom=2, layer_num=0)
    x = torch.randn(1, 4)
    value, advantage = head.atoms.value(x), head.atoms.advantage(x).view(1, 3, 2)
    expected = (value.unsqueeze(1) + advantage - advantage.mean(1, keepdim=True)).softmax(-1)
    assert torch.allclose(head(x)['distribution'], expected)


def test_fixed_quantiles():
    output = QuantileRegressionHead(4, 3, num_quantiles=4)(torch.randn(6, 4))
    assert output['q'].shape == (6, 3, 4) and output['tau'].shape == (6, 4, 1)
    assert output['tau'][0].flatten().tolist() == [0.125, 0.375, 0.625, 0.875]
    assert torch.allclose(output['logit'], output['q'].mean(-1))


@pytest.mark.parametrize('lead', [(6,), (2, 3)])
def test_drawn_quantiles_shape_and_number(lead):
    head, x = QuantileHead(4, 3, num_quantiles=5), torch.randn(*lead, 4)
    output = head(x)
    assert output['q'].shape == (5, *lead, 3) and output['quantiles'].shape == (30, 1)
    assert torch.allclose(output['logit'], output['q'].mean(0))
    assert head(x, num_quantiles=2)['q'].shape == (2, *lead, 3)


def test_quantile_values_belong_to_their_quantiles_and_rows():
    head, x = QuantileHead(4, 3, num_quantiles=2, quantile_embedding_dim=6, dueling=False), torch.randn(5, 4)
    output = head(x)
    tau = output['quantiles'][5 + 3]  # second quantile of the fourth row
    cosines = torch.tensor([math.cos(math.pi * i * tau.item()) for i in range(1, 7)])
    expected = head.q(x[3] * torch.relu(head.embed(cosines)))
    assert torch.allclose(output['q'][1, 3], expected, atol=1e-5)


@pytest.mark.parametrize(
    'kind, expected',
    [
        ('uniform', 0.4),
        ('CVaR', 0.4 * 0.5),
        ('Pow', 0.4 ** (1 / 1.5)),
        ('CPW', 0.4**0.5 / (0.4**0.5 + 0.6**0.5) ** 2),
        (lambda tau: tau / 4, 0.1),
    ],
)
def test_distortions_of_quantiles(kind, expected):
    head = QuantileHead(4, 3, beta_function_type=kind, beta_eta=0.5)
    assert head._beta(torch.tensor(0.4)).item() == pytest.approx(expected)


def test_unknown_distortion_and_wrong_atoms():
    with pytest.raises(KeyError, match='CVaR'):
        QuantileHead(4, 3, beta_function_type='cvar')
    with pytest.raises(ValueError, match='v_min < v_max'):
        DistributionHead(4, 3, v_min=1.0, v_max=1.0)
    with pytest.raises(ValueError, match='at least 2'):
        QuantileRegressionHead(4, 3, num_quantiles=1)


def test_several_heads_list_every_key():
    output = MultiHead(lambda n: DistributionHead(4, n), [2, 5])(torch.randn(3, 4))
    assert [x.shape[1] for x in output['logit']] == [2, 5] and len(output['distribution']) == 2


def test_regression_by_hand_and_squashed():
    head = RegressionHead(2, 1)
    with torch.no_grad():
        head[0].weight.copy_(torch.tensor([[1.0, -2.0]]))
        head[0].bias.fill_(0.5)
    assert head(torch.tensor([3.0, 1.0])).tolist() == [1.5]  # 3 - 2 + 0.5
    bounded = RegressionHead(2, 3, [8], final_tanh=True)
    assert bounded(1000.0 * torch.ones(4, 5, 2)).shape == (4, 5, 3)
    assert bounded(1000.0 * torch.randn(4, 2)).abs().max() <= 1.0
