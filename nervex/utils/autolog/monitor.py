"""A ready LoggedModel: window averages of named variables."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from nervex.utils.autolog.model import LoggedModel, LoggedValue
from nervex.utils.autolog.time_ctl import BaseTime


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
