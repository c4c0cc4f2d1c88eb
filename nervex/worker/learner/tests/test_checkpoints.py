import os

import pytest
import torch

from nervex.utils import CheckpointError
from nervex.worker.learner.checkpoints import Checkpoints, load_checkpoint_file


def state() -> dict:
    return {'model': {'w': torch.zeros(1)}, 'version': 1}


def names(checkpoints: Checkpoints) -> list[str]:
    return sorted(os.listdir(checkpoints.folder))


def test_folders_sort_by_start_time_and_never_collide(tmp_path):
    folders = [Checkpoints(str(tmp_path), None, None).folder for _ in range(5)]
    assert folders == sorted(folders) and len(set(folders)) == 5


def test_only_the_newest_are_kept_beside_the_best_and_every_nth(tmp_path):
    checkpoints = Checkpoints(str(tmp_path), keep=2, keep_every=30)
    checkpoints.save(0, state, 'ckpt_best.pth.tar')
    for iteration in (10, 30, 40, 50, 100):
        checkpoints.save(iteration, state)
    assert names(checkpoints) == [
        'ckpt_best.pth.tar',
        'iteration_100.pth.tar',
        'iteration_30.pth.tar',
        'iteration_50.pth.tar',
    ]


def test_an_iteration_is_written_once(tmp_path):
    checkpoints = Checkpoints(str(tmp_path), None, None)
    first = checkpoints.save(7, state)
    assert checkpoints.save(7, state) == first
    assert checkpoints.last == first


def test_what_cannot_be_saved_leaves_no_file_behind(tmp_path):
    checkpoints = Checkpoints(str(tmp_path), None, None)
    checkpoints.save(1, state)

    def broken() -> dict:
        raise OSError(28, 'No space left on device')

    with pytest.raises(CheckpointError, match=r'iteration_2.*No space left.*Last good checkpoint: .*iteration_1'):
        checkpoints.save(2, broken)
    assert names(checkpoints) == ['iteration_1.pth.tar']


@pytest.mark.parametrize(
    'content, said',
    [
        ({'weights': 1}, "no key 'model'"),
        ({'model': {}, 'version': 99}, 'version 99'),
    ],
)
def test_foreign_and_newer_files(tmp_path, content, said):
    path = str(tmp_path / 'x.pth.tar')
    torch.save(content, path)
    with pytest.raises(CheckpointError, match=said):
        load_checkpoint_file(path)


def test_missing_and_truncated_files(tmp_path):
    with pytest.raises(CheckpointError, match='no such checkpoint'):
        load_checkpoint_file(str(tmp_path / 'none.pth.tar'))
    path = tmp_path / 'x.pth.tar'
    torch.save(state(), path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(CheckpointError, match=r'x\.pth\.tar'):
        load_checkpoint_file(str(path))
