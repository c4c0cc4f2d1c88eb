"""Prioritized sampling: frequencies, weights, limits, both kinds of sum tree."""

import importlib
import importlib.util
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nervex.data import Batch, BufferManager, sum_tree

needs_numba = pytest.mark.skipif(importlib.util.find_spec('numba') is None, reason='numba is not installed')


def manager(n, seed=0, **cfg):
    return BufferManager({'meta_maxlen': n, 'monitor': {'log_freq': 0}, 'min_sample_ratio': 0, **cfg}, seed=seed)


def info(batch, priority):
    return {
        'priority': priority,
        'replay_unique_id': batch['replay_unique_id'],
        'replay_buffer_idx': batch['replay_buffer_idx'],
    }


def priority_of(buffer):
    """Action -> priority of everything stored."""
    batch = buffer.sample(4 * buffer.count())
    return dict(zip(batch.action.tolist(), batch.priority.tolist()))


class Tree:
    """A sum tree and the loops over it."""

    def __init__(self, capacity, compiled):
        self.loops = importlib.import_module('nervex.data.sum_tree_compiled') if compiled else sum_tree
        self.tree, self.offsets = sum_tree.empty_tree(capacity)
        self.weights = self.tree[0, :capacity]

    total = property(lambda self: float(self.tree[1, -1]))
    smallest = property(lambda self: float(self.tree[2, self.offsets[-1] :].min()))

    def set(self, slots, weights):
        self.weights[slots] = weights
        self.loops.refresh(self.tree, self.offsets, slots)

    def set_rows(self, *rows):
        return self.loops.set_rows(self.tree, self.offsets, *rows)

    def draw(self, fractions, next_number, priorities, uses):
        n = fractions.size
        found = np.empty(n, np.int64), np.empty(n, np.float32), np.empty(n, np.int64), np.empty(n)
        self.loops.draw(self.tree, self.offsets, fractions, next_number, priorities, uses, *found)
        return found


def draw(tree, fractions):
    """Slots and ratios of a draw."""
    capacity = len(tree.weights)
    return tree.draw(fractions, capacity, np.zeros(capacity), np.zeros(capacity, np.int32))[:2]


# ---- the tree
@needs_numba
@settings(max_examples=60, deadline=None)
@given(capacity=st.integers(1, 700), seed=st.integers(0, 10**6))
def test_compiled_and_plain_trees_are_equal_to_the_bit(capacity, seed):
    rng = np.random.default_rng(seed)
    plain, compiled = Tree(capacity, compiled=False), Tree(capacity, compiled=True)
    weights = np.zeros(capacity)
    for _ in range(4):
        slots = rng.integers(0, capacity, rng.integers(1, 20))
        new = rng.random(len(slots)) * rng.choice([0.0, 1.0, 1e-9, 1e9], len(slots))
        start = int(rng.integers(0, capacity))
        stop = int(rng.integers(start, capacity)) + 1
        for tree in (plain, compiled):
            tree.set(slots, new)
            tree.set(np.arange(start, stop), 0.25)
        weights[slots] = new
        weights[start:stop] = 0.25
        assert (plain.weights == weights).all() and (compiled.tree[1] == plain.tree[1]).all()
        assert math.isclose(plain.total, weights.sum(), rel_tol=1e-12) and plain.total == compiled.total
        assert plain.smallest == compiled.smallest == weights[weights > 0].min()
        fractions = rng.random(50)
        drawn, ratios = draw(plain, fractions)
        same, same_ratios = draw(compiled, fractions)
        assert (drawn == same).all() and (ratios == same_ratios).all() and (weights[drawn] > 0).all()
        assert np.allclose(ratios, plain.smallest / weights[drawn])
        sums = np.cumsum(weights)
        targets = (np.arange(50) + fractions) * plain.total / 50
        assert ((targets <= sums[drawn] * (1 + 1e-9)) & (targets >= (sums - weights)[drawn] * (1 - 1e-9))).all()


@needs_numba
@settings(max_examples=40, deadline=None)
@given(capacity=st.integers(1, 60), seed=st.integers(0, 10**6))
def test_both_trees_name_and_count_the_rows_that_they_draw(capacity, seed):
    rng = np.random.default_rng(seed)
    plain, compiled = Tree(capacity, compiled=False), Tree(capacity, compiled=True)
    next_number = int(rng.integers(1, 4 * capacity))
    stored = np.arange(max(next_number - capacity, 0), next_number)
    priorities = rng.random(capacity)
    weights = np.zeros(capacity)
    weights[stored % capacity] = rng.random(len(stored)) + 0.1
    fractions, uses = rng.random(30), [np.zeros(capacity, np.int32) for _ in range(2)]
    found = []
    for tree, counts in zip((plain, compiled), uses):
        tree.set(np.arange(capacity), weights)
        found.append(tree.draw(fractions, next_number, priorities, counts))
    slots, ratios, numbers, priority = found[0]
    assert all((a == b).all() and a.dtype == b.dtype for a, b in zip(*found)) and (uses[0] == uses[1]).all()
    assert (slots == draw(plain, fractions)[0]).all() and (ratios == draw(plain, fractions)[1]).all()
    assert (numbers % capacity == slots).all() and set(numbers.tolist()) <= set(stored.tolist())
    assert (priority == priorities[slots]).all() and (uses[0] == np.bincount(slots, minlength=capacity)).all()


@needs_numba
@pytest.mark.parametrize('bad', [-1.0, math.nan, math.inf, -math.inf])
def test_both_trees_refuse_wrong_priorities(bad):
    rows, ones = np.arange(4), np.ones(4)
    for compiled in (False, True):
        tree, priorities = Tree(4, compiled), np.zeros(4)
        tree.set(rows, ones)
        good = np.array([0.01, 2.0, 1e300, 1.0])
        assert tree.set_rows(rows, rows, ones, good, priorities, 0.01, 0, 3) == 1e300 and (priorities == good).all()
        wrong = np.array([5.0, bad, 5.0, 5.0])
        assert tree.set_rows(rows, rows, 2 * ones, wrong, priorities, 0.01, 0, 3) == -2.0
        assert (priorities == good).all() and tree.total == 4.0


@needs_numba
@pytest.mark.parametrize('cfg', [{}, {'max_reuse': 9, 'anneal_step': 50}, {'alpha': 1.3, 'beta': 1.0}])
def test_a_prioritized_buffer_gives_the_same_with_and_without_numba(cfg, monkeypatch):
    def go():
        buffer, rng, seen = manager(50, seed=3, use_priority=True, **cfg), np.random.default_rng(0), []
        for k in range(60):
            n = int(rng.integers(1, 9))
            buffer.push_data(Batch(action=np.arange(n) + 10 * k))
            batch = buffer.sample(16)
            if batch is not None:
                seen.append([batch[name].copy() for name in ('action', 'IS', 'priority', 'replay_buffer_idx')])
                buffer.update(info(batch, rng.random(16) * rng.choice([0.0, 1.0, 1e6])))
        return seen

    compiled = go()
    monkeypatch.setattr(sum_tree, 'fastest', lambda: sum_tree)
    plain = go()
    assert len(compiled) == len(plain) > 50
    assert all((a == b).all() for one, other in zip(compiled, plain) for a, b in zip(one, other))


@needs_numba
def test_no_rounding_error_is_left_behind_by_huge_weights():
    for compiled in (False, True):
        tree = Tree(100, compiled)
        tree.set(np.arange(100), np.full(100, 0.1))
        tree.set(np.array([3]), np.array([1e250]))
        assert set(draw(tree, np.random.default_rng(0).random(50))[0].tolist()) == {3}
        tree.set(np.array([3]), np.array([0.1]))
        assert math.isclose(tree.total, 10.0, rel_tol=1e-12)
        assert len(set(draw(tree, np.full(100, 0.5))[0].tolist())) == 100


@needs_numba
def test_the_edge_of_the_last_interval_is_a_row():
    for compiled in (False, True):
        tree = Tree(9, compiled)
        tree.set(np.arange(3), np.array([0.1, 0.2, 0.3]))
        assert draw(tree, np.array([1.0 - 2.0**-53]))[0].tolist() == [2]
        assert draw(tree, np.array([0.0]))[0].tolist() == [0]


@needs_numba
@settings(max_examples=40, deadline=None)
@given(capacity=st.integers(1, 60), seed=st.integers(0, 10**6))
def test_rows_that_are_gone_are_skipped_alike_by_both_trees(capacity, seed):
    rng = np.random.default_rng(seed)
    plain, compiled = Tree(capacity, compiled=False), Tree(capacity, compiled=True)
    start = np.where(rng.random(capacity) < 0.8, rng.random(capacity), 0.0)  # some slots hold nothing
    oldest = int(rng.integers(0, 200))
    newest = oldest + capacity - 1
    numbers = rng.integers(oldest - 20, newest + 20, 30)
    slots = np.where(rng.random(30) < 0.8, numbers % capacity, rng.integers(0, capacity, 30))
    priority = rng.random(30)
    stored = [np.zeros(capacity), np.zeros(capacity)]
    largest = []
    for tree, values in zip((plain, compiled), stored):
        tree.set(np.arange(capacity), start)
        largest.append(tree.set_rows(numbers, slots, priority**0.6, priority, values, 0.0, oldest, newest))
    expected = np.zeros(capacity)
    for number, slot, p in zip(numbers.tolist(), slots.tolist(), priority.tolist()):
        if oldest <= number <= newest and number % capacity == slot and start[slot] > 0:
            expected[slot] = p
    assert (stored[0] == expected).all() and (stored[1] == expected).all() and largest[0] == largest[1]
    assert (plain.tree == compiled.tree).all()


# ---- frequencies and weights
@pytest.mark.parametrize('alpha', [0.0, 0.6, 1.0])
def test_frequencies_follow_the_priorities(alpha):
    n = 40
    priority = np.random.default_rng(1).random(n) * 5 + 0.05
    buffer = manager(n, use_priority=True, alpha=alpha)
    buffer.push_data(Batch(action=np.arange(n), priority=priority))
    # one draw per sample, so that draws are independent
    counts = np.bincount([buffer.sample(1).action[0] for _ in range(20_000)], minlength=n)
    expected = priority**alpha / (priority**alpha).sum() * 20_000
    assert ((counts - expected) ** 2 / expected).sum() < 72.1  # chi-square, 39 degrees of freedom, p = 0.001


def test_importance_weights_follow_their_formula():
    priority = np.array([0.5, 1.0, 2.0, 4.0])
    buffer = manager(4, use_priority=True, alpha=0.7, beta=0.3, anneal_step=0)
    buffer.push_data(Batch(action=np.arange(4), priority=priority))
    batch = buffer.sample(100)
    p = priority**0.7 / (priority**0.7).sum()
    weights = (4 * p) ** -0.3
    assert np.allclose(batch['IS'], (weights / weights.max())[batch.action], rtol=1e-6)
    assert np.allclose(batch['priority'], priority[batch.action]) and batch['IS'].dtype == np.float32


@pytest.mark.parametrize('step, betas', [(4, [0.2, 0.4, 0.6, 0.8, 1.0, 1.0]), (0, [0.2] * 6), (math.inf, [0.2] * 6)])
def test_beta_goes_to_one_in_anneal_step_samples(step, betas):
    buffer = manager(2, use_priority=True, alpha=1.0, beta=0.2, anneal_step=step)
    buffer.push_data(Batch(action=np.arange(2), priority=np.array([1.0, 4.0])))
    for beta in betas:
        batch = buffer.sample(10)
        assert np.allclose(batch['IS'][batch.action == 1], 4.0**-beta)


# ---- what priorities do
def test_new_rows_get_their_own_priority_or_the_largest_one():
    buffer = manager(10, use_priority=True)
    buffer.push_data(Batch(action=np.arange(2)))
    buffer.push_data([{'action': 2, 'priority': 3.0}, {'action': 3, 'priority': None}, {'action': 4, 'priority': 0.5}])
    buffer.push_data({'action': 5})
    assert priority_of(buffer) == {0: 1.0, 1: 1.0, 2: 3.0, 3: 1.0, 4: 0.5, 5: 3.0}


def test_updates_reach_their_rows_only():
    buffer = manager(4, use_priority=True)
    buffer.push_data(Batch(action=np.arange(4)))
    batch = buffer.sample(4)
    buffer.push_data(Batch(action=np.array([4, 5])))  # rows 0 and 1 are gone
    buffer.update(info(batch, np.arange(4) + 10.0))
    found = priority_of(buffer)
    assert found[4] == found[5] == 1.0 and found[2] == pytest.approx(12.01) and found[3] == pytest.approx(13.01)
    buffer.push_data({'action': 6})
    assert priority_of(buffer)[6] == pytest.approx(13.01)


@pytest.mark.parametrize('form', ['arrays', 'tensors', 'strings'])
def test_forms_of_updates(form):
    buffer = manager(4, use_priority=True)
    buffer.push_data(Batch(action=np.arange(4)))
    batch = buffer.sample(4)
    update = {
        'arrays': lambda: info(batch, np.full(4, 2.0)),
        'tensors': lambda: info(batch.to_torch(), torch.full((4,), 2.0, requires_grad=True)),
        'strings': lambda: {
            'priority': [2.0] * 4,
            'replay_unique_id': [row['replay_unique_id'] for row in batch],
            'replay_buffer_idx': [row['replay_buffer_idx'] for row in batch],
        },
    }[form]()
    buffer.update(update)
    assert np.allclose(list(priority_of(buffer).values()), 2.01)


@pytest.mark.parametrize('bad', [-1.0, math.nan, math.inf])
def test_wrong_priorities_are_an_error_that_names_the_rows(bad):
    buffer = manager(8, use_priority=True)
    buffer.push_data(Batch(action=np.arange(8)))
    batch = buffer.sample(8)
    with pytest.raises(ValueError, match=rf'armor_5: {bad}'):
        buffer.update(info(batch, [1.0, 1.0, 1.0, 1.0, 1.0, bad, 1.0, 1.0]))
    with pytest.raises(ValueError, match=rf'armor_9: {bad}'):
        buffer.push_data(Batch(action=np.arange(2), priority=np.array([1.0, bad])))
    assert set(priority_of(buffer).values()) == {1.0} and buffer.count() == 8


def test_numbers_of_values_must_agree():
    buffer = manager(4, use_priority=True)
    buffer.push_data(Batch(action=np.arange(4)))
    with pytest.raises(ValueError, match='3 priorities, 4 replay_unique_id'):
        buffer.update(info(buffer.sample(4), [1.0] * 3))
    with pytest.raises(ValueError, match="'other_3' is not the id"):
        buffer.update({'priority': [1.0], 'replay_unique_id': ['other_3'], 'replay_buffer_idx': [3]})
    with pytest.raises(KeyError, match='replay_buffer_idx'):
        buffer.update({'priority': [1.0], 'replay_unique_id': ['armor_3']})


def test_zero_and_huge_priorities():
    buffer = manager(64, use_priority=True, beta=1.0)
    buffer.push_data(Batch(action=np.arange(64), priority=np.zeros(64)))
    batch = buffer.sample(64)
    assert sorted(batch.action.tolist()) == list(range(64)) and (batch['IS'] == 1.0).all()
    buffer.update(info(batch, np.where(batch.action == 7, 1e300, 0.0)))
    batch = buffer.sample(64)
    assert set(batch.action.tolist()) == {7} and np.isfinite(batch['IS']).all()
    buffer.update({'priority': [1.0], 'replay_unique_id': ['armor_7'], 'replay_buffer_idx': [7]})
    assert len(set(buffer.sample(4096).action.tolist())) == 64


def test_without_use_priority_everything_is_uniform():
    buffer = manager(8, use_priority=False)
    buffer.push_data(Batch(action=np.arange(8), priority=np.arange(8) * 100.0))
    batch = buffer.sample(800)
    buffer.update(info(batch, np.full(800, 5.0)))
    assert set(batch['priority'].tolist()) == {1.0} and np.bincount(batch.action, minlength=8).min() > 50
    assert 'priority' not in list(buffer.sample(8).keys())


def test_priorities_switch_on_by_themselves_when_nothing_is_said():
    buffer = manager(4)
    buffer.push_data(Batch(action=np.arange(6)))
    assert 'IS' not in list(buffer.sample(4).keys())
    buffer.update({'priority': [9.0], 'replay_unique_id': ['armor_5'], 'replay_buffer_idx': [1]})
    assert 'IS' in list(buffer.sample(4).keys())
    assert priority_of(buffer) == pytest.approx({2: 1.0, 3: 1.0, 4: 1.0, 5: 9.01})


def test_priorities_stay_with_their_rows_around_the_ring():
    buffer, rng, expected = manager(16, use_priority=True), np.random.default_rng(0), {}
    largest, pushed = 1.0, 0
    for _ in range(200):
        n = int(rng.integers(1, 6))
        own = rng.random() < 0.5
        values = rng.random(n) * 3 + 0.1
        buffer.push_data(Batch(action=np.arange(pushed, pushed + n), **({'priority': values} if own else {})))
        for k in range(n):
            expected[pushed + k] = values[k] if own else largest
        largest = max([largest, *(values if own else [])])
        pushed += n
        if rng.random() < 0.5 and pushed > 16:
            batch = buffer.sample(4)
            new = rng.random(4) * 3
            buffer.update(info(batch, new))
            for action, value in zip(batch.action.tolist(), new.tolist()):
                expected[action] = value + 0.01
            largest = max(largest, new.max() + 0.01)
    found = priority_of(buffer)
    assert all(expected[k] == pytest.approx(found[k], rel=1e-6) for k in found) and min(found) >= pushed - 16
    assert len(found) >= 14


def test_a_numba_that_does_not_work_is_named_once_and_not_used(monkeypatch, caplog):
    from nervex.data import sum_tree as module

    def broken(name):
        raise ImportError('Numba needs NumPy 2.0 or less')

    monkeypatch.setattr(module.importlib.util, 'find_spec', lambda name: object())
    monkeypatch.setattr(module.importlib, 'import_module', broken)
    module.fastest.cache_clear()
    try:
        assert all(module.fastest() is module for _ in range(3))
    finally:
        module.fastest.cache_clear()
    assert [r.message for r in caplog.records] == [
        'prioritized sampling goes on without numba, which does not work here: Numba needs NumPy 2.0 or less'
    ]
