import pytest
import torch

from nervex.model import create_model


def test_shapes_and_parts():
    net = create_model(dict(model_type='sac_discrete', obs_dim=3, action_dim=4, hidden_dim_list=[8]))
    data = {'obs': torch.randn(5, 3), 'action_mask': torch.ones(5, 4)}
    out = net(data)
    assert out['logit'].shape == (5, 4) and out['action_mask'] is data['action_mask']
    first, second = net(data, mode='compute_q')['q_value']
    assert first.shape == (5, 4) and not torch.equal(first, second)
    parts = {id(p) for part in (net.actor, net.critic) for p in part.parameters()}
    assert parts == {id(p) for p in net.parameters()}


def test_one_critic_answers_one_tensor():
    net = create_model(dict(model_type='sac_discrete', obs_dim=3, action_dim=4, use_twin_q=False))
    assert net(torch.randn(5, 3), mode='compute_q')['q_value'].shape == (5, 4)


def test_several_heads_are_refused():
    with pytest.raises(ValueError, match='one action head'):
        create_model(dict(model_type='sac_discrete', obs_dim=3, action_dim=[2, 3]))
