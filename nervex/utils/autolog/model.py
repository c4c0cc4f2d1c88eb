"""Classes whose attributes remember their recent past."""

import numbers
from collections.abc import Mapping
from typing import Any

import torch

from nervex.utils.autolog.data import TimeRangedData
from nervex.utils.autolog.time_ctl import BaseTime, TimeMode, TimeProxy
from nervex.utils.errors import UnknownNameError, unknown_name

_KINDS = {float: numbers.Real, int: numbers.Integral}  # what counts as a float or an int, NumPy's included


class UnknownAttributeError(UnknownNameError, AttributeError):
    """Neither an attribute of the model nor a statistic registered with it."""


class LoggedValue:
    """
    Overview:
        A variable of a LoggedModel: every assignment is recorded. A float or int variable also takes tensors of one
        element; they become numbers only when they are read.
    """

    def __init__(self, *type_: Any) -> None:
        """
        Arguments:
            - type_ (:obj:`type`): what may be assigned, by default anything; ``LoggedValue('name', float)`` works too
        """
        kinds = [t for t in type_ if not isinstance(t, str)]
        if len(kinds) > 1 or not all(isinstance(k, type) for k in kinds):
            raise TypeError(f'LoggedValue takes one type, got {type_!r}')
        self._type = kinds[0] if kinds else object
        self._accepted = _KINDS.get(self._type, self._type)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else instance._logged[self.name].current()

    def __set__(self, instance: Any, value: Any) -> None:
        if type(value) is not self._type:
            value = self.checked(value)
        instance._logged[self.name].append(value)

    def checked(self, value: Any) -> Any:
        """The value as it is recorded; TypeError if it does not fit."""
        if isinstance(value, torch.Tensor) and self._type in _KINDS:
            if value.numel() != 1:
                raise TypeError(f"'{self.name}' takes one number, got a tensor of shape {tuple(value.shape)}")
            return value.detach() if value.requires_grad else value
        if not isinstance(value, self._accepted):
            raise TypeError(f"'{self.name}' must be {self._type.__name__}, got {type(value).__name__}")
        return value


class LoggedModel:
    """
    Overview:
        Base of classes with LoggedValue variables, which share one clock and one window. Statistics are registered by
        ``register_attribute_value('avg', 'loss', function)`` and read by ``model.avg['loss']()``; ``range_values`` is
        there for every variable.
    Interfaces:
        record, register_attribute_value, get_property_attribute, freeze, unfreeze, fixed_time, current_time,
        state_dict, load_state_dict
    Attributes:
        - time (:obj:`BaseTime`): the clock that was given, e.g. for ``model.time.step()``
        - expire (:obj:`int | float`): length of the window
    Examples:
        >>> class Losses(LoggedModel):
        >>>     loss = LoggedValue(float)
        >>> model = Losses(TickTime(), expire=10)
        >>> model.loss = 0.5
        >>> model.time.step()
        >>> model.range_values['loss']()  # [((0, 1), 0.5)]
    """

    def __init__(self, time_: BaseTime, expire: int | float) -> None:
        self.__dict__['_logged'] = {}
        self._statistics: dict[str, _Statistic] = {}
        self._clock = TimeProxy(time_)
        self._time, self._expire = time_, expire
        self._init_time = self._clock.time()
        variables = {n: v for cls in reversed(type(self).__mro__) for n, v in vars(cls).items()}
        self._variables = {n: v for n, v in variables.items() if isinstance(v, LoggedValue)}
        for name in self._variables:
            self._logged[name] = TimeRangedData(self._clock, expire)
            self.register_attribute_value('range_values', name, _RangeValues(self, name))

    @property
    def time(self) -> Any:
        """The clock that was given at creation."""
        return self._time

    @property
    def expire(self) -> int | float:
        """Length of the window in units of the clock."""
        return self._expire

    def record(self, values: Mapping[str, Any]) -> None:
        """Assign several variables at once; an unknown name raises UnknownNameError."""
        variables, logged = self._variables, self._logged
        for name, value in values.items():
            if name not in variables:
                raise UnknownNameError(unknown_name(f'variable of {type(self).__name__}', name, variables))
            logged[name].append(variables[name].checked(value))

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
        return {'age': age, 'values': {name: data.ages() for name, data in self._logged.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave; variables that it does not name stay as they are."""
        self._init_time = self._clock.current_time() - state['age']
        for name, ages in state['values'].items():
            if name in self._logged:
                self._logged[name].put_back(ages)

    def register_attribute_value(self, attribute_name: str, property_name: str, value: Any) -> None:
        """
        Overview:
            Make ``model.<attribute_name>[<property_name>]`` give ``value``, usually a function of no arguments.
        """
        self._statistics.setdefault(attribute_name, _Statistic(attribute_name))[property_name] = value

    def get_property_attribute(self, property_name: str) -> list[str]:
        """Names of the statistics registered for a variable, ``range_values`` aside."""
        if property_name not in self._variables:
            raise UnknownNameError(unknown_name(f'variable of {type(self).__name__}', property_name, self._variables))
        return [n for n, table in self._statistics.items() if n != 'range_values' and property_name in table]

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


class _RangeValues:
    """``model.range_values[name]``: called with a TimeMode."""

    def __init__(self, model: LoggedModel, name: str) -> None:
        self._model, self._name = model, name

    def __call__(self, mode: TimeMode = TimeMode.RELATIVE_LIFECYCLE) -> list:
        if not isinstance(mode, TimeMode):
            raise ValueError(f'mode must be a TimeMode, got {mode!r}')
        ranges = self._model._logged[self._name].ranges()
        if mode == TimeMode.ABSOLUTE:
            return ranges
        zero = self._model._init_time if mode == TimeMode.RELATIVE_LIFECYCLE else self._model.fixed_time()
        return [((begin - zero, end - zero), value) for (begin, end), value in ranges]
