import pytest
import torch

from nervex.model import ComaNetwork

T, B, A, N, M, P = 4, 3, 5, 7, 11, 6


def make():
    torch.manual_seed(0)
    return ComaNetwork(A, {'agent_state': N, 'global_state': M}, P)


def observation():
    return {'agent_state': torch.randn(T, B, A, N), 'global_state': torch.randn(T, B, M)}


def test_actor_sequence_equals_steps():
    net, obs = make(), observation()
    whole = net({'obs': {**obs, 'action_mask': torch.ones(T, B, A, P)}})
    assert whole['logit'].shape == whole['action_mask'].shape == (T, B, A, P)
    state = None
    for t in range(T):
        step = net({'obs': {'agent_state': obs['agent_state'][t]}, 'prev_state': state}, mode='compute_action')
        state = step['next_state']
        assert torch.allclose(step['logit'], whole['logit'][t], atol=1e-6)


@pytest.mark.parametrize('lead', [(T, B), (B,)])
def test_an_action_mask_of_none_is_none(lead):
    net, state = make(), torch.randn(*lead, A, N)
    output = net({'obs': {'agent_state': state, 'action_mask': None}})
    assert 'action_mask' not in output
    assert torch.equal(output['logit'], net({'obs': {'agent_state': state}})['logit'])


def values(net, obs, action):
    return net({'obs': obs, 'action': action}, mode='compute_q_value')['q_value']


def test_own_action_does_not_enter_the_counterfactual_but_those_of_the_others_do():
    net, obs, action = make(), observation(), torch.zeros(T, B, A, dtype=torch.long)
    before = values(net, obs, action)
    other = action.clone()
    other[1, 0, 2] = 4  # agent 2 of the first row acts differently at step 1
    after = values(net, obs, other)
    assert before.shape == (T, B, A, P)
    changed = (before != after).any(-1)
    assert changed[1, 0].tolist() == [True, True, False, True, True]
    assert changed[2, 0].all()  # one step later it is the past of all
    assert not changed[:, 1:].any() and not changed[0].any() and not changed[3].any()


def test_what_was_done_before_the_first_step_may_be_given():
    net, obs, action = make(), observation(), torch.randint(0, P, (T, B, A))
    whole, later = values(net, obs, action), {key: value[1:] for key, value in obs.items()}
    data = {'obs': later, 'action': action[1:], 'last_action': action[0]}
    assert torch.allclose(net(data, mode='compute_q_value')['q_value'], whole[1:], atol=1e-6)
    nothing = net({**data, 'last_action': torch.full((B, A), -1)}, mode='compute_q_value')['q_value']
    assert torch.equal(nothing, values(net, later, action[1:])) and not torch.allclose(nothing[0], whole[1])


def test_states_of_the_actor_as_a_block():
    net, obs = make(), observation()
    whole = net({'obs': obs})['logit']
    state = torch.zeros(B, *net.state_shape)
    for t in range(T):
        step = net({'obs': {'agent_state': obs['agent_state'][t]}, 'prev_state': state})
        state = step['next_state']
        assert state.shape == (B, A, 64) and torch.allclose(step['logit'], whole[t], atol=1e-6)


def test_single_step_values():
    net, obs = make(), observation()
    one = {key: value[0] for key, value in obs.items()}
    action = torch.randint(0, P, (T, B, A))
    assert torch.allclose(values(net, one, action[0]), values(net, obs, action)[0], atol=1e-6)


def test_sizes_may_be_given_apart():
    assert ComaNetwork(A, N, P, global_obs_dim=M).critic.net.in_shape == make().critic.net.in_shape
    with pytest.raises(ValueError, match='global_obs_dim'):
        ComaNetwork(A, N, P)
