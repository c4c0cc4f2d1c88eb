import pytest
import torch

from nervex.utils.autolog import TickTime, monitor_type


def build(*names, expire=10):
    return monitor_type(names)(TickTime(), expire)


def test_averages_over_the_window_leave_out_what_did_not_appear():
    monitor = build('total_loss', 'aux_loss', 'never')
    for i in range(25):
        monitor.record({'total_loss': torch.tensor(float(i)), **({'aux_loss': i} if i % 5 == 0 else {})})
        monitor.time.step()
    assert monitor.averages() == {'total_loss': 19.5, 'aux_loss': 17.5}
    assert monitor.currents() == {'total_loss': 24.0, 'aux_loss': 20}
    monitor.time.step(100)
    assert monitor.averages() == {}


@pytest.mark.parametrize('step_last', [True, False])
def test_window_is_never_one_longer(step_last):
    monitor = build('x', expire=3)
    for i in range(6):
        monitor.record({'x': float(i)})
        if i < 5 or step_last:
            monitor.time.step()
    assert monitor.averages() == {'x': 4.0}


def test_statistics_by_name():
    monitor = build('x', 'y')
    for value in (1.0, 3.0):
        monitor.x = value
        monitor.time.step()
    assert (monitor.avg['x'](), monitor.max['x'](), monitor.min['x'](), monitor.val['x']()) == (2.0, 3.0, 1.0, 3.0)
    with pytest.raises(ValueError, match="'y' has no value yet"):
        monitor.avg['y']()


@pytest.mark.parametrize('name', ['_x', 'record', 'time', 3])
def test_names_that_would_hide_something_are_refused(name):
    with pytest.raises(ValueError, match='cannot be named'):
        monitor_type([name])
