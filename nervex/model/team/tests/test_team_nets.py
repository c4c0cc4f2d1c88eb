"""Networks of teams: weights of its own for each agent are as good as a network for each, and what critics see."""

import pytest
import torch

from nervex.model import create_model
from nervex.torch_utils.network.shapes import InputShapeError

T, B, A = 3, 4, 3
SIZES = dict(agent_num=A, obs_dim=5, global_obs_dim=7, action_dim=2, hidden_dim_list=[8, 6])


def seen(time=T, state=True, alone=False):
    obs = {'agent_state': torch.randn(time, B, A, 5), 'action_mask': torch.ones(time, B, A, 2)}
    if alone:
        obs |= {'agent_alone_state': torch.randn(time, B, A, 4), 'agent_alone_padding_state': obs['agent_state'] / 2}
    return {**obs, 'global_state': torch.randn(time, B, 7)} if state else obs


def weights_of(own, agent):
    """The weights of one agent by the names that a network of shared ones gives them."""
    found = {}
    for name, value in own.items():
        part, kind = name.rsplit('.', 1) if '.' in name else ('', name)
        value = value[agent] if value.dim() and len(value) == A and not name.endswith('ids') else value
        if kind == 'weight' and value.dim() == 2 and 'mixer' not in name:
            value = value.t()
        elif kind == 'bias' and 'mixer' not in name:
            value = value.squeeze(0)
        for layer, short in (('of_input', 'ih'), ('of_state', 'hh')):
            if part.endswith(layer):
                name = f'{part[: -len(layer)]}rnn.{kind}_{short}_l0'
        found[name] = value
    return found


def alike(own, settings, agent):
    """A network of shared weights that has those of one agent."""
    net = create_model({**settings, 'share': True})
    central = ('mixer', 'critic') if settings['model_type'] == 'coma' else ('mixer',)
    whole = {key: value for key, value in own.state_dict().items() if key.startswith(central)}
    net.load_state_dict({**weights_of(own.state_dict(), agent), **whole})
    return net


@pytest.mark.parametrize('memory', [None, 'gru', 'lstm'])
@pytest.mark.parametrize('kind', ['team_ac', 'team_ac gaussian', 'team_qac', 'qmix', 'coma', 'collaq'])
def test_weights_of_their_own_are_as_a_network_for_each_agent(kind, memory):
    torch.manual_seed(0)
    model_type, gaussian = kind.split()[0], kind.endswith('gaussian')
    settings = dict(model_type=model_type, **SIZES, agent_ids=False, lstm_type=memory)
    if model_type.startswith('team'):
        settings['continuous'] = gaussian
    if model_type == 'collaq':
        settings['alone_obs_dim'] = 4
    own, obs = create_model({**settings, 'share': False}), seen(alone=True)
    state = torch.randn(B, *own.state_shape) if memory else None
    if gaussian:
        own.actor.log_sigma.data.uniform_(-1, 1)
    output = own({'obs': obs, 'prev_state': state})
    joint = torch.randn(T, B, A, 2)
    for agent in range(A):
        net = alike(own, settings, agent)
        expected = net({'obs': obs, 'prev_state': state})
        pairs = (
            [(output['logit'], expected['logit'])] if not gaussian else list(zip(output['logit'], expected['logit']))
        )
        if memory:
            assert torch.allclose(output['next_state'][:, agent], expected['next_state'][:, agent], atol=1e-6)
        if 'value' in output:
            pairs.append((output['value'], expected['value']))
        if model_type == 'team_qac':
            pairs.append(tuple(model.compute_q({'obs': obs, 'action': joint})['q_value'] for model in (own, net)))
        if model_type == 'collaq':
            pairs.append((output['agent_colla_alone_q'], expected['agent_colla_alone_q']))
        for found, wanted in pairs:
            assert torch.allclose(found[:, :, agent], wanted[:, :, agent], atol=1e-6)


@pytest.mark.parametrize('memory', ['gru', 'lstm'])
def test_one_step_after_the_other_is_as_the_sequence(memory):
    torch.manual_seed(0)
    net = create_model(dict(model_type='team_ac', **SIZES, share=False, lstm_type=memory))
    obs, state, logits = seen(), torch.zeros(B, *net.state_shape), []
    whole = net({'obs': obs, 'prev_state': state})
    for t in range(T):
        answer = net({'obs': {key: part[t] for key, part in obs.items()}, 'prev_state': state})
        logits.append(answer['logit'])
        state = answer['next_state']
    assert torch.allclose(torch.stack(logits), whole['logit'], atol=1e-6)
    assert torch.allclose(state, whole['next_state'], atol=1e-6)


def test_an_agent_with_weights_of_its_own_learns_for_itself():
    net = create_model(dict(model_type='team_ac', **SIZES, share=False))
    net({'obs': seen(1)})['logit'][:, :, 1].sum().backward()
    gradient = net.actor.head.weight.grad.abs().sum((1, 2))
    assert gradient[1] > 0 and gradient[0] == gradient[2] == 0


@pytest.mark.parametrize('model_type', ['team_ac', 'team_qac'])
def test_without_a_global_state_critics_see_what_all_agents_see(model_type):
    torch.manual_seed(0)
    net = create_model(dict(model_type=model_type, **{**SIZES, 'global_obs_dim': None}))
    obs = seen(state=False)
    given = {**obs, 'global_state': obs['agent_state'].flatten(-2)}
    mode = 'compute_value' if model_type == 'team_ac' else 'compute_q'
    found, expected = (net({'obs': part, 'action': torch.zeros(T, B, A, 2)}, mode=mode) for part in (obs, given))
    for name in found:
        assert torch.equal(found[name], expected[name])


def test_a_row_of_all_actions_for_each_agent_is_judged_as_one_after_the_other():
    torch.manual_seed(0)
    net, obs, actions = create_model(dict(model_type='team_qac', **SIZES)), seen(), torch.randn(T, B, A, A, 2)
    found = net.compute_q({'obs': obs, 'action': actions})['q_value']
    for agent in range(A):
        expected = net.compute_q({'obs': obs, 'action': actions[:, :, agent]})['q_value'][..., agent]
        assert torch.allclose(found[..., agent], expected, atol=1e-6)


def test_a_wrong_number_of_agents_is_named():
    with pytest.raises(InputShapeError, match=r'agent_state of shape \(4, 2, 5\) does not fit'):
        create_model(dict(model_type='team_qac', **SIZES))({'obs': {'agent_state': torch.zeros(4, 2, 5)}})
