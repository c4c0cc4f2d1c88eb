"""Segment trees, cache, record list, monitors."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nervex.data import structure
from nervex.data.structure import (
    Cache,
    InTickMonitor,
    MinSegmentTree,
    NaturalMonitor,
    OutTickMonitor,
    RecordList,
    SegmentTree,
    SumSegmentTree,
)
from nervex.utils.autolog import BaseTime, TickTime


def test_all_names_are_there():
    assert all(getattr(structure, name) for name in structure.__all__)
    assert structure.NaiveReplayBuffer is structure.ReplayBuffer
    assert structure.PrioritizedBuffer is structure.PrioritizedReplayBuffer
    with pytest.raises(AttributeError, match='Nothing'):
        _ = structure.Nothing


# ---- segment trees
@settings(max_examples=25, deadline=None)
@given(capacity=st.integers(1, 40), data=st.data())
def test_segment_trees_agree_with_plain_loops(capacity, data):
    total, least = SumSegmentTree(capacity), MinSegmentTree(capacity)
    values = {}
    for _ in range(data.draw(st.integers(1, 6))):
        places = data.draw(st.lists(st.integers(0, capacity - 1), min_size=1, max_size=5, unique=True))
        new = data.draw(st.lists(st.integers(0, 6), min_size=len(places), max_size=len(places)))
        single = len(places) == 1 and data.draw(st.booleans())
        for tree in (total, least):
            tree[places[0] if single else places] = new[0] if single else np.array(new, dtype=float)
        values.update(zip(places, new))
    a, b = sorted((data.draw(st.integers(0, capacity)), data.draw(st.integers(0, capacity))))
    inside = [v for k, v in values.items() if a <= k < b]
    assert total.reduce(a, b) == sum(inside) and least.reduce(a, b) == min(inside, default=np.inf)
    assert total.reduce() == sum(values.values())
    whole = [values.get(k, 0) for k in range(capacity)]
    for target in np.arange(0, sum(whole), 1.0):
        place = total.find_prefixsum_idx(target)
        assert sum(whole[:place]) <= target < sum(whole[: place + 1])
    if sum(whole):
        found = total.find_prefixsum_idx(np.arange(0, sum(whole), 1.0))
        assert found.tolist() == [total.find_prefixsum_idx(t) for t in np.arange(0, sum(whole), 1.0)]


def test_capacity_is_rounded_up_and_errors_are_named():
    tree = SumSegmentTree(5)
    assert len(tree) == tree.capacity == 8 and tree[4] == 0.0 and MinSegmentTree(5)[4] == np.inf
    assert SegmentTree(4, np.maximum).reduce() == -np.inf
    tree[[0, 4]] = [1.0, 2.0]
    assert tree[[0, 4]].tolist() == [1.0, 2.0] and tree.reduce(0, -1) == 3.0 and tree.find_prefixsum_idx(3.0) == 4
    for bad in (lambda: tree[8], lambda: tree.reduce(3, 9), lambda: tree.__setitem__(-1, 2.0)):
        with pytest.raises(IndexError, match='8 places'):
            bad()
    with pytest.raises(ValueError, match=r'outside of 0 \.\. 3'):
        tree.find_prefixsum_idx(4.0)
    with pytest.raises(ValueError, match='capacity'):
        SumSegmentTree(0)
    with pytest.raises(ValueError, match='neutral_element'):
        SegmentTree(4, np.multiply)


# ---- cache
def test_cache_gives_portions_and_the_rest_at_close():
    portions, full = [], threading.Event()

    def consume(items):
        portions.append(items)
        full.set()

    cache = Cache(maxlen=4, timeout=60, consume=consume)
    cache.run()
    for k in range(4):
        cache.push_data(k)
    assert full.wait(60)
    cache.push_data(4)
    cache.close()
    cache.close()
    assert [k for portion in portions for k in portion] == [0, 1, 2, 3, 4] and len(portions) == 2
    with pytest.raises(RuntimeError, match='closed'):
        cache.push_data(5)


def test_cache_does_not_wait_longer_than_its_timeout():
    done = threading.Event()
    cache = Cache(maxlen=1000, timeout=0.01, consume=lambda items: done.set())
    cache.run()
    cache.push_data('one')
    assert done.wait(60)
    cache.close()


def test_errors_of_the_consumer_are_raised_to_the_pusher():
    failed = threading.Event()

    def consume(items):
        failed.set()
        raise ValueError('full disk')

    cache = Cache(maxlen=1, timeout=60, consume=consume)
    cache.run()
    cache.push_data(1)
    assert failed.wait(60)
    with pytest.raises(ValueError, match='full disk'):
        cache.close()


# ---- record list
def test_record_list_remembers_what_went():
    items = RecordList(range(8))
    del items[0]
    items[1] = 'new'
    items[2:4] = []
    assert items.pop() == 7
    items.remove('new')
    assert list(items) == [1, 5, 6] and items.removed == [0, 2, 3, 4, 7, 'new']
    items.clear()
    assert items.take_removed() == [0, 2, 3, 4, 7, 'new', 1, 5, 6] and items.removed == []


# ---- monitors
class Seconds(BaseTime):
    now = 100.0

    def time(self):
        return self.now


def test_natural_monitor_gives_rates():
    clock = Seconds()
    monitor = NaturalMonitor(clock, expire=10)
    assert monitor.avg['in_count']() == 0.0
    for _ in range(4):
        clock.now += 1
        monitor.in_count = 5
        monitor.out_count = 50
    assert monitor.avg['in_count']() == pytest.approx(5.0) and monitor.avg['out_count']() == pytest.approx(50.0)
    clock.now += 8  # the first step has left the window of ten seconds
    assert monitor.avg['in_count']() == pytest.approx(1.5)


def test_tick_monitors_give_statistics_of_the_window():
    clock = TickTime()
    into, out = InTickMonitor(clock, expire=2), OutTickMonitor(clock, expire=3)
    for k in range(5):
        into.in_time = float(k)
        out.record({'out_time': 0.5, 'reuse': float(k), 'priority': 2.0 * k, 'staleness': 1.0})
        clock.step()
    assert out.max['reuse']() == 4.0 and out.min['priority']() >= 4.0 and out.avg['staleness']() == 1.0
    assert into.avg['in_time']() >= 3.0


def test_segment_tree_takes_no_places_and_masks():
    tree = SumSegmentTree(4)
    tree[[]] = []
    assert tree.reduce() == 0.0 and tree[np.zeros(0, int)].shape == (0,)
    tree[np.array([True, False, True, False])] = [1.0, 2.0]
    assert tree.reduce() == 3.0 and tree[np.array([False, False, True, True])].tolist() == [2.0, 0.0]
