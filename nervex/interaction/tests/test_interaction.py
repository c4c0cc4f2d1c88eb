"""Master and slave in one process: every transition of a connection and of a task."""

import pickle
import threading
from concurrent.futures import Future

import pytest

from nervex.interaction import (
    ConnectionRefuse,
    DisconnectionRefuse,
    Master,
    MasterErrorCode,
    Slave,
    SlaveErrorCode,
    TaskFail,
    TaskRefuse,
    TaskStatus,
)
from nervex.interaction import exception as exceptions
from nervex.interaction.base import Answers, Handle


class Gate(Slave):
    """Adds two numbers, not before the gate is open; its hooks refuse on demand."""

    def __init__(self, **kwargs):
        super().__init__('gate', **kwargs)
        self.gate = threading.Event()
        self.gate.set()

    def _process_task(self, task):
        self.gate.wait(10)
        if 'fail' in task:
            raise TaskFail({'seen': task['fail']}, 'told to fail')
        return task['a'] + task['b']

    def _before_connection(self, data):
        if data == 'stranger':
            raise ConnectionRefuse('no strangers')

    def _before_disconnection(self, data):
        if data == 'sticky':
            raise DisconnectionRefuse('not yet')

    def _before_task(self, task):
        if 'refuse' in task:
            raise TaskRefuse('not this one')


@pytest.fixture
def slave():
    with Gate() as slave:
        yield slave
        slave.gate.set()


@pytest.fixture
def master():
    with Master() as master:
        yield master


def test_a_task_goes_and_its_result_comes(master, slave):
    with master.new_connection('one', slave) as connection:
        task = connection.new_task({'a': 2, 'b': 3})
        assert task.status is TaskStatus.IDLE
        assert task.start().join() is task
        assert (task.status, task.result, task.error) == (TaskStatus.COMPLETED, 5, None)


def test_starting_does_not_wait_and_callbacks_come_at_the_end(master, slave):
    slave.gate.clear()
    seen = []
    with master.new_connection('one', slave) as connection:
        task = (
            connection.new_task({'a': 1, 'b': 1}).on_complete(seen.append).on_fail(lambda task: seen.append('failed'))
        )
        task.start()
        assert (task.status, seen) == (TaskStatus.STARTED, [])
        with pytest.raises(TimeoutError, match='STARTED'):
            task.join(timeout_s=0.01)
        slave.gate.set()
        task.join()
        assert seen == [task]
        task.on_complete(lambda task: seen.append('late'))
        assert seen == [task, 'late']


def test_a_task_that_fails_tells_its_result_and_reason(master, slave):
    seen = []
    with master.new_connection('one', slave) as connection:
        task = connection.new_task({'fail': 7}).on_fail(seen.append).start().join()
        assert (task.status, task.result, str(task.error), seen) == (
            TaskStatus.FAILED,
            {'seen': 7},
            'told to fail',
            [task],
        )


def test_an_error_of_the_slaves_code_arrives_with_its_traceback_and_the_slave_goes_on(master, slave):
    with master.new_connection('one', slave) as connection:
        task = connection.new_task({'a': 1}).start().join()
        assert task.status is TaskStatus.FAILED and "KeyError: 'b'" in str(task.error)
        assert '_process_task' in str(task.error)
        assert connection.new_task({'a': 1, 'b': 1}).start().join().result == 2


def test_a_busy_slave_refuses_a_second_task_at_once(master, slave):
    slave.gate.clear()
    with master.new_connection('one', slave) as connection:
        first = connection.new_task({'a': 1, 'b': 1}).start()
        second = connection.new_task({'a': 2, 'b': 2}).start()
        assert second.status is TaskStatus.START_FAILED
        assert isinstance(second.error, exceptions.TaskAlreadyExist)
        slave.gate.set()
        assert first.join().result == 2
        assert connection.new_task({'a': 2, 'b': 2}).start().join().result == 4


def test_the_slaves_code_may_refuse_a_task(master, slave):
    with master.new_connection('one', slave) as connection:
        task = connection.new_task({'refuse': 1}).start().join()
        assert task.status is TaskStatus.START_FAILED
        assert isinstance(task.error, exceptions.TaskRefused) and 'not this one' in str(task.error)


def test_a_task_starts_once(master, slave):
    with master.new_connection('one', slave) as connection:
        task = connection.new_task({'a': 1, 'b': 1}).start().join()
        with pytest.raises(exceptions.TaskAlreadyStarted, match='COMPLETED'):
            task.start()


def test_data_of_a_task_is_a_dict(master, slave):
    with master.new_connection('one', slave) as connection, pytest.raises(exceptions.TaskDataInvalid, match='dict'):
        connection.new_task([1])


def test_the_slaves_code_may_refuse_a_connection_and_a_disconnection(master, slave):
    with pytest.raises(exceptions.SlaveConnectionRefused, match='no strangers'):
        master.new_connection('one', slave, 'stranger').connect()
    assert not slave.is_connected and 'one' not in master
    connection = master.new_connection('one', slave, 'sticky').connect()
    with pytest.raises(exceptions.SlaveDisconnectionRefused, match='not yet'):
        connection.disconnect()
    assert connection.is_connected and master['one'] is connection
    master.close()  # a master that ends lets go all the same
    assert not connection.is_connected


def test_a_slave_obeys_one_master_at_a_time(slave):
    with Master('a') as a, Master('b') as b:
        with a.new_connection('s', slave) as held:
            with pytest.raises(exceptions.SlaveAlreadyConnected):
                b.new_connection('s', slave).connect()
            with pytest.raises(exceptions.MasterUnknown):
                slave.heartbeat('somebody else')
            with pytest.raises(exceptions.MasterUnknown):
                slave.wait_task('somebody else', 'x')
            assert held.is_connected
        with b.new_connection('s', slave) as connection:
            assert connection.is_connected


def test_a_master_knows_its_open_connections_by_name(master, slave):
    connection = master.new_connection('one', slave)
    assert 'one' not in master
    with connection:
        assert 'one' in master and master['one'] is connection
        with Gate() as other, pytest.raises(exceptions.ConnectionAlreadyExists, match="'one'"):
            master.new_connection('one', other).connect()
    assert 'one' not in master
    with pytest.raises(KeyError, match='open: none'):
        master['one']
    with connection:  # the same connection may be opened again
        assert connection.new_task({'a': 1, 'b': 0}).start().join().result == 1


def test_a_closed_connection_takes_no_tasks_and_gives_up_the_running_one(master, slave):
    slave.gate.clear()
    connection = master.new_connection('one', slave).connect()
    waiting, task = connection.new_task({}), connection.new_task({'a': 1, 'b': 1}).start()
    connection.disconnect()
    assert task.join().status is TaskStatus.FAILED and isinstance(task.error, exceptions.ConnectionNotOpen)
    assert waiting.start().status is TaskStatus.START_FAILED
    with pytest.raises(exceptions.ConnectionNotOpen):
        connection.new_task({})
    with pytest.raises(exceptions.ConnectionNotOpen):
        connection.disconnect()
    slave.gate.set()


def test_ends_that_are_not_running_say_so(slave):
    master, stopped = Master(), Gate()
    with pytest.raises(exceptions.MasterSystemShuttingDown):
        master.new_connection('one', slave)
    assert not master.ping() and not stopped.ping() and slave.ping()
    with master, pytest.raises(exceptions.SlaveSystemShuttingDown):
        master.new_connection('one', stopped).connect()
    assert not master.ping()
    with pytest.raises(RuntimeError, match='starts once'):
        master.start()


def test_join_waits_for_the_running_task(master):
    slave = Gate().start()
    slave.gate.clear()
    connection = master.new_connection('one', slave).connect()
    task = connection.new_task({'a': 1, 'b': 1}).start()
    slave.shutdown()
    closer = threading.Thread(target=slave.join)
    closer.start()
    closer.join(0.02)
    assert closer.is_alive()
    slave.gate.set()
    closer.join(5)
    assert not closer.is_alive() and task.join().result == 2


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_slave_lets_go_of_a_silent_master():
    clock = Clock()
    with Gate(heartbeat_tolerance_s=5, clock=clock) as slave:
        slave.connect('m')
        clock.now = 4.0
        slave.heartbeat('m')
        clock.now = 9.0
        assert slave.is_connected
        clock.now = 9.1
        assert not slave.is_connected
        with pytest.raises(exceptions.SlaveNotConnected):
            slave.heartbeat('m')
        slave.connect('another')
        clock.now = 20.0
        slave.connect('a third')  # nobody need ask whether the second one is silent


class ShakyHandle(Handle):
    """A way to a slave that can be cut, or on which nothing comes back."""

    error, silent = None, False

    def call(self, method, *args, returns=1):
        answer = Future()
        if self.error and method != 'wait_task':
            answer.set_exception(self.error)
        elif not self.silent or method == 'wait_task':
            return super().call(method, *args)
        return answer


@pytest.fixture
def by_hand():
    """A master that looks around when the test says so, and its clock."""
    clock = Clock()
    master = Master(line=Answers(clock)).start()
    yield master, clock
    master.shutdown()


def test_a_master_gives_up_a_silent_slave_and_fails_its_task(slave, by_hand):
    (master, clock), handle = by_hand, ShakyHandle('one', slave)
    spans = dict(heartbeat_span_s=1, heartbeat_tolerance_s=5, request_timeout_s=0.01)
    connection = master.new_connection('one', handle, **spans).connect()
    slave.gate.clear()
    task = connection.new_task({'a': 1, 'b': 1}).start()
    for clock.now in (1.0, 2.0, 3.0):
        master.answers(0)
        master.answers(0)
    assert connection.ping() and connection.is_connected
    handle.silent = True
    clock.now = 4.0
    master.answers(0)  # a greeting that is not answered
    clock.now = 9.0
    master.answers(0)
    assert connection.is_connected and not connection.ping()
    clock.now = 9.1
    master.answers(0)
    assert not connection.is_connected and 'one' not in master
    assert task.status is TaskStatus.FAILED and isinstance(task.error, exceptions.ConnectionLost)
    slave.gate.set()


@pytest.mark.parametrize('error', [exceptions.SlaveDied('process ended'), exceptions.SlaveNotConnected('let go')])
def test_a_master_does_not_wait_for_a_slave_that_died_or_has_let_go(slave, by_hand, error):
    (master, clock), handle = by_hand, ShakyHandle('one', slave)
    connection = master.new_connection('one', handle, heartbeat_span_s=1, heartbeat_tolerance_s=1e9).connect()
    handle.error = error
    clock.now = 1.0
    master.answers(0)
    master.answers(0)
    assert not connection.is_connected


def test_heartbeats_go_by_themselves(slave):
    beats = threading.Semaphore(0)

    class Counting(Handle):
        def call(self, method, *args, returns=1):
            if method == 'heartbeat':
                beats.release()
            return super().call(method, *args)

    with Master() as master, master.new_connection('one', Counting('one', slave), heartbeat_span_s=0.001):
        assert beats.acquire(timeout=60) and beats.acquire(timeout=60)


def test_a_callback_may_hand_out_the_next_task_and_wait_for_it(master, slave):
    seen = []
    with master.new_connection('one', slave) as connection:

        def again(task):
            seen.append(connection.new_task({'a': task.result, 'b': 1}).start().join().result)

        connection.new_task({'a': 1, 'b': 1}).on_complete(again).start().join(30)
    assert seen == [3]


def test_a_callback_that_fails_does_not_end_the_master(master, slave, caplog):
    with master.new_connection('one', slave) as connection:
        connection.new_task({'a': 1, 'b': 1}).on_complete(lambda task: 1 / 0).start().join(30)
        assert connection.new_task({'a': 1, 'b': 1}).start().join(30).result == 2


def test_many_tasks_that_are_started_at_once_all_end(master):
    slaves = [Gate().start() for _ in range(8)]
    connections = [master.new_connection(str(k), slave).connect() for k, slave in enumerate(slaves)]
    for turn in range(20):
        tasks = [connection.new_task({'a': turn, 'b': k}).start() for k, connection in enumerate(connections)]
        assert [task.join(30).result for task in tasks] == [turn + k for k in range(8)]
    for connection, slave in zip(connections, slaves):
        connection.disconnect()
        slave.close()


@pytest.mark.parametrize('code', [*SlaveErrorCode, *MasterErrorCode], ids=str)
def test_every_code_has_its_exception_which_survives_the_way_to_another_process(code):
    (cls,) = (c for c in vars(exceptions).values() if isinstance(c, type) and vars(c).get('code') is code)
    copy = pickle.loads(pickle.dumps(cls('why')))
    assert type(copy) is cls and copy.code is code and str(copy) == 'why'


def test_a_failure_survives_the_way_to_another_process():
    copy = pickle.loads(pickle.dumps(TaskFail({'a': 1}, 'why')))
    assert (copy.result, copy.message, str(copy)) == ({'a': 1}, 'why', 'why')


def test_an_address_that_is_none_is_named(master):
    with pytest.raises(TypeError, match='42'):
        master.new_connection('one', 42)


def test_a_callback_that_raises_skips_neither_the_later_ones_nor_other_tasks(slave):
    def broken(task):
        raise RuntimeError('broken callback')

    seen = []
    with Master(line=Answers()) as master, master.new_connection('one', slave) as connection:
        connection.new_task({'a': 1, 'b': 1}).on_complete(broken).on_complete(seen.append).start()
        with pytest.raises(RuntimeError, match='broken callback'):
            for _ in range(100):
                master.answers(0.1)
        assert [task.result for task in seen] == [2]
        lost = [connection.new('heartbeat').on_fail(broken).on_fail(seen.append) for _ in range(2)]
        master.calls.update((Future(), task) for task in lost)
        with pytest.raises(RuntimeError, match='broken callback'):
            master.give_up(connection, exceptions.ConnectionLost('gone'))
        assert seen[1:] == lost
