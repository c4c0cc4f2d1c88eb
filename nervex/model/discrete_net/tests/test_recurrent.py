import pytest
import torch

from nervex.armor import Armor
from nervex.model import ConvRDiscreteNet, FCRDiscreteNet


@pytest.mark.parametrize('lstm_type', ['lstm', 'gru'])
@pytest.mark.parametrize('layers', [1, 2])
def test_sequence_equals_steps(lstm_type, layers):
    net = FCRDiscreteNet(3, [2, 4], lstm_type=lstm_type, lstm_layer_num=layers, lstm_hidden_dim=16)
    obs = torch.randn(5, 2, 3)
    whole = net({'obs': obs, 'prev_state': [None, None], 'enable_fast_timestep': True})
    assert [tuple(x.shape) for x in whole['logit']] == [(5, 2, 2), (5, 2, 4)]
    state = [None, None]
    for t in range(5):
        step = net({'obs': obs[t], 'prev_state': state})
        state = step['next_state']
        assert all(torch.allclose(a, b[t], atol=1e-6) for a, b in zip(step['logit'], whole['logit']))


def test_bare_tensor_starts_from_zeros():
    net, obs = FCRDiscreteNet(3, 2), torch.randn(4, 3)
    assert torch.equal(net(obs)['logit'], net({'obs': obs, 'prev_state': None})['logit'])
    assert len(net(obs)['next_state']) == 4


def test_images():
    net = ConvRDiscreteNet([1, 36, 36], 3, embedding_dim=16)
    assert net(torch.zeros(2, 3, 1, 36, 36, dtype=torch.uint8))['logit'].shape == (2, 3, 3)
    assert net(torch.zeros(3, 1, 36, 36))['logit'].shape == (3, 3)


@pytest.mark.parametrize('data', [torch.zeros(3), {'obs': torch.zeros(2, 3), 'enable_fast_timestep': True}])
def test_a_missing_axis_is_named(data):
    with pytest.raises(ValueError, match=r'\(T, B, 3\)'):
        FCRDiscreteNet(3, 2)(data)


def test_env_by_env_through_the_armor_equals_each_env_alone():
    torch.manual_seed(1)
    net = FCRDiscreteNet(3, 2)
    armor = Armor(net)
    armor.add_plugin('main', 'hidden_state', state_num=3, save_prev_state=True, init_fn=net.initial_state)
    armor.add_plugin('main', 'argmax_sample')
    armor.add_plugin('main', 'grad', enable_grad=False)
    obs, got = torch.randn(6, 3, 3), {i: [] for i in range(3)}
    for t, ids in enumerate([[0, 1, 2], [2], [1, 0], [0, 2], [2, 1, 0], [1]]):
        if t == 3:
            armor.reset(data_id=[0])
        output = armor.forward({'obs': obs[t, ids]}, data_id=ids)
        assert len(output['prev_state']) == len(ids) and 'next_state' not in output
        for row, i in enumerate(ids):
            got[i].append(output['logit'][row])
    steps = {0: [0, 2], 1: [0, 2, 4, 5], 2: [0, 1, 3, 4]}
    for i, when in steps.items():
        alone = net(obs[when, i].unsqueeze(1))['logit'].squeeze(1)
        assert torch.allclose(torch.stack(got[i][: len(when)]), alone, atol=1e-6)
    restarted = net(obs[[3, 4], 0].unsqueeze(1))['logit'].squeeze(1)
    assert torch.allclose(torch.stack(got[0][2:]), restarted, atol=1e-6)


def test_gradient_reaches_the_first_step():
    net, obs = FCRDiscreteNet(3, 2), torch.randn(4, 2, 3, requires_grad=True)
    net(obs)['logit'][-1].sum().backward()
    assert (obs.grad[0] != 0).any()
