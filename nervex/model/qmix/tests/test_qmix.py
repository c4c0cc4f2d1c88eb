import pytest
import torch

from nervex.armor import Armor
from nervex.model import CollaQ, Mixer, QMix

T, B, A, N, M, P = 4, 3, 5, 7, 11, 6


def observation(lead=(T, B)):
    return {
        'agent_state': torch.randn(*lead, A, N),
        'global_state': torch.randn(*lead, M),
        'action_mask': torch.ones(*lead, A, P),
        'agent_alone_state': torch.randn(*lead, A, 4),
        'agent_alone_padding_state': torch.randn(*lead, A, N),
    }


def at(obs, t):
    return {key: value[t] for key, value in obs.items()}


def make(kind, **kwargs):
    torch.manual_seed(0)
    return CollaQ(A, N, 4, M, P, **kwargs) if kind is CollaQ else QMix(A, N, M, P, **kwargs)


def test_mixer_by_hand():
    mixer = Mixer(agent_num=2, state_dim=1, embedding_dim=1, hypernet_dim=1)
    with torch.no_grad():
        for p in mixer.parameters():
            p.zero_()
        mixer.weight_1.bias.copy_(torch.tensor([-2.0, 3.0]))  # taken as 2 and 3
        mixer.seen.bias[-1] = 1.0
        mixer.weight_2.bias.fill_(-0.5)  # taken as 0.5
        mixer.bias_2.bias.fill_(10.0)
    assert mixer(torch.tensor([[1.0, 2.0]]), torch.zeros(1, 1)).item() == pytest.approx(14.5)  # 0.5 (2 + 6 + 1) + 10


def test_no_agent_can_lower_the_teams_value():
    mixer, q = Mixer(A, M), torch.randn(50, A, requires_grad=True)
    mixer(q, torch.randn(50, M)).sum().backward()
    assert (q.grad >= 0.0).all() and (q.grad > 0.0).any()


@pytest.mark.parametrize('lead', [(T, B), (B,)])
@pytest.mark.parametrize('kind', [QMix, CollaQ])
def test_an_action_mask_of_none_is_none(kind, lead):
    net, obs = make(kind), observation(lead)
    free = {key: value for key, value in obs.items() if key != 'action_mask'}
    output = net({'obs': {**free, 'action_mask': None}})
    assert 'action_mask' not in output and torch.equal(output['total_q'], net({'obs': free})['total_q'])


@pytest.mark.parametrize('kind', [QMix, CollaQ])
@pytest.mark.parametrize('lstm_type', ['gru', 'lstm'])
def test_sequence_equals_steps(kind, lstm_type):
    net, obs = make(kind, lstm_type=lstm_type), observation()
    whole = net({'obs': obs})
    assert whole['total_q'].shape == (T, B) and whole['agent_q'].shape == (T, B, A)
    assert whole['logit'].shape == whole['action_mask'].shape == (T, B, A, P)
    state = None
    for t in range(T):
        step = net({'obs': at(obs, t), 'prev_state': state})
        state = step['next_state']
        assert step['total_q'].shape == (B,) and step['logit'].shape == (B, A, P)
        assert torch.allclose(step['total_q'], whole['total_q'][t], atol=1e-5)
    depth = state if kind is QMix else [row[0] for row in state]
    assert len(state) == B and all(isinstance(row, list) and len(row) == A for row in depth)


@pytest.mark.parametrize('kind', [QMix, CollaQ])
def test_given_action_or_best_legal_one(kind):
    net, obs = make(kind, use_mixer=False), observation()
    obs['action_mask'][..., 3:] = 0.0
    greedy = net({'obs': obs})
    assert torch.allclose(greedy['agent_q'], greedy['logit'][..., :3].max(-1).values)
    assert torch.allclose(greedy['total_q'], greedy['agent_q'].sum(-1))
    action = torch.randint(0, P, (T, B, A))
    given = net({'obs': obs, 'action': action})
    assert torch.equal(given['agent_q'], given['logit'].gather(-1, action.unsqueeze(-1)).squeeze(-1))


@pytest.mark.parametrize('kind, start', [(QMix, [None] * A), (CollaQ, [[None] * A] * 3)])
def test_hidden_state_per_env_in_partial_batches(kind, start):
    net, obs = make(kind), observation()
    armor = Armor(net)
    armor.add_plugin('main', 'hidden_state', state_num=B, init_fn=lambda: list(start))
    armor.add_plugin('main', 'eps_greedy_sample', seed=0)
    armor.add_plugin('main', 'grad', enable_grad=False)
    first = armor.forward({'obs': at(obs, 0)}, eps=1.0)
    assert first['action'].shape == (B, A) and 'next_state' not in first
    row = {key: value[1, 2:] for key, value in obs.items()}
    second = armor.forward({'obs': row}, data_id=[2], eps=0.0)
    expected = net({'obs': {key: value[:2] for key, value in obs.items()}})['logit'][1, 2]
    assert torch.allclose(second['logit'][0], expected, atol=1e-5)


def test_colla_alone_is_the_colla_net_on_the_blanked_observation():
    net, obs = make(CollaQ), observation()
    output = net({'obs': {**obs, 'agent_alone_padding_state': obs['agent_state']}})
    colla = output['agent_colla_alone_q']
    assert torch.allclose(output['logit'] - colla, net.alone_net(obs['agent_alone_state'])[0], atol=1e-5)


def test_attention_sees_the_allies_in_any_order():
    net = make(CollaQ, attention=True, self_feature_range=[0, 3], ally_feature_range=[3, 7])
    obs = observation()
    swapped = obs['agent_state'][..., [0, 1, 2, 6, 5, 4, 3]]
    assert torch.allclose(net.attention(obs['agent_state']), net.attention(swapped), atol=1e-6)
    assert net({'obs': obs})['agent_colla_alone_q'].shape == (T, B, A, P)
    with pytest.raises(ValueError, match='ally_feature_range'):
        make(CollaQ, attention=True)
    with pytest.raises(ValueError, match='equal parts for 4'):
        make(CollaQ, attention=True, self_feature_range=[0, 3], ally_feature_range=[3, 6])


def test_mistakes_are_named():
    obs = observation()
    with pytest.raises(ValueError, match=r'agent_state of shape \(4, 3, 5, 7\)'):
        make(QMix)({'obs': obs}, single_step=True)
    with pytest.raises(ValueError, match=r'expects \(\.\.\., 7\)'):
        make(QMix)({'obs': {**obs, 'agent_state': torch.zeros(T, B, A, N + 1)}})
    with pytest.raises(ValueError, match='expected 3 lists of 5 states'):
        make(QMix)({'obs': obs, 'prev_state': [[None] * 4] * 3})
    with pytest.raises(ValueError, match='colla, alone, colla_alone'):
        make(CollaQ)({'obs': obs, 'prev_state': [[[None] * A] * 2] * 3})
