"""R2D2: targets and priorities by hand, the stored state, and a problem that only a memory solves."""

import numpy as np
import pytest
import torch

from nervex.data import Batch
from nervex.policy.r2d2 import R2D2Policy
from nervex.policy.tests.learning import train
from nervex.policy.tests.toy_envs import CueEnv
from nervex.rl_utils import value_transform

MEMORY = dict(
    policy=dict(
        model=dict(hidden_dim_list=[32], lstm_hidden_dim=16),
        learn=dict(batch_size=16, train_step=4, learning_rate=5e-3, algo=dict(nstep=2, target_update_freq=50)),
        collect=dict(unroll_len=5, traj_len=5),
        command=dict(eps=dict(start=1.0, end=0.1, decay=200)),
    ),
    actor=dict(n_sample=8),
)


class Counter(torch.nn.Module):
    """A recurrent network by hand: the state counts the steps; Q(s, a) = obs + count + a."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def initial_state(self):
        return torch.zeros(1)

    def forward(self, data):
        obs = data['obs'].squeeze(-1)
        rows = obs.shape[-1]
        state = torch.stack([torch.zeros(1) if s is None else s for s in data['prev_state']]).squeeze(-1)
        steps = obs if obs.dim() == 2 else obs.unsqueeze(0)
        count = state + torch.arange(1, len(steps) + 1).unsqueeze(1)
        q = torch.stack([steps + count, steps + count + 1], -1) * self.scale
        last = list(count[-1].unsqueeze(1).unbind(0))
        assert len(last) == rows
        return {'logit': q if obs.dim() == 2 else q[0], 'next_state': last}


def policy_of(**algo):
    algo = dict(nstep=1, discount_factor=0.5, burnin_step=1, value_rescale=False, priority_eta=0.9) | algo
    cfg = dict(learn=dict(algo=algo), collect=dict(unroll_len=2, traj_len=2), model=dict())
    return R2D2Policy(cfg, model=Counter(), enable_field=['learn', 'collect'])


def sequence(done=(False, False), mask=(True, True), fresh=False, state=5.0, truncated=(False, False)):
    return Batch.of(
        dict(
            obs=np.zeros((1, 4, 1), np.float32),
            action=np.array([[0, 1]]),
            reward=np.array([[1.0, 2.0]], np.float32),
            done=np.array([done]),
            truncated=np.array([truncated]),
            mask=np.array([mask]),
            fresh=np.array([fresh]),
            prev_state=np.array([[state]], np.float32),
        )
    )


def errors(policy, data):
    data = policy._data_preprocess_learn(data)
    return policy._sequence_error(data, policy._armor.forward, policy._armor.target_forward)[0][:, 0].tolist()


def test_targets_by_hand():
    # state 5, one step of burn-in makes it 6: counts 7, 8, 9 behind it, Q(a) = count + a
    assert errors(policy_of(), sequence()) == [1 + 0.5 * 9 - 7, 2 + 0.5 * 10 - 9]
    assert errors(policy_of(), sequence(fresh=True)) == [1 + 0.5 * 8 - 6, 2 + 0.5 * 9 - 8]  # no burn-in
    assert errors(policy_of(nstep=2), sequence()) == [1 + 0.5 * 2 + 0.25 * 10 - 7, 2 + 0.5 * 10 - 9]


def test_ends_inside_a_sequence():
    ended = dict(done=(True, True), mask=(True, False))
    assert errors(policy_of(nstep=2), sequence(**ended))[0] == 1 - 7
    assert errors(policy_of(nstep=2), sequence(**ended, truncated=(True, False)))[0] == 1 + 0.5 * 9 - 7
    cut = dict(done=(False, True), mask=(True, False))  # the block of steps ended, not the episode
    assert errors(policy_of(nstep=2), sequence(**cut))[0] == 1 + 0.5 * 9 - 7


def test_values_are_learned_under_the_transformation():
    h = lambda x: value_transform(torch.tensor(float(x))).item()  # noqa: E731
    policy = policy_of(value_rescale=True)
    policy._armor.target_model.scale.data = torch.tensor(h(9) / 9)  # so that h^-1(Q_target(s1, 1)) is 9 - almost
    first = errors(policy, sequence())[0]
    assert first == pytest.approx(h(1 + 0.5 * 9) - 7, abs=1e-4)


def test_loss_and_priority_leave_padding_out():
    policy = policy_of()
    loss, info = policy._loss(policy._data_preprocess_learn(sequence()))
    a, b = 1 + 0.5 * 9 - 7, 2 + 0.5 * 10 - 9  # -1.5 and -2
    assert loss.item() == pytest.approx((a * a + b * b) / 2)
    assert info['td_error'].tolist() == pytest.approx([0.9 * 2 + 0.1 * 1.75])
    loss, info = policy._loss(policy._data_preprocess_learn(sequence(mask=(True, False), done=(False, True))))
    assert loss.item() == pytest.approx(a * a) and info['td_error'].tolist() == pytest.approx([1.5])


@pytest.mark.parametrize('steps', [1, 2])
def test_padding_has_no_part_in_first_priorities(steps):
    algo = dict(nstep=1, discount_factor=0.5, burnin_step=0, value_rescale=False, priority_eta=0.9)
    collect = dict(unroll_len=3, traj_len=3, algo=dict(first_priority=True))
    policy = R2D2Policy(dict(use_priority=True, learn=dict(algo=algo), collect=collect, model={}), model=Counter())
    zeros = np.zeros((steps, 1), np.float32)
    traj = Batch.of(
        dict(
            obs=zeros,
            next_obs=zeros,
            action=np.zeros(steps, np.int64),
            reward=np.ones(steps, np.float32),
            done=np.arange(steps) == steps - 1,
            truncated=np.zeros(steps, bool),
            prev_state=zeros + 5.0,
        )
    )
    samples = policy._get_train_sample(traj)
    assert samples['mask'].tolist() == [[k < steps for k in range(3)]]
    # state 5 makes counts 6, 7: Q(s, 0) = 6, 7 and the best following value is 8; the last step ends the episode
    errors = [abs(1 - 6)] if steps == 1 else [abs(1 + 0.5 * 8 - 6), abs(1 - 7)]
    expected = 0.9 * max(errors) + 0.1 * sum(errors) / steps
    assert samples['priority'].tolist() == pytest.approx([expected])


def test_weights_scale_each_sequence():
    policy = policy_of()
    policy._cfg.use_priority = True
    both = Batch.cat([sequence(), sequence(state=6.0)])
    first, second = (policy._loss(policy._data_preprocess_learn(sequence(state=x)))[0].item() for x in (5.0, 6.0))
    weighted = Batch.of({**dict(both.items()), 'IS': np.array([2.0, 0.5], np.float32)})
    loss = policy._loss(policy._data_preprocess_learn(weighted))[0].item()
    assert first != second and loss == pytest.approx((2 * first + 0.5 * second) / 2)


@pytest.mark.parametrize('double, value', [(True, 10.0), (False, 99.0)])
def test_the_online_network_chooses_the_action_of_the_target(double, value):
    class Liar(Counter):
        """A target network for which action 0 is worth 99."""

        def forward(self, data):
            output = super().forward(data)
            return {**output, 'logit': torch.cat([output['logit'][..., :1] * 0 + 99, output['logit'][..., 1:]], -1)}

    policy = policy_of(double_q=double)
    policy._armor.target_model.forward = Liar().forward
    assert errors(policy, sequence())[1] == 2 + 0.5 * value - 9


def test_burn_in_gives_no_gradient():
    policy = policy_of()
    calls = []
    forward = policy._armor.forward

    def watched(data):
        calls.append((len(data['obs']), torch.is_grad_enabled()))
        return forward(data)

    policy._sequence_error(policy._data_preprocess_learn(sequence()), watched, policy._armor.target_forward)
    assert calls == [(1, False), (3, True)]


def test_states_of_each_env_are_kept_stored_and_reset():
    policy = R2D2Policy(
        dict(collect=dict(env_num=2, unroll_len=2, traj_len=2), model=dict()), model=Counter(), enable_field=['collect']
    )
    policy.set_setting('collect', {'eps': 0.0})
    data = {'obs': torch.zeros(2, 1)}
    states = [policy._forward_collect([0, 1], data)['prev_state'] for _ in range(2)]
    assert [[s.item() for s in step] for step in states] == [[0, 0], [1, 1]]
    policy._reset_collect(data_id=[1])
    assert [s.item() for s in policy._forward_collect([0, 1], data)['prev_state']] == [2, 0]


def test_solves_a_problem_of_memory():
    assert train('r2d2', CueEnv, MEMORY).final_return == 1


def test_a_policy_without_memory_cannot():
    cfg = dict(policy=dict(learn=dict(algo=dict(nstep=2)), command=MEMORY['policy']['command']))
    assert train('dqn', CueEnv, cfg).final_return < 0.5


@pytest.mark.slow
@pytest.mark.parametrize('settings', [dict(use_priority=True), dict(collect=dict(unroll_len=5, traj_len='inf'))])
def test_solves_it_with_priorities_and_from_whole_episodes(settings):
    policy = {**MEMORY['policy'], **settings}
    assert train('r2d2', CueEnv, dict(MEMORY, policy=policy)).final_return == 1
