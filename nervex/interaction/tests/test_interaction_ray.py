"""Master and slave in two processes, by Ray."""

import os
import signal

import pytest

from nervex.interaction import Master, Slave, TaskFail, TaskStatus, launch_slave
from nervex.interaction import exception as exceptions

ray = pytest.importorskip('ray', reason='pip install nervex[parallel]')
pytestmark = pytest.mark.slow


@pytest.fixture(scope='module')
def ray_here():
    ray.init(address='local', num_cpus=2, include_dashboard=False, object_store_memory=100_000_000, log_to_driver=False)
    yield
    ray.shutdown()


def launched(**options):
    class Worker(Slave):  # inside a function, so that it travels by value
        def _process_task(self, task):
            if task.get('fail'):
                raise TaskFail(1, 'as told')
            if task.get('until'):  # this file exists
                import time

                while not os.path.exists(task['until']):
                    time.sleep(0.01)
            return os.getpid()

        def _before_connection(self, data):
            if data == 'stranger':
                from nervex.interaction import ConnectionRefuse

                raise ConnectionRefuse('no strangers')

    return launch_slave(Worker, 'worker', num_cpus=0, **options)


def test_tasks_run_in_another_process_and_refusals_come_back(ray_here, tmp_path):
    handle = launched(actor_name='worker-1')
    with Master() as master, master.new_connection('w', 'worker-1') as connection:
        assert connection.new_task().start().join(30).result != os.getpid()
        failed = connection.new_task({'fail': True}).start().join(30)
        assert (failed.status, failed.result, str(failed.error)) == (TaskStatus.FAILED, 1, 'as told')
        busy = connection.new_task({'until': str(tmp_path / 'file')}).start()
        refused = connection.new_task().start()
        assert refused.status is TaskStatus.START_FAILED and isinstance(refused.error, exceptions.TaskAlreadyExist)
        (tmp_path / 'file').touch()
        assert busy.join(30).status is TaskStatus.COMPLETED
    with Master() as master, pytest.raises(exceptions.SlaveConnectionRefused, match='no strangers'):
        master.new_connection('w', handle, 'stranger').connect()


def test_a_killed_slave_fails_its_task_and_closes_its_connection(ray_here):
    handle = launched()
    with Master() as master:
        connection = master.new_connection('w', handle).connect()
        pid = connection.new_task().start().join(30).result
        task = connection.new_task({'until': '/nowhere/at/all'}).start()
        os.kill(pid, signal.SIGKILL)
        assert task.join(30).status is TaskStatus.FAILED and isinstance(task.error, exceptions.SlaveDied)
        task.join()
        assert not connection.ping()
