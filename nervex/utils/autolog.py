"""
Classes whose attributes remember their recent past, with statistics over it: what is registered, or the averages of a
ready ``Monitor``. The time is in seconds, or in ticks that the program counts itself.
"""

import numbers
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping
from enum import Enum, unique
from functools import partial
from typing import Any

import torch

from nervex.utils.errors import UnknownNameError, unknown_name

_KINDS = {float: numbers.Real, int: numbers.Integral}  # what counts as a float or an int, NumPy's included
Span = tuple[int | float, int | float]


@unique
class TimeMode(Enum):
    """What the times in ``range_values`` are counted from."""

    ABSOLUTE = 0  # as the time object gives them
    RELATIVE_LIFECYCLE = 1  # from the creation of the model
    RELATIVE_CURRENT_TIME = 2  # from now: the past is negative


class BaseTime(ABC):
    """A clock that never goes back. Derive from it for a clock of your own."""

    @abstractmethod
    def time(self) -> int | float:
        """The present time."""


class NaturalTime(BaseTime):
    """Seconds since 1970; stands still where the system clock is set back."""

    _last = 0.0

    def time(self) -> float:
        """Seconds, as a float."""
        self._last = max(self._last, time.time())
        return self._last


class TickTime(BaseTime):
    """Counts steps of the program."""

    def __init__(self, init: int = 0) -> None:
        self._tick = init

    def step(self, delta: int = 1) -> int:
        """Go on by ``delta`` ticks; returns the new time."""
        if not isinstance(delta, int) or isinstance(delta, bool):
            raise TypeError(f'delta must be a positive int, got {type(delta).__name__}')
        if delta < 1:
            raise ValueError(f'delta must be at least 1, got {delta}')
        self._tick += delta
        return self._tick

    def time(self) -> int:
        """Ticks so far."""
        return self._tick


class TimeProxy(BaseTime):
    """
    Overview:
        Another clock, which can be frozen for those who read it here.
    Interfaces:
        time, current_time, freeze, unfreeze, is_frozen
    """

    def __init__(self, time_: BaseTime, frozen: bool = False) -> None:
        self._source = time_
        self._frozen_at = time_.time() if frozen else None

    @property
    def is_frozen(self) -> bool:
        """Whether ``time`` stands still."""
        return self._frozen_at is not None

    def freeze(self) -> None:
        """Let ``time`` stand still from now on; a second call changes nothing."""
        self._frozen_at = self.time()

    def unfreeze(self) -> None:
        """Let ``time`` follow the clock again."""
        self._frozen_at = None

    def time(self) -> int | float:
        """The time, or the moment of freezing."""
        frozen_at = self._frozen_at
        return self._source.time() if frozen_at is None else frozen_at

    def current_time(self) -> int | float:
        """The time, frozen or not."""
        return self._source.time()


class UnknownAttributeError(UnknownNameError, AttributeError):
    """Neither an attribute of the model nor a statistic registered with it."""


class Past:
    """
    Overview:
        The values of the last ``expire`` time units with the times of their arrival, and the newest value however old
        it is. Tensors become numbers when somebody reads them. Safe to use from threads.
    Interfaces:
        append, current, ranges, values, ages, put_back
    """

    __slots__ = ('_items', '_lock', '_now', 'expire')

    def __init__(self, clock: BaseTime, expire: int | float) -> None:
        if isinstance(expire, bool) or not isinstance(expire, (int, float)):
            raise TypeError(f'expire must be a number, got {type(expire).__name__}')
        if not expire > 0:
            raise ValueError(f'expire must be greater than 0, got {expire}')
        self._now, self.expire = clock.time, expire
        self._items: deque[tuple[int | float, Any]] = deque()
        self._lock = threading.Lock()

    def append(self, value: Any) -> None:
        """Record a value now."""
        now, items = self._now(), self._items
        if items and now < items[-1][0]:
            raise ValueError(f'the time went back from {items[-1][0]} to {now}')
        with self._lock:
            items.append((now, value))
            limit = now - self.expire
            while items[0][0] < limit:
                items.popleft()

    def _read(self) -> list[tuple[int | float, Any]]:
        with self._lock:
            found = [(t, value.item() if isinstance(value, torch.Tensor) else value) for t, value in self._items]
            self._items.clear()
            self._items.extend(found)
            return found

    def current(self) -> Any:
        """The newest value; ValueError if there was none yet."""
        found = self._read()
        if not found:
            raise ValueError('no value was recorded yet')
        return found[-1][1]

    def ranges(self) -> list[tuple[Span, Any]]:
        """
        Overview:
            ``((begin, end), value)`` for every value that arrived in the window, in order: it was valid from its
            arrival to the next one, or till now. A value that arrived at this very moment counts from the next one
            on. Where the window holds none, the newest value, which is still valid, is given alone. Empty before the
            first value.
        """
        now, items = self._now(), self._read()
        limit = now - self.expire
        ends = [begin for begin, _ in items[1:]] + [now]
        found = [((begin, end), value) for (begin, value), end in zip(items, ends) if limit <= begin < now]
        if not found and items:
            begin, value = items[-1]
            found = [((max(begin, limit), now), value)]
        return found

    def values(self) -> list[Any]:
        """
        Overview:
            The values that arrived in the window; empty if there was none. A value of this very moment is included,
            and the window then begins just after its far end, so that ``expire`` ticks are never one more.
        """
        now, items = self._now(), self._read()
        limit = now - self.expire
        whole = not items or items[-1][0] != now
        return [value for begin, value in items if begin > limit or (whole and begin == limit)]

    def ages(self) -> list[list]:
        """``[age, value]`` of all that is remembered, oldest first: how long before now it arrived."""
        now = self._now()
        return [[now - begin, value] for begin, value in self._read()]

    def put_back(self, ages: Iterable[Iterable]) -> None:
        """Remember what ``ages`` told, counted from now, and nothing else."""
        now = self._now()
        with self._lock:
            self._items = deque((now - age, value) for age, value in ages)


class LoggedValue:
    """
    Overview:
        A variable of a LoggedModel: every assignment is recorded. A float or int variable also takes tensors of one
        element; they become numbers only when they are read.
    Arguments:
        - type_ (:obj:`type`): what may be assigned, by default anything; ``LoggedValue('name', float)`` works too
    """

    def __init__(self, *type_: Any) -> None:
        kinds = [t for t in type_ if not isinstance(t, str)]
        if len(kinds) > 1 or not all(isinstance(k, type) for k in kinds):
            raise TypeError(f'LoggedValue takes one type, got {type_!r}')
        self._type = kinds[0] if kinds else object

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else instance._logged[self.name].current()

    def __set__(self, instance: Any, value: Any) -> None:
        instance._logged[self.name].append(self.checked(value))

    def checked(self, value: Any) -> Any:
        """The value as it is recorded; TypeError if it does not fit."""
        kind = self._type
        if type(value) is kind:
            return value
        if isinstance(value, torch.Tensor) and kind in _KINDS:
            if value.numel() != 1:
                raise TypeError(f"'{self.name}' takes one number, got a tensor of shape {tuple(value.shape)}")
            return value.detach() if value.requires_grad else value
        if not isinstance(value, _KINDS.get(kind, kind)):
            raise TypeError(f"'{self.name}' must be {kind.__name__}, got {type(value).__name__}")
        return value


class LoggedModel:
    """
    Overview:
        Base of classes with LoggedValue variables, which share one clock and one window. Statistics are registered by
        ``register_attribute_value('avg', 'loss', function)`` and read by ``model.avg['loss']()``; ``range_values`` is
        there for every variable.
    Interfaces:
        time, expire, record, register_attribute_value, get_property_attribute, freeze, unfreeze, fixed_time,
        current_time, state_dict, load_state_dict
    Examples:
        >>> class Losses(LoggedModel):
        >>>     loss = LoggedValue(float)
        >>> model = Losses(TickTime(), expire=10)
        >>> model.loss = 0.5
        >>> model.time.step()
        >>> model.range_values['loss']()  # [((0, 1), 0.5)]
    """

    def __init__(self, time_: BaseTime, expire: int | float) -> None:
        self._logged: dict[str, Past] = {}
        self._statistics: dict[str, _Statistic] = {}
        self._clock = TimeProxy(time_)
        self._time, self._expire = time_, expire
        self._init_time = self._clock.time()
        variables = {n: v for cls in reversed(type(self).__mro__) for n, v in vars(cls).items()}
        self._variables = {n: v for n, v in variables.items() if isinstance(v, LoggedValue)}
        for name in self._variables:
            self._logged[name] = Past(self._clock, expire)
            self.register_attribute_value('range_values', name, partial(self._range_values, name))

    @property
    def time(self) -> Any:
        """The clock that was given at creation, e.g. for ``model.time.step()``."""
        return self._time

    @property
    def expire(self) -> int | float:
        """Length of the window in units of the clock."""
        return self._expire

    def record(self, values: Mapping[str, Any]) -> None:
        """Assign several variables at once; an unknown name raises UnknownNameError."""
        for name, value in values.items():
            if name not in self._logged:
                self._unknown(name)
            self._logged[name].append(self._variables[name].checked(value))

    def fixed_time(self) -> int | float:
        """The time, or the moment of freezing."""
        return self._clock.time()

    def current_time(self) -> int | float:
        """The time, frozen or not."""
        return self._clock.current_time()

    def freeze(self) -> None:
        """Let the time of the model stand still: what is assigned meanwhile arrives at this moment."""
        self._clock.freeze()

    def unfreeze(self) -> None:
        """Let the time go on."""
        self._clock.unfreeze()

    def state_dict(self) -> dict[str, Any]:
        """What is remembered, with ages instead of times: whoever loads it goes on as if no time had passed."""
        age = self._clock.current_time() - self._init_time
        return {'age': age, 'values': {name: past.ages() for name, past in self._logged.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave; variables that it does not name stay as they are."""
        self._init_time = self._clock.current_time() - state['age']
        for name, ages in state['values'].items():
            if name in self._logged:
                self._logged[name].put_back(ages)

    def register_attribute_value(self, attribute_name: str, property_name: str, value: Any) -> None:
        """Make ``model.<attribute_name>[<property_name>]`` give ``value``, usually a function of no arguments."""
        self._statistics.setdefault(attribute_name, _Statistic(attribute_name))[property_name] = value

    def get_property_attribute(self, property_name: str) -> list[str]:
        """Names of the statistics registered for a variable, ``range_values`` aside."""
        if property_name not in self._variables:
            self._unknown(property_name)
        return [n for n, table in self._statistics.items() if n != 'range_values' and property_name in table]

    def _unknown(self, name: str) -> Any:
        raise UnknownNameError(unknown_name(f'variable of {type(self).__name__}', name, self._variables))

    def _range_values(self, name: str, mode: TimeMode = TimeMode.RELATIVE_LIFECYCLE) -> list:
        if not isinstance(mode, TimeMode):
            raise ValueError(f'mode must be a TimeMode, got {mode!r}')
        zeros = {TimeMode.ABSOLUTE: 0, TimeMode.RELATIVE_LIFECYCLE: self._init_time}
        zero = zeros[mode] if mode in zeros else self.fixed_time()
        return [((begin - zero, end - zero), value) for (begin, end), value in self._logged[name].ranges()]

    def __getattr__(self, name: str) -> Any:
        if name.startswith('_'):
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'; was LoggedModel.__init__ called?")
        if name not in self._statistics:
            raise UnknownAttributeError(unknown_name(f'attribute of {type(self).__name__}', name, self._statistics))
        return self._statistics[name]


class _Statistic(dict):
    """Variable -> function, of one statistic."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def __missing__(self, key: str) -> Any:
        raise UnknownNameError(unknown_name(f"variable with '{self._name}'", key, self))


class Monitor(LoggedModel):
    """
    Overview:
        Registers ``avg``, ``max``, ``min`` (over the values in the window) and ``val`` (the newest) for all its float
        and int variables. ``averages`` and ``currents`` read them all at once, leaving out what did not appear.
    Interfaces:
        record, averages, currents
    """

    #: the statistics that a learner logs; None: all that are registered
    logged: tuple[str, ...] | None = ('avg',)

    def __init__(self, time_: BaseTime, expire: int | float) -> None:
        super().__init__(time_, expire)
        for name in self._variables:
            for statistic, function in (('avg', _mean), ('max', max), ('min', min)):
                self.register_attribute_value(statistic, name, partial(self._over_window, name, function))
            self.register_attribute_value('val', name, self._logged[name].current)

    def averages(self) -> dict[str, float]:
        """Mean over the values in the window, of every variable that has one there."""
        found = {name: data.values() for name, data in self._logged.items()}
        return {name: _mean(values) for name, values in found.items() if values}

    def currents(self) -> dict[str, Any]:
        """The newest value of every variable that has one in the window."""
        found = {name: data.values() for name, data in self._logged.items()}
        return {name: values[-1] for name, values in found.items() if values}

    def _over_window(self, name: str, function: Any) -> Any:
        values = [value for _, value in self.range_values[name]()]
        if not values:
            raise ValueError(f"'{name}' has no value yet")
        return function(values)


def monitor_type(names: Iterable[str], kind: type = float) -> type[Monitor]:
    """
    Overview:
        A Monitor class with one variable per name, e.g. for what a policy's ``_monitor_vars_learn`` lists.
    """
    names = list(names)
    for name in names:
        if not isinstance(name, str) or name.startswith('_') or hasattr(Monitor, name):
            raise ValueError(f'a monitored variable cannot be named {name!r}')
    return type('SimpleMonitor', (Monitor,), {name: LoggedValue(kind) for name in names})


def _mean(values: list) -> float:
    return sum(values) / len(values)
