"""The settings of a sweep chosen one after the other by Optuna, from the results of those before."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from nervex.utils.import_helper import require

if TYPE_CHECKING:
    from nervex.entry.sweep_entry import Plan, Run

_NUMBER = r'[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?'
_RANGE = re.compile(rf'({_NUMBER})\.\.({_NUMBER})(:log)?')
_PRUNES_AFTER = 5  # finished trials


def is_range(values: Sequence[str]) -> bool:
    """Whether the values of a path are a range to search: ``1e-5..1e-2``, ``16..256:log``."""
    return len(values) == 1 and '..' in values[0]


class Search:
    """
    Overview:
        Optuna's study of a sweep: all that it knows is in the plan and the folders of the runs, so that a search goes
        on after it was killed. A trial is a setting with all seeds; its value is the mean of their last evaluations.
        One whose first seed has a worse best evaluation than the median of the trials before, after as many env steps,
        is ended early.
    Arguments:
        - plan (:obj:`Plan`): trials are added to it
    Interfaces:
        ends, ask, hopeless
    """

    def __init__(self, plan: Plan) -> None:
        self._optuna = optuna = require('optuna', "'nervex[sweep]'", '--optuna')
        optuna.logging.set_verbosity(logging.WARNING)
        self._plan = plan
        self._space = {path: self._distribution(path, values) for path, values in plan.grid.items()}
        if not self._space:
            raise click.UsageError('--optuna needs what to search: -g policy.learn.learning_rate=1e-5..1e-2:log')
        sampler = optuna.samplers.TPESampler(seed=len(plan.trials), constant_liar=True)
        pruner = optuna.pruners.MedianPruner(n_startup_trials=_PRUNES_AFTER)
        self._study = optuna.create_study(direction='maximize', sampler=sampler, pruner=pruner)
        self._trials: dict[int, Any] = {}  # those that go on
        self._reported: dict[int, int] = {}  # evaluations of each
        for number, entry in enumerate(plan.trials):  # each with the setting that it had
            self._study.enqueue_trial({path: self._value(path, text) for path, text in entry['setting'].items()})
            self._trials[number] = self._study.ask(self._space)

    def _distribution(self, path: str, values: list[str]) -> Any:
        of = self._optuna.distributions
        if not is_range(values):
            return of.CategoricalDistribution(values)
        given = _RANGE.fullmatch(values[0])
        low, high = (float(given[1]), float(given[2])) if given else (1, 0)
        if given is None or not low < high or (given[3] and low <= 0):
            raise click.UsageError(f'-g {path}={values[0]}: write LOW..HIGH, or LOW..HIGH:log with LOW above 0')
        if all(re.fullmatch(r'[-+]?\d+', text) for text in given.groups()[:2]):
            return of.IntDistribution(int(low), int(high), log=bool(given[3]))
        return of.FloatDistribution(low, high, log=bool(given[3]))

    def ends(self) -> list[dict[str, str]]:
        """Settings by which all values, and the ends of all ranges, can be checked."""
        spaces = self._space.values()
        tried = [getattr(space, 'choices', None) or [repr(space.low), repr(space.high)] for space in spaces]
        count = max(map(len, tried))
        return [dict(zip(self._space, (values[min(n, len(values) - 1)] for values in tried))) for n in range(count)]

    def ask(self, runs: list[Run]) -> int | None:
        """The number of the next trial, which is in the plan then; None where there are enough."""
        self._tell(runs)
        if len(self._plan.trials) >= (self._plan.optuna or 0):
            return None
        trial, number = self._study.ask(self._space), len(self._plan.trials)
        self._plan.trials.append({'setting': {path: str(trial.params[path]) for path in self._space}, 'pruned': False})
        self._trials[number] = trial
        return number

    def _value(self, path: str, text: str) -> Any:
        space = self._space[path]
        return text if hasattr(space, 'choices') else type(space.low)(text)

    def _tell(self, runs: list[Run]) -> None:
        """The study of trials that have ended."""
        states = self._optuna.trial.TrialState
        for number, trial in list(self._trials.items()):
            own = [run for run in runs if run.number == number]
            if any(run.state in ('waiting', 'running') for run in own):
                continue
            self._report(own[0])
            last = [float(run.curve[-1]['return_mean']) for run in own if run.state == 'finished' and run.curve]
            if self._plan.trials[number]['pruned']:
                self._study.tell(trial, state=states.PRUNED)
            elif last:
                self._study.tell(trial, sum(last) / len(last))
            else:
                self._study.tell(trial, state=states.FAIL)
            del self._trials[number]

    def _report(self, run: Run) -> bool:
        """Tell the study of new evaluations; whether there are any."""
        rows, known = run.curve, self._reported.get(run.number, 0)
        for row in rows[known:]:
            if step := int(row['env_step']):  # before the first step nothing is learned
                self._trials[run.number].report(float(row['return_mean']), step)
        self._reported[run.number] = len(rows)
        return len(rows) > known

    def hopeless(self, run: Run) -> bool:
        """Whether its trial is to be ended now, by its evaluations so far; the plan notes that."""
        entry = self._plan.trials[run.number]
        if entry['pruned'] or not self._report(run):
            return False
        entry['pruned'] = bool(self._trials[run.number].should_prune())
        return entry['pruned']
