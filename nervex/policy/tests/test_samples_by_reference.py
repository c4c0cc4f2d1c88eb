"""Samples and losses of windows and sequences beside loops over single steps, written out here."""

import math

import numpy as np
import pytest
import torch
from torch.distributions import Categorical

from nervex.data import Batch
from nervex.policy import create_policy
from nervex.policy.traj_block import TrajBlock

GAMMA = 0.9
CONTINUOUS = ['ddpg', 'td3', 'td3_bc', 'sac', 'droq', 'tqc', 'crossq', 'implicit_q', 'cql_continuous']
NSTEP = ['dqn', 'cql', 'qrdqn', 'rainbow_dqn', 'sqn', 'sac_discrete', *CONTINUOUS]


def block(continuous=False, steps=7, envs=2, **columns):
    """Env 0: a time limit after step 1, an end after step 4; env 1: goes on for ever."""
    rng = np.random.default_rng(0)
    done = np.zeros((steps, envs), bool)
    done[[1, 4], 0] = True
    truncated = np.zeros((steps, envs), bool)
    truncated[1, 0] = True
    obs = rng.normal(size=(steps, envs, 4)).astype(np.float32)
    action = (
        rng.uniform(-1, 1, (steps, envs, 2)).astype(np.float32) if continuous else rng.integers(0, 3, (steps, envs))
    )
    data = dict(
        obs=obs,
        next_obs=rng.normal(size=obs.shape).astype(np.float32),
        action=action,
        reward=rng.normal(size=(steps, envs)).astype(np.float32),
        done=done,
        truncated=truncated,
    )
    return {**data, **columns}


def make(name, **cfg):
    torch.manual_seed(0)
    dims = dict(obs_dim=4, action_dim=2 if name in CONTINUOUS else 3, hidden_dim_list=[16])
    return create_policy(dict(policy_type=name, model=dims, **cfg), enable_field=['learn', 'collect'])


@pytest.mark.parametrize('name', NSTEP)
def test_windows_of_several_steps_stop_at_ends_and_discount_by_the_steps_taken(name):
    n, algo = 3, dict(nstep=3, discount_factor=GAMMA)
    policy = make(name, learn=dict(algo=algo), collect=dict(algo=dict(nstep=n)))
    data = block(name in CONTINUOUS)
    samples = policy._get_train_sample(TrajBlock.cut(data, repeats=n - 1))
    assert len(samples) == (7 - (n - 1)) * 2  # the last two steps come again with the next block
    found = {tuple(row): k for k, row in enumerate(np.asarray(samples['obs']).tolist())}
    for t in range(5):
        for env in range(2):
            taken = 1
            while taken < n and not data['done'][t + taken - 1, env]:
                taken += 1
            k, last = found[tuple(data['obs'][t, env].tolist())], t + taken - 1
            rewards = [*data['reward'][t : last + 1, env], *[0.0] * (n - taken)]
            assert np.asarray(samples['reward'])[k] == pytest.approx(rewards)
            assert float(samples['value_gamma'][k]) == pytest.approx(GAMMA**taken)
            for key, source in (('next_obs', 'next_obs'), ('done', 'done'), ('truncated', 'truncated')):
                assert np.array_equal(np.asarray(samples[key])[k], data[source][last, env])


@pytest.mark.parametrize('name', ['a2c', 'ppo', 'ppo_vanilla', 'ppg'])
@pytest.mark.parametrize('lambda_, gamma', [(0.7, 0.9), (1.0, 0.8)])
def test_generalised_advantages(name, lambda_, gamma):
    scale = {} if name == 'ppo_vanilla' else dict(reward_scale=0.5)
    policy = make(name, learn=dict(algo=dict(discount_factor=gamma, gae_lambda=lambda_, **scale)))

    def v(obs):
        with torch.no_grad():
            value_of = policy._model.compute_value if name == 'ppg' else policy._model
            return float(value_of({'obs': obs[None]})['value'])

    data = block()
    obs, next_obs = (torch.from_numpy(data[key]) for key in ('obs', 'next_obs'))
    for t in range(6):  # an episode that goes on continues where it was
        next_obs[t] = torch.where(torch.from_numpy(data['done'][t])[:, None], next_obs[t], obs[t + 1])
    value = np.array([[v(obs[t, env]) for env in range(2)] for t in range(7)], np.float32)
    stored = dict(value=value, log_prob=np.zeros((7, 2), np.float32), logit=np.zeros((7, 2, 3), np.float32))
    samples = policy._get_train_sample(TrajBlock.cut({**data, 'next_obs': next_obs.numpy(), **stored}, repeats=0))
    found = {tuple(row): k for k, row in enumerate(np.asarray(samples['obs']).tolist())}
    for env in range(2):
        adv = 0.0
        for t in reversed(range(7)):
            ended, limit = data['done'][t, env], data['truncated'][t, env]
            behind = 0.0 if ended and not limit else v(next_obs[t, env])
            reward = data['reward'][t, env] * (0.5 if scale else 1.0)
            adv = reward + gamma * behind - value[t, env] + (0 if ended else gamma * lambda_ * adv)
            k = found[tuple(data['obs'][t, env].tolist())]
            assert float(samples['adv'][k]) == pytest.approx(adv, abs=1e-4)
            assert float(samples['return_'][k]) == pytest.approx(adv + value[t, env], abs=1e-4)


@pytest.mark.parametrize('weighted', [False, True])
@pytest.mark.parametrize('lambda_, clips', [(1.0, (1.0, 1.0, 1.0)), (0.8, (1.5, 1.1, 1.2))])
def test_v_trace_over_sequences_of_different_ends(lambda_, clips, weighted):
    names = ('rho_clip_ratio', 'c_clip_ratio', 'rho_pg_clip_ratio')
    weights = dict(value_weight=0.7, entropy_weight=0.05, reward_scale=0.5)
    algo = dict(discount_factor=GAMMA, gae_lambda=lambda_, **dict(zip(names, clips)), **weights)
    collect = dict(unroll_len=3, traj_len=7)
    policy = make('impala', use_priority=weighted, learn=dict(algo=algo), collect=collect)
    rng = np.random.default_rng(1)
    data = block(log_prob=np.log(rng.uniform(0.1, 0.6, (7, 2))).astype(np.float32))
    samples = policy._get_train_sample(TrajBlock.cut(data, repeats=0))
    rows = Batch.of({**dict(samples.items()), 'IS': rng.uniform(0.5, 1, len(samples)).astype(np.float32)})
    lengths = np.asarray(rows['mask']).sum(1)
    assert sorted(lengths.tolist()) == [1, 2, 2, 3, 3, 3]  # env 0: 2, 3, 2; env 1: 3, 3, 1
    policy_loss = value_loss = entropy = 0.0
    for k, steps in enumerate(lengths):
        one = {key: torch.as_tensor(np.asarray(rows[key])[k]) for key in rows.keys()}
        with torch.no_grad():
            output = policy._model({'obs': one['obs']})
        v, pi = output['value'], Categorical(logits=output['logit'][:-1])
        log_pi = pi.log_prob(one['action'])
        rho, c, pg = ((log_pi - one['log_prob']).exp().clamp(max=clip) for clip in clips)
        ended = bool(one['done'][steps - 1] and not one['truncated'][steps - 1])
        after = one['obs'][-1] if steps < 3 else one['obs'][steps]
        last = 0.0 if ended else float(policy._model({'obs': after[None]})['value'].detach())
        vs = [0.0] * steps + [last]
        for t in reversed(range(steps)):
            behind = last if t == steps - 1 else v[t + 1]
            delta = rho[t] * (0.5 * one['reward'][t] + GAMMA * behind - v[t])
            carry = 0.0 if t == steps - 1 else GAMMA * lambda_ * c[t] * (vs[t + 1] - v[t + 1])
            vs[t] = float(v[t] + delta + carry)
        w = float(one['IS']) if weighted else 1.0
        for t in range(steps):
            adv = pg[t] * (0.5 * one['reward'][t] + GAMMA * vs[t + 1] - v[t])
            policy_loss += -w * float(log_pi[t] * adv)
            value_loss += w * float(vs[t] - v[t]) ** 2
            entropy += w * float(pi.entropy()[t])
    total = (policy_loss + 0.7 * value_loss - 0.05 * entropy) / lengths.sum()
    loss, info = policy._loss(policy._data_preprocess_learn(rows))
    assert loss.item() == pytest.approx(total, rel=1e-3)
    assert info['entropy_loss'].item() == pytest.approx(entropy / lengths.sum(), rel=1e-3)


@pytest.mark.parametrize('nstep', [1, 3])
def test_categorical_distributions(nstep):
    steps = dict(nstep=nstep)
    torch.manual_seed(0)
    policy = create_policy(
        dict(
            policy_type='rainbow_dqn',
            model=dict(obs_dim=4, action_dim=3, hidden_dim_list=[16], v_min=-2.0, v_max=2.0, n_atom=9, noise=False),
            learn=dict(algo=dict(discount_factor=GAMMA, **steps)),
        ),
        enable_field=['learn'],
    )
    online, target = policy._model, policy._armor.target_model
    with torch.no_grad():
        for p in target.parameters():
            p.add_(torch.randn(p.shape) * 0.3)
    g, taken = torch.Generator().manual_seed(1), [3, 1, 2, 3]
    data = dict(
        obs=torch.randn(4, 4, generator=g),
        next_obs=torch.randn(4, 4, generator=g),
        action=torch.tensor([0, 1, 2, 1]),
        reward=torch.randn(4, nstep, generator=g) if nstep > 1 else torch.randn(4, generator=g),
        done=torch.tensor([0.0, 1.0, 0.0, 0.0]),
        weight=torch.tensor([1.0, 0.5, 2.0, 0.7]),
    )
    if nstep > 1:
        data['value_gamma'] = torch.tensor([GAMMA**k for k in taken])
    p, following = online(data['obs'])['distribution'], target(data['next_obs'])['distribution']
    atoms = np.linspace(-2, 2, 9)
    best = (online(data['next_obs'])['distribution'] * torch.as_tensor(atoms).float()).sum(-1).argmax(1)
    total = 0.0
    for b in range(4):
        rewards = data['reward'][b].reshape(-1)
        shift = sum(GAMMA**k * float(r) for k, r in enumerate(rewards))
        factor = (GAMMA ** (taken[b] if nstep > 1 else 1)) * (1 - float(data['done'][b]))
        aim = np.zeros(9)
        for i, z in enumerate(atoms):
            place = (min(max(shift + factor * z, -2.0), 2.0) + 2) / 0.5
            low = math.floor(place)
            share = float(following[b, best[b], i].detach())
            aim[low] += share * (low + 1 - place)
            if low < 8:
                aim[low + 1] += share * (place - low)
        log_p = p[b, data['action'][b]].log().detach().numpy()
        total += -float(data['weight'][b]) * float((aim * log_p).sum())
    assert policy._loss(data)[0].item() == pytest.approx(total / 4, rel=1e-4)
