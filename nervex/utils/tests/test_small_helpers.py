import multiprocessing
import sys
import threading
import time

import numpy as np
import pytest

from nervex.utils.default_helper import SingletonMetaclass, iter_mapping
from nervex.utils.errors import ExtraMissingError
from nervex.utils.file_helper import (
    LockContext,
    LockContextType,
    get_data_compressor,
    get_data_decompressor,
    get_file_lock,
)


def test_iter_mapping_is_lazy():
    seen = []
    mapped = iter_mapping([1, 2, 3], lambda x: (seen.append(x), x * 2)[1])
    assert seen == [] and next(mapped) == 2 and seen == [1] and list(mapped) == [4, 6]


def test_singletons_are_one_per_class():
    class A(metaclass=SingletonMetaclass):
        def __init__(self, x=1):
            self.x = x

    class B(A):
        """A subclass with an instance of its own."""

    assert A(5) is A(7) is A.instance and A.instance.x == 5
    assert B.instance is not A.instance and B.instance.x == 1


@pytest.mark.parametrize('name', ['none', 'zlib'])
def test_compression_there_and_back(name):
    data = {'obs': np.zeros(10000, np.float32), 'n': [1, None]}
    packed = get_data_compressor(name)(data)
    found = get_data_decompressor(name)(packed)
    assert np.array_equal(found['obs'], data['obs']) and found['n'] == [1, None]
    assert name == 'none' or len(packed) < 500


def test_lz4_says_what_to_install_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, 'lz4', None)
    monkeypatch.setitem(sys.modules, 'lz4.frame', None)
    for get in (get_data_compressor, get_data_decompressor):
        with pytest.raises(ExtraMissingError, match='pip install lz4'):
            get('lz4')
        with pytest.raises(ValueError, match="did you mean 'zlib'"):
            get('zlibb')


def test_lz4_there_and_back():
    pytest.importorskip('lz4')
    assert get_data_decompressor('lz4')(get_data_compressor('lz4')([1, 'a'])) == [1, 'a']


@pytest.mark.parametrize('kind', list(LockContextType))
def test_locks_keep_threads_apart_and_let_their_holder_in_again(kind):
    lock, inside, most = LockContext(kind), [0], [0]

    def work():
        for _ in range(20):
            with lock, lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0)
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert most == [1]
    lock.acquire()
    lock.release()
    with pytest.raises(ValueError, match='LockContextType'):
        LockContext('thread')


def add_one(path, lock_path):
    for _ in range(20):
        with get_file_lock(lock_path):
            value = int(open(path).read())  # noqa: SIM115
            time.sleep(0)
            with open(path, 'w') as f:
                f.write(str(value + 1))


def test_file_lock_keeps_threads_with_their_own_handles_apart(tmp_path):
    path = str(tmp_path / 'count')
    with open(path, 'w') as f:
        f.write('0')
    threads = [threading.Thread(target=add_one, args=(path, str(tmp_path / 'sub' / 'x'))) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert (tmp_path / 'count').read_text() == '60' and multiprocessing.active_children() == []
