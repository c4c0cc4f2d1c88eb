"""What has been collected and learned, each block counted once, and what people are told of it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from nervex.parallel.blocks import Header
from nervex.run.progress import Progress
from nervex.utils.part_state import HasState
from nervex.worker.actor.base_serial_evaluator import Evaluation

if TYPE_CHECKING:
    from nervex.parallel.run import ParallelRun

_WINDOW = 100  # episodes of the mean return
_WINDOW_S = 5.0  # that the two speeds are averaged over
_LOG_S = 10.0  # between two lines of the commander's log


class Tally(HasState):
    """
    Overview:
        The counters of a run, with the names that commanders know from the actor and the learner of serial mode.
    """

    resume_parts = ('total_step', 'total_episode', 'returns', 'blocks', 'stale_rows')

    def __init__(self) -> None:
        self.total_step = self.total_episode = self.blocks = self.doubles = 0
        self.train_iter = self.sampled = self.inserted = self.stale_rows = self.lost_blocks = 0
        self.returns: deque[float] = deque(maxlen=_WINDOW)
        self.staleness: deque[int] = deque(maxlen=_WINDOW)  # of the newest blocks, in updates
        self.collect_s = self.learn_s = 0.0  # of all actors; of updates
        self.updates = self.run_steps = 0  # of this process, not of the run that it continues
        self._rows: dict[int, tuple[int, int]] = {}  # sampled and inserted, by learner

    def collected(self, header: Header) -> None:
        """Count a block."""
        self.blocks += 1
        self.total_step += header.steps
        self.run_steps += header.steps
        self.total_episode += len(header.returns)
        self.returns.extend(header.returns)
        self.collect_s += header.seconds

    def learned(self, info: dict[str, Any], rank: int = 0) -> None:
        """Count an answer of the learner, or of one of several."""
        self._rows[rank] = info['sampled'], info['inserted']
        self.sampled, self.inserted = (sum(rows) for rows in zip(*self._rows.values()))
        self.stale_rows += info['stale']
        self.doubles += info['refused']
        self.staleness.extend(info['staleness'])
        if rank:
            return
        self.train_iter = info['train_iter']
        self.updates += info['updates']
        self.learn_s += info['learn_seconds']

    @property
    def learn_info(self) -> dict[str, Any]:
        """Of the learner, as commanders know it."""
        return {'learner_step': self.train_iter, 'train_iter': self.train_iter, 'priority_info': None}

    def mean_return(self) -> float | None:
        """Of the last 100 episodes; None before the first."""
        return sum(self.returns) / len(self.returns) if self.returns else None

    def mean_staleness(self) -> float | None:
        """Of the newest blocks, in updates."""
        return sum(self.staleness) / len(self.staleness) if self.staleness else None


class ParallelProgress(Progress):
    """Both speeds, how many actors there are, how old their weights are, and how many blocks wait."""

    _run: Any

    def __init__(self, run: ParallelRun, enabled: bool, total_log: bool = False) -> None:
        super().__init__(cast(Any, run), enabled, total_log)
        self._marks: list[tuple[float, int, int]] = [(time.perf_counter(), 0, 0)]

    def parts(self) -> Iterator[tuple[int, str]]:
        """The parts of the line; the speeds are those of the newest seconds."""
        run, now = self._run, time.perf_counter()
        tally = run.tally
        if now - self._marks[-1][0] > _WINDOW_S / 5:
            self._marks = [*self._marks[-5:], (now, tally.run_steps, tally.updates)]
        then, steps, updates = self._marks[0]
        per_s = 1.0 / max(now - then, 1e-9)
        yield 0, f'env steps {tally.total_step:,} ({(tally.run_steps - steps) * per_s:,.0f}/s)'
        yield 2, f' | updates {tally.train_iter:,} ({(tally.updates - updates) * per_s:,.0f}/s)'
        yield 3, f' | actors {len(run.roster.of("actor"))} of {run.plan.actors}'
        yield 4, f' | staleness {tally.mean_staleness() or 0.0:.1f}'
        yield 5, f' | queue {len(run.pace.waiting)}'
        yield from self.returns()


class CommanderLog:
    """The commander's text log and curves: every few seconds, and what every evaluation gave."""

    def __init__(self, run: ParallelRun, text: Any, curves: Any) -> None:
        self._run, self._text, self._curves = run, text, curves
        self._next = 0.0

    def evaluated(self, train_iter: int, env_step: int, result: Evaluation) -> None:
        """Told after every evaluation."""
        self._text.info(
            f'evaluation of update {train_iter}, asked for at env step {env_step}: {len(result.returns)} episodes, '
            f'mean return {result.mean:.3f}, {result.seconds:.2f} s'
        )
        self.write()

    def write(self, now: bool = True) -> None:
        """A line, and a point of the curves; or else (not ``now``) when it is time to."""
        if not now and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _LOG_S
        run, tally = self._run, self._run.tally
        values = {
            'return_mean': tally.mean_return(),
            'staleness': tally.mean_staleness(),
            'queue': float(len(run.pace.waiting)),
            'actors': float(len(run.roster.of('actor'))),
            'sampled_per_inserted': tally.sampled / tally.inserted if tally.inserted else None,
        }
        known = {name: value for name, value in values.items() if value is not None}
        self._text.info(
            f'{run.seconds:.1f} s, env step {tally.total_step}, iteration {tally.train_iter}, '
            f'{tally.total_episode} episodes, {", ".join(f"{name} {value:.4g}" for name, value in known.items())}, '
            f'stale rows {tally.stale_rows}, blocks {tally.blocks}, refused {tally.doubles}, lost {tally.lost_blocks}'
        )
        for name, value in known.items():
            self._curves.add_scalar(f'commander_iter/{name}', value, tally.train_iter)

    def close(self) -> None:
        """Close the files."""
        self._text.close()
        self._curves.close()


def verdict(run: ParallelRun) -> list[str]:
    """
    Overview:
        Lines that tell whether it was worth while: what a step costs to collect and what it costs to learn from. In one
        process both follow each other; in several the slower of the two decides, collecting shared among the actors.
    """
    tally, plan = run.tally, run.plan
    if not tally.run_steps or not tally.updates:
        return []
    collect, learn = (1000.0 * seconds / tally.run_steps for seconds in (tally.collect_s, tally.learn_s))
    shared = collect / plan.actors
    gain = (collect + learn) / ((shared + learn) if plan.rounds else max(shared, learn))
    if plan.rounds:
        which = f'in rounds, the actors save at most {1 - 1 / gain:.0%} of the time of one process'
    else:
        slower, more = ('learner', 'gain nothing') if learn > shared else ('collecting', 'would help')
        which = f'{slower} is the slower part: at most {gain:.1f}x of one process; more actors {more}'
    return [
        f'collecting: {collect:.3f} ms an env step of one actor, {shared:.3f} ms with {plan.actors} actors; '
        f'learning: {learn:.3f} ms an env step',
        which,
    ]
