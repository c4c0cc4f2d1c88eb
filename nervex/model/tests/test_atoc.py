import math

import pytest
import torch

from nervex.model import ATOC, ATOCQAC
from nervex.utils.errors import UnknownNameError

B, A, N = 4, 5, 7


def make(**kwargs):
    torch.manual_seed(0)
    return ATOCQAC(N, 2, thought_dim=8, n_agent=A, **kwargs)


def test_shapes():
    output = make(m_group=3)({'obs': torch.randn(B, A, N)}, get_delta_q=True)
    shapes = {key: tuple(value.shape) for key, value in output.items()}
    assert shapes == {
        'action': (B, A, 2),
        'old_thoughts': (B, A, 8),
        'new_thoughts': (B, A, 8),
        'initiator_prob': (B, A),
        'is_initiator': (B, A),
        'group': (B, A, 3),
        'delta_q': (B, A),
    }
    assert (output['action'].abs() <= 1.0).all() and ATOC is ATOCQAC
    q = make()({'obs': torch.randn(B, A, N), 'action': torch.zeros(B, A, 2)}, mode='compute_q')['q_value']
    assert q.shape == (B, A)


def test_each_agent_is_in_its_own_group_once():
    group = make(agent_per_group=3)({'obs': torch.randn(B, A, N)})['group']
    for i in range(A):
        assert (group[:, i] == i).sum(-1).tolist() == [1] * B
    assert all(len(set(row)) == 3 for row in group.flatten(0, 1).tolist())


def test_a_group_is_whom_an_agent_is_nearest_to():
    net, everybody = ATOCQAC(2, 2, thought_dim=2, n_agent=4, agent_per_group=2), torch.ones(1, 4, dtype=torch.bool)
    thoughts = torch.tensor([[[1.0, 0.0], [1.5, 0.0], [9.0, 9.0], [9.0, 8.0]]])  # by dot product all would choose 2
    assert net._nearest(thoughts, thoughts, everybody).tolist() == [[[0, 1], [0, 1], [2, 3], [2, 3]]]
    obs = {'agent_state': thoughts, 'agent_position': torch.tensor([[[0.0, 0.0], [5.0, 0.0], [0.0, 1.0], [5.0, 2.0]]])}
    assert net._nearest({'obs': obs}, thoughts, everybody).tolist() == [[[0, 2], [1, 3], [0, 2], [1, 3]]]
    with pytest.raises(UnknownNameError, match='agent_position'):
        net({'obs': {'agent_state': torch.zeros(1, 4, 2)}})


def call(net, obs, initiators, group):
    flags = torch.zeros(len(obs), A, dtype=torch.bool)
    flags[:, initiators] = True
    return net({'obs': obs, 'is_initiator': flags, 'group': group})


def test_only_members_of_a_called_group_change_their_mind():
    net, obs = make(), torch.randn(B, A, N)
    group = torch.tensor([[0, 3], [1, 2], [1, 2], [0, 3], [3, 4]]).expand(B, A, 2)
    output = call(net, obs, [0], group)
    changed = (output['old_thoughts'] != output['new_thoughts']).any(-1)
    assert changed.tolist() == [[True, False, False, True, False]] * B
    silent = call(net, obs, [], group)
    assert torch.equal(silent['old_thoughts'], silent['new_thoughts'])


def test_who_has_left_neither_calls_nor_is_called():
    """Four on a line, of whom the second and the third have left: the first and the last find each other."""
    torch.manual_seed(0)
    net = ATOCQAC(N, 2, thought_dim=8, n_agent=4, agent_per_group=2)
    place = torch.tensor([[[0.0], [1.0], [2.0], [3.0]]])
    obs = {'agent_state': torch.randn(1, 4, N), 'agent_position': place, 'agent_alive': torch.ones(1, 4)}
    net.attention[-1].bias.data.fill_(9.0)  # everybody would call
    assert net({'obs': obs})['is_initiator'].all() and net({'obs': obs})['group'][0, 0].tolist() == [0, 1]
    obs['agent_alive'] = torch.tensor([[1.0, 0.0, 0.0, 1.0]])
    output = net({'obs': obs})
    assert output['is_initiator'].tolist() == [[True, False, False, True]]
    assert output['group'][0, [0, 3]].tolist() == [[0, 3], [0, 3]]
    pair = output['old_thoughts'][0, [0, 3]].unsqueeze(1)
    for _ in range(2):  # each calls the other
        pair = pair + net.actor.channel(pair)[0]
    assert torch.allclose(output['new_thoughts'][0, [0, 3]], pair.squeeze(1), atol=1e-6)
    obs['agent_alive'] = torch.tensor([[0.0, 0.0, 0.0, 1.0]])  # the last one is alone: beside it there is silence
    output = net({'obs': obs}, get_delta_q=True)
    alone = torch.stack([torch.zeros(8), output['old_thoughts'][0, 3]]).unsqueeze(1)
    heard = (alone + net.actor.channel(alone)[0])[1, 0]
    assert output['group'][0, 3, 1] == 3 and torch.allclose(output['new_thoughts'][0, 3], heard, atol=1e-6)
    gain = net.critic(obs['agent_state'], output['action'])[0, 3].item()
    gain -= net.critic(obs['agent_state'], net.actor.action_of(output['old_thoughts'], output['old_thoughts']))[0, 3]
    assert output['delta_q'][0, 3].item() == pytest.approx(gain.item(), abs=1e-6)


def test_who_has_left_carries_nothing_from_one_group_to_the_next():
    net, obs = make(agent_per_group=A), torch.randn(1, A, N)
    alive = torch.tensor([[1.0, 0.0, 1.0, 0.0, 0.0]])
    given = {'is_initiator': torch.ones(1, A, dtype=torch.bool), 'group': torch.arange(A).expand(1, A, -1)}
    output = net({'obs': {'agent_state': obs, 'agent_alive': alive}, **given})
    expected = output['old_thoughts'].transpose(0, 1) * alive.view(A, 1, 1)
    for _ in range(2):  # two call all
        expected = (expected + net.actor.channel(expected)[0]) * alive.view(A, 1, 1)
    assert torch.allclose(output['new_thoughts'], expected.transpose(0, 1), atol=1e-6)


def test_groups_follow_one_another():
    net, obs = make(), torch.randn(1, A, N)
    group = torch.tensor([[[0, 1], [1, 2], [1, 2], [0, 3], [3, 4]]])
    output = call(net, obs, [0, 1], group)
    old = output['old_thoughts'][0]
    first = old[[0, 1]] + net.actor.channel(old[[0, 1]].unsqueeze(1))[0].squeeze(1)
    met = torch.stack([first[1], old[2]])
    second = met + net.actor.channel(met.unsqueeze(1))[0].squeeze(1)
    assert torch.allclose(output['new_thoughts'][0, :3], torch.stack([first[0], *second]), atol=1e-6)


def test_rows_do_not_mix():
    net, obs = make(), torch.randn(B, A, N)
    whole = net({'obs': obs})['action']
    assert all(torch.allclose(net({'obs': obs[i : i + 1]})['action'][0], whole[i], atol=1e-6) for i in range(B))


def test_delta_q_is_the_mean_gain_of_the_group():
    net, obs = make(), torch.randn(B, A, N)
    output = net({'obs': obs}, get_delta_q=True)
    thought = net.actor.thought(obs)
    silent = net.actor.action_of(thought, thought)
    gain = net.critic(obs, output['action']) - net.critic(obs, silent)
    expected = gain[1, output['group'][1, 2]].mean()
    assert torch.allclose(output['delta_q'][1, 2], expected) and not output['delta_q'].requires_grad


def test_attention_loss_by_hand():
    # wanted: 1 for the largest gain, 3, and 1 / 2 + 1 / 2 * 1 / 3 = 2 / 3; who did not call does not count
    data = {
        'initiator_prob': torch.tensor([[0.5, 0.25, 0.9]], requires_grad=True),
        'is_initiator': torch.tensor([[True, True, False]]),
        'delta_q': torch.tensor([[3.0, 1.0, 7.0]]),
    }
    loss = make()(data, mode='optimize_actor_attention')['loss']
    assert loss.item() == pytest.approx((-math.log(0.5) - 2 / 3 * math.log(0.25) - 1 / 3 * math.log(0.75)) / 2)
    loss.backward()
    assert data['initiator_prob'].grad[0, 2] == 0.0
    nobody = make()({**data, 'is_initiator': torch.zeros(1, 3, dtype=torch.bool)}, mode='optimize_actor_attention')
    assert nobody['loss'].item() == 0.0


def test_actor_loss_reaches_the_actor_and_spares_the_attention():
    net = make()
    net({'obs': torch.randn(B, A, N)}, mode='optimize_actor')['q_value'].mean().backward()
    assert all(p.grad is None for p in net.attention.parameters())
    assert all(p.grad is not None for p in net.actor.thought.parameters())


def test_without_communication_agents_are_independent():
    net, obs = make(communication=False), torch.randn(B, A, N)
    other = obs.clone()
    other[:, 1:] = 0.0
    assert torch.equal(net({'obs': obs})['action'][:, 0], net({'obs': other})['action'][:, 0])


@pytest.mark.parametrize('kwargs, text', [({'agent_per_group': 6}, 'agent_per_group'), ({'thought_dim': 7}, 'even')])
def test_wrong_settings_are_named(kwargs, text):
    with pytest.raises(ValueError, match=text):
        ATOCQAC(N, 2, **{'n_agent': A, **kwargs})


def test_groups_stay_for_some_steps():
    net, obs = (
        make(T_initiate=3),
        [{'agent_state': torch.randn(B, A, N), 'agent_position': torch.randn(B, A, 2)} for _ in range(5)],
    )
    state, groups, calls = torch.zeros(B, *net.state_shape), [], []
    for seen in obs:
        output = net({'obs': seen, 'prev_state': state})
        state = output['next_state']
        groups.append(output['group'])
        calls.append(output['is_initiator'])
    fresh = [net({'obs': seen}) for seen in obs]
    for t, origin in enumerate([0, 0, 0, 3, 3]):
        assert torch.equal(groups[t], fresh[origin]['group']) and torch.equal(calls[t], fresh[origin]['is_initiator'])
    assert not torch.equal(groups[0], groups[3]) and make().state_shape == (A, 0)
