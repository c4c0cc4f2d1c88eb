"""What goes into and out of a buffer: windows of the recent past."""

from __future__ import annotations

from collections.abc import Callable

from nervex.utils.autolog import LoggedValue, Monitor, NaturalTime


class NaturalMonitor(Monitor):
    """
    Overview:
        Rates over a window of seconds: ``avg['in_count']()`` and ``avg['out_count']()`` are rows per second.
    """

    in_count = LoggedValue(int)
    out_count = LoggedValue(int)

    def __init__(self, time_: NaturalTime, expire: float) -> None:
        super().__init__(time_, expire)
        for name in ('in_count', 'out_count'):
            self.register_attribute_value('avg', name, self._rate(name))

    def _rate(self, name: str) -> Callable[[], float]:
        def rate() -> float:
            age = self.current_time() - self._init_time
            return sum(self._logged[name].values()) / max(min(age, self.expire), 1e-9)

        return rate


class InTickMonitor(Monitor):
    """
    Overview:
        The last pushes: ``in_time`` is the time that one took, in seconds.
    """

    in_time = LoggedValue(float)


class OutTickMonitor(Monitor):
    """
    Overview:
        The last samples: seconds that one took, and the mean use count, priority and staleness of its rows; with
        ``avg``, ``max`` and ``min`` over the window.
    """

    out_time = LoggedValue(float)
    reuse = LoggedValue(float)
    priority = LoggedValue(float)
    staleness = LoggedValue(float)
