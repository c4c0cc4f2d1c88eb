"""Values that change while a program runs, with a window of their past and statistics over it."""

from nervex.utils.autolog.model import LoggedModel, LoggedValue
from nervex.utils.autolog.monitor import Monitor, monitor_type
from nervex.utils.autolog.time_ctl import BaseTime, NaturalTime, TickTime, TimeMode, TimeProxy

__all__ = [
    'BaseTime',
    'LoggedModel',
    'LoggedValue',
    'Monitor',
    'NaturalTime',
    'TickTime',
    'TimeMode',
    'TimeProxy',
    'monitor_type',
]
