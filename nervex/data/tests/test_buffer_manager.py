"""BufferManager: forms of its config, pushing, sampling, limits, state."""

import copy
import gc
import logging
import weakref

import numpy as np
import pytest
import torch
from easydict import EasyDict

from nervex.data import Batch, BufferManager, default_collate
from nervex.data.memory import BufferMemoryError, available_bytes
from nervex.utils.errors import ConfigError, UnknownNameError
from nervex.utils.registry_factory import BUFFER_REGISTRY


def rows(start, n, **more):
    k = np.arange(start, start + n)
    return Batch(
        obs=np.stack([k, k], 1).astype(np.float32),
        action=k,
        reward=torch.from_numpy(k)[:, None].float(),
        done=k % 3 == 0,
        **more,
    )


def manager(**cfg):
    return BufferManager({'monitor': {'log_freq': 0}, 'min_sample_ratio': 0, **cfg}, seed=0)


# ---- config
def test_forms_of_config_and_names():
    assert BufferManager({'meta_maxlen': 10}).buffer_name == ['armor'] == BufferManager().buffer_name
    one = EasyDict(buffer_name=['agent'], agent=dict(meta_maxlen=3, max_reuse=100, min_sample_ratio=1))
    before = copy.deepcopy(one)
    buffer = BufferManager(one)
    assert buffer.buffer_name == ['agent'] and one == before
    two = BufferManager({'buffer_name': ['policy', 'value'], 'policy': {'meta_maxlen': 2}, 'maxlen': 5})
    two.push_data(rows(0, 9))
    assert (two.count('policy'), two.count('value'), two.count()) == (2, 5, 2)


@pytest.mark.parametrize(
    'cfg, words',
    [
        ({'meta_maxlen': 0}, ['replay_buffer.meta_maxlen', '0']),
        ({'meta_maxln': 5}, ['replay_buffer.meta_maxln', "did you mean 'meta_maxlen'"]),
        ({'agent': {'alpha': -1, 'type': 'lifo'}, 'buffer_name': 'agent'}, ['agent.alpha', 'agent.type', 'lifo']),
        ({'monitor': {'log_frq': 1}}, ["did you mean 'log_freq'"]),
    ],
)
def test_wrong_settings_are_named_together(cfg, words):
    with pytest.raises(ConfigError) as e:
        BufferManager(cfg)
    assert all(word in str(e.value) for word in words)


# ---- in and out
def test_rows_come_back_as_they_went_in():
    buffer = manager(meta_maxlen=8)
    buffer.push_data(rows(0, 5))
    buffer.push_data(dict(rows(5, 1)[0].items()))
    buffer.push_data([dict(row.items()) for row in rows(6, 6)])
    assert buffer.count() == 8
    batch = buffer.sample(200)
    assert len(batch) == 200 and set(batch.action.tolist()) == set(range(4, 12))
    assert isinstance(batch.reward, torch.Tensor) and batch.reward.shape == (200, 1) and batch.done.dtype == bool
    assert (batch.obs[:, 0] == batch.action).all() and (batch.reward[:, 0].numpy() == batch.action).all()
    assert default_collate(batch)['reward'].shape == (200,)


def test_sample_rows_carry_the_documented_keys_and_are_independent():
    buffer = manager(meta_maxlen=4)
    buffer.push_data(rows(0, 6, collect_iter=np.arange(6)))
    data = buffer.sample(50, 10)
    for row in data:
        assert row['replay_unique_id'] == f'armor_{row.action}' and row['replay_buffer_idx'] == row.action % 4
        assert row['IS'] == 1.0 and row['priority'] == 1.0 and row['staleness'] == 10 - row.action
    counts = np.bincount(data.action, minlength=6)
    assert all(row['use'] == counts[row.action] for row in data)
    first, second = (next(r for r in data if r.action == k) for k in (2, 2))
    first.obs[:] = -1
    assert second.obs[0] == -1 or first is not second
    assert buffer.sample(50).obs.min() >= 0


def test_plain_samples_do_not_share_memory_and_reused_ones_alternate():
    buffer = manager(meta_maxlen=100)
    buffer.push_data(rows(0, 100))
    kept = [buffer.sample(16) for _ in range(5)]
    values = [batch.action.copy() for batch in kept]
    assert all((b.action == v).all() for b, v in zip(kept, values))
    a, b, c = (buffer.sample(16, reuse=True) for _ in range(3))
    assert np.shares_memory(a.obs, c.obs) and not np.shares_memory(a.obs, b.obs)


def test_large_samples_get_memory_of_their_own():
    buffer = manager(meta_maxlen=20)
    buffer.push_data(Batch(image=np.arange(20 * 40_000, dtype=np.int32).reshape(20, 200, 200)))
    kept = [buffer.sample(4) for _ in range(6)]
    first = [batch.image[:, 0, 0].copy() for batch in kept]
    views = [torch.from_numpy(batch.image[1:]) for batch in kept]
    del kept
    again = [buffer.sample(4) for _ in range(6)]
    assert all((v[:, 0, 0].numpy() == f[1:]).all() for v, f in zip(views, first))
    assert len({b.image.ctypes.data for b in again} | {v.data_ptr() - 160_000 for v in views}) == 12


def test_none_until_there_is_enough():
    buffer = manager(meta_maxlen=100, min_sample_ratio=2, replay_start_size=10)
    assert buffer.sample(1) is None
    buffer.push_data(rows(0, 9))
    assert buffer.sample(1) is None and buffer.replay_start_size == 10
    buffer.push_data(rows(9, 1))
    assert len(buffer.sample(5)) == 5 and buffer.sample(6) is None


def test_several_buffers(caplog):
    buffer = manager(
        buffer_name=['agent', 'demo'], agent={'meta_maxlen': 10}, demo={'meta_maxlen': 20}, min_sample_ratio=1
    )
    buffer.push_data(rows(0, 5))
    buffer.push_data(rows(100, 7), buffer_name=['demo'])
    buffer.push_data([{**dict(row.items()), 'buffer_name': ['agent']} for row in rows(200, 2)])
    assert (buffer.count('agent'), buffer.count('demo'), buffer.count()) == (7, 12, 7)
    both = buffer.sample({'agent': 3, 'demo': 6})
    assert len(both['agent']) == 3 and len(both['demo']) == 6 and 'buffer_name' not in both['agent']
    assert buffer.sample({'agent': 8, 'demo': 1}) is None
    assert {k: len(v) for k, v in buffer.sample(4).items()} == {'agent': 4, 'demo': 4}
    mixed = [row for part in both.values() for row in part]
    buffer.update(
        {
            'priority': [2.0] * 9,
            'replay_unique_id': [r['replay_unique_id'] for r in mixed],
            'replay_buffer_idx': [r['replay_buffer_idx'] for r in mixed],
        }
    )
    assert buffer.sample(4)['demo'].priority.max() > 2.0
    buffer.clear(['agent'])
    assert buffer.count('agent') == 0 and buffer.count('demo') == 12
    with pytest.raises(UnknownNameError, match="did you mean 'demo'"):
        buffer.count('demos')
    with caplog.at_level(logging.ERROR):
        buffer.push_data([dict(rows(0, 1)[0].items()), 'no dict'])
    assert 'got str' in caplog.text and buffer.count('agent') == 1


def test_objects_are_not_shared_between_buffers():
    buffer = manager(buffer_name=['a', 'b'])
    state = [[1], [2]]
    buffer.push_data([{'x': 1, 'state': s} for s in state])
    batch = buffer.sample(9)['b']
    assert all(s in state and s is not t for s in batch.state for t in state)


def test_rows_that_do_not_fit_are_refused_and_what_was_stored_stays_sound():
    buffer = manager(meta_maxlen=4)
    buffer.push_data(rows(0, 4))
    for bad, error in (
        ({'obs': np.zeros((2, 3), np.float32)}, ValueError),
        ({'reward': torch.zeros(2, 2)}, ValueError),
        ({'extra': np.zeros(2)}, KeyError),
        ({'done': np.array(['x', 'y'])}, ValueError),
    ):
        with pytest.raises(error, match="replay buffer 'armor'"):
            buffer.push_data(Batch.of({**rows(4, 2)._columns, **bad}))
    batch = buffer.sample(100) or Batch(obs=np.zeros((0, 2)), action=np.zeros(0))
    assert (batch.obs[:, 0] == batch.action).all()
    buffer.push_data(rows(10, 4))
    assert set(buffer.sample(100).action.tolist()) == {10, 11, 12, 13}


def test_more_rows_than_the_ring_holds():
    buffer = manager(meta_maxlen=5)
    buffer.push_data(rows(0, 3))
    buffer.push_data(rows(3, 14))
    batch = buffer.sample(100)
    assert set(batch.action.tolist()) == set(range(12, 17))
    assert batch['replay_unique_id'].tolist() == [f'armor_{k}' for k in batch.action]


# ---- limits
def test_rows_are_removed_after_max_reuse_samples_and_handed_out():
    buffer = manager(meta_maxlen=8, max_reuse=2, enable_track_used_data=True)
    buffer.push_data(rows(0, 8))
    for use in (1, 2):
        batch = buffer.sample(8)
        assert sorted(batch.action.tolist()) == list(range(8)) and batch['use'].tolist() == [use] * 8
    assert buffer.count() == 0 and buffer.sample(1) is None
    gone = [buffer.used_data()['action'] for _ in range(8)]
    assert sorted(gone) == list(range(8)) and buffer.used_data() is None
    buffer.push_data(rows(8, 2))
    assert buffer.count() == 2 and set(buffer.sample(2).action.tolist()) == {8, 9}


@pytest.mark.parametrize('priority', [True, None])
def test_reuse_never_exceeds_its_limit_by_more_than_the_draws_of_one_sample(priority):
    buffer = manager(meta_maxlen=20, max_reuse=3, use_priority=priority)
    uses, rng = np.zeros(400, int), np.random.default_rng(0)
    pushed = 0
    for _ in range(60):
        n = int(rng.integers(1, 8))
        buffer.push_data(rows(pushed, n))
        pushed += n
        batch = buffer.sample(4)
        if batch is not None:
            live = uses[batch.action]
            assert (live < 3).all()
            np.add.at(uses, batch.action, 1)
        expected = sum(uses[k] < 3 for k in range(max(0, pushed - 20), pushed))
        assert buffer.count() == expected


def test_rows_that_are_too_old_are_removed_before_sampling():
    buffer = manager(meta_maxlen=10, max_staleness=2)
    for k in range(4):
        buffer.push_data(rows(2 * k, 2, collect_iter=np.full(2, k)))
    assert set(buffer.sample(4, cur_learner_iter=3).action.tolist()) <= set(range(2, 8))
    assert buffer.count() == 6
    batch = buffer.sample(2, cur_learner_iter=5)
    assert set(batch.action.tolist()) <= {6, 7} and batch['staleness'].tolist() == [2, 2]
    assert buffer.sample(1, cur_learner_iter=6) is None and buffer.count() == 0
    with pytest.raises(KeyError, match='collect_iter'):
        buffer.push_data(rows(0, 1))


def test_memory_is_reserved_late_and_checked_before():
    huge = manager(meta_maxlen=10**12)
    if available_bytes() is None:
        pytest.skip('this machine does not tell its memory')
    with pytest.raises(BufferMemoryError, match=f'need {33 * 10**12} bytes'):
        huge.push_data({'obs': np.zeros(4, np.float32), 'action': 1, 'reward': np.float32(0), 'done': False})
    with pytest.raises(BufferMemoryError, match='need 28228000000000000 bytes'):
        huge.plan({'obs': np.zeros((4, 84, 84), np.uint8)})
    small = manager(meta_maxlen=10**6)
    assert small.plan({'obs': np.zeros(4, np.float32), 'done': False}) == {'armor': 21 * 10**6}


# ---- on-policy
def test_on_policy_batches_go_through_every_row_once_an_epoch_and_empty_the_buffer():
    buffer = BufferManager({'monitor': {'log_freq': 0}}, seed=0, on_policy=True)
    for start in (0, 6, 9):
        buffer.push_data(rows(start, 6 if start == 0 else 3 if start == 6 else 1))
    assert buffer.count() == 10
    batches = [(b.action.tolist(), b.obs[:, 0].tolist()) for b in buffer.batches(4, 2)]
    assert [len(a) for a, _ in batches] == [4, 4, 2] * 2 and all(a == o for a, o in batches)
    epochs = [[k for actions, _ in batches[i : i + 3] for k in actions] for i in (0, 3)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(10)) and epochs[0] != epochs[1]
    assert buffer.count() == 0 and buffer.sample(1) is None
    buffer.push_data(rows(0, 5))
    for _ in buffer.batches(2, 3):
        break
    assert buffer.count() == 0


def test_on_policy_keeps_everything_and_can_drop_the_last_minibatch():
    buffer = manager(type='on_policy', drop_last=True, meta_maxlen=4)
    buffer.push_data(rows(0, 11))
    assert buffer.count() == 11
    buffer.update({'priority': [1.0], 'replay_unique_id': [0], 'replay_buffer_idx': [0]})
    assert len(set(buffer.sample(11).action.tolist())) == 11 and buffer.count() == 11
    assert [len(b) for b in buffer.batches(4, 1)] == [4, 4]


def test_replay_batches_stop_with_a_warning_when_data_runs_out(caplog):
    buffer = manager(meta_maxlen=8, max_reuse=2)
    buffer.push_data(rows(0, 8))
    with caplog.at_level(logging.WARNING):
        assert len(list(buffer.batches(8, 5))) == 2
        assert 'only 2 of 5 samples of 8 rows' in caplog.text
        for start in range(8, 800, 8):  # every round falls short: max_reuse is small for so many updates
            buffer.push_data(rows(start, 8))
            assert len(list(buffer.batches(8, 5))) == 2
    assert len(caplog.records) == 1


# ---- state
@pytest.mark.parametrize(
    'cfg',
    [
        {},
        {'use_priority': True},
        {'max_reuse': 6, 'max_staleness': 40},
        {'type': 'on_policy'},
        {'use_priority': True, 'max_reuse': 9},
    ],
)
def test_state_continues_exactly(cfg, tmp_path):
    def go_on(buffer):
        seen = []
        for k in range(12):
            buffer.push_data(rows(100 + 5 * k, 5, collect_iter=np.full(5, k), nested=Batch(x=np.ones((5, 2)) * k)))
            for batch in buffer.batches(6, 2, k):
                seen.append(copy.deepcopy(batch.describe()))
                if cfg.get('use_priority'):
                    buffer.update(
                        {
                            'priority': batch.obs[:, 0] / 7,
                            'replay_unique_id': batch['replay_unique_id'],
                            'replay_buffer_idx': batch['replay_buffer_idx'],
                        }
                    )
        return seen

    buffer, twin = (BufferManager({'monitor': {'log_freq': 0}, 'meta_maxlen': 32, **cfg}, seed=s) for s in (1, 2))
    go_on(buffer)
    buffer.push_data(rows(7, 4, collect_iter=np.full(4, 12), nested=Batch(x=np.zeros((4, 2)))))
    torch.save(buffer.state_dict(), tmp_path / 'state')
    twin.load_state_dict(torch.load(tmp_path / 'state', weights_only=True))
    assert twin.count() == buffer.count()
    ours, theirs = go_on(buffer), go_on(twin)
    assert len(ours) == len(theirs) > 10 and all(a == b for a, b in zip(ours, theirs))


def test_state_of_other_buffers_is_refused():
    state = manager(meta_maxlen=5).state_dict()
    with pytest.raises(ValueError, match='5 rows'):
        manager(meta_maxlen=6).load_state_dict(state)
    with pytest.raises(ValueError, match='armor'):
        manager(buffer_name='agent').load_state_dict(state)


# ---- objects
@pytest.mark.parametrize('reuse', [False, True])
@pytest.mark.parametrize('deepcopy', [False, True])
@pytest.mark.parametrize('use_priority', [False, True])
def test_rows_that_are_sampled_twice_are_independent(reuse, deepcopy, use_priority):
    buffer = manager(meta_maxlen=4, deepcopy=deepcopy, use_priority=use_priority)
    stored = [{'path': [k], 'deep': {'er': {'state': [torch.full((2,), float(k))]}}} for k in range(2)]
    buffer.push_data([{'a': k, 'info': ['text', stored[k]], 'nest': {'o': [stored[k], None]}} for k in range(2)])
    for _ in range(3):
        sample = buffer.sample(12, reuse=reuse)
        assert len(set(sample.a.tolist())) == 2
        for column, place in ((sample.info, 1), (sample.nest.o, 0)):
            assert len({id(value) for value in column}) == 12
            assert [value[place]['path'][0] for value in column] == sample.a.tolist()
        held = [any(value[1] is stored[k] for value in sample.info) for k in range(2)]
        assert held == [not deepcopy] * 2


# ---- statistics
def test_statistics_go_to_the_run_folder(tmp_path):
    cfg = {'buffer_name': ['agent'], 'agent': {'monitor': {'log_freq': 5}, 'use_priority': True}}
    with BufferManager(cfg, exp_name=str(tmp_path), seed=0) as buffer:
        buffer.push_data(rows(0, 50, collect_iter=np.zeros(50, int)))
        for k in range(11):
            buffer.sample(10, k)
    folder = tmp_path / 'log' / 'buffer' / 'agent_buffer'
    text = (folder / 'agent_logger.txt').read_text()
    assert text.count('reuse_avg') == 3 and 'staleness_max' in text and 'priority_min' in text  # after 5, 10 and 11
    assert 'pushed_per_s' in text and list((folder / 'agent_tb_logger').iterdir())
    buffer.close()
    assert 'sampled' in text and '110' in text


def test_lines_after_a_state_are_those_that_would_have_been_written(tmp_path):
    cfg = {'buffer_name': ['agent'], 'agent': {'monitor': {'log_freq': 40, 'tick_expire': 10}, 'use_priority': True}}

    def figures(folder):
        path = tmp_path / folder / 'log/buffer/agent_buffer/agent_logger.txt'
        table = [line.split('|')[1:-1] for line in path.read_text().splitlines() if line.startswith('|')]
        rates = [i for i, name in enumerate(table[0]) if 'per_s' in name]
        return [[cell.strip() for i, cell in enumerate(row) if i not in rates] for row in table]

    def go_on(buffer, first, last):
        for k in range(first, last):
            buffer.push_data(rows(2 * k, 2, collect_iter=np.full(2, k)))
            sample = buffer.sample(2, k)
            ids = {name: sample[name] for name in ('replay_unique_id', 'replay_buffer_idx')}
            buffer.update({**ids, 'priority': np.full(2, float(k + 1))})

    straight = BufferManager(cfg, exp_name=str(tmp_path / 'straight'), seed=0)
    go_on(straight, 0, 30)
    stopped = BufferManager(cfg, exp_name=str(tmp_path / 'stopped'), seed=1)
    torch.save(straight.state_dict(), tmp_path / 'state')
    stopped.load_state_dict(torch.load(tmp_path / 'state', weights_only=True))
    for buffer in (straight, stopped):
        go_on(buffer, 30, 95)
        buffer.close()
    assert len(figures('straight')) >= 6 and figures('straight') == figures('stopped')


@pytest.mark.parametrize('log_freq, samples, lines', [(2000, 3, 1), (45, 100, 3), (7, 14, 2)])
def test_short_and_odd_runs_have_all_statistics(tmp_path, log_freq, samples, lines):
    cfg = {'monitor': {'log_freq': log_freq}, 'use_priority': True}
    with BufferManager(cfg, exp_name=str(tmp_path), seed=0) as buffer:
        buffer.push_data(rows(0, 50, collect_iter=np.zeros(50, int)))
        for k in range(samples):
            buffer.sample(10, k)
    text = (tmp_path / 'log' / 'buffer' / 'armor_buffer' / 'armor_logger.txt').read_text()
    assert [text.count(f'{n}_avg') for n in ('priority', 'reuse', 'staleness')] == [lines] * 3  # and one at the end


def test_a_buffer_that_was_never_used_leaves_no_files(tmp_path):
    with BufferManager({}, exp_name=str(tmp_path)):
        pass
    assert not list(tmp_path.iterdir())


def test_logging_does_not_change_what_the_learner_gets(tmp_path):
    buffer = BufferManager({'monitor': {'log_freq': 1}}, exp_name=str(tmp_path), seed=0)
    buffer.push_data(rows(0, 9))
    assert all(list(b.keys()) == ['obs', 'action', 'reward', 'done'] for b in buffer.batches(4, 3))
    buffer.close()


# ---- cache
def test_cached_pushes_arrive_in_order_and_completely():
    buffer = manager(meta_maxlen=1000, enable_cache=True, cache_maxlen=50, timeout=60)
    buffer.start()
    for k in range(0, 120, 3):
        buffer.push_data(rows(k, 3))
    buffer.close()
    assert buffer.count() == 120
    state = buffer.state_dict()['buffers']['armor']['store']['columns']
    assert next(c for c in state if c['name'] == 'action')['data'].tolist() == list(range(120))
    buffer.push_data(rows(0, 1))
    assert buffer.count() == 121


def test_a_replay_buffer_beside_an_on_policy_one_gives_as_many_batches():
    cfg = {'buffer_name': ['policy', 'value'], 'value': {'type': 'replay', 'meta_maxlen': 100}}
    manager = BufferManager(cfg, seed=0, on_policy=True)
    for first in (0, 20):
        manager.push_data(Batch(x=np.arange(first, first + 20)))
        batches = [{name: set(b['x'].tolist()) for name, b in one.items()} for one in manager.batches(5, 3)]
        assert len(batches) == 3 * 4
        assert set().union(*(b['policy'] for b in batches)) == set(range(first, first + 20))
        assert manager.count('policy') == 0 and manager.count('value') == first + 20
    assert any(min(b['value']) < 20 for b in batches)  # from the round before


@pytest.mark.parametrize('size', [0, -1, 2.0, True, None, '3'])
@pytest.mark.parametrize('names', [['agent'], ['agent', 'demo']])
def test_batch_size_is_a_number_of_rows(size, names):
    manager = BufferManager({'buffer_name': names, 'meta_maxlen': 10})
    manager.push_data([{'a': 1}] * 5)
    for call in (manager.sample, manager.ready, lambda n: next(manager.batches(n, 1))):
        with pytest.raises(ValueError, match=r'batch_size is a number of rows, at least 1.*got'):
            call(size)
        with pytest.raises(ValueError, match='batch_size is a number of rows'):
            call({'agent': size})
    assert manager.sample({'agent': np.int64(2)})['agent'].a.tolist() == [1, 1]


def test_priorities_for_a_buffer_that_is_not_there_are_an_error():
    manager = BufferManager({'agent': {'meta_maxlen': 10}})
    manager.push_data([{'a': 1}] * 5)
    batch = manager.sample(2)
    info = {
        'priority': [1.0, 2.0],
        'replay_unique_id': batch.replay_unique_id,
        'replay_buffer_idx': batch.replay_buffer_idx,
    }
    with pytest.raises(KeyError, match="unknown buffer 'agnt'; did you mean 'agent'"):
        manager.update({'agnt': info})
    manager.update({'loss': 3.0, 'other': {'no': 'priorities'}})  # nothing to do


@pytest.mark.parametrize('data', [3, None, 'text', 2.5])
def test_what_is_no_row_at_all_is_an_error_that_says_what_rows_are(data):
    manager = BufferManager({'meta_maxlen': 10})
    with pytest.raises(
        TypeError, match=rf'got {data!r} of type {type(data).__name__}; rows are a Batch, a dict .*push_data'
    ):
        manager.push_data(data)
    assert manager.count() == 0


@pytest.mark.parametrize('use_priority', [True, False, None])
def test_rows_without_a_priority_among_others_get_the_largest_one(use_priority):
    manager = BufferManager({'use_priority': use_priority, 'min_sample_ratio': 0})
    manager.push_data([{'a': 0, 'priority': 3.0}, {'a': 1}, {'a': 2, 'priority': 0.5}])
    found = manager.sample(60)
    expected = {0: 3.0, 1: 1.0, 2: 0.5} if use_priority is not False else dict.fromkeys(range(3), 1.0)
    assert dict(zip(found.a.tolist(), found['priority'].tolist())) == expected


def test_the_rows_of_a_sample_extend_a_list():
    manager, kept = BufferManager({}, seed=0), [{'a': -1}]
    manager.push_data(Batch(a=np.arange(8)))
    kept += manager.sample(4)
    assert len(kept) == 5 and all(row['IS'] == 1.0 and row['a'] >= 0 for row in kept[1:])


@pytest.mark.parametrize('kind', ['replay', 'on_policy'])
def test_sequences_stamped_step_by_step_are_as_old_as_their_first_step(kind, tmp_path):
    cfg = {
        'type': kind,
        'max_staleness': 5,
        'monitor': {'log_freq': 1, 'log_path': str(tmp_path)},
        'min_sample_ratio': 0,
    }
    for stamps in ([[0, 1, 2], [6, 7, 8], [7, 8, 9]], [[0, 1], [6, 7, 8], [7, None]]):
        with BufferManager(cfg, seed=0) as manager:
            manager.push_data(
                [{'obs': [np.zeros(2)] * len(s), 'a': k, 'collect_iter': s} for k, s in enumerate(stamps)]
            )
            sample = manager.sample(9 if kind == 'replay' else 3, 10)
            ages = dict(zip(sample.a.tolist(), sample['staleness'].tolist()))
            assert ages == ({1: 4, 2: 3} if kind == 'replay' else {0: 10, 1: 4, 2: 3})


@pytest.mark.parametrize('kind', ['replay', 'on_policy'])
def test_a_push_of_a_derived_kind_sees_every_row(kind, monkeypatch):
    class Doubling(BUFFER_REGISTRY.get(kind)):
        def push(self, columns):
            super().push({name: column * 2 for name, column in columns.items()})

    monkeypatch.setattr('nervex.data.buffer_manager.BUFFER_REGISTRY', {kind: Doubling})
    manager = BufferManager({'type': kind, 'min_sample_ratio': 0}, seed=0)
    for _ in range(3):
        manager.push_data(Batch(a=np.arange(1, 3)))
        manager.push_data({'a': np.int64(3)})
    assert set(manager.sample(9).a.tolist()) == {2, 4, 6}


@pytest.mark.parametrize('kind', ['replay', 'on_policy'])
def test_a_buffer_that_is_dropped_gives_its_memory_back_at_once(kind):
    buffer = BufferManager({'type': kind, 'monitor': {'log_freq': 0}}, seed=0)
    buffer.push_data(Batch(a=np.zeros((9, 3))))
    buffer.load_state_dict(buffer.state_dict())
    buffer.push_data({'a': np.zeros(3)})
    assert len(list(buffer.batches(4, 1))) > 0
    buffer.push_data({'a': np.zeros(3)})
    gc.collect()
    gc.disable()
    try:
        ring = getattr(buffer._only, 'ring', None) or buffer._only._ring
        gone = [weakref.ref(part) for part in (buffer._only, ring, ring.arrays['a'])]
        del buffer, ring
        assert [part() for part in gone] == [None] * 3
    finally:
        gc.enable()


def test_rows_that_end_with_the_last_slot_are_stored_the_quick_way():
    manager = BufferManager({'meta_maxlen': 4})
    manager.push_data([{'x': 0.0}, {'x': 1.0}])  # slots 0 and 1, the checked way: columns are new
    put = manager._only.put
    assert put(Batch.of({'x': np.array([2.0, 3.0])})) == 2  # slots 2 and 3: the round is full, nothing runs over
    assert put(Batch.of({'x': np.array([4.0])})) == 1  # slot 0 again
    assert put(Batch.of({'x': np.array([5.0, 6.0, 7.0, 8.0])})) == 0  # slots 1 to 4 of 4
    assert manager._only.ring.column('x').tolist()[0] == 4.0 and manager.count() == 4
