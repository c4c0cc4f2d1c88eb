"""CollaQ: its loss against a reference in plain loops, its three memories, and what it finds in small games."""

import math

import numpy as np
import pytest
import torch

from nervex.model.qmix.collaq import AllyAttention
from nervex.policy import create_policy
from nervex.policy.tests.learning import train, wrong_sign
from nervex.policy.tests.test_team_policies import JOINTS, OFF_POLICY, SIZES, A, B, T, batch, reference
from nervex.policy.tests.toy_envs import PairEnv
from nervex.utils import POLICY_REGISTRY, ConfigError

ALONE = 2
ATTENTION = dict(attention=True, self_feature_range=[0, 1], ally_feature_range=[1, 3], attention_dim=4)


def make(*fields, factor=0.5, double_q=True, lstm_type='gru', **collect):
    torch.manual_seed(1)
    model = dict(SIZES, alone_obs_dim=ALONE, lstm_type=lstm_type, **ATTENTION)
    learn = dict(algo=dict(collaQ_loss_factor=factor, double_q=double_q))
    cfg = dict(policy_type='collaQ', model=model, learn=learn, collect=collect)
    policy = create_policy(cfg, enable_field=fields or ['learn'])
    if not fields:
        for parameter in policy._armor.target_model.parameters():
            parameter.data.mul_(1.3)  # the target net is another one
    return policy


def sequences(width=8, alive=False):
    data, rng = batch(alive=alive), np.random.default_rng(7)
    data['obs']['agent_alone_state'] = rng.normal(size=(B, T + 1, A, ALONE)).astype(np.float32)
    data['obs']['agent_alone_padding_state'] = rng.normal(size=(B, T + 1, A, 3)).astype(np.float32)
    data['prev_state'] = rng.normal(size=(B, A, 3 * width)).astype(np.float32)
    return data


def step_by_step(net, obs, state, part):
    """The answers along a sequence of one row, each memory in a list of its own, from parts of the stored one."""
    kept = {'colla': state[0, :, :8], 'alone': state[0, :, 8:16], 'blank': state[0, :, 16:]}
    inputs = {
        'colla': (net.colla_net, net.attention(obs['agent_state'])),
        'alone': (net.alone_net, obs['agent_alone_state']),
        'blank': (net.colla_net, net.attention(obs['agent_alone_padding_state'])),
    }
    agent_net, seen = inputs[part]
    states, answers = [[row.view(1, 1, 8) for row in kept[part]]], []
    for t in range(T + 1):
        answer, states = agent_net(seen[t : t + 1], states)
        answers.append(answer[0])
    return torch.stack(answers)


def values(net, obs, state):
    return step_by_step(net, obs, state, 'alone') + step_by_step(net, obs, state, 'colla')


@pytest.mark.parametrize('alive', [False, True], ids=['all alive', 'some leave'])
@pytest.mark.parametrize('double_q', [True, False])
def test_the_loss_equals_a_reference_in_loops(double_q, alive):
    policy, data = make(double_q=double_q), sequences(alive=alive)
    loss, info = policy._loss(policy._data_preprocess_learn(data))
    plain = data.to_numpy()
    td = reference(policy, plain, JOINTS['qmix'], False, double_q, values=values)
    total = 0.0
    for row in range(B):
        obs = {name: torch.as_tensor(part[row])[:, None] for name, part in plain['obs'].items()}
        blank = step_by_step(policy._armor.model, obs, torch.as_tensor(plain['prev_state'][row])[None], 'blank')
        for t in np.flatnonzero(plain['mask'][row]):
            living = [a for a in range(A) if not alive or plain['obs']['agent_alive'][row, t, a]]
            total += sum(blank[t, 0, a, plain['action'][row, t, a]].item() for a in living) ** 2
    alone = total / plain['mask'].sum()
    assert info['colla_alone_loss'].item() == pytest.approx(alone, rel=1e-4)
    assert loss.item() == pytest.approx(td + 0.5 * alone, rel=1e-4)


def test_what_agents_that_have_left_see_and_do_changes_no_loss_and_no_gradient():
    found = []
    for change in (False, True):
        policy, data = make(), sequences(alive=True)
        gone = data['obs']['agent_alive'] == 0
        if change:
            for name in ('agent_state', 'agent_alone_state', 'agent_alone_padding_state'):
                data['obs'][name][gone] = 7.0
            data['obs']['action_mask'][gone] = [0.0, 1.0, 0.0]
            data['action'][gone[:, :T]] = 2
        loss, _ = policy._loss(policy._data_preprocess_learn(data))
        found.append([loss, *torch.autograd.grad(loss, list(policy._model.parameters()))])
    assert gone.any() and all(torch.equal(one, other) for one, other in zip(*found))


def test_padding_has_no_part_in_the_loss_and_weights_scale_sequences():
    policy, data, changed = make(), sequences(), sequences()
    for name in ('action', 'reward'):
        changed[name][~data['mask']] = 1 if name == 'action' else 1e3
    prepared = policy._data_preprocess_learn(data)
    loss = policy._loss(prepared)[0].item()
    assert policy._loss(policy._data_preprocess_learn(changed))[0].item() == loss
    assert policy._loss({**prepared, 'weight': torch.full((B,), 3.0)})[0].item() == pytest.approx(3 * loss, rel=1e-5)


def test_the_three_memories_of_an_agent_are_kept_as_one_block():
    """Acting step by step from the stored block gives what learning computes along the sequence."""
    policy = make('learn', 'collect', env_num=B)
    policy.set_setting('collect', {'eps': 0.0})
    obs = sequences().to_numpy()['obs']
    blocks = []
    for t in range(T + 1):
        now = {name: part[:, t] for name, part in obs.items()}
        blocks.append(policy._forward_collect(list(range(B)), policy._model_input(now))['prev_state'])
    assert blocks[0].shape == (B, A, 24) and not blocks[0].any() and all(blocks[1][..., k].any() for k in range(24))
    model, later = policy._model, {name: torch.as_tensor(part[:, 2:].swapaxes(0, 1)) for name, part in obs.items()}
    whole = {name: torch.as_tensor(part.swapaxes(0, 1)) for name, part in obs.items()}
    for method in (model.agent_values, model.colla_alone_values):
        expected = method(whole, torch.zeros(B, A, 24))[2:]
        assert torch.allclose(method(later, torch.as_tensor(blocks[2])), expected, atol=1e-5)


def test_lists_of_states_and_a_block_are_the_same():
    policy, data = make(), sequences().to_numpy()
    model, obs = policy._model, {name: torch.as_tensor(part[:, 0]) for name, part in data['obs'].items()}
    block = torch.as_tensor(data['prev_state'])
    parts = [block[..., 8 * k : 8 * k + 8] for k in range(3)]
    lists = [[[part[row, a].view(1, 1, 8) for a in range(A)] for part in parts] for row in range(B)]
    one, other = model({'obs': obs, 'prev_state': block}), model({'obs': obs, 'prev_state': lists})
    assert torch.allclose(one['logit'], other['logit'], atol=1e-6)
    assert torch.allclose(one['next_state'][1, 0, 8:16], other['next_state'][1][1][0].flatten(), atol=1e-6)


def test_attention_by_its_formula():
    torch.manual_seed(0)
    net = AllyAttention(8, 2, [0, 2], [2, 6], attention_dim=3)
    obs = torch.randn(8)
    query, allies = net.query(obs[:2]), [obs[2:4], obs[4:6]]
    weights = torch.softmax(torch.stack([query @ net.key(ally) / math.sqrt(3) for ally in allies]), 0)
    summary = sum(weight * net.value(ally) for weight, ally in zip(weights, allies))
    assert torch.allclose(net(obs), torch.cat([obs[:2], obs[6:], summary]), atol=1e-6)


def learns(memory=None, share=True, **algo):
    model = dict(hidden_dim_list=[32], lstm_type=memory, share=share)
    learn = {**OFF_POLICY['policy']['learn'], 'algo': {**OFF_POLICY['policy']['learn']['algo'], **algo}}
    return {**OFF_POLICY, 'policy': {**OFF_POLICY['policy'], 'model': model, 'learn': learn}}


@pytest.mark.parametrize('memory, share', [(None, True), ('gru', True), ('lstm', True), (None, False), ('gru', False)])
def test_it_learns_with_and_without_a_memory_and_never_takes_what_is_forbidden(memory, share):
    assert train('collaQ', PairEnv, learns(memory, share)).solved


@pytest.mark.slow
@pytest.mark.parametrize('seed', [0, 1, 2])
def test_it_learns_with_every_seed(seed):
    assert train('collaQ', PairEnv, learns(), seed).solved


def test_a_loss_of_the_wrong_sign_learns_nothing():
    cfg = {**learns(), 'commander': dict(max_train_iter=300)}
    assert train(wrong_sign(POLICY_REGISTRY.get('collaQ')), PairEnv, cfg).final_return < 1.2


def test_an_env_without_the_parts_that_it_needs_is_refused():
    class BareEnv(PairEnv):
        obs_space = PairEnv.obs_space._replace(
            shape={name: size for name, size in PairEnv.obs_space.shape.items() if 'alone' not in name}
        )

    with pytest.raises(ConfigError, match=r'alone_obs_dim: observations have no part agent_alone_state.*observe_alone'):
        train('collaQ', BareEnv, learns())
