import os
import socket
import stat
import sys

import numpy as np
import pytest

from nervex.utils.slurm_helper import find_free_port_slurm, get_cls_info, node_list, node_to_host, node_to_partition
from nervex.utils.system_helper import (
    PropagatingThread,
    find_free_port,
    get_ip,
    get_pid,
    get_task_uid,
    keep_freed_memory,
)


def test_thread_hands_on_result_and_error():
    thread = PropagatingThread(target=lambda a, b: a + b, args=(1,), kwargs={'b': 2})
    thread.start()
    assert thread.join() == 3 and thread.join() == 3
    thread = PropagatingThread(target=int, args=('x',))
    thread.start()
    with pytest.raises(ValueError, match='invalid literal'):
        thread.join()


def test_join_with_a_timeout_comes_back():
    import threading

    gate = threading.Event()
    thread = PropagatingThread(target=gate.wait, daemon=True)
    thread.start()
    assert thread.join(0.01) is None and thread.is_alive()
    gate.set()
    assert thread.join() is True


def test_names_ports_and_addresses():
    assert get_pid() == os.getpid() and get_task_uid() != get_task_uid()
    assert len(get_ip().split('.')) == 4
    with socket.socket() as s:
        s.bind(('', find_free_port()))


@pytest.mark.parametrize(
    'text, names',
    [
        ('login1', ['login1']),
        ('a[1-3]', ['a1', 'a2', 'a3']),
        ('a[08-10]', ['a08', 'a09', 'a10']),
        ('host-10-198-[6,8-9],login1', ['host-10-198-6', 'host-10-198-8', 'host-10-198-9', 'login1']),
        ('r[1-2]n[3,5]', ['r1n3', 'r1n5', 'r2n3', 'r2n5']),
        ('a[1]-x,b', ['a1-x', 'b']),
    ],
)
def test_node_lists(text, names):
    assert node_list(text) == names


@pytest.mark.parametrize('text', ['cpu[1-', 'a,', ',a', 'a[]', 'a[1-b]', 'a]b', 'a b', 'a[1,]'])
def test_node_lists_that_are_none(text):
    with pytest.raises(ValueError, match='short form'):
        node_list(text)


def test_node_list_outside_slurm(monkeypatch):
    monkeypatch.delenv('SLURM_NODELIST', raising=False)
    with pytest.raises(ValueError, match='no slurm allocation'):
        node_list()
    monkeypatch.setenv('SLURM_NODELIST', 'n[1-2]')
    assert node_list() == ['n1', 'n2']


def test_node_to_host():
    assert node_to_host('SH-IDC1-10-198-8-66') == '10.198.8.66' and node_to_host('login1') == 'login1'


@pytest.fixture
def fake_slurm(tmp_path, monkeypatch):
    info = 'case "$*" in *-n*) [ "$3" = n1 ] && echo "gpu*";; *) echo "gpu* n[1-2]"; echo cpu m1;; esac'
    for name, text in (('sinfo', info), ('srun', 'echo starting; echo 4242')):
        file = tmp_path / name
        file.write_text(f'#!/bin/sh\n{text}\nexit 0\n')
        file.chmod(file.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv('PATH', f'{tmp_path}:{os.environ["PATH"]}')


def test_questions_to_slurm(fake_slurm):
    assert node_to_partition('n1') == 'gpu' and find_free_port_slurm('n1') == 4242
    assert get_cls_info() == {'gpu': ['n1', 'n2'], 'cpu': ['m1']}
    with pytest.raises(ValueError, match="no node 'other'"):
        node_to_partition('other')


@pytest.mark.skipif(sys.platform != 'linux', reason='the allocator of glibc')
def test_memory_that_was_freed_is_there_without_new_pages(monkeypatch):
    import resource

    for name in [name for name in os.environ if name.startswith(('MALLOC_', 'GLIBC_TUNABLES'))]:
        monkeypatch.delenv(name)
    keep_freed_memory.cache_clear()
    if not keep_freed_memory():
        pytest.skip('another C library')

    def faults():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        parts = [np.ones(2**21) for _ in range(4)]  # 16 MB each
        del parts
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    assert min(faults() for _ in range(4)) < 100  # of 16,384 pages


def test_who_has_chosen_how_memory_is_kept_keeps_it(monkeypatch):
    monkeypatch.setenv('MALLOC_TRIM_THRESHOLD_', '100000')
    keep_freed_memory.cache_clear()
    assert not keep_freed_memory()
    keep_freed_memory.cache_clear()
