"""A file with a bit that is not as it was written is never taken for a good one."""

import os
import random
import shutil

import numpy as np
import pytest
import torch

from nervex.data import Batch
from nervex.data.trajectories import read_trajectory_file, write_trajectory_file
from nervex.entry import serial_pipeline
from nervex.run.state import newest_state, state_files, whole_states
from nervex.utils import CheckpointError, tree
from nervex.utils.file_helper import read_file
from nervex.worker.learner.checkpoints import load_checkpoint_file


def contents(data):
    """Everything in it, in an order, as bytes and texts."""
    if isinstance(data, dict):
        return [(repr(k), contents(v)) for k, v in data.items()]
    if isinstance(data, (list, tuple)):
        return [contents(v) for v in data]
    if isinstance(data, Batch):
        return [(path, contents(leaf)) for path, leaf in tree.zip(data)]
    if isinstance(data, (torch.Tensor, np.ndarray)):
        array = np.asarray(data)
        return str(array.dtype), array.shape, array.tobytes() if array.dtype != object else array.tolist()
    return repr(data)


def flip(path, place, bit):
    with open(path, 'r+b') as f:
        f.seek(place)
        byte = f.read(1)[0] ^ 1 << bit
        f.seek(place)
        f.write(bytes([byte]))


def trajectories(tmp_path):
    path = str(tmp_path / 'trajectories.npz')
    steps = [
        Batch.of({'obs': np.random.rand(n, 4), 'reward': torch.rand(n), 'done': np.arange(n) == n - 1}) for n in (9, 5)
    ]
    write_trajectory_file(path, steps)
    return path


@pytest.mark.parametrize('seed', range(2))
def test_no_flipped_bit_is_accepted_with_other_contents(short_dqn, tmp_path, seed):
    short_dqn.commander.max_env_step = 100
    result = serial_pipeline(short_dqn, seed=0)
    files = {
        result.checkpoint: load_checkpoint_file,
        state_files(result.ckpt_path)[0]: read_file,
        trajectories(tmp_path): read_trajectory_file,
    }
    chance, refused = random.Random(seed), 0
    for path, read in files.items():
        whole, size = contents(read(path)), os.path.getsize(path)
        for n in range(100):
            low = 0 if n % 2 else size - size // 8  # half of them where the archive says what is where
            place, bit = chance.randrange(low, size), chance.randrange(8)
            flip(path, place, bit)
            try:
                assert contents(read(path)) == whole, f'{path}: bit {bit} of byte {place}'
            except ValueError as e:  # CheckpointError, TrajectoryError
                assert path in str(e)
                refused += 1
            flip(path, place, bit)
        assert contents(read(path)) == whole
    assert refused > 200


def test_a_damaged_state_is_passed_over_and_a_damaged_checkpoint_refused(short_dqn):
    result = serial_pipeline(short_dqn, seed=0)
    (newest,) = state_files(result.ckpt_path)[:1]
    older = os.path.join(result.ckpt_path, 'run_state_1_1.pth.tar')
    shutil.copy(newest, older)
    for path in (newest, result.checkpoint):
        flip(path, os.path.getsize(path) // 2, 3)
    assert newest_state(result.ckpt_path)[0] == older
    assert whole_states(result.ckpt_path) == {1: older}
    with pytest.raises(CheckpointError, match=os.path.basename(result.checkpoint)):
        load_checkpoint_file(result.checkpoint)
