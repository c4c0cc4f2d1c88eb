"""
The loss of each policy beside the formula of its paper, written out here with torch.distributions and no function of
nervex: with target networks that differ from the learning ones, rewards of several steps, ends, and weights.
"""

import numpy as np
import pytest
import torch
from torch.distributions import Categorical, Independent, Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

from nervex.policy import create_policy
from nervex.policy.implicit_q import expectile_loss

B, N, D, GAMMA, ALPHA = 6, 3, 2, 0.9, 0.3
TAKEN = torch.tensor([3, 2, 3, 1, 3, 3])  # steps of each target, fewer at a time limit


def make(name, continuous=False, nstep=1, model=None, use_priority=False, learn=None, **algo):
    torch.manual_seed(0)
    steps = dict(nstep=nstep) if nstep > 1 else {}
    policy = create_policy(
        dict(
            policy_type=name,
            use_priority=use_priority,
            model=dict(obs_dim=4, action_dim=D if continuous else N, hidden_dim_list=[16], **(model or {})),
            learn=dict(**(learn or {}), algo=dict(discount_factor=GAMMA, **steps, **algo)),
        ),
        enable_field=['learn'],
    )
    if hasattr(getattr(policy, '_armor', None), 'target_model'):
        shake(policy._armor.target_model)
    return policy


def shake(module):
    with torch.no_grad():
        for p in module.parameters():
            p.add_(torch.randn(p.shape) * 0.3)


def batch(continuous=False, nstep=3, **columns):
    g = torch.Generator().manual_seed(1)
    data = dict(
        obs=torch.randn(B, 4, generator=g),
        next_obs=torch.randn(B, 4, generator=g),
        action=torch.rand(B, D, generator=g) * 1.8 - 0.9 if continuous else torch.randint(N, (B,), generator=g),
        reward=torch.randn(B, nstep, generator=g) if nstep > 1 else torch.randn(B, generator=g),
        done=torch.tensor([0.0, 0.0, 1.0, 0.0, 1.0, 0.0]),
        weight=torch.rand(B, generator=g) + 0.5,
    )
    if nstep > 1:
        data['value_gamma'] = GAMMA ** TAKEN.float()
    return {**data, **columns}


def goal(data, next_value):
    """sum_k gamma^k r_k + gamma^(steps taken) (1 - d) V'."""
    reward = data['reward']
    if reward.dim() == 1:
        return reward + GAMMA * (1 - data['done']) * next_value
    total = sum(GAMMA**k * reward[:, k] for k in range(reward.shape[1]))
    return total + GAMMA ** TAKEN.float() * (1 - data['done']) * next_value


def weighted(error, data):
    return (data['weight'] * error).mean()


def of(values, action):
    return values[torch.arange(B), action]


def both(policy):
    return policy._model, policy._armor.target_model


@pytest.mark.parametrize('nstep', [1, 3])
@pytest.mark.parametrize('double', [True, False])
@pytest.mark.parametrize('name', ['dqn', 'cql'])
def test_double_q(name, double, nstep):
    policy, data = make(name, nstep=nstep, double_q=double), batch(nstep=nstep)
    online, target = both(policy)
    q, following = online(data['obs'])['logit'], target(data['next_obs'])['logit']
    best = (online(data['next_obs'])['logit'] if double else following).argmax(1)
    expected = weighted((goal(data, of(following, best)) - of(q, data['action'])).pow(2), data)
    if name == 'cql':
        expected = expected + weighted(q.exp().sum(1).log() - of(q, data['action']), data)
    loss, info = policy._loss(data)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert torch.allclose(info['td_error'].abs(), (goal(data, of(following, best)) - of(q, data['action'])).abs())


def test_dqn_vanilla():
    policy, data = make('dqn_vanilla'), batch(nstep=1)
    shake(policy._target_model)
    q, following = policy._model(data['obs'])['logit'], policy._target_model(data['next_obs'])['logit']
    best = policy._model(data['next_obs'])['logit'].argmax(1)
    expected = weighted((goal(data, of(following, best)) - of(q, data['action'])).pow(2), data)
    assert policy._loss(data)[0].item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize('nstep', [1, 3])
def test_quantile_regression(nstep):
    policy, data = make('qrdqn', nstep=nstep, model=dict(num_quantiles=5)), batch(nstep=nstep)
    online, target = both(policy)
    own, following = online(data['obs'])['q'], target(data['next_obs'])['q']
    best = online(data['next_obs'])['q'].mean(-1).argmax(1)
    tau, total = (torch.arange(5) + 0.5) / 5, 0.0
    for b in range(B):
        for i in range(5):
            for j in range(5):
                aim = goal(data, following[torch.arange(B), best, j])[b]
                delta = aim - own[b, data['action'][b], i]
                huber = 0.5 * delta**2 if delta.abs() <= 1 else delta.abs() - 0.5
                total += data['weight'][b] * (tau[i] - float(delta < 0)).abs() * huber / 5
    assert policy._loss(data)[0].item() == pytest.approx(total.item() / B, rel=1e-4)


@pytest.mark.parametrize('nstep', [1, 3])
def test_soft_q(nstep):
    policy, data = make('sqn', nstep=nstep, alpha=ALPHA), {**batch(nstep=nstep), 'alpha': torch.tensor(ALPHA)}
    online, target = both(policy)
    least = torch.min(*target(data['next_obs'])['q_value'])
    pi = Categorical(logits=least / ALPHA)
    value = (pi.probs * least).sum(1) + ALPHA * pi.entropy()
    expected = sum(
        weighted((goal(data, value) - of(q, data['action'])).pow(2), data) for q in online(data['obs'])['q_value']
    )
    loss, info = policy._loss(data)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    now = Categorical(logits=torch.min(*online(data['obs'])['q_value']) / ALPHA)
    assert info['entropy'].item() == pytest.approx(now.entropy().mean().item(), rel=1e-4)


def q_of(net, obs, action):
    found = net.compute_q({'obs': obs, 'action': action})['q_value']
    return [found] if isinstance(found, torch.Tensor) else found


@pytest.mark.parametrize('nstep', [1, 3])
@pytest.mark.parametrize('name', ['ddpg', 'td3'])
def test_critics_of_deterministic_actors(name, nstep):
    policy, data = make(name, True, nstep, target_noise_sigma=0.0), batch(True, nstep)
    online, target = both(policy)
    next_action = target.compute_action({'obs': data['next_obs']})['action']
    least = torch.stack(q_of(target, data['next_obs'], next_action)).min(0).values
    expected = sum(weighted((goal(data, least) - q).pow(2), data) for q in q_of(online, data['obs'], data['action']))
    assert policy._critic_loss(data)[0].item() == pytest.approx(expected.item(), rel=1e-5)
    action = online.compute_action({'obs': data['obs']})['action']
    actor = -q_of(online, data['obs'], action)[0].mean()
    assert policy._actor_loss(data)[0].item() == pytest.approx(actor.item(), rel=1e-5)


def test_smoothed_target_actions():
    policy = make('td3', True, target_noise_sigma=0.8, target_noise_clip=0.3)
    obs = torch.randn(4000, 4)
    mean = policy._armor.target_model.compute_action({'obs': obs})['action']
    found = policy._next_action(obs)
    step = (found - mean)[mean.abs() < 0.6]
    assert found.abs().max() <= 1 and step.abs().max() <= 0.3 + 1e-6
    # the share of a normal distribution with deviation 0.8 beyond 0.3 is 0.708
    assert (step.abs() > 0.3 - 1e-6).float().mean().item() == pytest.approx(0.708, abs=0.03)


def test_td3_bc_actor():
    policy, data = make('td3_bc', True, bc_alpha=2.5), batch(True, 1)
    action = policy._model.compute_action({'obs': data['obs']})['action']
    q = q_of(policy._model, data['obs'], action)[0]
    expected = -2.5 / q.abs().mean() * q.mean() + (action - data['action']).pow(2).mean()
    assert policy._actor_loss(data)[0].item() == pytest.approx(expected.item(), rel=1e-4)


def squashed(net, obs):
    mu, log_sigma = net.actor(obs)
    return Independent(TransformedDistribution(Normal(mu, log_sigma.exp()), [TanhTransform(cache_size=1)]), 1)


@pytest.mark.parametrize('nstep', [1, 3])
def test_soft_actor_critic(nstep, monkeypatch):
    policy, data = make('sac', True, nstep, alpha=ALPHA, auto_alpha=False), batch(True, nstep)
    online, target = both(policy)
    torch.manual_seed(5)
    now, following = squashed(online, data['obs']), squashed(online, data['next_obs'])
    action, next_action = now.rsample(), following.rsample()
    densities = [now.log_prob(action), following.log_prob(next_action)]
    noise = fixed_noise(monkeypatch)
    noise[0] = normal(following, next_action)
    least = torch.min(*q_of(target, data['next_obs'], next_action))
    aim = goal(data, least - ALPHA * densities[1])
    expected = sum(weighted((aim - q).pow(2), data) for q in q_of(online, data['obs'], data['action']))
    assert policy._critic_loss(data)[0].item() == pytest.approx(expected.item(), rel=1e-4)
    noise[0] = normal(now, action)
    actor = (ALPHA * densities[0] - torch.min(*q_of(online, data['obs'], action))).mean()
    loss, info = policy._actor_loss(data)
    assert loss.item() == pytest.approx(actor.item(), rel=1e-4)
    assert info['entropy'].item() == pytest.approx(-densities[0].mean().item(), rel=1e-4)


def normal(squashed_pi, action):
    """The draw of the unit normal distribution that gave an action."""
    base = squashed_pi.base_dist.base_dist
    return ((torch.atanh(action) - base.mean) / base.stddev).detach()


def fixed_noise(monkeypatch):
    """The unit normal numbers that the actor's draws take next, to be set in the list."""
    noise = [torch.zeros(B, D)]
    monkeypatch.setattr('nervex.model.sac.noise_like', lambda x, generator: noise[0])
    return noise


@pytest.mark.parametrize('nstep', [1, 3])
def test_truncated_quantile_critics(nstep, monkeypatch):
    model = dict(critic_num=3, num_quantiles=4)
    policy = make('tqc', True, nstep, model=model, alpha=ALPHA, auto_alpha=False, drop_quantiles=1)
    data, (online, target), noise = batch(True, nstep), both(policy), fixed_noise(monkeypatch)
    torch.manual_seed(5)
    now, following = squashed(online, data['obs']), squashed(online, data['next_obs'])
    action, next_action = now.rsample(), following.rsample()
    densities = [now.log_prob(action), following.log_prob(next_action)]
    own = q_of(online, data['obs'], data['action'])
    total = 0.0
    for b in range(B):
        pooled = sorted(float(z[b, j]) for z in q_of(target, data['next_obs'], next_action) for j in range(4))[:9]
        soft = [torch.full((B,), z) - ALPHA * densities[1].detach() for z in pooled]
        aims = [float(goal(data, value)[b]) for value in soft]
        for critic in own:
            for i in range(4):
                for aim in aims:
                    delta = aim - float(critic[b, i])
                    huber = 0.5 * delta**2 if abs(delta) <= 1 else abs(delta) - 0.5
                    total += float(data['weight'][b]) * abs((i + 0.5) / 4 - (delta < 0)) * huber / (4 * len(aims))
    noise[0] = normal(following, next_action)
    assert policy._critic_loss(data)[0].item() == pytest.approx(total / B, rel=1e-4)
    noise[0] = normal(now, action)
    mean = torch.stack(q_of(online, data['obs'], action)).mean(0).mean(-1)
    assert policy._actor_loss(data)[0].item() == pytest.approx((ALPHA * densities[0] - mean).mean().item(), rel=1e-4)


def test_the_actor_of_many_updates_climbs_the_mean_of_its_critics(monkeypatch):
    policy = make('droq', True, model=dict(dropout=0.0), alpha=ALPHA, auto_alpha=False)
    data, (online, _), noise = batch(True, 1), both(policy), fixed_noise(monkeypatch)
    now = squashed(online, data['obs'])
    action = now.rsample()
    noise[0] = normal(now, action)
    expected = (ALPHA * now.log_prob(action) - sum(q_of(online, data['obs'], action)) / 2).mean()
    assert policy._actor_loss(data)[0].item() == pytest.approx(expected.item(), rel=1e-4)
    assert all(isinstance(hidden[-1], torch.nn.LayerNorm) for q in online.critic for hidden in list(q.net)[:-1])


def test_critics_without_targets_see_now_and_next_as_one_batch(monkeypatch):
    algo = dict(target_theta=None, alpha=ALPHA, auto_alpha=False)
    policy = make('crossq', True, model=dict(critic_hidden_dim_list=[12]), **algo)
    data, net, noise = batch(True, 1), policy._model, fixed_noise(monkeypatch)
    assert not hasattr(policy._armor, 'target_model')
    following = squashed(net, data['next_obs'])
    next_action = following.rsample()
    noise[0] = normal(following, next_action)

    def normalised(x, layer):  # the first batches: by their own statistics
        mean = x.sum(0) / len(x)
        var = (x - mean).pow(2).sum(0) / len(x)
        return (x - mean) / (var + 1e-3).sqrt() * layer.weight + layer.bias

    x = torch.cat([torch.cat([data['obs'], data['action']], 1), torch.cat([data['next_obs'], next_action], 1)])
    values = []
    for critic in net.critic:
        (norm, first), (norm_2, last) = critic.net
        values.append(last(normalised(first(normalised(x, norm)).relu(), norm_2)).squeeze(1))
    least = torch.min(*values)[B:].detach()
    aim = goal(data, least - ALPHA * following.log_prob(next_action)).detach()
    expected = sum(weighted((aim - q[:B]).pow(2), data) for q in values)
    loss = policy._critic_loss(data)[0]
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    parameters = list(net.critic.parameters())
    wanted = torch.autograd.grad(expected, parameters)
    assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(torch.autograd.grad(loss, parameters), wanted))
    norm = net.critic[0].net[0][0]
    assert torch.allclose(norm.running_mean, 0.01 * x.mean(0), atol=1e-6) and norm.batches == 1
    assert not any(module.training for module in net.modules())


@pytest.mark.parametrize('nstep', [1, 3])
def test_implicit_q(nstep):
    algo = dict(expectile=0.8, beta=2.0, weight_limit=1.5)
    policy, data = make('implicit_q', True, nstep, **algo), batch(True, nstep)
    online, target = both(policy)
    value, following = (online.critic['v'](data[key]).squeeze(1) for key in ('obs', 'next_obs'))
    least = torch.min(*q_of(target, data['obs'], data['action'])).detach()
    expected = sum(
        weighted((goal(data, following.detach()) - q).pow(2), data) for q in q_of(online, data['obs'], data['action'])
    )
    u = least - value
    assert (u > 0).any() and (u < 0).any()
    expected = expected + weighted(torch.stack([(0.2 if e < 0 else 0.8) * e**2 for e in u]), data)
    assert policy._critic_loss(data)[0].item() == pytest.approx(expected.item(), rel=1e-5)
    weight = torch.tensor([min(float((2.0 * e).exp()), 1.5) for e in u])
    assert (weight == 1.5).any() and (weight < 1.5).any()
    first, last = online.actor.mu
    mu = torch.tanh(last(first(data['obs']).relu()))
    density = Independent(Normal(mu, online.actor.log_sigma.exp().expand_as(mu)), 1).log_prob(data['action'])
    assert policy._actor_loss(data)[0].item() == pytest.approx(-(weight * density).mean().item(), rel=1e-4)


def test_conservative_q_of_continuous_actions(monkeypatch):
    algo = dict(alpha=ALPHA, auto_alpha=False, cql_alpha=3.0, cql_samples=2)
    policy, data = make('cql_continuous', True, **algo), batch(True, 1)
    (online, target), noise = both(policy), [torch.randn(B, D), torch.randn(B, 4, D)]
    monkeypatch.setattr('nervex.model.sac.noise_like', lambda x, generator: noise[x.dim() - 2])
    action, density = policy._stand_ins(data)
    assert action.shape == (B, 6, D) and action[:, :2].abs().max() <= 1 and (density[:, :2] == -2 * np.log(2)).all()
    for k, key in ((2, 'obs'), (3, 'obs'), (4, 'next_obs'), (5, 'next_obs')):
        pi = squashed(online, data[key])
        assert torch.allclose(normal(pi, action[:, k]), noise[1][:, k - 2], atol=1e-3)
        assert torch.allclose(density[:, k], pi.log_prob(action[:, k]), atol=1e-3)
    monkeypatch.setattr(policy, '_stand_ins', lambda data: (action, density))
    mu, log_sigma = online.actor(data['next_obs'])
    next_action = torch.tanh(mu + log_sigma.exp() * noise[0])
    least, expected = torch.min(*q_of(target, data['next_obs'], next_action)), 0.0
    own = q_of(online, data['obs'], data['action'])
    for critic, q in enumerate(own):
        expected = expected + weighted((goal(data, least).detach() - q).pow(2), data)
        ratios = [q_of(online, data['obs'], action[:, k])[critic].exp() / density[:, k].exp() for k in range(6)]
        expected = expected + 3.0 * weighted((sum(ratios) / 6).log() - q, data)
    assert policy._critic_loss(data)[0].item() == pytest.approx(expected.item(), rel=1e-4)


def test_the_value_is_the_expectile_of_the_values_of_the_data():
    # values 0 and 1, alike often: (1 - tau) v = tau (1 - v) has the solution v = tau
    error = torch.tensor([0.0, 1.0]) - 0.8
    gradient = torch.func.grad(lambda v: expectile_loss(torch.tensor([0.0, 1.0]) - v, 0.8).sum())(torch.tensor(0.8))
    assert expectile_loss(error, 0.8).tolist() == pytest.approx([0.2 * 0.64, 0.8 * 0.04])
    assert gradient.item() == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize('nstep', [1, 3])
def test_discrete_soft_actor_critic(nstep):
    policy, data = make('sac_discrete', nstep=nstep, alpha=ALPHA, auto_alpha=False), batch(nstep=nstep)
    online, target = both(policy)

    def pi(obs):
        return Categorical(logits=online.compute_action({'obs': obs})['logit'])

    def values(net, obs):
        return net.compute_q({'obs': obs})['q_value']

    following, now = pi(data['next_obs']), pi(data['obs'])
    value = (following.probs * torch.min(*values(target, data['next_obs']))).sum(1) + ALPHA * following.entropy()
    qs = values(online, data['obs'])
    expected = sum(weighted((goal(data, value) - of(q, data['action'])).pow(2), data) for q in qs)
    assert policy._critic_loss(data)[0].item() == pytest.approx(expected.item(), rel=1e-5)
    actor = -(ALPHA * now.entropy() + (now.probs * torch.min(*qs)).sum(1)).mean()
    assert policy._actor_loss(data)[0].item() == pytest.approx(actor.item(), rel=1e-5)


@pytest.mark.parametrize('name', ['sac', 'sac_discrete', 'sqn'])
@pytest.mark.parametrize('side', [1, -1])
def test_the_temperature_falls_while_there_is_more_entropy_than_wanted(name, side):
    policy, data = make(name, name == 'sac', alpha=ALPHA, auto_alpha=True), batch(name == 'sac', 1)
    policy._target_entropy = -100.0 * side
    policy._forward_learn(data)
    log_alpha = policy._temperature.log_alpha
    assert side * (log_alpha.exp().item() - ALPHA) < 0


@pytest.mark.parametrize('name, entropy', [('sac', -2.0), ('sac_discrete', 0.9 * torch.tensor(3.0).log().item())])
def test_the_entropy_that_is_wanted_where_nothing_is_said(name, entropy):
    assert make(name, name == 'sac')._entropy_wanted(batch(name == 'sac', 1)) == pytest.approx(entropy)


def on_policy_batch(policy, continuous):
    data = batch(continuous, 1, weight=None)
    g = torch.Generator().manual_seed(2)
    with torch.no_grad():
        old = policy._model({'obs': data['obs'] + 0.3})
    logit = dict(zip(('mu', 'sigma'), old['logit'])) if continuous else old['logit']
    columns = dict(adv=torch.randn(B, generator=g), return_=torch.randn(B, generator=g) * 2)
    return {**data, **columns, 'logit': logit, 'value': old['value']}


def pi_of(logit):
    if isinstance(logit, dict):
        logit = logit['mu'], logit['sigma']
    return Independent(Normal(*logit), 1) if isinstance(logit, tuple) else Categorical(logits=logit)


@pytest.mark.parametrize('continuous', [False, True])
def test_advantage_actor_critic(continuous):
    policy = make('a2c', continuous, model=dict(continuous=continuous), value_weight=0.7, entropy_weight=0.05)
    data = on_policy_batch(policy, continuous)
    output = policy._model({'obs': data['obs']})
    pi = pi_of(output['logit'])
    expected = -(pi.log_prob(data['action']) * data['adv']).mean() - 0.05 * pi.entropy().mean()
    expected = expected + 0.7 * (data['return_'] - output['value']).pow(2).mean()
    assert policy._loss(data)[0].item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize('dual_clip', [None, 1.01])
@pytest.mark.parametrize('value_clip', [False, True])
@pytest.mark.parametrize('continuous', [False, True])
def test_clipped_surrogate(continuous, value_clip, dual_clip):
    algo = dict(value_weight=0.7, entropy_weight=0.05, clip_ratio=0.02, use_value_clip=value_clip, dual_clip=dual_clip)
    policy = make('ppo', continuous, model=dict(continuous=continuous), **algo)
    data = on_policy_batch(policy, continuous)
    output = policy._model({'obs': data['obs']})
    pi, old = pi_of(output['logit']), pi_of(data['logit'])
    ratio = (pi.log_prob(data['action']) - old.log_prob(data['action'])).exp()
    assert ((ratio - 1).abs() > 0.02).any() and ((ratio - 1).abs() < 0.02).any()
    data['adv'][ratio.argmax()] = -4.0
    adv = (data['adv'] - data['adv'].mean()) / data['adv'].std()
    gain = torch.min(ratio * adv, ratio.clamp(0.98, 1.02) * adv)
    if dual_clip:
        gain = torch.where(adv < 0, torch.max(gain, dual_clip * adv), gain)
        assert (gain != torch.min(ratio * adv, ratio.clamp(0.98, 1.02) * adv)).any()
    error = (data['return_'] - output['value']).pow(2)
    if value_clip:
        near = data['value'] + (output['value'] - data['value']).clamp(-0.02, 0.02)
        error = torch.max(error, (data['return_'] - near).pow(2))
    expected = -gain.mean() + 0.7 * 0.5 * error.mean() - 0.05 * pi.entropy().mean()
    assert policy._loss(data)[0].item() == pytest.approx(expected.item(), rel=1e-4)


@pytest.mark.parametrize('continuous', [False, True])
def test_clipped_surrogate_by_hand(continuous):
    algo = dict(value_weight=0.7, entropy_weight=0.05, clip_ratio=0.02)
    policy = make('ppo_vanilla', continuous, model=dict(continuous=continuous), **algo)
    data = on_policy_batch(policy, continuous)
    output = policy._model({'obs': data['obs']})
    pi, old = pi_of(output['logit']), pi_of(data['logit'])
    data['log_prob'] = old.log_prob(data['action'])
    ratio = (pi.log_prob(data['action']) - data['log_prob']).exp()
    adv = (data['adv'] - data['adv'].mean()) / data['adv'].std(correction=0)
    gain = torch.min(ratio * adv, ratio.clamp(0.98, 1.02) * adv)
    error = (data['return_'] - output['value']).pow(2)
    expected = -gain.mean() + 0.7 * 0.5 * error.mean() - 0.05 * pi.entropy().mean()
    assert policy._loss(data)[0].item() == pytest.approx(expected.item(), rel=1e-4)


@pytest.mark.parametrize('continuous', [False, True])
def test_auxiliary_phase(continuous):
    policy = make('ppg', continuous, model=dict(continuous=continuous), beta_weight=3.0)
    data = batch(continuous, 1)
    with torch.no_grad():
        old = policy._model.compute_action({'obs': data['obs'] + 0.3})['logit']
    rows = dict(obs=data['obs'], return_=data['reward'], logit=old)
    output = policy._model.compute_aux({'obs': data['obs']})
    cloning = torch.distributions.kl_divergence(pi_of(old), pi_of(output['logit'])).mean()
    expected = 0.5 * (data['reward'] - output['aux_value']).pow(2).mean() + 3 * cloning
    assert cloning > 1e-8 and policy._auxiliary_loss(rows)[0].item() == pytest.approx(expected.item(), rel=1e-4)


def test_imitation():
    policy, data = make('il', entropy_weight=0.2), batch(nstep=1)
    pi = Categorical(logits=policy._model({'obs': data['obs']})['logit'])
    expected = -pi.log_prob(data['action']).mean() - 0.2 * pi.entropy().mean()
    assert policy._loss(data)[0].item() == pytest.approx(expected.item(), rel=1e-5)


def test_imitation_gives_no_probability_to_illegal_actions():
    policy, data = make('il', entropy_weight=0.2), batch(nstep=1)
    mask = torch.ones(B, N)
    mask[torch.arange(B), (data['action'] + 1) % N] = 0.0
    logit = policy._model({'obs': data['obs']})['logit']
    rest = Categorical(probs=logit.softmax(1) * mask)
    expected = -rest.log_prob(data['action']).mean() - 0.2 * rest.entropy().mean()
    data['obs'] = {'observation': data['obs'], 'action_mask': mask}
    assert policy._loss(data)[0].item() == pytest.approx(expected.item(), rel=1e-4)


def sequences(policy, steps=4, rows=3, **columns):
    """Sequences of 4, 3 and 2 steps, time first: the first goes on, the second ends, the third is cut by its window."""
    g = torch.Generator().manual_seed(2)
    mask = torch.arange(steps).unsqueeze(1) < torch.tensor([4, 3, 2])
    done = (~mask).float()
    done[2, 1] = 1.0
    return {
        'obs': torch.randn(steps + 1, rows, 4, generator=g),
        'action': torch.randint(N, (steps, rows), generator=g),
        'log_prob': -torch.rand(steps, rows, generator=g) * 2.5 - 0.1,
        'reward': torch.randn(steps, rows, generator=g),
        'done': done,
        'mask': mask,
        'weight': torch.tensor([0.5, 1.0, 2.0]),
        **columns,
    }


@pytest.mark.parametrize('lambda_', [1.0, 0.6])
@pytest.mark.parametrize('clips', [(1.2, 0.7, 0.9), (0.8, 1.5, 2.0)])
def test_actor_critic_by_v_trace(lambda_, clips):
    rho_clip, c_clip, pg_clip = clips
    settings = dict(rho_clip_ratio=rho_clip, c_clip_ratio=c_clip, rho_pg_clip_ratio=pg_clip, gae_lambda=lambda_)
    weights = dict(value_weight=0.3, entropy_weight=0.02, reward_scale=0.4)
    policy = make('impala', use_priority=True, **settings, **weights)
    data = sequences(policy)
    output = policy._model({'obs': data['obs']})
    pi = Categorical(logits=output['logit'][:-1])
    v, log_pi, real = output['value'].detach(), pi.log_prob(data['action']), data['mask']
    rho = (log_pi.detach() - data['log_prob']).exp()
    total, count = 0.0, 0
    for b in range(3):
        size = int(real[:, b].sum())
        vs_next = v_next = torch.zeros(()) if data['done'][size - 1, b] else v[size, b]
        for t in reversed(range(size)):
            r, ratio = 0.4 * data['reward'][t, b], rho[t, b]
            delta = ratio.clamp(max=rho_clip) * (r + GAMMA * v_next - v[t, b])
            vs = v[t, b] + delta + GAMMA * lambda_ * ratio.clamp(max=c_clip) * (vs_next - v_next)
            advantage = ratio.clamp(max=pg_clip) * (r + GAMMA * vs_next - v[t, b])
            value_loss = (vs - output['value'][t, b]).pow(2)
            loss = -log_pi[t, b] * advantage + 0.3 * value_loss - 0.02 * pi.entropy()[t, b]
            total, count = total + data['weight'][b] * loss, count + 1
            vs_next, v_next = vs, v[t, b]
    loss, _ = policy._loss(data)
    assert loss.item() == pytest.approx((total / count).item(), rel=1e-5)
    gradients = torch.autograd.grad(loss, list(policy._model.parameters()), retain_graph=True)
    for found, expected in zip(gradients, torch.autograd.grad(total / count, list(policy._model.parameters()))):
        assert torch.allclose(found, expected, atol=1e-5)
