"""The statistics of one buffer, in its folder of the run's logs."""

from __future__ import annotations

import os
from typing import Any

from nervex.data.sampled import Sampled
from nervex.data.structure.monitors import NaturalMonitor, OutTickMonitor
from nervex.utils.autolog import NaturalTime, TickTime
from nervex.utils.log_helper import build_logger

_RECORDS_PER_LINE = 20
_FIGURES = {'reuse': 'use', 'priority': 'priority', 'staleness': 'staleness'}  # of a line -> column of a sample


class BufferLog:
    """
    Overview:
        Looks at the first sample and at one in some, and writes a line of averages and rates every ``log_freq``
        samples, to ``<folder>/<name>_logger.txt`` and to TensorBoard. Files are made with the first line; ``close``
        writes a last one. Its state belongs to the buffers' state, so that a resumed run writes the lines that it would
        have written.
    Arguments:
        - buffer (:obj:`Any`): with ``count, pushed, sampled``
        - tb_logger (:obj:`Any`): writes scalars in place of a TensorBoard logger of its own, if given
    """

    def __init__(self, name: str, buffer: Any, cfg: dict[str, Any], exp_name: str, tb_logger: Any = None) -> None:
        self.name, self._buffer, self._tb_logger = name, buffer, tb_logger
        self._folder = cfg['log_path'] or os.path.join(exp_name, 'log', 'buffer', f'{name}_buffer')
        self._freq = cfg['log_freq']
        self._every = max(self._freq // _RECORDS_PER_LINE, 1)
        self._ticks, self._due = 0, 1  # samples taken, and the next one to look at
        self._tick_time = TickTime()
        self._rates = NaturalMonitor(NaturalTime(), cfg['natural_expire'])
        self._outs = OutTickMonitor(self._tick_time, cfg['tick_expire'])
        self._noted = (0, 0)  # rows pushed and sampled up to the last record
        self._line = (0, 0)  # and up to the last line
        self._loggers: tuple | None = None
        self._closed = False

    def sampled(self, sample: Sampled) -> None:
        """A sample was taken."""
        self._ticks += 1
        if self._ticks < self._due:
            return
        self._due = self._next()
        self._tick_time.step()
        columns = sample.additional()
        means = {figure: float(columns[name].mean()) for figure, name in _FIGURES.items()}
        self._outs.record(means)
        self._note_rates()
        if self._ticks % self._freq == 0:
            self.write()

    def _next(self) -> int:
        """The sample to look at next."""
        return min((self._ticks // n + 1) * n for n in (self._every, self._freq)) if self._ticks else 1

    def _note_rates(self) -> None:
        pushed, sampled = self._buffer.pushed, self._buffer.sampled
        self._rates.record({'in_count': pushed - self._noted[0], 'out_count': sampled - self._noted[1]})
        self._noted = (pushed, sampled)

    def write(self) -> None:
        """One line of statistics now."""
        if self._closed:
            return
        if self._loggers is None:
            self._loggers = build_logger(self._folder, self.name, need_tb=self._tb_logger is None)
        text, own_tb = self._loggers
        pushed, sampled = self._buffer.pushed, self._buffer.sampled
        figures: dict[str, float] = {
            'rows': self._buffer.count,
            'pushed': pushed,
            'sampled': sampled,
            'pushed_per_s': self._rates.avg['in_count'](),
            'sampled_per_s': self._rates.avg['out_count'](),
        }
        for name in _FIGURES:
            if self._outs.currents().get(name) is not None:
                for statistic in ('avg', 'max', 'min'):
                    figures[f'{name}_{statistic}'] = getattr(self._outs, statistic)[name]()
        text.print_vars_hor(figures)
        writer = self._tb_logger or own_tb
        for name, value in figures.items():
            writer.add_scalar(f'buffer_{self.name}/{name}', value, sampled)
        self._line = (pushed, sampled)

    def state_dict(self) -> dict[str, Any]:
        """What the next lines depend on."""
        return {
            'ticks': self._ticks,
            'noted': list(self._noted),
            'line': list(self._line),
            'rates': self._rates.state_dict(),
            'outs': self._outs.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave."""
        self._ticks, self._noted, self._line = state['ticks'], tuple(state['noted']), tuple(state['line'])
        self._due = self._next()
        self._rates.load_state_dict(state['rates'])
        self._outs.load_state_dict(state['outs'])

    def close(self) -> None:
        """Write what is new since the last line and close the files; may be called twice."""
        if not self._closed:
            if self._line != (self._buffer.pushed, self._buffer.sampled):
                self._note_rates()
                self.write()
            self._closed = True
            for logger in self._loggers or ():
                if logger is not None:
                    logger.close()
