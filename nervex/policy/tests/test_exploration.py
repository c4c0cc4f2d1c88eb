"""How policies explore while they collect, and that they do not while they are evaluated."""

import pytest
import torch
from torch.distributions import Categorical

from nervex.policy import create_policy

N, D = 3, 2


def test_draws_of_soft_q_follow_values_over_temperature():
    policy = create_policy(
        dict(policy_type='sqn', model=dict(obs_dim=4, action_dim=N), learn=dict(algo=dict(alpha=0.05))),
        enable_field=['collect', 'eval'],
    )
    obs = torch.ones(8000, 4)
    q = policy._model({'obs': obs[:1]})['logit'][0]
    ids = list(range(len(obs)))
    drawn = policy._forward_collect(ids, {'obs': obs})['action'].bincount(minlength=N) / len(obs)
    assert drawn.tolist() == pytest.approx(Categorical(logits=q / 0.05).probs.tolist(), abs=0.03)
    assert (policy._forward_eval(ids, {'obs': obs})['action'] == q.argmax()).all()


@pytest.mark.parametrize('name', ['ddpg', 'td3', 'td3_bc', 'sac', 'implicit_q'])
def test_exploration_is_noise_of_its_size_and_evaluation_has_none(name):
    cfg = dict(policy_type=name, model=dict(obs_dim=4, action_dim=D, hidden_dim_list=[16]))
    noise = {} if name in ('sac', 'implicit_q') else dict(collect=dict(noise_sigma=0.05))
    policy = create_policy({**cfg, **noise}, enable_field=['collect', 'eval'])
    if name == 'implicit_q':
        policy._model.actor.log_sigma.data.fill_(0.05).log_()
    obs = torch.ones(4000, 4)
    ids = list(range(len(obs)))
    best = policy._forward_eval(ids, {'obs': obs})['action']
    assert torch.equal(best, best[:1].expand_as(best))
    played = policy._forward_collect(ids, {'obs': obs})['action']
    if name == 'sac':
        mu, log_sigma = policy._model.actor(obs[:1])
        played, best, expected = torch.atanh(played), mu, log_sigma.exp().flatten().tolist()
    else:
        expected = [0.05] * D
    assert (played - best).mean(0).abs().max() < 0.1 and played.std(0).tolist() == pytest.approx(expected, rel=0.1)
