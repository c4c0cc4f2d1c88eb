"""Frames that are kept once: the same samples as plain storage, in a fraction of the memory."""

import gc

import numpy as np
import pytest
import torch

from nervex.data import Batch, BufferManager, ReplayBuffer
from nervex.utils import tree


def manager(maxlen, axis, seed=5):
    cfg = {'meta_maxlen': maxlen, 'monitor': {'log_freq': 0}, 'min_sample_ratio': 0, 'frame_axis': axis}
    return BufferManager(cfg, seed=seed)


class FakeAtari:
    """Stacks of random frames with random episode ends, of several envs; next_obs is ``nstep`` steps on."""

    def __init__(self, envs, axis, nstep=1, mean_length=20, seed=0, side=8):
        self.rng, self.axis, self.nstep, self.side = np.random.default_rng(seed), axis, nstep, side
        self.mean_length = mean_length
        self.trajectories = [self.episode() for _ in range(envs)]

    def frame(self):
        return self.rng.integers(0, 256, (self.side, self.side), dtype=np.uint8)

    def episode(self):
        length = int(self.rng.integers(1, 2 * self.mean_length))
        frames = [self.frame()] * 4 + [self.frame() for _ in range(length)]
        if self.rng.random() < 0.3:
            frames[-2] = frames[-1]  # nothing moved
        stacks = [np.stack(frames[k : k + 4], self.axis) for k in range(length + 1)]
        return [(stacks[k], stacks[min(k + self.nstep, length)], k + 1 == length) for k in range(length)]

    def block(self, which=None):
        which = range(len(self.trajectories)) if which is None else which
        steps = []
        for env in which:
            if not self.trajectories[env]:
                self.trajectories[env] = self.episode()
            steps.append(self.trajectories[env].pop(0))
        obs, next_obs, done = (np.stack(part) for part in zip(*steps))
        return Batch.of({'obs': obs, 'next_obs': next_obs, 'done': done, 'action': np.arange(len(done)) + 1})


@pytest.mark.parametrize('axis, nstep, torch_columns', [(0, 1, False), (2, 1, False), (-1, 3, True)])
def test_samples_equal_those_of_plain_storage(axis, nstep, torch_columns):
    env = FakeAtari(3, axis, nstep)
    plain, once = manager(100, None), manager(100, axis)
    for k in range(120):
        block = env.block(env.rng.permutation(3)[: env.rng.integers(1, 4)])
        if torch_columns:
            block.obs, block.next_obs = torch.from_numpy(block.obs), torch.from_numpy(block.next_obs)
        plain.push_data(block)
        once.push_data(block)
        if k > 5:
            assert plain.count() == once.count()
            a, b = plain.sample(6), once.sample(6)
            assert a == b and type(a.obs) is type(b.obs) and a.obs.dtype == b.obs.dtype
    plain.push_data(env.block([0])[0].to_dict())
    assert once.sample(3, reuse=True) is not None


def test_frames_are_stored_once():
    env = FakeAtari(4, 0, mean_length=200)
    once = manager(2000, 0)
    for _ in range(450):
        once.push_data(env.block())
    ring = once._only.ring
    assert ring.frames.made < 1.05 * 1800 and ring.frames._frames.nbytes == ring.frames._limit * 64
    assert ring.arrays['obs'].dtype == np.int32  # frame numbers


def test_rows_expire_with_their_frames_when_episodes_are_very_short():
    env = FakeAtari(2, 0, mean_length=1)  # five new frames a step: far more than there is room for
    plain, once = manager(1000, None), manager(1000, 0)
    seen = {}
    for _ in range(1500):
        block = env.block()
        for row in block:
            seen[row.obs.tobytes()] = row.next_obs.tobytes()
        plain.push_data(block)
        once.push_data(block)
    assert 300 < once.count() < plain.count() == 1000
    batch = once.sample(500)
    assert all(seen[row.obs.tobytes()] == row.next_obs.tobytes() for row in batch)


def test_state_with_frames_continues():
    env = FakeAtari(2, 0)
    first, twin = manager(60, 0, 0), manager(60, 0, 1)
    for _ in range(50):
        first.push_data(env.block())
    twin.load_state_dict(first.state_dict())
    for _ in range(50):
        block = env.block()
        first.push_data(block)
        twin.push_data(block)
        assert first.sample(8) == twin.sample(8)


def test_equal_checksums_do_not_mix_frames_up(monkeypatch):
    monkeypatch.setattr('nervex.data.frames.zlib.crc32', lambda frame: 7)
    env = FakeAtari(2, 0)
    plain, once = manager(50, None), manager(50, 0)
    for _ in range(40):
        block = env.block()
        plain.push_data(block)
        once.push_data(block)
    rows = {row.obs.tobytes() for row in plain.sample(400)}
    assert all(row.obs.tobytes() in rows for row in once.sample(100))


def test_wrong_observations_are_named():
    buffer = BufferManager({'frame_axis': 0, 'monitor': {'log_freq': 0}})
    with pytest.raises(KeyError, match="no column 'obs'"):
        buffer.push_data({'image': np.zeros((4, 8, 8))})
    with pytest.raises(ValueError, match='not a stack of images'):
        buffer.push_data({'obs': np.zeros(4)})
    for axis in (3, 7, -4):
        with pytest.raises(ValueError, match=rf"frame_axis is {axis}, but 'obs' has rows of shape \(4, 8, 8\)"):
            manager(9, axis).plan({'obs': np.zeros((4, 8, 8), np.uint8)})
    buffer.push_data({'obs': np.zeros((4, 8, 8), np.uint8)})
    with pytest.raises(ValueError, match=r'\(4, 9, 8\)'):
        buffer.push_data({'obs': np.zeros((4, 9, 8), np.uint8)})


def test_single_frames_with_stacking_derived_take_little_more_than_the_frames():
    size, frames = 3000, np.random.default_rng(0).integers(0, 256, (3000, 84, 84), dtype=np.uint8)
    buf = ReplayBuffer(size, stack_num=4, ignore_obs_next=True)
    for k in range(size):
        buf.add(obs=frames[k], act=k % 4, rew=0.0, done=k % 100 == 99)
    time_bytes = buf._time.before.nbytes + buf._time.after.nbytes
    assert tree.nbytes(buf._ring.arrays) + time_bytes <= 1.01 * frames.nbytes
    row = buf[150]
    assert (row.obs == frames[147:151]).all() and (row.obs_next == frames[148:152]).all()


@pytest.mark.slow
@pytest.mark.parametrize('kind', ['single frames', 'stacks'])
def test_memory_of_100_000_frames(kind):
    """The process may grow by at most 1.1 times the bytes of the frames."""

    def resident():
        with open('/proc/self/statm', encoding='ascii') as f:
            return int(f.read().split()[1]) * 4096

    gc.collect()
    size, rng = 100_000, np.random.default_rng(0)
    before = resident()
    if kind == 'single frames':
        buffer = ReplayBuffer(size, stack_num=4, ignore_obs_next=True)
        for k in range(size):
            buffer.add(obs=rng.integers(0, 256, (84, 84), dtype=np.uint8), act=k % 4, rew=0.0, done=k % 1000 == 999)
        assert len(buffer) == size
    else:
        buffer = manager(size, 2)
        stack = np.stack([rng.integers(0, 256, (84, 84), dtype=np.uint8)] * 4, 2)
        for k in range(size):
            new = rng.integers(0, 256, (84, 84), dtype=np.uint8)
            following = np.concatenate([stack[:, :, 1:], new[:, :, None]], 2)
            buffer.push_data({'obs': stack, 'next_obs': following, 'action': 1, 'reward': 0.0, 'done': False})
            stack = following if k % 1000 != 999 else np.stack([new] * 4, 2)
        assert buffer.count() == size
    grown = resident() - before
    print(f'{kind}: {grown / (size * 84 * 84):.3f} bytes per byte of frames')
    assert grown <= 1.1 * size * 84 * 84


def test_rows_that_come_in_large_blocks_share_their_frames():
    """Each next_obs has three frames of its obs, however many obs come before it in the block."""
    env, once = FakeAtari(1, 0, mean_length=500), manager(2000, 0)
    once.push_data(Batch.cat([env.block() for _ in range(2000)]))
    assert once.count() == 2000


def test_a_million_rows_of_frames_need_two_percent_more_than_the_frames(monkeypatch):
    monkeypatch.setattr('nervex.data.memory.available_bytes', lambda: None)
    env = FakeAtari(1, 0, side=84)
    bookkeeping = {'reward': np.float32(0.0), 'truncated': False, 'collect_iter': 0}
    (needed,) = manager(10**6, 0).plan({**env.block()[0], **bookkeeping}).values()
    assert needed <= 1.02 * 10**6 * 84 * 84
