"""The statistics of one buffer, in its folder of the run's logs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from nervex.data.sampling import Sampled
from nervex.data.structure import NaturalMonitor, OutTickMonitor
from nervex.utils.autolog import NaturalTime, TickTime
from nervex.utils.log_helper import build_logger
from nervex.utils.part_state import HasState

_RECORDS_PER_LINE = 20
_FIGURES = {'reuse': 'use', 'priority': 'priority', 'staleness': 'staleness'}  # of a line -> column of a sample


class BufferLog(HasState):
    """
    Overview:
        Looks at the first sample and at one in some, and writes a line of averages and rates every ``log_freq``
        samples, to ``<folder>/<name>_logger.txt`` and to TensorBoard. Files are made with the first line; ``close``
        writes a last one. Its state belongs to the buffers' state, so that a resumed run writes the lines that it would
        have written.
    Arguments:
        - buffer (:obj:`Buffer`): calls ``sampled`` when its number of samples is ``log_due``, which is set here
        - tb_logger (:obj:`Any`): writes scalars in place of a TensorBoard logger of its own, if given
    """

    resume_parts = ('_noted', '_line', '_rates', '_outs')

    def __init__(self, buffer: Any, cfg: dict[str, Any], exp_name: str, tb_logger: Any = None) -> None:
        self._buffer, self._tb_logger, self._freq = buffer, tb_logger, cfg['log_freq']
        self._folder = cfg['log_path'] or os.path.join(exp_name, 'log', 'buffer', f'{buffer.name}_buffer')
        self._tick_time = TickTime()
        self._rates = NaturalMonitor(NaturalTime(), cfg['natural_expire'])
        self._outs = OutTickMonitor(self._tick_time, cfg['tick_expire'])
        self._noted = self._line = (0, 0)  # rows pushed and sampled up to the last record, and up to the last line
        self._loggers: tuple | None = None
        self._closed = False
        self._set_due()

    def _set_due(self) -> None:
        """The sample to look at next: the first one, then each of every ``log_freq`` and of a fraction of it."""
        samples, every = self._buffer.samples, max(self._freq // _RECORDS_PER_LINE, 1)
        self._buffer.log_due = min((samples // n + 1) * n for n in (every, self._freq)) if samples else 1

    def sampled(self, sample: Sampled) -> None:
        """A sample was taken that is to be looked at."""
        self._set_due()
        self._tick_time.step()
        columns = sample.additional()
        self._outs.record({figure: float(columns[name].mean()) for figure, name in _FIGURES.items()})
        self._note_rates()
        if self._buffer.samples % self._freq == 0:
            self.write()

    def _note_rates(self) -> None:
        counts = self._buffer.pushed, self._buffer.sampled
        self._rates.record({'in_count': counts[0] - self._noted[0], 'out_count': counts[1] - self._noted[1]})
        self._noted = counts

    def write(self) -> None:
        """One line of statistics now."""
        name = self._buffer.name
        if self._loggers is None:
            self._loggers = build_logger(self._folder, name, need_tb=self._tb_logger is None)
        text, own_tb = self._loggers
        self._line = pushed, sampled = self._buffer.pushed, self._buffer.sampled
        figures: dict[str, float] = {
            'rows': self._buffer.count,
            'pushed': pushed,
            'sampled': sampled,
            'pushed_per_s': self._rates.avg['in_count'](),
            'sampled_per_s': self._rates.avg['out_count'](),
        }
        for figure in _FIGURES:
            if self._outs.currents().get(figure) is not None:
                for statistic in ('avg', 'max', 'min'):
                    figures[f'{figure}_{statistic}'] = getattr(self._outs, statistic)[figure]()
        text.print_vars_hor(figures)
        for figure, value in figures.items():
            (self._tb_logger or own_tb).add_scalar(f'buffer_{name}/{figure}', value, sampled)

    def state_dict(self) -> dict[str, Any]:
        """What the next lines depend on."""
        return {'ticks': self._buffer.samples, **super().state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        super().load_state_dict(state)
        self._buffer.samples = state['ticks']
        self._set_due()

    def close(self) -> None:
        """Write what is new since the last line and close the files; may be called twice."""
        if self._closed:
            return
        if self._line != (self._buffer.pushed, self._buffer.sampled):
            self._note_rates()
            self.write()
        self._closed, self._buffer.log_due = True, 0
        for logger in self._loggers or ():
            if logger is not None:
                logger.close()
