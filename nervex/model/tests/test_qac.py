import pytest
import torch

from nervex.model import QAC, SACModel


def test_actor_and_critic_are_separate_modules():
    net = QAC(3, 2)
    parameters = {id(p) for p in net.parameters()}
    actor, critic = ({id(p) for p in part.parameters()} for part in (net.actor, net.critic))
    assert actor | critic == parameters and not actor & critic


@pytest.mark.parametrize('obs_dim', [3, (3,), [3]])
def test_action_and_value(obs_dim):
    net = QAC(obs_dim, 2)
    action = net({'obs': 100.0 * torch.randn(5, 3)})['action']
    assert action.shape == (5, 2) and (action.abs() <= 1.0).all()
    assert torch.equal(net({'obs': torch.ones(5, 3)}, mode='compute_action')['action'], net(torch.ones(5, 3))['action'])
    assert net({'obs': torch.randn(5, 3), 'action': action}, mode='compute_q')['q_value'].shape == (5,)


def test_twins():
    q = QAC(3, 1, use_twin_critic=True)({'obs': torch.randn(5, 3), 'action': torch.zeros(5, 1)}, mode='compute_q')
    assert isinstance(q['q_value'], list) and [tuple(x.shape) for x in q['q_value']] == [(5,), (5,)]
    assert not torch.equal(*q['q_value'])


def test_an_action_of_one_dimension_may_lack_its_axis():
    net, data = QAC((3,), (1,)), {'obs': torch.randn(5, 3), 'action': torch.rand(5)}
    flat = net(data, mode='compute_q')['q_value']
    assert torch.equal(flat, net({**data, 'action': data['action'].unsqueeze(-1)}, mode='compute_q')['q_value'])


@pytest.mark.parametrize(
    'data, text',
    [
        ({'obs': torch.zeros(5, 4), 'action': torch.zeros(5, 2)}, r'obs of shape \(5, 4\).*\(\.\.\., 3\)'),
        ({'obs': torch.zeros(5, 3), 'action': torch.zeros(5, 1)}, r'action of shape \(5, 1\).*\(5, 2\)'),
        ({'obs': torch.zeros(5, 3), 'action': torch.zeros(2)}, r'action of shape \(2,\)'),
    ],
)
def test_wrong_shapes_name_the_culprit(data, text):
    with pytest.raises(ValueError, match=text):
        QAC(3, 2)(data, mode='compute_q')


def test_unknown_mode_names_the_modes():
    with pytest.raises(KeyError, match="did you mean 'compute_q'"):
        QAC(3, 2)({}, mode='compute_qq')


def test_sac_log_prob_equals_that_of_the_transformed_distribution():
    net, data = SACModel(3, 2).double(), {'obs': torch.randn(7, 3, dtype=torch.float64)}
    output = net(data, mode='evaluate')
    normal = torch.distributions.Normal(output['mean'], output['log_std'].exp())
    squashed = torch.distributions.TransformedDistribution(normal, torch.distributions.TanhTransform())
    expected = squashed.log_prob(output['action']).sum(-1)
    assert output['log_prob'].shape == (7,) and torch.allclose(output['log_prob'], expected, atol=1e-6)


def test_sac_log_prob_stays_finite_at_the_edge():
    net = SACModel(3, 1)
    with torch.no_grad():
        net.actor.net[-1].bias.copy_(torch.tensor([40.0, 0.0]))
    output = net({'obs': torch.zeros(4, 3)}, mode='evaluate')
    assert torch.isfinite(output['log_prob']).all() and (output['action'] == 1.0).all()
    output['log_prob'].sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in net.actor.parameters())


def test_sac_acts_by_chance_or_by_the_mean():
    net, data = SACModel(3, 2), {'obs': torch.randn(5, 3)}
    greedy = net(data, deterministic=True)
    assert torch.equal(greedy['action'], torch.tanh(greedy['logit'][0]))
    draws = [net(data, generator=torch.Generator().manual_seed(s))['action'] for s in (1, 1, 2)]
    assert torch.equal(draws[0], draws[1]) and not torch.equal(draws[0], draws[2])
    assert (net.actor(1e6 * torch.randn(5, 3))[1] <= 2.0).all() and (
        net.actor(1e6 * torch.randn(5, 3))[1] >= -20.0
    ).all()


def test_sac_critics_and_value():
    data = {'obs': torch.randn(5, 3), 'action': torch.zeros(5, 2)}
    assert len(SACModel(3, 2)(data, mode='compute_q')['q_value']) == 2
    assert SACModel(3, 2, use_twin_q=False)(data, mode='compute_q')['q_value'].shape == (5,)
    assert SACModel(3, 2, use_value_net=True)(data, mode='compute_value')['value'].shape == (5,)
    with pytest.raises(ValueError, match='use_value_net'):
        SACModel(3, 2)(data, mode='compute_value')
