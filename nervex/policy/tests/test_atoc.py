"""ATOC: its three losses against references in plain loops, groups that stay, and what talking is worth."""

import math

import numpy as np
import pytest
import torch

from nervex.data import Batch
from nervex.policy import create_policy
from nervex.policy.tests.learning import train
from nervex.policy.tests.toy_control import uphill
from nervex.policy.tests.toy_envs import AimEnv
from nervex.utils import POLICY_REGISTRY
from nervex.utils.errors import UnknownNameError

B, A, D, GAMMA = 5, 3, 4, 0.9


def make(*fields, collect=None, **model):
    torch.manual_seed(2)
    model = dict(obs_dim=D, action_dim=2, n_agent=A, thought_dim=4, hidden_dim=8, **model)
    learn = dict(algo=dict(discount_factor=GAMMA))
    policy = create_policy(
        dict(policy_type='atoc', model=model, learn=learn, collect=collect or {}), enable_field=fields or ['learn']
    )
    if not fields:
        for parameter in policy._armor.target_model.parameters():
            parameter.data.mul_(1.2)  # the target net is another one
    return policy


def steps(each=False, state=0, alive=False):
    """With ``alive`` an agent of the first row leaves, one of the fourth has left, and two of the last one."""
    rng = np.random.default_rng(0)
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)  # noqa: E731
    flag = np.zeros((B, 1), bool)
    done, truncated = flag.copy(), flag.copy()
    done[1:3], truncated[2] = True, True
    data = dict(
        obs=dict(agent_state=normal(B, 2, A, D), agent_position=normal(B, 2, A, 2)),
        action=np.tanh(normal(B, 1, A, 2)),
        reward=normal(B, 1, A) if each else normal(B, 1),
        done=done,
        truncated=truncated,
        mask=~flag,
    )
    if state:
        data['prev_state'] = np.zeros((B, A, state), np.float32)
    if alive:
        playing = data['obs']['agent_alive'] = np.ones((B, 2, A), np.float32)
        playing[0, 1, 1] = playing[3, :, 0] = playing[4, :, 1:] = 0
    return Batch(data)


def of_row(obs, row, t):
    return {'obs': {name: torch.as_tensor(part[row, t])[None] for name, part in obs.items()}}


def lives(plain, row, t, agent):
    return 'agent_alive' not in plain['obs'] or plain['obs']['agent_alive'][row, t, agent] > 0


@pytest.mark.parametrize('alive', [False, True], ids=['all alive', 'some leave'])
@pytest.mark.parametrize('each', [False, True], ids=['reward of the team', 'reward of each'])
@pytest.mark.parametrize('communication', [True, False])
def test_the_critic_loss_equals_a_reference_in_loops(communication, each, alive):
    policy, data = make(communication=communication), steps(each, alive=alive)
    loss, info = policy._critic_loss(policy._data_preprocess_learn(data))
    model, target, plain = policy._armor.model, policy._armor.target_model, data.to_numpy()
    errors = np.full((B, A), np.nan)
    for row in range(B):
        following = target.compute_action(of_row(plain['obs'], row, 1))['action'][0]
        behind = torch.as_tensor(plain['obs']['agent_state'][row, 1])
        next_q = [target.critic.net(torch.cat([behind[a], following[a]])).item() for a in range(A)]
        rest = 0.0 if each else np.mean([next_q[a] for a in range(A) if lives(plain, row, 1, a)])
        for a in (a for a in range(A) if lives(plain, row, 0, a)):
            here = torch.as_tensor(plain['obs']['agent_state'][row, 0, a])
            taken = torch.as_tensor(plain['action'][row, 0, a])
            goes_on = 0.0 if row == 1 else GAMMA  # row 2 ran out of time
            reward = plain['reward'][row, 0, a] if each else plain['reward'][row, 0]
            goal = reward + goes_on * (next_q[a] if lives(plain, row, 1, a) else rest)
            errors[row, a] = goal - model.critic.net(torch.cat([here, taken])).item()
    assert loss.item() == pytest.approx(np.nanmean(errors**2), rel=1e-4)
    assert info['td_error'].tolist() == pytest.approx(np.nanmean(np.abs(errors), 1).tolist(), rel=1e-4)


@pytest.mark.parametrize('alive', [False, True], ids=['all alive', 'some leave'])
def test_the_actor_climbs_the_critic_and_moves_nothing_else(alive):
    policy = make()
    data = policy._data_preprocess_learn(steps(alive=alive))
    model, plain = policy._armor.model, steps(alive=alive).to_numpy()
    values = []
    for row in range(B):
        action = model.compute_action(of_row(plain['obs'], row, 0))['action'][0]
        for a in (a for a in range(A) if lives(plain, row, 0, a)):
            here = torch.as_tensor(plain['obs']['agent_state'][row, 0, a])
            values.append(model.critic.net(torch.cat([here, action[a]])).item())
    assert policy._actor_loss(data)[0].item() == pytest.approx(-np.mean(values), rel=1e-4)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    policy._minimize(policy._actor_loss, data, policy._optimizer_actor)
    moved = {name.split('.')[0] for name, value in model.state_dict().items() if not torch.equal(before[name], value)}
    assert moved == {'actor'}


@pytest.mark.parametrize('alive', [False, True], ids=['all alive', 'some leave'])
def test_the_attention_learns_what_talking_is_worth(alive):
    """Towards the gain of a group by the critic, scaled over the batch, as if all called; nothing else moves."""
    policy, given = make(agent_per_group=2), steps(alive=alive)
    data, plain, model = policy._data_preprocess_learn(given), given.to_numpy(), policy._armor.model
    for parameter in [*model.actor.parameters(), *model.critic.parameters()]:
        parameter.data.mul_(3.0)  # gains that float32 tells apart
    gains, probs = [], []
    for row in range(B):
        given = of_row(plain['obs'], row, 0)
        group = model.compute_action(given)['group']
        output = model.compute_action({**given, 'is_initiator': torch.ones(1, A, dtype=torch.bool), 'group': group})
        silent = model.actor.action_of(output['old_thoughts'], output['old_thoughts'])[0]
        seen, place = (torch.as_tensor(plain['obs'][name][row, 0]) for name in ('agent_state', 'agent_position'))
        q = lambda a, action: model.critic.net(torch.cat([seen[a], action[a]])).item()  # noqa: B023, E731
        for a in (a for a in range(A) if lives(plain, row, 0, a)):
            others = [k for k in range(A) if k != a and lives(plain, row, 0, k)]
            others = sorted(others, key=lambda k: (place[k] - place[a]).norm().item())[:1]
            gains.append(np.mean([q(k, output['action'][0]) - q(k, silent) for k in (a, *others)]))
            probs.append(output['initiator_prob'][0, a].item())
    wanted = (1 + np.array(gains) / np.abs(gains).max()) / 2
    expected = -np.mean([w * math.log(p) + (1 - w) * math.log(1 - p) for w, p in zip(wanted, probs)])
    loss, info = policy._attention_loss(data)
    assert loss.item() == pytest.approx(expected, rel=1e-3)
    assert info['initiators'].item() == pytest.approx(np.mean(np.array(probs) > 0.5))
    assert info['delta_q'].item() == pytest.approx(np.mean(gains), rel=1e-3, abs=1e-5)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    policy._minimize(policy._attention_loss, data, policy._optimizer_attention)
    moved = {name.split('.')[0] for name, value in model.state_dict().items() if not torch.equal(before[name], value)}
    assert moved == {'attention'}


@pytest.mark.parametrize('stay', [1, 2])
@pytest.mark.parametrize('size', [2, A])
def test_what_agents_that_have_left_see_and_do_changes_no_loss_and_no_gradient(size, stay):
    found = []
    for change in (False, True):
        policy = make(agent_per_group=size, T_initiate=stay)
        data = steps(alive=True, state=(2 + size) * (stay > 1))
        if stay > 1:  # all have called all whom they may, and the groups stay
            data['prev_state'][..., 0], data['prev_state'][..., 1] = 1, 1
            data['prev_state'][..., 2:] = [sorted({a, *range(size)})[:size] if a < size else [0, a] for a in range(A)]
        gone = data['obs']['agent_alive'] == 0
        if change:
            data['obs']['agent_state'][gone], data['obs']['agent_position'][gone] = 7.0, 0.0
            data['action'][gone[:, :1]] = 0.9
        data, results = policy._data_preprocess_learn(data), []
        for name in ('critic', 'actor', 'attention'):
            loss, _ = getattr(policy, f'_{name}_loss')(data)
            results += [loss, *torch.autograd.grad(loss, list(getattr(policy._model, name).parameters()))]
        found.append(results)
    assert gone.any() and all(torch.equal(one, other) for one, other in zip(*found))


def test_groups_that_stay_are_stored_with_the_step():
    policy = make('learn', 'collect', collect=dict(env_num=B, noise_sigma=0.0), T_initiate=2)
    obs = [{name: torch.as_tensor(part[:, t]) for name, part in steps().to_numpy()['obs'].items()} for t in (0, 1)]
    first, second = (policy._forward_collect(list(range(B)), policy._model_input(seen)) for seen in obs)
    assert not first['prev_state'].any() and (second['prev_state'][..., 0] == 1).all()
    data = steps(state=4)
    data['prev_state'][:] = second['prev_state']
    now = policy._now(policy._data_preprocess_learn(data))
    assert torch.equal(now['prev_state'], torch.as_tensor(second['prev_state']))
    now['obs'] = obs[1]
    assert torch.allclose(policy._model.compute_action(now)['action'], torch.as_tensor(second['action']), atol=1e-6)
    assert policy._critic_loss(policy._data_preprocess_learn(data))[0].isfinite()


LEARNS = dict(
    policy=dict(
        model=dict(thought_dim=8),
        learn=dict(train_step=8, batch_size=64, learning_rate=3e-3, algo=dict(discount_factor=0.5)),
        collect=dict(noise_sigma=0.3, random_steps=300, traj_len=1),
    ),
    actor=dict(n_sample=16),
    evaluator=dict(n_episode=20, eval_freq=200, stop_val=-0.2),
    commander=dict(max_env_step=8000),
)


def cfg(**model):
    return {**LEARNS, 'policy': {**LEARNS['policy'], 'model': {**LEARNS['policy']['model'], **model}}}


@pytest.mark.parametrize('model', [{}, dict(communication=False), dict(T_initiate=2)], ids=str)
def test_it_learns(model):
    assert train('atoc', AimEnv, cfg(**model)).solved


@pytest.mark.slow
@pytest.mark.parametrize('seed', [0, 1, 2])
def test_it_learns_with_every_seed(seed):
    assert train('atoc', AimEnv, cfg(), seed).solved


@pytest.mark.parametrize('loss', ['_critic_loss', '_actor_loss'])
def test_a_loss_of_the_wrong_sign_learns_nothing(loss):
    short = {**cfg(), 'commander': dict(max_env_step=1500)}
    assert train(uphill(POLICY_REGISTRY.get('atoc'), loss), AimEnv, short).final_return < -1.0


def test_groups_need_to_know_where_agents_are():
    with pytest.raises(UnknownNameError, match='agent_position'):
        train('atoc', AimEnv, cfg(agent_per_group=1))
