import copy
from collections import deque

import numpy as np
import pytest
import torch

from nervex.data.batch import Batch
from nervex.rl_utils import Adder, flatten_time


def row(t, done=False):
    return {
        'obs': torch.tensor([float(t)]),
        'next_obs': torch.tensor([t + 1.0]),
        'action': t,
        'reward': torch.tensor([10.0**t]),
        'done': done,
    }


def episode(length, done_at=()):
    return [row(t, t in done_at) for t in range(length)]


def as_batch(rows):
    return Batch.of(
        {
            'obs': torch.stack([r['obs'] for r in rows]),
            'next_obs': torch.stack([r['next_obs'] for r in rows]),
            'action': torch.tensor([r['action'] for r in rows]),
            'reward': torch.cat([r['reward'] for r in rows]),
            'done': torch.tensor([r['done'] for r in rows]),
        }
    )


# rewards 1, 10, 100, 1000, 10000; on the left the done rows, on the right (rewards, next_obs, done, steps) of each
# sample
TABLES = [
    ((4,), 1, [([1], 1, 0, 1), ([10], 2, 0, 1), ([100], 3, 0, 1), ([1000], 4, 0, 1), ([10000], 5, 1, 1)]),
    (
        (4,),
        3,
        [
            ([1, 10, 100], 3, 0, 3),
            ([10, 100, 1000], 4, 0, 3),
            ([100, 1000, 10000], 5, 1, 3),
            ([1000, 10000, 0], 5, 1, 2),
            ([10000, 0, 0], 5, 1, 1),
        ],
    ),
    (
        (),
        3,
        [
            ([1, 10, 100], 3, 0, 3),
            ([10, 100, 1000], 4, 0, 3),
            ([100, 1000, 10000], 5, 0, 3),
            ([1000, 10000, 0], 5, 0, 2),
            ([10000, 0, 0], 5, 0, 1),
        ],
    ),
    (
        (0, 2),
        3,
        [
            ([1, 0, 0], 1, 1, 1),
            ([10, 100, 0], 3, 1, 2),
            ([100, 0, 0], 3, 1, 1),
            ([1000, 10000, 0], 5, 0, 2),
            ([10000, 0, 0], 5, 0, 1),
        ],
    ),
    (
        (4,),
        5,
        [
            ([1, 10, 100, 1000, 10000], 5, 1, 5),
            ([10, 100, 1000, 10000, 0], 5, 1, 4),
            ([100, 1000, 10000, 0, 0], 5, 1, 3),
            ([1000, 10000, 0, 0, 0], 5, 1, 2),
            ([10000, 0, 0, 0, 0], 5, 1, 1),
        ],
    ),
]


@pytest.mark.parametrize('done_at, nstep, table', TABLES)
def test_nstep_tables_for_rows_and_columns(done_at, nstep, table):
    rows = episode(5, done_at)
    before = copy.deepcopy(rows)
    samples = Adder().get_nstep_return_data(rows, nstep, gamma=0.5)
    assert str(rows) == str(before)
    batch = Adder().get_nstep_return_data(as_batch(rows), nstep, gamma=0.5)
    assert len(samples) == len(batch) == 5
    for t, (reward, next_obs, done, steps) in enumerate(table):
        assert samples[t]['reward'].tolist() == batch['reward'][t].tolist() == reward
        assert samples[t]['next_obs'].item() == batch['next_obs'][t].item() == next_obs
        assert samples[t]['done'] == batch['done'][t] == done
        assert samples[t]['obs'].item() == batch['obs'][t].item() == t and samples[t]['action'] == t
        assert samples[t]['value_gamma'] == 0.5**steps
        if nstep > 1:
            assert batch['value_gamma'][t] == 0.5**steps


def test_without_gamma_windows_that_a_time_limit_cut_short_are_left_out():
    """Of 4 steps and n = 3, windows 0 and 1 are whole; the others are kept only where the episode really ended."""
    for truncated, kept in ((True, [0, 1]), (False, [0, 1, 2, 3])):
        rows = [{**r, 'truncated': truncated and r['done']} for r in episode(4, done_at=(3,))]
        block = as_batch(rows)
        block['truncated'] = torch.tensor([r['truncated'] for r in rows])
        assert [sample['action'] for sample in Adder().get_nstep_return_data(rows, 3)] == kept
        assert Adder().get_nstep_return_data(block, 3)['action'].tolist() == kept
        assert len(Adder().get_nstep_return_data(rows, 3, gamma=0.5)) == 4
    cut = Batch.of({key: torch.stack([column] * 2, 1) for key, column in block.items()})
    assert len(Adder().get_nstep_return_data(cut, 3)) == 4
    cut['truncated'] = cut['done']
    with pytest.raises(ValueError, match='pass gamma='):
        Adder().get_nstep_return_data(cut, 3)


def test_many_envs_equal_single_ones_and_numpy_equals_torch():
    rng = np.random.default_rng(0)
    columns = {
        'obs': rng.normal(size=(9, 3, 2)),
        'next_obs': rng.normal(size=(9, 3, 2)),
        'reward': rng.normal(size=(9, 3)).astype(np.float32),
        'done': rng.random((9, 3)) < 0.3,
        'truncated': rng.random((9, 3)) < 0.3,
    }
    nested = Batch.of({**columns, 'next_obs': Batch.of({'a': columns['next_obs']})})
    adder = Adder()
    for overlap in (0, 2, 4, 9):
        block = adder.get_nstep_return_data(nested, 4, gamma=0.9, overlap=overlap)
        assert block['reward'].shape == (9 - overlap, 3, 4) and isinstance(block['reward'], np.ndarray)
        for env in range(3):
            single = Batch.of({k: torch.from_numpy(v[:, env].copy()) for k, v in columns.items()})
            single = adder.get_nstep_return_data(single, 4, gamma=0.9, overlap=overlap)
            for key in ('obs', 'reward', 'done', 'truncated', 'value_gamma'):
                assert np.array_equal(single[key].numpy(), block[key][:, env])
            assert np.array_equal(single['next_obs'].numpy(), block['next_obs']['a'][:, env])


@pytest.mark.parametrize('window', [1, 2, 4, 5, 'inf'])
@pytest.mark.parametrize('length', [1, 3, 12])
def test_every_row_gets_its_full_target_across_windows(window, length):
    nstep, adder, live, samples = 3, Adder(), deque(maxlen=64), []
    rows = episode(length, (length - 1,))
    for r in rows:
        live.append(r)
        if (window != 'inf' and len(live) >= window) or r['done']:
            traj = adder.get_traj(live, window, return_num=nstep)
            samples += adder.get_nstep_return_data(traj, nstep)
    while live:  # what is left of the finished episode
        samples += adder.get_nstep_return_data(adder.get_traj(live, window, return_num=nstep), nstep)
    whole = adder.get_nstep_return_data(rows, nstep)
    assert [s['reward'].tolist() for s in samples] == [s['reward'].tolist() for s in whole]
    assert [s['next_obs'].item() for s in samples] == [s['next_obs'].item() for s in whole]


def test_blocks_with_overlap_give_every_row_once_and_whole():
    batch, adder = as_batch(episode(12, (4, 11))), Adder()
    parts = [adder.get_nstep_return_data(batch[s : s + 6], 3, overlap=3) for s in (0, 3, 6)]
    rewards = torch.cat([p['reward'] for p in parts])
    assert torch.equal(rewards, adder.get_nstep_return_data(batch, 3)['reward'][:9])


def test_get_traj_keeps_copies_at_the_front():
    live = deque(episode(5), maxlen=5)
    window = Adder().get_traj(live, 4, return_num=2)
    assert [r['action'] for r in window] == [0, 1, 2, 3] and window.repeats == 2
    assert [r['action'] for r in live] == [2, 3, 4]
    live[0]['reward'] = None
    assert window[2]['reward'] is not None


def test_get_traj_without_a_length_takes_what_is_there():
    data = deque(episode(3))
    window = Adder().get_traj(data, None, return_num=2)
    assert [r['action'] for r in window] == [0, 1, 2] and window.repeats == 2 and len(data) == 2
    assert not Adder().get_traj(data, None, return_num=2) and len(data) == 2


def test_get_traj_takes_nothing_it_could_not_use():
    live = deque(episode(2))
    assert Adder().get_traj(live, 1, return_num=2) == [] and len(live) == 2
    assert Adder().get_traj(deque(), 'inf') == []


def test_gae_of_rows_and_columns_by_hand():
    # gamma = lambda = .5, r = 1: d2 = 1 + .5 * 8 - 4 = 1; d1 = 1 + 2 - 2 = 1, A1 = 1.25; d0 = 1 + 1 - 1 = 1, A0 =
    # 1.3125
    rows = [{'value': torch.tensor([v]), 'reward': torch.tensor([1.0]), 'done': False} for v in (1.0, 2.0, 4.0)]
    assert [r['adv'].tolist() for r in Adder().get_gae(rows, torch.tensor([8.0]), 0.5, 0.5)] == [
        [1.3125],
        [1.25],
        [1.0],
    ]
    batch = Batch.of({'value': torch.tensor([1.0, 2.0, 4.0]), 'reward': torch.ones(3), 'done': torch.zeros(3)})
    assert Adder().get_gae(batch, 8.0, 0.5, 0.5)['adv'].tolist() == [1.3125, 1.25, 1.0]


def test_gae_default_last_value():
    rows = [
        {'value': torch.tensor([v]), 'reward': torch.tensor([1.0]), 'done': d} for v, d in ((1.0, False), (2.0, True))
    ]
    # over: d1 = 1 - 2 = -1, A0 = 1 + 1 - 1 - .25 = .75; not over: the last row lends its value, A0 = 1 + .5 * 2 - 1 = 1
    done = Adder().get_gae_with_default_last_value(copy.deepcopy(rows), True, 0.5, 0.5)
    assert [r['adv'].item() for r in done] == [0.75, -1.0]
    cut = Adder().get_gae_with_default_last_value(copy.deepcopy(rows), False, 0.5, 0.5)
    assert [r['adv'].item() for r in cut] == [1.0]


def test_truncated_row_uses_the_last_value_and_inner_ones_need_their_own():
    rows = [{'value': 1.0, 'reward': 1.0, 'done': True, 'truncated': True} for _ in range(2)]
    assert Adder().get_gae(rows[:1], 4.0, 0.5, 0.5)[0]['adv'].item() == 2.0
    with pytest.raises(ValueError, match='next_value'):
        Adder().get_gae(rows, 4.0, 0.5, 0.5)


UNROLL = [
    ('last', 5, [[0, 1], [2, 3], [3, 4]]),
    ('drop', 5, [[0, 1], [2, 3]]),
    ('null_padding', 5, [[0, 1], [2, 3], [4, 4]]),
    ('last', 4, [[0, 1], [2, 3]]),
    ('last', 1, [[0, 0]]),
    ('drop', 1, []),
]


@pytest.mark.parametrize('last_fn_type, length, expected', UNROLL)
def test_unroll(last_fn_type, length, expected):
    adder, rows = Adder(unroll_len=2, last_fn_type=last_fn_type), episode(length)
    pieces = adder.get_train_sample(rows)
    batch = adder.get_train_sample(as_batch(rows))
    assert [p['action'] for p in pieces] == batch['action'].tolist() == expected
    padded = length % 2 and (last_fn_type == 'null_padding' or (length == 1 and last_fn_type == 'last'))
    if padded:
        assert pieces[-1]['done'] == batch['done'][-1].tolist() == [False, True]
        assert pieces[-1]['reward'][1].item() == batch['reward'][-1, 1].item() == 0.0
        assert not rows[-1]['done']


def test_unroll_of_several_envs_goes_env_by_env():
    actions = torch.arange(10).reshape(5, 2)
    batch = Batch.of({'action': actions, 'done': torch.zeros(5, 2), 'reward': torch.ones(5, 2)})
    samples = Adder(unroll_len=2).get_train_sample(batch)
    assert samples['action'].tolist() == [[0, 2], [1, 3], [4, 6], [5, 7], [6, 8], [7, 9]]


def test_unroll_one_is_the_data_itself():
    rows = episode(3)
    assert Adder().get_train_sample(rows) is rows


def test_flatten_time_is_a_view():
    batch = Batch.of({'x': torch.arange(6).reshape(3, 2), 'y': Batch.of({'z': np.zeros((3, 2, 4))})})
    flat = flatten_time(batch)
    assert flat['x'].tolist() == [0, 1, 2, 3, 4, 5] and flat['y']['z'].shape == (6, 4)
    assert flat['x'].data_ptr() == batch['x'].data_ptr()
