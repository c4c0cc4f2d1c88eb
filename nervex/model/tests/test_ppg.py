import torch

from nervex.model import FCPPG, ConvPPG


def test_policy_and_value_share_nothing():
    net, data = FCPPG(4, 3), {'obs': torch.randn(5, 4)}
    output = net(data)
    assert output['logit'].shape == (5, 3) and output['value'].shape == (5,)
    output['value'].sum().backward()
    assert all(p.grad is None for p in net.policy_net.parameters())
    assert all(p.grad is not None for p in net.value_net.parameters())


def test_each_mode():
    net, data = FCPPG(4, [2, 3]), {'obs': torch.randn(5, 4)}
    both = net(data, mode='compute_action_value')
    assert set(net(data, mode='compute_action')) == {'logit'}
    assert torch.equal(net(data, mode='compute_value')['value'], both['value'])
    aux = net(data, mode='compute_aux')
    assert set(aux) == {'logit', 'aux_value'} and torch.equal(aux['logit'][1], both['logit'][1])
    assert not torch.equal(aux['aux_value'], both['value'])


def test_images():
    output = ConvPPG([1, 36, 36], 3, embedding_dim=16)(torch.zeros(2, 1, 36, 36, dtype=torch.uint8))
    assert output['logit'].shape == (2, 3) and output['value'].shape == (2,)
