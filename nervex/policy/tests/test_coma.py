"""COMA: its loss against a reference in plain loops, what its critic is given, and what it finds in small games."""

import math

import numpy as np
import pytest
import torch

from nervex.data import Batch
from nervex.policy import create_policy
from nervex.policy.coma import exploring
from nervex.policy.tests.learning import train, wrong_sign
from nervex.policy.tests.test_team_policies import ON_POLICY, SIZES, A, B, N, T, batch, columns
from nervex.policy.tests.toy_envs import PairEnv
from nervex.policy.traj_block import TrajBlock
from nervex.utils import POLICY_REGISTRY

EPS, GAMMA, LAMBDA = 0.3, 0.9, 0.7


def make(*fields, **collect):
    torch.manual_seed(3)
    algo = dict(discount_factor=GAMMA, td_lambda=LAMBDA, policy_weight=2.0, value_weight=0.5, entropy_weight=0.1)
    cfg = dict(policy_type='coma', model=dict(SIZES), learn=dict(algo={**algo, 'reward_scale': 0.5}), collect=collect)
    policy = create_policy(cfg, enable_field=fields or ['learn'])
    if not fields:
        for parameter in policy._armor.target_model.parameters():
            parameter.data.mul_(1.3)  # the target net is another one
        policy._drawn = lambda logit: logit.argmax(-1)  # as the reference has it
    return policy


def sequences(each=False, alive=False):
    data = batch(each=each, alive=alive)
    rng = np.random.default_rng(5)
    data['eps'] = np.full((B, T), EPS, np.float32)
    data['last_action'] = rng.integers(0, N, (B, A))
    data['last_action'][1] = -1  # an episode that begins
    for row, step, agent in np.ndindex(B, T, A):  # nobody took what was forbidden
        if not data['obs']['action_mask'][row, step, agent, data['action'][row, step, agent]]:
            data['action'][row, step, agent] = 0
    return data


def loss_of(policy, data):
    loss, info = policy._loss(policy._data_preprocess_learn(data))
    return loss.item(), {name: value.item() for name, value in info.items()}


def reference(policy, data):
    """The three losses over the real steps, in loops over rows, steps and agents."""
    sums, counts = zip(*(of_row(policy, data, row) for row in range(B)))
    return sum(sums) / sum(counts)


def of_row(policy, data, row):
    model, target, sums = policy._armor.model, policy._armor.target_model, np.zeros(3)
    length = int(data['mask'][row].sum())
    obs = {name: torch.as_tensor(part[row]) for name, part in data['obs'].items()}
    state = torch.as_tensor(data['prev_state'][row])[None]
    logits = model.actor(obs['agent_state'][:, None], state)[0][:, 0].tolist()
    legal = [[[k for k in range(N) if obs['action_mask'][t, a, k]] for a in range(A)] for t in range(T + 1)]

    def pi(t, a):
        powers = {k: math.exp(logits[t][a][k]) for k in legal[t][a]}
        total = sum(powers.values())
        return {k: (1 - EPS) * power / total + EPS / len(powers) for k, power in powers.items()}

    actions = [data['action'][row, t].tolist() for t in range(length)]
    playing = data['obs']['agent_alive'][row] if 'agent_alive' in data['obs'] else np.ones((T + 1, A))
    actions.append([max(legal[length][a], key=lambda k: pi(length, a)[k]) for a in range(A)])
    done = [[k if playing[t, a] else -1 for a, k in enumerate(actions[t])] for t in range(length + 1)]
    before = [data['last_action'][row].tolist(), *done]

    def q(net, t, a):
        parts = [obs['global_state'][t], obs['agent_state'][t, a]]
        for other in range(A):
            parts.append(torch.tensor([float(k == done[t][other] and other != a) for k in range(N)]))
        for other in range(A):
            parts.append(torch.tensor([float(k == before[t][other]) for k in range(N)]))
        parts.append(torch.tensor([float(k == a) for k in range(A)]))
        return net.critic.net(torch.cat(parts)).tolist()

    def value_behind(t, a):
        living = [k for k in range(A) if playing[t + 1, k]]
        return np.mean([q(target, t + 1, k)[actions[t + 1][k]] for k in ([a] if a in living else living)])

    def goal(t, a):
        reward = 0.5 * data['reward'][row, t].sum()
        if data['done'][row, t] and not data['truncated'][row, t]:
            return reward
        rest = value_behind(t, a) if t + 1 == length else goal(t + 1, a)
        return reward + GAMMA * ((1 - LAMBDA) * value_behind(t, a) + LAMBDA * rest)

    for t in range(length):
        for a in np.flatnonzero(playing[t]):
            values, shares, taken = q(model, t, a), pi(t, a), actions[t][a]
            adv = values[taken] - sum(share * values[k] for k, share in shares.items())
            entropy = -sum(share * math.log(share) for share in shares.values())
            sums += [-math.log(shares[taken]) * adv, (goal(t, a) - values[taken]) ** 2, entropy]
    return sums, playing[:length].sum()


@pytest.mark.parametrize('alive', [False, True], ids=['all alive', 'some leave'])
@pytest.mark.parametrize('limit', [False, True], ids=['true ends', 'a time limit'])
@pytest.mark.parametrize('each', [False, True], ids=['reward of the team', 'reward of each'])
def test_the_loss_equals_a_reference_in_loops(each, limit, alive):
    policy, data = make(), sequences(each, alive)
    if limit:
        data['truncated'][1, 1] = True
    loss, info = loss_of(policy, data)
    policy_loss, value_loss, entropy = reference(policy, data.to_numpy())
    assert info['policy_loss'] == pytest.approx(policy_loss, rel=1e-4)
    assert info['value_loss'] == pytest.approx(value_loss, rel=1e-4)
    assert info['entropy_loss'] == pytest.approx(entropy, rel=1e-4)
    assert loss == pytest.approx(2 * policy_loss + 0.5 * value_loss - 0.1 * entropy, rel=1e-4)


def test_padding_has_no_part_in_the_loss():
    policy, data, changed = make(), sequences(), sequences()
    changed['action'][~data['mask']] = 2
    changed['reward'][~data['mask']] = 1e3
    assert loss_of(policy, data) == loss_of(policy, changed)


def test_what_agents_that_have_left_see_and_do_changes_no_loss_and_no_gradient():
    found = []
    for change in (False, True):
        policy, data = make(), sequences(alive=True)
        gone = data['obs']['agent_alive'] == 0
        if change:
            data['obs']['agent_state'][gone], data['obs']['action_mask'][gone] = 7.0, [0.0, 1.0, 0.0]
            data['action'][gone[:, :T] & data['mask'][..., None]] = 2  # which is not legal either
        loss, _ = policy._loss(policy._data_preprocess_learn(data))
        found.append([loss, *torch.autograd.grad(loss, list(policy._model.parameters()))])
    assert gone.any() and all(torch.equal(one, other) for one, other in zip(*found))


def test_a_time_limit_is_no_end():
    """Cut by its window or by a time limit, a sequence has the same loss; by a true end another one."""
    policy, losses = make(), []
    for done, truncated in ((False, False), (True, True), (True, False)):
        data = sequences()
        data['done'][1, 1], data['truncated'][1, 1] = done, truncated
        losses.append(loss_of(policy, data)[1]['value_loss'])
    assert losses[0] == losses[1] != losses[2]


def test_what_is_illegal_has_no_part_in_the_baseline_nor_in_the_gradient():
    policy, data = make(), sequences()
    data['obs']['action_mask'][..., 2] = 0
    data['action'][data['action'] == 2] = 0
    before = loss_of(policy, data)[1]
    for net in (policy._armor.model, policy._armor.target_model):
        net.critic.net[-1].bias.data[2] += 100
    policy._armor.model.actor.head.bias.data[2] += 5
    assert loss_of(policy, data)[1] == pytest.approx({**before, 'q_value': loss_of(policy, data)[1]['q_value']})
    loss, _ = policy._loss(policy._data_preprocess_learn(data))
    gradients = torch.autograd.grad(loss, list(policy._armor.model.parameters()))
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert gradients[-1] is not None and policy._armor.model.actor.head.bias.shape == (N,)


def test_the_mixture_by_hand():
    """softmax of log 3 and 0 is 3/4 and 1/4; with eps 0.2: 0.8 * 3/4 + 0.1 and 0.8 / 4 + 0.1; the third is illegal."""
    logit, mask = torch.tensor([math.log(3.0), 0.0, 9.0]), torch.tensor([1.0, 1.0, 0.0])
    found = exploring(logit.view(1, 1, 1, 3), mask.view(1, 1, 1, 3), torch.full((1, 1), 0.2)).exp()
    assert found.flatten().tolist() == pytest.approx([0.7, 0.3, 0.0])


def test_what_acted_is_what_learns():
    policy = make('collect')
    policy.set_setting('collect', {'eps': 0.5})
    obs = {name: np.tile(part[:1, 0], (4000, *[1] * (part.ndim - 2))) for name, part in batch()['obs'].items()}
    policy._collect_armor = policy._acting_armor('eps_multinomial_sample', 4000)
    output = policy._forward_collect(list(range(4000)), policy._model_input(obs))
    one = {name: torch.as_tensor(part[:1])[None] for name, part in obs.items()}
    logit = policy._model.compute_action({'obs': one})['logit']
    shares = exploring(logit, one['action_mask'], torch.full((1, 1), 0.5)).exp()[0, 0]
    for agent in range(A):
        found = np.bincount(output['action'][:, agent], minlength=N) / 4000
        assert found == pytest.approx(shares[agent].tolist(), abs=0.03)
    assert (output['eps'] == 0.5).all()


def test_sequences_know_what_was_done_before_them():
    """Steps 0 ... 5 of which 2 ends an episode, in windows of 3 and 2 new steps; the first step of all has none."""
    policy = make('collect', unroll_len=2, traj_len=3)
    obs = {name: np.repeat(part[0, :1], 6, 0) for name, part in batch().to_numpy()['obs'].items()}
    steps = columns(
        obs=obs,
        next_obs=obs,
        action=np.array([[k % 3, 2 - k % 3] for k in range(6)]),
        reward=np.arange(6, dtype=np.float32),
        done=np.array([False, False, True, False, False, False]),
        truncated=np.zeros(6, bool),
        prev_state=np.zeros((6, A, 8), np.float32),
        eps=np.zeros(6, np.float32),
    )

    def cut(start, end, repeats, steps=steps):
        part = {name: column[start:end] for name, column in steps.items()}
        found = policy._get_train_sample(TrajBlock.cut(part, repeats))
        return found['reward'][:, 0].tolist(), found['last_action'].tolist()

    assert policy._get_traj_overlap() == 1
    assert cut(0, 6, 0) == ([0, 2, 3, 5], [[-1, -1], [1, 1], [-1, -1], [1, 1]])
    assert cut(0, 4, 1) == ([1, 3], [[0, 2], [-1, -1]])  # the first step was part of another window
    assert cut(3, 6, 1) == ([4], [[0, 2]])
    alive = np.ones((6, A), np.float32)
    alive[1, 1] = alive[2, 1] = 0  # what the second agent does there is nothing
    seen = Batch({**dict(steps['obs'].items()), 'agent_alive': alive})
    left = {**steps, 'obs': seen, 'next_obs': seen}
    assert cut(0, 4, 1, left)[1] == [[0, 2], [-1, -1]] and cut(0, 6, 0, left)[1][1] == [1, -1]


@pytest.mark.parametrize('memory, share', [(None, True), ('gru', True), ('lstm', True), (None, False), ('gru', False)])
def test_it_learns_with_and_without_a_memory_and_never_takes_what_is_forbidden(memory, share):
    assert train('coma', PairEnv, learns(memory, share)).solved


@pytest.mark.slow
@pytest.mark.parametrize('seed', [0, 1, 2])
def test_it_learns_with_every_seed(seed):
    assert train('coma', PairEnv, learns(None), seed).solved


def learns(memory=None, share=True):
    policy = dict(
        model=dict(hidden_dim_list=[32], lstm_type=memory, share=share),
        learn=dict(batch_size=16, epochs=4),
        command=dict(eps=dict(type='linear', start=0.3, end=0.02, decay=6000)),
    )
    return {**ON_POLICY, 'policy': {**ON_POLICY['policy'], **policy}}


def test_a_loss_of_the_wrong_sign_learns_nothing():
    cfg = {**learns(), 'commander': dict(max_env_step=3000)}
    assert train(wrong_sign(POLICY_REGISTRY.get('coma')), PairEnv, cfg).final_return < 1.2
