"""Each env writes rows numbered env * 100 + step, so that every row that comes out says where it is from."""

from collections import deque
from types import SimpleNamespace

import numpy as np

from nervex.data import Batch
from nervex.worker.actor.rollout import ColumnRollout
from nervex.worker.actor.rows import RowRollout

ALL = np.arange(2)


def row_ids(batch: Batch) -> list:
    return np.asarray(batch['x']).tolist()


def step(rollout: ColumnRollout, t: int, ids=ALL, done=(False, False)) -> list:
    columns = {'x': ids * 100 + t, 'obs': {'a': np.stack([ids, ids], 1).astype(np.float32)}}
    return rollout.add(ids, ids is ALL, columns, np.asarray(done) if any(done) else None)


def test_full_windows_are_cut_time_first():
    rollout = ColumnRollout(None, lambda b: b, 2, window=3)
    assert step(rollout, 0) == [] and step(rollout, 1) == []
    (block,) = step(rollout, 2)
    assert row_ids(block) == [[0, 100], [1, 101], [2, 102]]
    assert block['obs']['a'].shape == (3, 2, 2)


def test_a_handed_over_window_is_never_written_again():
    rollout = ColumnRollout(None, lambda b: b, 2, window=1)
    (first,) = step(rollout, 0)
    step(rollout, 1)
    assert row_ids(first) == [[0, 100]]


def test_overlap_rows_come_again_at_the_head_of_the_next_window():
    rollout = ColumnRollout(None, lambda b: b, 2, window=2, overlap=1)
    blocks = [b for t in range(5) for b in step(rollout, t)]
    assert [row_ids(b) for b in blocks] == [[[0, 100], [1, 101], [2, 102]], [[2, 102], [3, 103], [4, 104]]]


def test_a_dropped_episode_leaves_no_row_behind():
    rollout = ColumnRollout(None, lambda b: b, 2, window=4)
    step(rollout, 0, done=(True, False))
    step(rollout, 1)
    rollout.drop(0)  # env 0's running episode is row 1 only: row 0 ended an episode
    blocks = [b for t in (2, 3) for b in step(rollout, t)]
    assert sorted(row_ids(b) for b in blocks) == [[0, 2, 3], [100, 101, 102, 103]]


def test_after_a_drop_all_envs_are_cut_together_and_march_on_as_one_block():
    rollout = ColumnRollout(None, lambda b: b, 2, window=2)
    step(rollout, 0)
    rollout.drop(1)
    assert sorted(row_ids(b) for b in step(rollout, 1)) == [[0, 1], [101]]
    step(rollout, 2)
    (block,) = step(rollout, 3)
    assert row_ids(block) == [[2, 102], [3, 103]]


def test_envs_that_answer_at_their_own_pace_are_cut_one_by_one():
    rollout = ColumnRollout(None, lambda b: b, 2, window=2)
    one = np.array([1])
    assert step(rollout, 0, one, (False,)) == []
    (block,) = step(rollout, 1, one, (False,))
    assert row_ids(block) == [100, 101]
    assert step(rollout, 2, np.array([0]), (False,)) == []


def test_a_step_of_all_does_not_cut_the_windows_of_envs_that_are_behind():
    rollout = ColumnRollout(None, lambda b: b, 2, window=3, together=False)
    one = np.array([1])
    step(rollout, 0, one, (False,))
    assert step(rollout, 1) == []
    (block,) = step(rollout, 2)  # all answer, as the blocks of an asynchronous manager may: only env 1 has three rows
    assert row_ids(block) == [100, 101, 102]
    assert row_ids(*step(rollout, 3)) == [1, 2, 3]


def test_whole_episodes_of_any_length():
    rollout = ColumnRollout(None, lambda b: b, 2, window=None)
    for t in range(99):  # longer than the first allocation
        assert step(rollout, t) == []
    (short,) = step(rollout, 99, done=(False, True))
    assert row_ids(short) == list(range(100, 200))
    (long,) = step(rollout, 100, done=(True, False))
    assert row_ids(long) == list(range(101))


def test_dropping_an_unfinished_whole_episode():
    rollout = ColumnRollout(None, lambda b: b, 2, window=None)
    step(rollout, 0)
    rollout.drop(0)
    blocks = step(rollout, 1, done=(True, True))
    assert [row_ids(b) for b in blocks] == [[1], [100, 101]]


def row_rollout(sample, traj_len):
    return RowRollout(SimpleNamespace(process_transition=None, get_train_sample=sample), 1, traj_len)


def pop_all(cache: deque) -> list:
    rows = list(cache)
    cache.clear()
    return rows


def test_rows_are_handed_over_at_traj_len_and_at_the_end():
    rollout = row_rollout(pop_all, traj_len=2)
    assert [rollout.add(0, {'t': t}, done=t == 4) for t in range(5)] == [
        [],
        [{'t': 0}, {'t': 1}],
        [],
        [{'t': 2}, {'t': 3}],
        [{'t': 4}],
    ]


def test_rows_that_the_policy_leaves_come_again_until_the_episode_ends():
    def keep_last(cache: deque) -> list:  # pops the first row, leaves the overlap
        return [cache.popleft()]

    rollout = row_rollout(keep_last, traj_len=2)
    assert [len(rollout.add(0, {'t': t}, done=t == 2)) for t in range(3)] == [0, 1, 2]
    assert rollout.add(0, {'t': 9}, done=False) == []  # nothing of the old episode is left


def test_a_policy_that_pops_nothing_has_used_everything():
    rollout = row_rollout(lambda cache: list(cache), traj_len=2)
    assert [len(rollout.add(0, {'t': t}, done=False)) for t in range(4)] == [0, 2, 0, 2]


def test_dropping_rows():
    rollout = row_rollout(pop_all, traj_len=9)
    rollout.add(0, {'t': 0}, done=False)
    rollout.drop(0)
    assert rollout.add(0, {'t': 1}, done=True) == [{'t': 1}]
