"""Values that change while a program runs, with a window of their past and statistics over it."""

from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.utils.autolog.model': 'LoggedModel LoggedValue',
    'nervex.utils.autolog.monitor': 'Monitor monitor_type',
    'nervex.utils.autolog.time_ctl': 'BaseTime NaturalTime TickTime TimeMode TimeProxy',
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, _HOMES)
