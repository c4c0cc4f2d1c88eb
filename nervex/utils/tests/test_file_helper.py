import os
import pickle
from collections import OrderedDict

import pytest
import torch
from torch import nn

from nervex.torch_utils import FlatParameters
from nervex.utils.errors import CheckpointError
from nervex.utils.file_helper import atomic_write, compact, read_file, remove_file, save_file


def test_what_is_saved_is_read_back(tmp_path):
    path = str(tmp_path / 'new' / 'folder' / 'x.pth.tar')
    data = {'model': OrderedDict(w=torch.arange(3.0)), 'iter': 7, 'names': ['a', None], 'pair': (1, 2.5), 'flag': True}
    save_file(path, data)
    found = read_file(path)
    assert torch.equal(found['model'].pop('w'), torch.arange(3.0))
    data['model'] = OrderedDict()
    assert found == data and os.listdir(tmp_path / 'new' / 'folder') == ['x.pth.tar']


def test_a_failing_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = str(tmp_path / 'x')
    save_file(path, {'v': 1})
    with pytest.raises(RuntimeError, match='disk'), atomic_write(path) as f:
        f.write(b'half')
        raise RuntimeError('disk')
    with pytest.raises(Exception, match='pickle'):
        save_file(path, {'v': lambda: 0})
    assert read_file(path) == {'v': 1} and os.listdir(tmp_path) == ['x']


def test_text_mode_and_file_rights(tmp_path):
    path = str(tmp_path / 'x.txt')
    old = os.umask(0o027)
    try:
        with atomic_write(path, 'w') as f:
            f.write('grün')
    finally:
        os.umask(old)
    assert (tmp_path / 'x.txt').read_text(encoding='utf-8') == 'grün'
    assert os.stat(path).st_mode & 0o777 == 0o640


class Evil:
    def __reduce__(self):
        return os.mkdir, ('never_made',)


def test_files_that_would_run_code_are_not_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({'x': Evil()}, 'evil')
    with pytest.raises(CheckpointError, match=r'not read: .*a posix\.mkdir$'):
        read_file('evil')
    torch.save(torch.nn.Linear(1, 1), 'module')
    with pytest.raises(CheckpointError, match=r"'module' is not read: .*a torch\.nn\.modules\.linear\.Linear$"):
        read_file('module')
    with open('raw', 'wb') as f:
        pickle.dump(Evil(), f, protocol=2)
    with pytest.raises(CheckpointError):
        read_file('raw')
    assert not os.path.exists('never_made')


def test_damaged_and_missing_files_are_named(tmp_path):
    path = str(tmp_path / 'x')
    with pytest.raises(CheckpointError, match='no file'):
        read_file(path)
    save_file(path, {'w': torch.zeros(1000)})
    content = (tmp_path / 'x').read_bytes()
    for part in (content[:200], b'', b'garbage'):
        with open(path, 'wb') as f:
            f.write(part)
        with pytest.raises(CheckpointError, match='x'):
            read_file(path)


def test_a_part_of_a_flat_module_is_saved_without_the_rest(tmp_path):
    module = nn.Sequential(nn.Linear(10, 10), nn.Linear(500, 500))
    FlatParameters(module)
    save_file(str(tmp_path / 'part'), module[0].state_dict())
    torch.save(module[0].state_dict(), tmp_path / 'plain')
    assert os.path.getsize(tmp_path / 'part') < 5_000 < 1_000_000 < os.path.getsize(tmp_path / 'plain')


def test_a_whole_flat_module_costs_no_more_and_loads_strictly(tmp_path):
    module = nn.Sequential(nn.Linear(50, 50), nn.BatchNorm1d(50))
    before = {k: v.clone() for k, v in module.state_dict().items()}
    save_file(str(tmp_path / 'ordinary'), module.state_dict())
    FlatParameters(module)
    save_file(str(tmp_path / 'flat'), module.state_dict())
    assert os.path.getsize(tmp_path / 'flat') <= os.path.getsize(tmp_path / 'ordinary') + 100
    found = read_file(str(tmp_path / 'flat'))
    assert all(torch.equal(found[k], before[k]) for k in before)
    nn.Sequential(nn.Linear(50, 50), nn.BatchNorm1d(50)).load_state_dict(found)


def test_compact_keeps_tied_tensors_tied():
    whole = torch.arange(10.0)
    out = compact({'a': whole[:3], 'b': whole[:3], 'c': [whole[3:5]], 'd': whole})
    assert out['a'] is out['b'] and out['c'][0].tolist() == [3.0, 4.0] and out['d'] is whole


def test_remove_twice(tmp_path):
    save_file(str(tmp_path / 'x'), 1)
    remove_file(str(tmp_path / 'x'))
    remove_file(str(tmp_path / 'x'))
    assert os.listdir(tmp_path) == []


def test_lock_file_is_used_when_asked(tmp_path):
    save_file(str(tmp_path / 'x'), {'v': 2}, use_lock=True)
    assert read_file(str(tmp_path / 'x'), use_lock=True) == {'v': 2} and (tmp_path / 'x.lock').exists()
