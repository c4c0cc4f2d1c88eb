import signal
import time

import pytest
from easydict import EasyDict

from nervex.utils.time_helper import EasyTimer, TimeWrapperTime, WatchDog, build_time_helper


def test_timer_measures_the_block(monkeypatch):
    readings = iter([5.0, 7.5])
    monkeypatch.setattr(time, 'perf_counter', lambda: next(readings))
    with EasyTimer(cuda=False) as timer:
        """Nothing takes 2.5 s on this clock."""
    assert timer.value == 2.5


def test_wrapped_function_also_returns_its_time(monkeypatch):
    readings = iter([1.0, 4.0, 10.0, 12.0])
    monkeypatch.setattr(time, 'perf_counter', lambda: next(readings))
    helper = build_time_helper(wrapper_type='time')
    assert helper is TimeWrapperTime and helper.wrapper(lambda x: x + 1)(2) == (3, 3.0)
    helper.start_time()
    assert helper.end_time() == 2.0
    assert build_time_helper(EasyDict(common=dict(time_wrapper_type='cuda'))).__name__ == 'TimeWrapperCuda'
    with pytest.raises(ValueError, match="got 'clock'"):
        build_time_helper(wrapper_type='clock')


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_watchdog_interrupts_what_takes_too_long():
    with pytest.raises(TimeoutError, match=r'not done within 0\.05 s'), WatchDog(0.05):
        spin(3600.0)


def test_watchdog_leaves_work_in_time_alone_and_may_be_used_again():
    dog = WatchDog(3600.0)
    for _ in range(2):
        dog.start()
        with pytest.raises(RuntimeError, match='running already'):
            dog.start()
        dog.stop()
        dog.stop()
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_watchdog_cuts_a_blocking_call_short():
    with pytest.raises(TimeoutError), WatchDog(0.02):
        time.sleep(3600.0)


@pytest.mark.parametrize('timeout', [0, -1.0])
def test_wrong_timeouts_are_refused(timeout):
    with pytest.raises(ValueError, match='timeout'):
        WatchDog(timeout)
