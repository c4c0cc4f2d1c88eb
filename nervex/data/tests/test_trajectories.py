"""Files of episodes: exact round trips, damage, and learning from them."""

import io
import json
import logging
import os
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nervex.data import Batch, BufferManager, TrajectoryDataset, TrajectoryError, TrajectoryWriter, default_collate
from nervex.data.trajectories import read_trajectory_file, write_trajectory_file


def episode(length, start=0):
    k = np.arange(start, start + length)
    return Batch(
        obs={'image': np.full((length, 2, 2), start, np.uint8), 'speed': torch.from_numpy(k).float()},
        action=k,
        reward=torch.randn(length, 1),
        done=k == start + length - 1,
        value=k / 3,
        half=torch.ones(length, dtype=torch.bfloat16),
        note=notes(length),
    )


def notes(length):
    column = np.empty(length, dtype=object)
    for k in range(length):
        column[k] = [None, 'ä\0', 1.5, [1, {'x': None}]][k % 4]
    return column


def same(a, b):
    if isinstance(a, Batch):
        return isinstance(b, Batch) and list(a.keys()) == list(b.keys()) and all(same(a[k], b[k]) for k in a.keys())
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()


def test_round_trip_is_exact(tmp_path):
    path = str(tmp_path / 'one.npz')
    episodes = [episode(4), episode(1, 10), episode(7, 20)]
    write_trajectory_file(path, episodes)
    back = read_trajectory_file(path)
    assert len(back) == 3 and all(same(a, b) for a, b in zip(episodes, back))
    assert os.listdir(tmp_path) == ['one.npz']


def test_numpy_alone_opens_a_file(tmp_path):
    path = str(tmp_path / 'one.npz')
    write_trajectory_file(path, [episode(4), episode(2, 10)])
    with np.load(path, allow_pickle=False) as archive:
        assert archive['lengths'].tolist() == [4, 2] and archive['column.obs.image'].shape == (6, 2, 2)
        assert archive['column.action'].tolist() == [0, 1, 2, 3, 10, 11]
        assert json.loads(str(archive['meta']))['version'] == 1


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    seed=st.integers(0, 1000),
    dtype=st.sampled_from(['f2', 'f4', 'f8', 'i1', 'u2', 'i8', '?', 'c8']),
    shape=st.sampled_from([(), (3,), (2, 0)]),
)
def test_round_trip_of_any_dtype(tmp_path_factory, lengths, seed, dtype, shape):
    rng = np.random.default_rng(seed)
    raw = [rng.integers(0, 256, (n, *shape, 16), dtype=np.uint8).astype(dtype)[..., 0] for n in lengths]
    path = str(tmp_path_factory.mktemp('t') / 'x.npz')
    write_trajectory_file(path, [Batch.of({'x': x}) for x in raw])
    back = read_trajectory_file(path)
    assert all(a.dtype == b.x.dtype and a.tobytes() == b.x.tobytes() for a, b in zip(raw, back))
    assert all(a.shape == b.x.shape for a, b in zip(raw, back)) and len(back) == len(raw)


def test_what_cannot_be_kept_exactly_is_refused(tmp_path):
    for value in ((1, 2), object(), {1: 2}):
        column = np.empty(1, dtype=object)
        column[0] = value
        with pytest.raises(TrajectoryError, match=r"column 'x', step 0: a value of type"):
            write_trajectory_file(str(tmp_path / 'x.npz'), [Batch.of({'x': column})])
    assert not os.listdir(tmp_path)


# ---- writing as they come
def test_files_are_numbered_and_hold_at_most_so_many_episodes(tmp_path):
    for first in (0, 25):
        with TrajectoryWriter(str(tmp_path), episodes_per_file=10) as writer:
            for k in range(25):
                writer.add(episode(2, first + k))
        assert writer.written == 25
    assert sorted(os.listdir(tmp_path)) == [f'trajectories_0000{k}.npz' for k in range(6)]
    data = TrajectoryDataset(str(tmp_path))
    assert data.steps.action[::2].tolist() == list(range(50)) and len(data.lengths) == 50
    with pytest.raises(ValueError, match='1001'):
        TrajectoryWriter(str(tmp_path), episodes_per_file=1001)


def test_large_files_are_split_by_bytes(tmp_path):
    with TrajectoryWriter(str(tmp_path), bytes_per_file=5000) as writer:
        for _ in range(4):
            writer.add(Batch(x=np.zeros((2, 500))))
    assert len(os.listdir(tmp_path)) == 4


def test_interleaved_steps_become_episodes(tmp_path):
    rng, expected, running, writer = np.random.default_rng(0), [], {}, TrajectoryWriter(str(tmp_path))
    for number in range(200):
        envs = rng.permutation(3)[: rng.integers(1, 4)]
        done = rng.random(len(envs)) < 0.2
        writer.record(Batch(number=np.full(len(envs), number), env_id=envs, done=done))
        for env, end in zip(envs.tolist(), done.tolist()):
            running.setdefault(env, []).append(number)
            if end:
                expected.append(running.pop(env))
        if number == 100 and 1 in running:
            running.pop(1)
            writer.drop(1)
    block = Batch(number=np.arange(6), env_id=np.array([0, 0, 1, 0, 1, 0]), done=np.array([1, 0, 1, 1, 0, 0], bool))
    writer.record(block)  # several steps of an env at once
    expected += [[*running.pop(0, []), 0], [1, 3], [*running.pop(1, []), 2]]
    writer.close()
    data = TrajectoryDataset(str(tmp_path))
    found = [data.episode(k).number.tolist() for k in range(len(data.lengths))]
    assert sorted(found) == sorted(expected)


# ---- damage
def folder_with(tmp_path, name, content):
    with TrajectoryWriter(str(tmp_path), episodes_per_file=1) as writer:
        for k in range(2):
            writer.add(episode(3, 10 * k))
    with open(tmp_path / name, 'wb') as f:
        f.write(content)
    return str(tmp_path)


def archive_bytes(tmp_path, **arrays):
    np.savez(tmp_path / 'made.npz', **arrays)
    content = (tmp_path / 'made.npz').read_bytes()
    os.remove(tmp_path / 'made.npz')
    return content


META = {'format': 'nervex-trajectories', 'version': 1, 'columns': [{'key': 'column.x', 'path': ['x'], 'kind': 'numpy'}]}


@pytest.mark.parametrize(
    'damage',
    [
        'empty',
        'text',
        'foreign npz',
        'npy',
        'pickled',
        'newer',
        'short column',
        'no column',
        'cut',
        'bit',
        'meta is no json',
        'unknown kind',
    ],
)
def test_a_damaged_file_is_one_clear_error_and_the_others_load(tmp_path, damage, caplog):
    good = str(tmp_path / 'good.npz')
    write_trajectory_file(good, [episode(3)])
    with open(good, 'rb') as f:
        whole = f.read()
    os.remove(good)
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 1

    def made(meta, **arrays):
        return archive_bytes(tmp_path, meta=np.array(json.dumps(meta)), **arrays)

    x = {'column.x': np.zeros(3), 'lengths': np.array([3])}
    content = {
        'empty': lambda: b'',
        'text': lambda: b'hello',
        'cut': lambda: whole[: len(whole) // 2],
        'bit': lambda: bytes(flipped),
        'foreign npz': lambda: archive_bytes(tmp_path, a=np.zeros(3)),
        'npy': lambda: (np.save(tmp_path / 'y.npy', np.zeros(2)), (tmp_path / 'y.npy').read_bytes())[1],
        'pickled': lambda: archive_bytes(tmp_path, meta=np.array([{'a': 1}], dtype=object)),
        'newer': lambda: made({**META, 'version': 2}, **x),
        'short column': lambda: made(META, **{**x, 'column.x': [1]}),
        'no column': lambda: made(META, lengths=[3]),
        'meta is no json': lambda: archive_bytes(tmp_path, meta=np.array('{'), **x),
        'unknown kind': lambda: made({**META, 'columns': [{**META['columns'][0], 'kind': 'pickle'}]}, **x),
    }[damage]()
    folder = folder_with(tmp_path, 'trajectories_00001x.npz', content)
    with caplog.at_level(logging.ERROR):
        data = TrajectoryDataset(folder)
    assert data.steps.action.tolist() == [0, 1, 2, 10, 11, 12]
    (error,) = data.errors
    assert 'trajectories_00001x.npz' in str(error) and "expected a .npz archive with 'meta'" in str(error)
    assert caplog.text.count('trajectories_00001x.npz') == 1
    with pytest.raises(TrajectoryError, match='trajectories_00001x'):
        TrajectoryDataset(folder, strict=True)


@pytest.mark.parametrize('key', ['lengths', 'meta', 'column.action', 'column.obs.image'])
@pytest.mark.parametrize('shape', [(10**15,), (2**62, 2**62), (0,), (-1, 4), (10**9, 0, 3)])
def test_an_array_that_is_not_as_large_as_it_says_is_refused_before_it_is_made(tmp_path, key, shape):
    whole, forged = str(tmp_path / 'whole.npz'), str(tmp_path / 'forged.npz')
    write_trajectory_file(whole, [episode(4)])
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(forged, 'w') as target:
        for name in source.namelist():
            content = source.read(name)
            if name == f'{key}.npy':
                header, dtype = io.BytesIO(), np.load(whole)[key].dtype
                described = {'descr': dtype.str, 'fortran_order': False, 'shape': shape}
                np.lib.format.write_array_header_1_0(header, described)
                content = header.getvalue() + content[128:]
            target.writestr(name, content)  # with a checksum that fits
    with pytest.raises(TrajectoryError, match=rf"forged.npz' is no readable .*'{key}.npy' says that it holds"):
        read_trajectory_file(forged)


def test_more_than_there_is_memory_for_is_refused(tmp_path, monkeypatch):
    path = str(tmp_path / 'one.npz')
    write_trajectory_file(path, [episode(4)])
    monkeypatch.setattr('nervex.data.trajectories.available_bytes', lambda: 1000)
    with pytest.raises(TrajectoryError, match=r'its arrays are of [0-9]+ bytes, and 1000 bytes of memory are free'):
        read_trajectory_file(path)


def test_nothing_readable_and_nothing_there(tmp_path):
    with pytest.raises(TrajectoryError, match=r'there is no \.npz file'):
        TrajectoryDataset(str(tmp_path))
    (tmp_path / 'a.npz').write_bytes(b'PK')
    with pytest.raises(TrajectoryError, match=r'none of its 1 files could be read.*a\.npz'):
        TrajectoryDataset(str(tmp_path))
    with pytest.raises(FileNotFoundError, match='nowhere'):
        TrajectoryDataset(str(tmp_path / 'nowhere'))


def test_a_folder_without_files_is_told_beside_one_that_has_some(tmp_path):
    with TrajectoryWriter(str(tmp_path / 'full')) as writer:
        writer.add([{'x': 1.0}])
    (tmp_path / 'bare').mkdir()
    with pytest.raises(TrajectoryError, match=rf"^no episodes in '{tmp_path}/bare': there is no \.npz file$"):
        TrajectoryDataset([str(tmp_path / 'full'), str(tmp_path / 'bare')])
    (tmp_path / 'bare' / 'a.npz').write_bytes(b'')
    with pytest.raises(TrajectoryError, match=rf"^no episodes in '{tmp_path}/bare': none of its 1 files"):
        TrajectoryDataset([str(tmp_path / 'bare')])


def test_files_hold_no_pickles(tmp_path):
    path = str(tmp_path / 'one.npz')
    write_trajectory_file(path, [episode(5)])
    with zipfile.ZipFile(path) as z:
        assert all(b"'descr': '|O'" not in z.read(name)[:128] for name in z.namelist())


# ---- learning from them
def test_dataset_feeds_a_learner(tmp_path):
    with TrajectoryWriter(str(tmp_path)) as writer:
        for k in range(5):
            writer.add([dict(row.items()) for row in episode(4, 4 * k)])
    data = TrajectoryDataset(str(tmp_path), seed=0)
    assert len(data) == 20 and data[-1]['action'] == 19 and len(data.episode(-1)) == 4
    batches = list(data.batches(8, 5))
    assert len(batches) == 5 and all(len(set(b.action.tolist())) == 8 for b in batches)
    assert len({*batches[0].action.tolist(), *batches[1].action.tolist()}) == 16
    again = TrajectoryDataset(str(tmp_path), seed=0)
    assert all(same(a, b) for a, b in zip(batches, again.batches(8, 5)))

    def collate(rows):
        return default_collate([{key: row[key] for key in ('obs', 'reward')} for row in rows])

    loader = torch.utils.data.DataLoader(data, batch_size=10, collate_fn=collate)
    assert next(iter(loader))['obs']['image'].shape == (10, 2, 2)
    with BufferManager({'meta_maxlen': 100, 'monitor': {'log_freq': 0}}) as buffer:
        data.fill(buffer)
        assert buffer.count() == 20
    with pytest.raises(ValueError, match='21'):
        next(data.batches(21, 1))


@pytest.mark.parametrize('lengths', [[1.5, 0.5], [3, -1], [[2]], 2, [], [0, 2], [True, True]])
def test_lengths_that_are_no_numbers_of_steps_are_refused(tmp_path, lengths):
    meta = {
        'format': 'nervex-trajectories',
        'version': 1,
        'columns': [{'key': 'column.a', 'path': ['a'], 'kind': 'numpy'}],
    }
    path = str(tmp_path / 'trajectories_00000.npz')
    np.savez(path, meta=np.array(json.dumps(meta)), lengths=np.array(lengths), **{'column.a': np.zeros(2)})
    with pytest.raises(TrajectoryError, match=r"trajectories_00000.npz' is no readable .*'lengths' must be"):
        read_trajectory_file(path)


@pytest.mark.parametrize('content', [b'', b'no archive at all', b'\x93NUMPY\x01\x00', b'\x80\x04}\x94.'])
def test_what_is_no_archive_is_called_so(tmp_path, content):
    path = tmp_path / 'foreign.npz'
    path.write_bytes(content)
    with pytest.raises(TrajectoryError, match=r'it is no \.npz archive, or only the beginning of one'):
        read_trajectory_file(str(path))
