import threading
import time
from functools import partial
from typing import Union

import numpy as np
import pytest
import torch

from nervex.utils.autolog import BaseTime, LoggedModel, LoggedValue, NaturalTime, TickTime, TimeMode, TimeProxy
from nervex.utils.errors import UnknownNameError


class HandTime(BaseTime):
    """A clock that shows what the test sets."""

    now = 0.0

    def time(self):
        return self.now


class OutTickMonitor(LoggedModel):
    out_time = LoggedValue(float)
    priority = LoggedValue(float)

    def __init__(self, time_: 'BaseTime', expire: Union[int, float]):  # noqa: UP007  as the documentation writes it
        LoggedModel.__init__(self, time_, expire)
        self.__register()

    def __register(self):

        def __avg_func(prop_name: str) -> float:
            records = self.range_values[prop_name]()
            _list = [_value for (_begin_time, _end_time), _value in records]
            return sum(_list) / len(_list)

        def __max_func(prop_name: str) -> Union[float, int]:  # noqa: UP007
            records = self.range_values[prop_name]()
            _list = [_value for (_begin_time, _end_time), _value in records]
            return max(_list)

        self.register_attribute_value('avg', 'out_time', partial(__avg_func, prop_name='out_time'))
        self.register_attribute_value('avg', 'priority', partial(__avg_func, prop_name='priority'))
        self.register_attribute_value('max', 'priority', partial(__max_func, prop_name='priority'))


class AvgList(LoggedModel):
    value = LoggedValue(float)
    __property_names = ['value']

    def __init__(self, time_: 'BaseTime', expire: Union[int, float]):  # noqa: UP007
        LoggedModel.__init__(self, time_, expire)
        self.value = 0.0
        self.__register()

    def __register(self):

        def __avg_func(prop_name: str) -> float:
            records = self.range_values[prop_name]()
            (_start_time, _), _ = records[0]
            (_, _end_time), _ = records[-1]
            _duration = _end_time - _start_time
            _sum = sum([_value * (_end_time - _begin_time) for (_begin_time, _end_time), _value in records])
            return _sum / _duration

        for _prop_name in self.__property_names:
            self.register_attribute_value('avg', _prop_name, partial(__avg_func, prop_name=_prop_name))


def test_window_of_ten_ticks_averages_ten_values_and_two_of_a_variable_that_comes_every_fifth():
    model = OutTickMonitor(TickTime(), expire=10)
    for i in range(30):
        model.out_time = float(i)
        if i % 5 == 0:
            model.priority = float(i)
        model.time.step()
    assert model.avg['out_time']() == sum(range(20, 30)) / 10
    assert model.avg['priority']() == (20 + 25) / 2 and model.max['priority']() == 25.0


def test_natural_average_is_weighted_by_duration():
    clock = HandTime()
    model = AvgList(clock, expire=10)
    for now, value in ((0.0, 11.0), (1.0, 22.0), (3.0, 33.0)):
        clock.now = now
        model.value = value
    clock.now = 4.0
    assert model.avg['value']() == pytest.approx((1 * 11 + 2 * 22 + 1 * 33) / 4)
    clock.now = 100.0  # the last value still holds, though it came long before the window
    assert model.range_values['value'](TimeMode.ABSOLUTE) == [((90.0, 100.0), 33.0)]
    assert model.avg['value']() == 33.0


def test_ranges_and_modes_by_hand():
    model = OutTickMonitor(TickTime(3), expire=2)
    seen = []
    for value in (1.0, 2.0, 4.0, 8.0):
        model.priority = value
        model.time.step()
        seen.append(model.range_values['priority']())
    assert seen == [
        [((0, 1), 1.0)],
        [((0, 1), 1.0), ((1, 2), 2.0)],
        [((1, 2), 2.0), ((2, 3), 4.0)],  # the window is [1, 3]
        [((2, 3), 4.0), ((3, 4), 8.0)],
    ]
    assert model.range_values['priority'](TimeMode.ABSOLUTE) == [((5, 6), 4.0), ((6, 7), 8.0)]
    assert model.range_values['priority'](TimeMode.RELATIVE_CURRENT_TIME) == [((-2, -1), 4.0), ((-1, 0), 8.0)]
    with pytest.raises(ValueError, match='TimeMode'):
        model.range_values['priority']('absolute')


def test_several_values_in_one_tick_all_count_and_the_last_holds():
    model = OutTickMonitor(TickTime(), expire=5)
    for value in (1.0, 2.0, 3.0):
        model.priority = value
    model.time.step(2)
    assert model.range_values['priority']() == [((0, 0), 1.0), ((0, 0), 2.0), ((0, 2), 3.0)]
    assert model.priority == 3.0


def test_value_before_the_first_tick_is_seen_alone():
    model = OutTickMonitor(TickTime(), expire=5)
    assert model.range_values['priority']() == []
    model.priority = 7.0
    assert model.range_values['priority']() == [((0, 0), 7.0)] and model.avg['priority']() == 7.0


def test_values_older_than_the_window_are_dropped_from_memory():
    model = OutTickMonitor(TickTime(), expire=3)
    for i in range(1000):
        model.priority = float(i)
        model.time.step()
    assert len(model._logged['priority']._items) == 4


def test_unset_variable_and_wrong_values_raise():
    model = OutTickMonitor(TickTime(), expire=5)
    with pytest.raises(ValueError, match='no value'):
        _ = model.priority
    model.priority = 2.0
    for wrong in (None, 'x', [1.0], torch.ones(2)):
        with pytest.raises(TypeError, match="'priority'"):
            model.priority = wrong
    assert model.priority == 2.0


def test_numbers_of_other_libraries_are_numbers():
    model = OutTickMonitor(TickTime(), expire=5)
    for value in (1, np.float32(1.0), np.int64(1), torch.tensor(1.0), torch.tensor([1.0])):
        model.priority = value
        assert model.priority == 1.0

    class Counts(LoggedModel):
        count = LoggedValue(int)
        note = LoggedValue('note', str)
        anything = LoggedValue()

    counts = Counts(TickTime(), 5)
    counts.count, counts.note, counts.anything = torch.tensor(3), 'hello', [1]
    assert (counts.count, counts.note, counts.anything) == (3, 'hello', [1])
    with pytest.raises(TypeError, match="'count' must be int, got float"):
        counts.count = 1.5


def test_tensors_become_numbers_only_when_read_and_carry_no_graph():
    model = OutTickMonitor(TickTime(), expire=5)
    leaf = torch.ones((), requires_grad=True)
    for _ in range(2):
        model.priority = leaf * 2.0
        model.time.step()
    kept = [value for _, value in model._logged['priority']._items]
    assert all(isinstance(v, torch.Tensor) and not v.requires_grad for v in kept)
    assert model.avg['priority']() == 2.0
    assert all(type(value) is float for _, value in model._logged['priority']._items)


def test_mixed_dtypes_are_read_together():
    model = OutTickMonitor(TickTime(), expire=5)
    for value in (torch.tensor(1, dtype=torch.int64), 2.0, torch.tensor(3.0, dtype=torch.float64), torch.tensor(4.0)):
        model.priority = value
    model.time.step()
    assert model.avg['priority']() == 2.5


def test_unknown_names_say_what_exists():
    model = OutTickMonitor(TickTime(), expire=5)
    with pytest.raises(KeyError, match="did you mean 'priority'"):
        _ = model.avg['priorty']
    with pytest.raises(KeyError, match="unknown attribute of OutTickMonitor 'avgg'"):
        _ = model.avgg
    assert not hasattr(model, 'avgg') and hasattr(model, 'avg')
    with pytest.raises(UnknownNameError, match='variable'):
        model.record({'priorities': 1.0})


def test_registered_values_may_be_anything_and_are_listed():
    model = OutTickMonitor(TickTime(), expire=5)
    model.register_attribute_value('unit', 'priority', 'none')
    assert model.unit['priority'] == 'none'
    assert model.get_property_attribute('priority') == ['avg', 'max', 'unit']
    assert model.get_property_attribute('out_time') == ['avg']
    with pytest.raises(KeyError):
        model.get_property_attribute('nothing')


def test_freeze_stops_the_time_of_the_model_only():
    clock = TickTime()
    model = OutTickMonitor(clock, expire=5)
    model.freeze()
    clock.step()
    model.priority = 1.0
    assert (model.fixed_time(), model.current_time(), clock.time()) == (0, 1, 1)
    model.freeze()
    model.unfreeze()
    assert model.fixed_time() == 1 and model.range_values['priority']() == [((0, 1), 1.0)]
    model.unfreeze()
    assert model.time is clock and model.expire == 5


def test_two_models_share_a_clock_not_values():
    clock = TickTime()
    one, two = OutTickMonitor(clock, 5), OutTickMonitor(clock, 5)
    one.priority, two.priority = 1.0, 2.0
    clock.step()
    assert (one.avg['priority'](), two.avg['priority']()) == (1.0, 2.0)


def test_variables_are_inherited_and_replaced():
    class More(OutTickMonitor):
        extra = LoggedValue(float)
        priority = LoggedValue(str)

    model = More(TickTime(), 5)
    model.extra, model.out_time, model.priority = 1.0, 2.0, 'high'
    assert (model.extra, model.out_time, model.priority) == (1.0, 2.0, 'high')


def test_forgotten_init_is_named():
    class Lazy(LoggedModel):
        x = LoggedValue(float)

        def __init__(self):
            """Does not call LoggedModel.__init__."""

    with pytest.raises(AttributeError, match=r'LoggedModel\.__init__'):
        Lazy().x = 1.0


@pytest.mark.parametrize('expire, error', [(0, ValueError), (-1, ValueError), ('5', TypeError), (True, TypeError)])
def test_wrong_windows_are_refused(expire, error):
    with pytest.raises(error, match='expire'):
        OutTickMonitor(TickTime(), expire)


def test_tick_time():
    clock = TickTime(2)
    assert clock.step() == 3 and clock.step(4) == 7 == clock.time()
    for wrong, error in ((0, ValueError), (-1, ValueError), (1.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match='delta'):
            clock.step(wrong)


def test_natural_time_never_goes_back(monkeypatch):
    clock, before = NaturalTime(), time.time()
    assert before <= clock.time() <= time.time()
    readings = iter([1e12, 5.0, 2e12])
    monkeypatch.setattr(time, 'time', lambda: next(readings))
    assert [clock.time() for _ in range(3)] == [1e12, 1e12, 2e12]


def test_a_clock_that_goes_back_is_refused():
    clock = HandTime()
    clock.now = 5.0
    model = AvgList(clock, 10)
    clock.now = 4.0
    with pytest.raises(ValueError, match=r'went back from 5\.0 to 4\.0'):
        model.value = 1.0


def test_time_proxy_created_frozen():
    clock = TickTime()
    proxy = TimeProxy(clock, frozen=True)
    clock.step()
    assert proxy.is_frozen and proxy.time() == 0 and proxy.current_time() == 1


def test_base_time_is_abstract():
    with pytest.raises(TypeError):
        BaseTime()


def test_threads_lose_no_value():
    model = OutTickMonitor(TickTime(), expire=5)

    def write():
        for _ in range(2000):
            model.priority = 1.0
            model.range_values['priority']() if _ % 200 == 0 else None

    threads = [threading.Thread(target=write) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    model.time.step()
    assert len(model.range_values['priority']()) == 8000


def test_a_model_goes_on_from_its_state_as_if_no_time_had_passed():
    class Losses(LoggedModel):
        loss, norm = LoggedValue(float), LoggedValue(float)

    models = []
    for start in (0, 100):  # the second clock shows another time
        models.append(Losses(TickTime(start), expire=3))
    first, second = models
    for value in (1.0, 2.0, 3.0):
        first.loss = value
        first.time.step()
    second.norm = 9.0
    second.load_state_dict(first.state_dict())
    for model in models:
        model.loss = 4.0
        model.time.step()
        assert model.range_values['loss']() == [((1, 2), 2.0), ((2, 3), 3.0), ((3, 4), 4.0)]
        assert model.range_values['norm']() == []
