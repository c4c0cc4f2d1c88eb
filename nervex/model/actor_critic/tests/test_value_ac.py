import pytest
import torch

from nervex.model import FCValueAC


@pytest.mark.parametrize('share_encoder', [True, False])
def test_modes_give_equal_numbers(share_encoder):
    net, data = FCValueAC(4, 3, share_encoder=share_encoder), {'obs': torch.randn(5, 4)}
    both = net(data)
    assert both['logit'].shape == (5, 3) and both['value'].shape == (5,)
    assert torch.equal(both['value'], net(data, mode='compute_action_value')['value'])
    action, value = net(data, mode='compute_action'), net(data, mode='compute_value')
    assert set(action) == {'logit'} and torch.equal(action['logit'], both['logit'])
    assert set(value) == {'value'} and torch.equal(value['value'], both['value'])


def test_continuous_policy_gives_mean_and_deviation():
    mu, sigma = FCValueAC(4, 2, continous=True, sigma=0.5)(torch.randn(5, 4))['logit']
    assert mu.shape == sigma.shape == (5, 2) and torch.allclose(sigma, torch.tensor(0.5))


def test_unknown_mode_names_the_modes():
    with pytest.raises(KeyError, match='compute_action_value'):
        FCValueAC(4, 2)(torch.zeros(1, 4), mode='compute_actor')
