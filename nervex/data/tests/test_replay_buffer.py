"""ReplayBuffer and its variants: order of time, stacking, derived observations, priorities."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nervex.data import Batch, ListReplayBuffer, PrioritizedReplayBuffer, ReplayBuffer, sum_tree


def filled(size, steps, cls=ReplayBuffer, **options):
    buf = cls(size, **options)
    for i in range(steps):
        buf.add(obs=i, act=i, rew=i, done=i % 5 == 0, obs_next=i + 1, info={})
    return buf


# ---- the tutorial examples
def test_ring_order_and_full_size_columns():
    buf = filled(20, 3)
    assert len(buf) == 3 and buf.obs.tolist() == [0, 1, 2] + [0] * 17 and buf.obs.dtype == np.int64
    buf2 = filled(10, 15)
    assert len(buf2) == 10 and buf2.obs.tolist() == [10, 11, 12, 13, 14, 5, 6, 7, 8, 9]
    assert buf.update(buf2).tolist() == list(range(3, 13))
    assert buf.obs.tolist() == [0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14] + [0] * 7
    batch, index = buf.sample(batch_size=4)
    assert (batch.obs == buf[index].obs).all() and batch == buf[index]
    assert set(batch.keys()) == {'obs', 'act', 'rew', 'done', 'obs_next', 'info', 'policy'}


def test_stacked_reading_with_derived_next_observations():
    buf = ReplayBuffer(size=9, stack_num=4, ignore_obs_next=True)
    for i in range(16):
        buf.add(obs={'id': i}, act=i, rew=i, done=i % 5 == 0, obs_next={'id': i + 1})
    assert buf.obs.id.tolist() == [9, 10, 11, 12, 13, 14, 15, 7, 8] and 'obs_next' not in repr(buf)
    index = np.arange(len(buf))
    stacked = [
        [7, 7, 8, 9],
        [7, 8, 9, 10],
        [11, 11, 11, 11],
        [11, 11, 11, 12],
        [11, 11, 12, 13],
        [11, 12, 13, 14],
        [12, 13, 14, 15],
        [7, 7, 7, 7],
        [7, 7, 7, 8],
    ]
    assert buf.get(index, 'obs').id.tolist() == stacked == buf[index].obs.id.tolist()
    assert buf[:].obs_next.id.tolist() == [
        [7, 8, 9, 10],
        [7, 8, 9, 10],
        [11, 11, 11, 12],
        [11, 11, 12, 13],
        [11, 12, 13, 14],
        [12, 13, 14, 15],
        [12, 13, 14, 15],
        [7, 7, 7, 8],
        [7, 7, 8, 9],
    ]
    assert buf.get(3, 'act', stack_num=1) == 12 and buf.get([3, 4], 'act').shape == (2, 4)


# ---- adding and reading
def test_all_ways_of_adding_agree():
    obs, rng = np.random.default_rng(0).random((6, 3), dtype=np.float32), np.random.default_rng(1)
    act, rew, done = rng.integers(0, 4, 6), rng.random(6), np.array([0, 0, 1, 0, 0, 0], bool)
    one, many, dicts, mixed = (ReplayBuffer(4) for _ in range(4))
    for k in range(6):
        one.add(obs[k], act[k], rew[k], bool(done[k]), obs[k] + 1)
        dicts.add({'obs': obs[k], 'act': act[k], 'rew': rew[k], 'done': done[k], 'obs_next': obs[k] + 1})
    whole = Batch(obs=obs, act=act, rew=rew, done=done, obs_next=obs + 1)
    assert many.extend(whole).tolist() == [0, 1, 2, 3, 0, 1]
    mixed.add(whole[0])
    mixed.add(whole[1:5])
    mixed.add(whole[5])
    assert one[:] == many[:] == dicts[:] == mixed[:] and len(one) == 4
    assert one.obs_next[0].tolist() == (obs[4] + 1).tolist()


def test_values_are_kept_exactly_even_if_the_first_ones_were_simpler():
    buf = ReplayBuffer(4)
    buf.add(obs=1, act=0, rew=0, done=False)
    buf.add(obs=2, act=1, rew=0.5, done=False)
    buf.add(obs=2**40, act=1, rew=1e-9, done=True)
    assert buf.rew.tolist()[:3] == [0.0, 0.5, 1e-9] and buf.obs.tolist()[:3] == [1, 2, 2**40]


def test_what_does_not_fit_is_refused_and_nothing_is_damaged():
    buf = ReplayBuffer(3)
    for k in range(3):
        buf.add(np.full(2, k, np.float32), k, 0.0, False)
    for bad in (np.zeros(3, np.float32), np.zeros(1, np.float32), np.zeros((2, 2), np.float32)):
        with pytest.raises(ValueError, match="column 'obs' stores rows of shape"):
            buf.add(bad, 1, 0.0, False)
    with pytest.raises(ValueError, match="column 'done'"):
        buf.add(np.zeros(2, np.float32), 1, 0.0, np.zeros(2, bool))
    with pytest.raises(KeyError, match='columns'):
        buf.add(np.zeros(2, np.float32), 1, 0.0, False, extra=1)
    rows = {tuple(row.obs) + (row.act,) for row in buf[:]}
    assert (
        rows <= {(0.0, 0.0, 0), (1.0, 1.0, 1), (2.0, 2.0, 2)} and len(buf) == 3
    )  # a failed add takes the oldest with it
    buf.add(np.full(2, 9.0, np.float32), 9, 0.0, False)
    assert buf.act.tolist() == [9, 1, 2]


def test_nested_observations_and_infos_that_come_and_go():
    buf = ReplayBuffer(5)
    for k in range(7):
        info = {'TimeLimit.truncated': True, 'deep': {'x': k}} if k == 4 else {}
        buf.add(obs={'image': np.full((2, 2), k, np.uint8), 'speed': float(k)}, act=k, rew=1.0, done=False, info=info)
    assert buf.obs.image.dtype == np.uint8 and buf[2].obs.image.tolist() == [[2, 2], [2, 2]]
    assert buf.info['TimeLimit.truncated'].tolist() == [False, False, False, False, True]
    assert buf[4].info.deep.x == 4 and buf[0].info.deep.x == 0 and buf[1].obs.speed == 6.0


def test_terminated_and_truncated_make_done():
    buf = ReplayBuffer(4, ignore_obs_next=True)
    for k, (terminated, truncated) in enumerate([(False, False), (False, True), (True, False)]):
        buf.add(obs=k, act=k, rew=0.0, terminated=terminated, truncated=truncated)
    assert buf.done[:3].tolist() == [False, True, True] and buf[:].obs_next.tolist() == [1, 1, 2]


def test_indexing():
    buf = filled(10, 4)
    assert buf[-1].obs == 3 and buf[1:3].obs.tolist() == [1, 2]
    assert buf[[True, False, False, True]].obs.tolist() == [0, 3]
    assert buf[3].obs == buf.obs[3] and len(buf[[]]) == 0
    for bad in (4, -5, [0, 9]):
        with pytest.raises(IndexError, match='4 steps'):
            _ = buf[bad]
    with pytest.raises(AttributeError, match="no column 'reward'; it has: obs"):
        _ = buf.reward


def test_tensors_stay_tensors():
    buf = ReplayBuffer(3, stack_num=2)
    for k in range(4):
        buf.add(obs=torch.full((2,), float(k)), act=torch.tensor(k), rew=1.0, done=False)
    batch, _ = buf.sample(0)
    assert isinstance(batch.obs, torch.Tensor) and batch.obs.shape == (3, 2, 2) and batch.act.tolist() == [1, 2, 3]


def test_sampling_is_seeded_and_uniform():
    a, b = filled(50, 80, seed=3), filled(50, 80, seed=3)
    assert all((a.sample(7)[1] == b.sample(7)[1]).all() for _ in range(3))
    counts = np.bincount(a.sample(50_000)[1], minlength=50)
    assert ((counts - 1000) ** 2 / 1000).sum() < 85.4  # chi-square with 49 degrees of freedom, p = 0.001
    with pytest.raises(ValueError, match='empty'):
        ReplayBuffer(3).sample(1)
    order = filled(10, 15)
    assert order.sample(0)[0].obs.tolist() == list(range(5, 15))


def test_pickling_keeps_contents_and_draws():
    for buf in (
        filled(9, 16, stack_num=3, ignore_obs_next=True),
        filled(9, 16, PrioritizedReplayBuffer),
        filled(4, 16, ListReplayBuffer),
    ):
        buf.add(obs=16, act=16, rew=16, done=False, obs_next=17, env_id=3)
        twin = pickle.loads(pickle.dumps(buf))
        assert type(twin) is type(buf) and len(twin) == len(buf)
        assert all(twin.sample(5)[0] == buf.sample(5)[0] for _ in range(3))
        for one in (buf, twin):
            one.add(obs=17, act=0, rew=0, done=True, obs_next=18, env_id=3)
        assert twin[:] == buf[:]


def test_reset_forgets():
    buf = filled(5, 7)
    buf.reset()
    assert len(buf) == 0
    buf.add(obs=1, act=1, rew=1, done=False, obs_next=2)
    assert len(buf) == 1 and buf[0].obs == 1


def test_list_buffer_keeps_everything_in_order():
    buf = filled(2, 50, ListReplayBuffer, stack_num=2)
    assert len(buf) == 50 and buf[:].act.tolist() == list(range(50)) and buf[6].obs.tolist() == [6, 6]
    buf.reset()
    buf.extend(Batch(obs=np.arange(3), act=np.arange(3), rew=np.arange(3), done=np.zeros(3, bool), obs_next=np.ones(3)))
    assert len(buf) == 3


# ---- several envs, against a slow model
class Model:
    """All steps ever added, in a list."""

    def __init__(self, size, stack_num):
        self.steps, self.size, self.stack_num = [], size, stack_num
        self.last = {}

    def add(self, env, done):
        number = len(self.steps)
        self.steps.append({'before': self.last.get(env), 'after': None})
        if self.last.get(env) is not None:
            self.steps[self.last[env]]['after'] = number
        self.last[env] = None if done else number

    def stored(self):
        return range(max(0, len(self.steps) - self.size), len(self.steps))

    def stack(self, number):
        stack = [number]
        while len(stack) < self.stack_num:
            before = self.steps[stack[0]]['before']
            stack.insert(0, before if before is not None and before in self.stored() else stack[0])
        return stack

    def next(self, number):
        after = self.steps[number]['after']
        return number if after is None else after


@settings(max_examples=80, deadline=None)
@given(
    size=st.integers(1, 12),
    stack_num=st.integers(1, 4),
    single=st.integers(0, 15),
    events=st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=40),
)
def test_stacks_and_next_observations_stay_in_their_trajectory(size, stack_num, single, events):
    """First ``single`` steps of one env without an id, then steps of several envs, alone or in blocks."""
    buf, model = ReplayBuffer(size, stack_num, ignore_obs_next=True), Model(size, stack_num)
    for k in range(single):
        buf.add(obs=k, act=k, rew=0.0, done=k % 4 == 3)
        model.add(0, k % 4 == 3)
    block = []
    for env, done, wait in events:
        block.append((len(model.steps), env, done))
        model.add(env, done)
        if not wait:
            numbers, envs, dones = (np.array(c) for c in zip(*block))
            buf.extend({'obs': numbers, 'act': numbers, 'rew': np.zeros(len(block)), 'done': dones}, env_id=envs)
            block = []
    for number, env, done in block:
        buf.add(obs=number, act=number, rew=0.0, done=done, env_id=env)
    stored = list(model.stored())
    if not stored:
        return
    assert sorted(buf.obs[: len(buf)].tolist()) == stored
    for slot in range(len(buf)):
        number = int(buf.obs[slot])
        expected, following = model.stack(number), model.stack(model.next(number))
        row = buf[slot]
        assert np.atleast_1d(row.obs).tolist() == expected
        assert np.atleast_1d(row.obs_next).tolist() == following


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(1, 9),
    stack_num=st.integers(2, 4),
    events=st.lists(
        st.tuples(st.integers(1, 5), st.booleans(), st.sampled_from(['read', 'pickle', 'cut', ''])), max_size=12
    ),
)
def test_plain_steps_are_put_in_order_whenever_somebody_asks(size, stack_num, events):
    """Complete plain steps are only written at first; reading, pickling or appending others then finds their order."""
    buf, model = ReplayBuffer(size, stack_num), Model(size, stack_num)
    for n, ends, then in events:
        first = len(model.steps)
        number, done = np.arange(first, first + n), np.full(n, False)
        done[-1] = ends
        if n == 1:
            buf.add(first, first, 0.0, bool(ends), first)
        else:
            buf.extend(Batch(obs=number, act=number, rew=np.zeros(n), done=done, obs_next=number))
        for end in done:
            model.add(0, bool(end))
        if then == 'pickle':
            buf = pickle.loads(pickle.dumps(buf))
        elif then == 'cut':
            buf.update(ReplayBuffer(1))  # nothing to append
        if then == 'read' or first > 20:
            stacks = np.atleast_2d(buf[:].obs).tolist()
            assert stacks == [model.stack(int(buf.act[slot])) for slot in range(len(buf))]
    assert len(buf) == min(size, len(model.steps))


@settings(max_examples=30, deadline=None)
@given(first=st.integers(0, 12), second=st.integers(1, 12), envs=st.integers(1, 3), size=st.integers(3, 20))
def test_update_appends_in_order_and_does_not_join_episodes(first, second, envs, size):
    buf, other = ReplayBuffer(size, stack_num=2), ReplayBuffer(6, stack_num=2)
    for k in range(first):
        buf.add(obs=k, act=k, rew=0, done=False, obs_next=k + 1)
    for k in range(100, 100 + second):
        other.add(obs=k, act=k, rew=0, done=False, obs_next=k + 1, env_id=None if envs == 1 else k % envs)
    kept = list(range(100, 100 + second))[-6:]
    slots = buf.update(other)
    assert buf.act[slots[-size:]].tolist() == kept[-size:]
    buf.add(obs=0, act=500, rew=0, done=False, obs_next=0)
    for slot in range(len(buf)):
        stack, number = buf[slot].obs, int(buf.act[slot])
        if number >= 100:
            assert stack[0] == stack[1] or (stack[1] - stack[0] == envs and stack[0] >= kept[0])


# ---- priorities
@pytest.mark.parametrize('numba', [False, True])
def test_prioritized_buffer_draws_by_weight_and_corrects_for_it(numba, monkeypatch):
    if not numba:
        monkeypatch.setattr(sum_tree, 'fastest', lambda: sum_tree)
    buf = PrioritizedReplayBuffer(4, alpha=1.0, beta=0.5, seed=0)
    for k in range(4):
        buf.add(obs=k, act=k, rew=0.0, done=False, obs_next=k, weight=float(k))
    batch, index = buf.sample(6000)
    expected = np.array([0.01, 1.0, 2.0, 3.0]) / 6.01 * 6000  # a weight of 0 counts as 0.01; draws are stratified
    assert np.abs(np.bincount(index, minlength=4) - expected).max() < 2
    assert np.allclose(batch.weight, (np.array([0.01, 1.0, 2.0, 3.0])[index] / 0.01) ** -0.5)  # (p / p_min) ** -beta
    assert batch == buf[index]
    buf.update_weight([1, 2, 3], np.zeros(3) + 1e-12)
    buf.update_weight(0, 2.0)
    assert set(buf.sample(100)[1].tolist()) == {0}
    buf.add(obs=9, act=9, rew=0.0, done=False, obs_next=9)  # takes slot 0 and the largest weight so far, 3
    assert set(buf.sample(10)[0].act.tolist()) == {9}
    with pytest.raises(ValueError, match='step 2: -1'):
        buf.update_weight([1, 2], [1.0, -1.0])
    with pytest.raises(ValueError, match='step 1: nan'):
        buf.update_weight([1], [np.nan])


def test_lists_become_arrays():
    buf = ReplayBuffer(4)
    for i in range(3):
        buf.add(obs=[i, i + 0.5], act=(i, 0), rew=1.0, done=False, obs_next=[i + 1, 0.0], info={'path': [i] * 3})
    assert buf.obs.shape == (4, 2) and buf.obs.dtype == np.float64 and buf.act.tolist()[:3] == [[0, 0], [1, 0], [2, 0]]
    assert buf[[0, 2]].info.path.tolist() == [[0] * 3, [2] * 3]
    with pytest.raises(ValueError, match="column 'obs' stores rows of shape"):
        buf.add(obs=[1.0, 2.0, 3.0], act=(0, 0), rew=1.0, done=False, obs_next=[1.0, 2.0], info={'path': [0] * 3})


@pytest.mark.parametrize('stack_num', [-1, 2.5, 'two'])
def test_stack_num_is_a_number_of_steps(stack_num):
    with pytest.raises(ValueError, match='stack_num is a number of steps, at least 1, got'):
        ReplayBuffer(4, stack_num=stack_num)


@pytest.mark.parametrize('by_step', [True, False])
def test_a_write_that_fails_after_a_dtype_has_changed_loses_nothing_later(by_step):
    buf = ReplayBuffer(6)
    for i in range(3):
        buf.add(obs=float(i), act=i, rew=0.0, done=False, obs_next=i + 1.0)
    bad = Batch(
        obs=np.array([3.0]), act=np.array([2.5]), rew=np.zeros((1, 2)), done=np.array([False]), obs_next=np.array([4.0])
    )
    with pytest.raises(ValueError, match="column 'rew' stores rows of shape"):
        buf.extend(bad)  # by now act is float64
    if by_step:
        buf.add(obs=3.0, act=np.float64(3.5), rew=0.0, done=False, obs_next=4.0)
    else:
        buf.extend(
            Batch(
                obs=np.array([3.0]),
                act=np.array([3.5]),
                rew=np.zeros(1),
                done=np.array([False]),
                obs_next=np.array([4.0]),
            )
        )
    assert buf[:].act.tolist() == [0.0, 1.0, 2.0, 3.5] and buf[:].obs.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_slots_of_extend_go_round():
    buf = ReplayBuffer(9)
    block = Batch(obs=np.zeros(2), act=np.zeros(2), rew=np.zeros(2), done=np.zeros(2, bool), obs_next=np.zeros(2))
    slots = [buf.extend(block).tolist() for _ in range(6)]
    assert slots == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 0], [1, 2]]


def test_a_list_buffer_takes_ragged_rows():
    buf = ListReplayBuffer(2)
    for n in (2, 2, 3, 1):
        buf.add(obs=np.full(n, n), act=n, rew=0.0, done=False, obs_next=np.full(n, n + 1.0))
    assert buf.obs.dtype == object and [row.obs.tolist() for row in buf[:]] == [[2, 2], [2, 2], [3, 3, 3], [1]]
    assert buf[:].act.tolist() == [2, 2, 3, 1] and buf[2].obs_next.tolist() == [4.0, 4.0, 4.0]


def test_a_block_that_does_not_fit_takes_no_more_than_the_oldest_steps_with_it():
    buf = filled(8, 8)
    bad = Batch(obs=np.arange(3), act=np.arange(3), rew=np.arange(3), done=np.zeros(3, bool), obs_next=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="column 'obs_next'"):
        buf.extend(bad)
    assert [(row.obs, row.obs_next) for row in buf[:]] == [(max(k, 3), max(k, 3) + 1) for k in range(8)]
