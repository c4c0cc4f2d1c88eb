"""What a run answers to whoever started it."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass, field
from typing import Any

from easydict import EasyDict

_COUNTERS = ('solved', 'final_return', 'best_return', 'env_steps', 'train_iters', 'episodes', 'seconds')


@dataclass
class RunResult:
    """What a script needs to know about a finished run."""

    solved: bool
    final_return: float
    best_return: float
    env_steps: int
    train_iters: int
    episodes: int
    seconds: float
    seed: int
    exp_path: str
    ckpt_path: str
    checkpoint: str | None
    best_checkpoint: str | None
    log_path: str
    curve_path: str
    config: EasyDict = field(repr=False)
    history: list[tuple[int, int, float]] = field(repr=False)

    @classmethod
    def of(cls, run: Any, solved: bool, ckpt_path: str, checkpoint: str | None) -> RunResult:
        """The counters and paths of a run of any mode: of its ``actor``, ``learner``, ``evaluator`` and ``folder``."""
        last, best, actor = float(run.evaluator.last_mean), float(run.evaluator.best), run.actor
        values = (
            solved,
            last,
            max(best, last),
            actor.total_step,
            run.learner.train_iter,
            actor.total_episode,
            run.seconds,
        )
        counters = {**dict(zip(_COUNTERS, values)), 'checkpoint': checkpoint and os.path.basename(checkpoint)}
        return cls.in_folder(run.folder.path, ckpt_path, counters, run.seed, run.cfg)

    @classmethod
    def in_folder(cls, folder: str, ckpt_path: str, counters: dict[str, Any], seed: int, cfg: EasyDict) -> RunResult:
        """What ``counters()`` gave, with the paths and the curve that a run in ``folder`` has."""
        best, log = os.path.join(ckpt_path, 'ckpt_best.pth.tar'), os.path.join(folder, 'log')
        curve, name = os.path.join(log, 'evaluator', 'curve.csv'), counters['checkpoint']
        return cls(
            **{key: counters[key] for key in _COUNTERS},
            seed=seed,
            exp_path=folder,
            ckpt_path=ckpt_path,
            checkpoint=name and os.path.join(ckpt_path, name),
            best_checkpoint=best if os.path.exists(best) else None,
            log_path=log,
            curve_path=curve,
            config=cfg,
            history=[(int(r['train_iter']), int(r['env_step']), float(r['return_mean'])) for r in curve_rows(curve)],
        )

    def counters(self) -> dict[str, Any]:
        """The numbers, and the checkpoint by its name: what ``in_folder`` cannot know."""
        numbers = {key: getattr(self, key) for key in _COUNTERS}
        return {**numbers, 'checkpoint': self.checkpoint and os.path.basename(self.checkpoint)}

    @property
    def verdict(self) -> str:
        """How it ended, in words."""
        stop = self.config.evaluator.stop_val
        if self.solved:
            return f'solved: return {self.final_return:.1f} reached stop_val {stop:g}'
        if self.final_return != self.final_return:
            return 'finished: not evaluated'
        wanted = 'stop_val not set' if stop is None else f'stop_val {stop:g} not reached'
        return f'finished: return {self.final_return:.1f} (best {self.best_return:.1f}), {wanted}'


def curve_rows(path: str) -> list[dict[str, str]]:
    """The complete rows of a ``curve.csv``; the last one may be half written while a run goes on."""
    if not os.path.isfile(path):
        return []
    with open(path, encoding='utf-8', newline='') as f:
        return [row for row in csv.DictReader(f) if None not in row.values()]
