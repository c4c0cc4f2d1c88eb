"""Actor-critic networks with a memory: a sequence gives what its steps give, and the state is what carries it."""

import pytest
import torch

from nervex.model import ConvRValueAC, FCRValueAC, InputShapeError

SMALL = dict(hidden_dim_list=[8], channels=[4], kernels=[4], strides=[4])


def nets(kind):
    torch.manual_seed(0)
    return [
        (FCRValueAC(3, 2, hidden_dim_list=[8], lstm_hidden_dim=5, lstm_type=kind), torch.randn(4, 2, 3)),
        (ConvRValueAC([1, 16, 16], [2, 3], lstm_type=kind, **SMALL), torch.rand(4, 2, 1, 16, 16)),
    ]


@pytest.mark.parametrize('kind', ['lstm', 'gru'])
def test_a_sequence_gives_what_its_steps_give(kind):
    for net, obs in nets(kind):
        whole = net({'obs': obs, 'prev_state': [None] * 2, 'enable_fast_timestep': True})
        state = [net.initial_state()] * 2
        for t in range(4):
            step = net({'obs': obs[t], 'prev_state': state})
            state = step['next_state']
            assert torch.allclose(step['value'], whole['value'][t], atol=1e-6)
            heads = step['logit'] if isinstance(step['logit'], list) else [step['logit']]
            all_heads = whole['logit'] if isinstance(whole['logit'], list) else [whole['logit']]
            assert all(torch.allclose(a, b[t], atol=1e-6) for a, b in zip(heads, all_heads))


def test_the_state_matters_and_modes_give_parts():
    net, obs = nets('lstm')[0]
    fresh = net({'obs': obs[0], 'prev_state': [None] * 2})
    later = net({'obs': obs[0], 'prev_state': fresh['next_state']})
    assert not torch.allclose(fresh['value'], later['value'])
    assert set(net({'obs': obs[0]}, mode='compute_value')) == {'value', 'next_state'}
    assert set(net({'obs': obs[0], 'action_mask': 1}, mode='compute_action')) == {'logit', 'next_state', 'action_mask'}


def test_continuous_actions_and_wrong_shapes():
    net = FCRValueAC(3, 2, continuous=True, hidden_dim_list=[8])
    mu, sigma = net({'obs': torch.zeros(4, 2, 3)})['logit']
    assert mu.shape == sigma.shape == (4, 2, 2)
    with pytest.raises(InputShapeError, match='enable_fast_timestep'):
        net({'obs': torch.zeros(2, 3), 'enable_fast_timestep': True})
