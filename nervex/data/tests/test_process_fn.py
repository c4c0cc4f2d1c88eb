"""What a sample becomes by the rows before and after it: process_fn, and episodes of an actor in order of time."""

import numpy as np
import pytest

from nervex.data import Batch, BufferManager, ReplayBuffer
from nervex.policy import create_policy
from nervex.worker.actor import BaseSerialActor

GAMMA = 0.5


def two_steps(batch, buffer, indices):
    """Rewards of two steps, and what was seen after them; a last step has one."""
    after = buffer.next(indices)
    goes_on = after != indices
    following = buffer[after]
    batch['reward'] = batch['reward'] + GAMMA * goes_on * following['reward']
    batch['next_obs'] = following['next_obs']
    batch['before'] = buffer[buffer.prev(indices)]['obs']
    return batch


def steps(numbers, env_id=None, ends=()):
    k = np.asarray(numbers)
    more = {} if env_id is None else {'env_id': np.asarray(env_id)}
    return Batch(obs=k, action=k, reward=k * 1.0, next_obs=k + 1, done=np.isin(k, ends), **more)


def manager(process_fn=two_steps, **cfg):
    return BufferManager({'monitor': {'log_freq': 0}, 'min_sample_ratio': 0, **cfg}, seed=0, process_fn=process_fn)


def expected(ends, newest, oldest=0):
    """obs -> (reward, next_obs, before), of steps 0, 1, 2, ... of one env."""
    found = {}
    for k in range(oldest, newest + 1):
        last = k in ends or k == newest
        first = k == oldest or k - 1 in ends
        found[k] = (k if last else k + GAMMA * (k + 1), k + 1 if last else k + 2, k if first else k - 1)
    return found


def read(batch):
    return {k: (r, n, b) for k, r, n, b in zip(*(batch[c].tolist() for c in ('obs', 'reward', 'next_obs', 'before')))}


@pytest.mark.parametrize('cfg', [{}, {'use_priority': True}, {'max_reuse': 1000}])
def test_a_sample_is_processed_with_the_steps_around_it(cfg):
    buffer = manager(meta_maxlen=20, **cfg)
    for start in range(0, 52, 4):
        buffer.push_data(steps(range(start, start + 4), ends=(9, 30, 41)))
        batch = buffer.sample(200, reuse=True)
        oldest = max(start + 4 - 20, 0)
        assert read(batch) == expected((9, 30, 41), start + 3, oldest)
        assert batch['replay_buffer_idx'].tolist() == [k % 20 for k in batch.obs]
    buffer.clear()
    buffer.push_data(steps(range(7)))
    assert read(buffer.sample(100)) == expected((), 6)
    twin = manager(meta_maxlen=20, **cfg)
    twin.load_state_dict(buffer.state_dict())
    assert read(twin.sample(100)) == expected((), 6)


def test_steps_of_several_envs_are_told_apart_by_their_env_id():
    buffer = manager(meta_maxlen=50)
    for t in range(6):  # env 1 counts from 100 on
        buffer.push_data(steps([t, 100 + t], env_id=[0, 1], ends=(2, 104)))
    found = read(buffer.sample(300))
    first, second = expected((2,), 5), expected((104,), 105, 100)
    assert found == {**first, **second}


def test_every_minibatch_of_a_round_is_processed():
    buffer = manager(type='on_policy')
    for first in (0, 50):
        buffer.push_data(steps(range(first, first + 12), ends=(first + 5,)))
        found = {}
        for batch in buffer.batches(4, 1):
            found.update(read(batch))
            buffer.push_data(steps([0]))  # belongs to the next round
        assert found == expected((first + 5,), first + 11, first)
        assert buffer.count() == 3
        buffer.clear()


def test_what_process_fn_answers_is_what_several_buffers_give():
    buffer = manager(lambda batch, buffer, indices: indices.tolist(), buffer_name=['a', 'b'])
    buffer.push_data(steps(range(3)))
    both = buffer.sample(5)
    assert set(both['a']) | set(both['b']) <= {0, 1, 2} and len(both['a']) == 5


def test_stacked_frames_are_read_around_a_sample():
    frames = np.arange(12 * 4, dtype=np.uint8).reshape(12, 2, 2)
    stacks = np.stack([frames[k : k + 8] for k in range(4)], 1)
    seen = {}

    def look(batch, buffer, indices):
        seen.update(zip(batch['n'].tolist(), buffer.get(buffer.next(indices), 'obs')))
        return batch

    buffer = manager(look, meta_maxlen=20, frame_axis=0)
    buffer.push_data(Batch(obs=stacks, n=np.arange(8), done=np.zeros(8, bool)))
    buffer.sample(100)
    assert all((seen[k] == stacks[min(k + 1, 7)]).all() for k in range(8))


def test_episodes_of_an_actor_become_a_buffer_in_order_of_time(tmp_path):
    from app_zoo.classic_control.cartpole.envs import CartPoleEnv
    from nervex.config import compile_config
    from nervex.worker.actor.env_manager import BaseEnvManager

    cfg = compile_config('cartpole_dqn')
    policy = create_policy(cfg.policy)
    actor = BaseSerialActor({'n_episode': 5}, exp_name=str(tmp_path))
    with BaseEnvManager(env_fn=CartPoleEnv, env_cfg=[{}] * 3) as envs:
        envs.seed(0)
        envs.launch()
        actor.env, actor.policy = envs, policy.collect_mode
        policy.set_setting('collect', {'eps': 1.0})
        data, _ = actor.generate_data(0)
        buffer = ReplayBuffer(1000, ignore_obs_next=True, seed=0)
        slots = buffer.extend(data)
        actor.close()
    done = np.flatnonzero(np.asarray(data['done'], bool))
    assert len(buffer) == len(data) and len(done) >= 5
    following = buffer.next(slots)
    assert (following[done] == slots[done]).all() and (np.delete(following, done) == np.delete(slots + 1, done)).all()
    inner = np.setdiff1d(np.arange(len(data)), done)
    assert np.array_equal(buffer[slots].obs_next[inner], np.asarray(data['next_obs'])[inner])
    batch, indices = buffer.sample(32)
    assert batch == buffer[indices] and set(buffer.prev(buffer.next(indices)).tolist()) <= set(slots.tolist())
