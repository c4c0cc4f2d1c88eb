"""A policy as calls with batches, its pipeline of an update by hand, and single episodes."""

import numpy as np
import pytest
import torch

from nervex.data import Batch, BufferManager, PrioritizedReplayBuffer, ReplayBuffer
from nervex.envs import BaseEnvTimestep
from nervex.envs.tests import fakes
from nervex.policy import BatchPolicy, test_one_episode, train_one_episode
from nervex.policy.dqn import DQNPolicy
from nervex.policy.ppo import PPOPolicy
from nervex.policy.r2d2 import R2D2Policy
from nervex.policy.td3 import TD3Policy
from nervex.utils import tree

MODEL = dict(obs_dim=4, action_dim=2, hidden_dim_list=[8])


def dqn(nstep=1, cls=BatchPolicy, **cfg):
    steps = dict(algo=dict(nstep=nstep, discount_factor=0.5))
    learn = dict(batch_size=4, init_data_count=0, graph='off', **steps)
    torch.manual_seed(0)
    return cls(DQNPolicy({**dict(model=MODEL, learn=learn, collect=steps), **cfg}))


def test_an_episode_without_an_actor_takes_the_greedy_actions_of_the_model():
    policy, env, done, state, seen = dqn(), fakes.CounterEnv({'length': 4}), False, None, []
    obs = env.reset()
    while not done:
        result = policy(Batch(obs=[obs]), state)
        seen.append((obs, int(result.act[0])))
        obs, _, done, info = env.step(result.act[0])
        state = result.state
    assert info['final_eval_reward'] == 10.0 and len(seen) == 4
    logit = policy.policy._model({'obs': torch.as_tensor(np.stack([obs for obs, _ in seen]))})['logit']
    assert [act for _, act in seen] == logit.argmax(1).tolist()


def test_what_the_model_said_is_stored_beside_the_step():
    policy, buffer = dqn().train(), ReplayBuffer(8)
    obs = np.arange(4, dtype=np.float32)
    result = policy(Batch(obs=[obs]))
    buffer.add(obs, result.act[0], 1.0, True, obs, policy=result[0].policy)
    assert result.policy.logit.shape == (1, 2) and np.array_equal(buffer[0].policy.logit, result.policy.logit[0])


def test_states_go_on_where_they_are_passed_and_begin_anew_where_not_or_where_a_row_was_done():
    model = dict(obs_dim=4, action_dim=2, hidden_dim_list=[8])
    policy = BatchPolicy(R2D2Policy(dict(model=model, eval=dict(env_num=2))))
    first, second = (Batch(obs=np.random.default_rng(k).normal(size=(2, 4)).astype(np.float32)) for k in range(2))
    state = policy(first).state
    went_on, anew = policy(second, state), policy(second)
    reset = policy(Batch({**dict(second.items()), 'done': [True, False]}), state)
    logit = [r.policy.logit for r in (went_on, anew, reset)]
    assert not np.allclose(logit[0], logit[1])
    assert np.allclose(logit[2][0], logit[1][0]) and np.allclose(logit[2][1], logit[0][1])
    assert np.allclose(policy(second, state).policy.logit, logit[0])
    with pytest.raises(ValueError, match='learns from sequences'):
        policy.process_fn(first, ReplayBuffer(4), np.array([0]))


def filled(cls=ReplayBuffer, episode=3, steps=5, truncated=False, **more):
    """Steps with the rewards 1, 2, 3, ...; the first episode has three of them, the second is still going on."""
    buffer = cls(16)
    for t in range(steps):
        obs, after, done = np.full(4, t, np.float32), np.full(4, t + 1, np.float32), t == episode - 1
        buffer.add(obs, t % 2, t + 1.0, done, after, {'truncated': done and truncated}, **more)
    return buffer


@pytest.mark.parametrize('truncated', [False, True])
def test_n_step_samples_by_hand(truncated):
    policy, buffer = dqn(nstep=2), filled(truncated=truncated)
    slots = np.array([0, 1, 2, 3, 4])
    samples = policy.process_fn(buffer[slots], buffer, slots)
    assert samples['reward'].tolist() == [[1, 2], [2, 3], [3, 0], [4, 5], [5, 0]]  # nothing of the next episode
    assert samples['next_obs'][:, 0].tolist() == [2, 3, 3, 5, 5]
    ended = np.asarray(samples['done']) & ~np.asarray(samples['truncated'])
    assert ended.tolist() == [False, not truncated, not truncated, False, False]
    assert samples['value_gamma'].tolist() == [0.25, 0.25, 0.5, 0.25, 0.5]  # by the steps really taken
    assert samples['obs'][:, 0].tolist() == [0, 1, 2, 3, 4]


def test_advantages_of_whole_episodes_by_hand():
    algo = dict(discount_factor=1.0, gae_lambda=1.0)
    policy = BatchPolicy(PPOPolicy(dict(model=MODEL, learn=dict(algo=algo))))
    with torch.no_grad():
        for parameter in policy.policy._model.parameters():
            parameter.zero_()  # every value is 0
    said = dict(logit=np.zeros(2, np.float32), value=np.float32(0.0))
    buffer = filled(policy=said)
    batch, slots = buffer.sample(0)
    samples = policy.process_fn(batch, buffer, slots)
    assert samples['adv'].tolist() == [6, 5, 3, 9, 5]  # 1 + 2 + 3, 2 + 3, 3; then 4 + 5, 5


class Noted(BatchPolicy):
    """Notes the states that it is in."""

    def __init__(self, policy):
        super().__init__(policy)
        self.notes = []

    def note(self, name):
        self.notes.append((name, self.training, self.updating))

    def forward(self, batch, state=None):
        self.note('forward')
        return super().forward(batch, state)

    def process_fn(self, batch, buffer, indices):
        self.note('process_fn')
        return super().process_fn(batch, buffer, indices)

    def learn(self, batch):
        self.note('learn')
        return super().learn(batch)

    def post_process_fn(self, batch, buffer, indices, info):
        self.note('post_process_fn')
        super().post_process_fn(batch, buffer, indices, info)


def test_an_update_is_a_pipeline_in_the_documented_states():
    policy, obs = dqn(cls=Noted), Batch(obs=np.zeros((2, 4), np.float32))
    policy(obs)
    policy.train()(obs)
    info = policy.update(4, filled())
    policy.eval()(obs)
    assert policy.notes == [
        ('forward', False, False),
        ('forward', True, False),
        ('process_fn', True, True),
        ('learn', True, True),
        ('post_process_fn', True, True),
        ('forward', False, False),
    ]
    assert torch.isfinite(info['total_loss']) and policy.updates == 1


@pytest.mark.parametrize('nstep', [1, 2])
def test_priorities_go_back_into_the_buffer(nstep):
    policy, buffer = dqn(nstep, use_priority=True), filled(PrioritizedReplayBuffer)
    before = buffer[np.arange(5)].weight.copy()
    info = policy.update(5, buffer)
    assert info['priority'].shape == (5,) and not np.allclose(buffer[np.arange(5)].weight, before)


def test_samples_of_a_manager_are_learned_as_they_are():
    policy, seen = dqn(use_priority=True), []
    buffer = BufferManager({'meta_maxlen': 16})
    obs = np.zeros((8, 4), np.float32)
    buffer.push_data(
        Batch(obs=obs, next_obs=obs, action=np.zeros(8, np.int64), reward=np.ones(8), done=np.ones(8, bool))
    )
    buffer.update = lambda info: seen.append(len(info['priority']))
    policy.update(4, buffer)
    assert seen == [4]


def test_forward_may_ask_for_what_the_last_step_brought():
    class Curious(BatchPolicy):
        def forward(self, batch, state=None):
            assert batch.info.truncated.tolist() == [False] and batch.done.tolist() == [False]
            return Batch(act=np.full(len(batch), int(batch.rew[0] > 1)))

    policy = dqn(cls=Curious)
    asked = Batch(obs=np.zeros((1, 4)), rew=[2.0], done=[False], info=[{'truncated': False}])
    assert policy(asked).act.tolist() == [1]


@pytest.mark.parametrize('discrete', [True, False])
def test_episodes_answer_their_reward_steps_and_pictures(discrete):
    class Drawn(fakes.CounterEnv):
        def render(self):
            return np.full((2, 2, 3), self.steps, np.uint8)

    if discrete:
        policy = dqn()
    else:
        model = dict(obs_dim=4, action_dim=2, hidden_dim_list=[8])
        policy = BatchPolicy(TD3Policy(dict(model=model, learn=dict(init_data_count=0, graph='off'))))
    env, buffer = Drawn({'length': 5, 'act_dim': 0 if discrete else 2}), ReplayBuffer(100)
    result = train_one_episode(env, policy, buffer, batch_size=4, render=True)
    assert (result['ep_reward'], result['ep_step'], len(buffer)) == (15.0, 5, 5)
    assert [frame[0, 0, 0] for frame in result['ep_frames']] == [0, 1, 2, 3, 4] and policy.updates == 2
    weights = tree.map(torch.clone, policy.policy._model.state_dict())
    result = test_one_episode(env, policy, max_step=3)
    assert result == {'ep_reward': 6.0, 'ep_step': 3, 'ep_frames': []} and len(buffer) == 5
    assert all(torch.equal(a, b) for _, a, b in tree.zip(weights, dict(policy.policy._model.state_dict())))


def test_an_episode_that_is_cut_ends_as_by_a_time_limit():
    policy, buffer = dqn(nstep=2), ReplayBuffer(100)
    for _ in range(2):
        assert train_one_episode(fakes.CounterEnv({'length': 9}), policy, buffer, max_step=2)['ep_step'] == 2
    slots = np.arange(4)
    samples = policy.process_fn(buffer[slots], buffer, slots)
    assert samples['reward'].tolist() == [[1, 2], [2, 0], [1, 2], [2, 0]] and np.asarray(samples['truncated']).all()


def test_on_policy_episodes_are_learned_at_their_end():
    policy = BatchPolicy(PPOPolicy(dict(model=MODEL, learn=dict(batch_size=2, epochs=3, graph='off'))))
    buffer = ReplayBuffer(100)
    assert train_one_episode(fakes.CounterEnv({'length': 4}), policy, buffer)['ep_step'] == 4
    assert policy.updates == 6 and len(buffer) == 0  # three passes over two minibatches


class Bandit(fakes.CounterEnv):
    """Action 1 brings 1, action 0 nothing."""

    def step(self, action):
        step = super().step(action)
        return BaseEnvTimestep(step.obs * 0, np.float32(int(action) == 1), step.done, step.info)


def test_it_learns():
    policy = dqn(learn=dict(batch_size=16, graph='off', learning_rate=0.01, algo=dict(discount_factor=0.5)))
    env, buffer = Bandit({'length': 10}), ReplayBuffer(500)
    for _ in range(20):
        train_one_episode(env, policy, buffer, batch_size=16)
    assert test_one_episode(env, policy)['ep_reward'] == 10.0
