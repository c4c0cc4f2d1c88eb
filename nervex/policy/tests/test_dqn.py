"""DQN: its target by hand, its variants, and that it learns."""

import numpy as np
import pytest
import torch

from nervex.data import Batch, BufferManager
from nervex.policy import check_batched
from nervex.policy.dqn import DQNPolicy
from nervex.policy.tests.learning import no_bootstrap, train, wrong_sign
from nervex.policy.tests.toy_envs import EndlessEnv, ForbiddenEnv, SwitchesEnv, TemptationEnv
from nervex.utils import ConfigError
from nervex.utils.class_config import merge_config
from nervex.worker.actor.env_manager import create_env_manager

LEARNS = dict(policy=dict(command=dict(eps=dict(start=1.0, end=0.3, decay=200))))


class Table(torch.nn.Module):
    """Action values looked up by the observation's number."""

    def __init__(self, rows):
        super().__init__()
        self.q = torch.nn.Parameter(torch.tensor(rows))

    def forward(self, data):
        out = {'logit': self.q[data['obs'].long().squeeze(-1)]}
        return {**out, 'action_mask': data['action_mask']} if 'action_mask' in data else out


def policy_of(rows, **cfg):
    return DQNPolicy(
        dict(learn=dict(algo=dict(discount_factor=0.5)), **cfg), model=Table(rows), enable_field=['learn', 'collect']
    )


def batch(**columns):
    base = dict(
        obs=torch.tensor([[0.0]]),
        next_obs=torch.tensor([[1.0]]),
        action=torch.tensor([1]),
        reward=torch.tensor([1.0]),
        done=torch.tensor([False]),
    )
    return Batch(**{**base, **columns})


def td_error(policy, data):
    return policy._loss(policy._data_preprocess_learn(data))[1]['td_error'].tolist()


def test_target_of_double_q_by_hand():
    policy = policy_of([[0.0, 2.0], [3.0, 1.0]])
    policy._armor.target_model.q.data = torch.tensor([[0.0, 0.0], [10.0, 20.0]])
    # the online net prefers action 0 in state 1, the target net says 10 of it: 1 + 0.5 * 10 - 2
    assert td_error(policy, batch()) == [4.0]
    policy._double_q = False  # the target net prefers its own 20: 1 + 0.5 * 20 - 2
    assert td_error(policy, batch()) == [9.0]


@pytest.mark.parametrize('truncated, error', [(False, 1 - 2), (True, 1 + 0.5 * 3 - 2)])
def test_an_end_has_no_next_value_but_a_time_limit_has(truncated, error):
    policy = policy_of([[0.0, 2.0], [3.0, 1.0]])
    data = batch(done=torch.tensor([True]), truncated=torch.tensor([truncated]))
    assert td_error(policy, data) == [error]


def test_illegal_actions_are_not_chosen_for_the_target():
    policy = policy_of([[0.0, 2.0], [3.0, 1.0]])
    mask = torch.tensor([[0, 1]])
    data = batch(
        obs={'observation': torch.zeros(1, 1), 'action_mask': mask},
        next_obs={'observation': torch.ones(1, 1), 'action_mask': mask},
    )
    assert td_error(policy, data) == [1 + 0.5 * 1 - 2]  # 3 is the value of an illegal action
    ended = batch(obs=data.obs, next_obs={'observation': torch.ones(1, 1), 'action_mask': mask * 0}, done=[True])
    assert td_error(policy, ended) == [1 - 2]  # a final state may have no legal action at all


def test_buffer_weights_scale_the_loss_only_with_use_priority():
    data = batch(IS=torch.tensor([0.5], dtype=torch.float32))
    plain, prioritized = policy_of([[0.0, 2.0], [3.0, 1.0]]), policy_of([[0.0, 2.0], [3.0, 1.0]], use_priority=True)
    loss = [p._loss(p._data_preprocess_learn(data))[0].item() for p in (plain, prioritized)]
    assert loss == [0.25, 0.125]  # (1 + 0.5 * 3 - 2)^2
    assert 'priority' not in plain._forward_learn(plain._data_preprocess_learn(data))
    assert prioritized._forward_learn(prioritized._data_preprocess_learn(data))['priority'].tolist() == [0.5]


def test_hubers_loss_is_half_the_square_below_one_and_linear_above():
    algo = dict(discount_factor=0.5, huber=True)
    policy = DQNPolicy(dict(learn=dict(algo=algo)), model=Table([[0.0, 2.0], [3.0, 1.0]]), enable_field=['learn'])
    data = batch()  # an error of 1 + 0.5 * 3 - 2
    assert policy._loss(policy._data_preprocess_learn(data))[0].item() == 0.5 * 0.5**2
    far = batch(reward=torch.tensor([11.0]))  # an error of 10.5
    assert policy._loss(policy._data_preprocess_learn(far))[0].item() == 10.5 - 0.5


@pytest.mark.parametrize('name', ['qrdqn', 'rainbow_dqn', 'r2d2'])
def test_hubers_loss_is_refused_where_the_loss_is_another_one(name):
    with pytest.raises(ConfigError, match='huber'):
        train(name, TemptationEnv, dict(policy=dict(learn=dict(algo=dict(huber=True)))))


def test_first_priorities_are_td_errors_of_the_collecting_model():
    policy = policy_of([[0.0, 2.0], [3.0, 1.0]], use_priority=True, collect=dict(algo=dict(first_priority=True)))
    rows = dict(obs=np.zeros((2, 1), np.float32), next_obs=np.ones((2, 1), np.float32), action=np.array([1, 0]))
    traj = Batch.of({**rows, 'reward': np.ones(2, np.float32), 'done': np.array([False, True])})
    samples = policy._get_train_sample(traj)
    assert samples['priority'].tolist() == [abs(1 + 0.5 * 3 - 2), 1.0]
    with_truncation = policy._get_train_sample(Batch.of({**dict(traj.items()), 'truncated': np.array([False, True])}))
    assert with_truncation['priority'].tolist() == [0.5, 1 + 0.5 * 3]


def test_every_env_explores_with_an_epsilon_of_its_own():
    cfg = dict(model=dict(obs_dim=1, action_dim=2), collect=dict(env_num=3), command=dict(eps_spread=7.0))
    policy = DQNPolicy(cfg, enable_field=['collect'])
    policy.set_setting('collect', {'eps': 0.4})
    seen = {}
    policy._collect_armor.forward = lambda data, eps: seen.update(eps=eps)
    policy._forward_collect([2, 0], {})
    assert np.allclose(seen['eps'], [0.4**8, 0.4])  # the paper's eps^(1 + alpha i / (N - 1))


@pytest.mark.parametrize('nstep', [1, 3])
@pytest.mark.parametrize('env', [TemptationEnv, SwitchesEnv, ForbiddenEnv])
def test_both_forms_of_transitions_and_samples_agree(env, nstep):
    manager = create_env_manager('base', env, [{}] * 3, {})
    manager.seed(0)
    algo = dict(algo=dict(nstep=nstep))
    dims = {TemptationEnv: (5, 2), SwitchesEnv: (6, [2, 3]), ForbiddenEnv: (1, 3)}[env]
    model = dict(obs_dim=dims[0], action_dim=dims[1])
    policy = DQNPolicy(dict(model=model, learn=algo, collect=algo), enable_field=['collect'])
    policy.set_setting('collect', {'eps': 0.5})
    with manager:
        manager.launch()
        assert check_batched(policy, manager, steps=40) == 120


@pytest.mark.parametrize(
    'settings',
    [
        pytest.param({}, id='plain'),
        pytest.param(dict(learn=dict(algo=dict(nstep=3))), id='three steps'),
        pytest.param(dict(use_priority=True), id='priority'),
        pytest.param(
            dict(
                use_priority=True,
                learn=dict(algo=dict(nstep=2)),
                collect=dict(algo=dict(first_priority=True)),
                command=dict(eps_spread=2.0),
            ),
            id='apex',
        ),
    ],
)
def test_learns_to_resist_temptation(settings):
    policy = {**LEARNS['policy'], **settings}
    policy['command'] = dict(eps={**LEARNS['policy']['command']['eps'], **settings.get('command', {}).get('eps', {})})
    assert train('dqn', TemptationEnv, dict(policy=policy)).final_return == 1


@pytest.mark.parametrize('broken', [wrong_sign, no_bootstrap])
def test_the_proof_fails_for_a_broken_loss(broken):
    assert train(broken(DQNPolicy), TemptationEnv, LEARNS).final_return < 0.5


def test_learns_two_action_heads():
    assert train('dqn', SwitchesEnv, LEARNS).final_return >= 1.9


def test_learns_under_action_masks_and_never_breaks_them():
    assert train('dqn', ForbiddenEnv, LEARNS).final_return == 0


def test_a_time_limit_is_not_learned_as_an_end():
    cfg = dict(policy=dict(learn=dict(algo=dict(discount_factor=0.9)), command=LEARNS['policy']['command']))
    assert train('dqn', EndlessEnv, cfg).final_return == 4  # goes on; 5 would be the way out


def test_settings_out_of_range_are_told_before_anything_starts():
    cfg = dict(policy=dict(command=dict(eps_spread=-1), learn=dict(algo=dict(target_update_freq=0))))
    with pytest.raises(ConfigError, match=r'(?s)target_update_freq.*spread|spread.*target_update_freq'):
        train('dqn', TemptationEnv, cfg)


@pytest.mark.parametrize('actor', [dict(n_episode=4), dict(n_sample=8, traj_len='inf'), dict(n_sample=8)])
def test_every_step_of_an_episode_reaches_the_buffer_with_its_nstep_target(actor, monkeypatch):
    pushed = []
    original = BufferManager.push_data
    monkeypatch.setattr(BufferManager, 'push_data', lambda self, data: pushed.append(data) or original(self, data))
    cfg = dict(
        policy=dict(learn=dict(algo=dict(nstep=3))), actor=actor, commander=dict(max_env_step=400), evaluator=dict()
    )
    steps = train('dqn', EndlessEnv, merge_config(LEARNS, cfg)).env_steps
    samples = Batch.cat(pushed)
    assert steps - 4 * 4 - 8 <= len(samples) <= steps
    # reward 1 a step, or 5 at the end: 3 rewards, fewer only where the episode ended within them
    full = (samples['reward'] > 0).all(1)
    assert samples['done'][~full].all() and (~samples['done'] & full).sum() > 20
    assert ((samples['reward'] == 5).any(1) | full | samples['truncated']).all()


def test_priorities_reach_the_buffer_and_weights_come_back(monkeypatch):
    weights = []

    class Watched(DQNPolicy):
        def _loss(self, data):
            weights.append(data['weight'])
            return super()._loss(data)

    cfg = dict(policy=dict(use_priority=True), commander=dict(max_env_step=400))
    train(Watched, TemptationEnv, merge_config(LEARNS, cfg))
    later = torch.stack(weights[-20:])
    assert (later > 0).all() and (later <= 1).all() and later.std() > 0.01
