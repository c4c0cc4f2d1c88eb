"""What a run answers to whoever started it."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass, field
from typing import Any

from easydict import EasyDict


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
        counters = {
            'solved': bool(solved),
            'final_return': float(run.evaluator.last_mean),
            'best_return': float(max(run.evaluator.best, run.evaluator.last_mean)),
            'env_steps': int(run.actor.total_step),
            'train_iters': int(run.learner.train_iter),
            'episodes': int(run.actor.total_episode),
            'seconds': run.seconds,
            'checkpoint': checkpoint,
        }
        return cls.in_folder(run.folder.path, ckpt_path, counters, run.seed, run.cfg, list(run.evaluator.history))

    @classmethod
    def in_folder(
        cls,
        folder: str,
        ckpt_path: str,
        counters: dict[str, Any],
        seed: int,
        cfg: EasyDict,
        history: list[tuple[int, int, float]] | None = None,
    ) -> RunResult:
        """With the paths that a run in ``folder`` has; ``history`` None reads the curve there."""
        best, log = os.path.join(ckpt_path, 'ckpt_best.pth.tar'), os.path.join(folder, 'log')
        curve = os.path.join(log, 'evaluator', 'curve.csv')
        return cls(
            **counters,
            seed=seed,
            exp_path=folder,
            ckpt_path=ckpt_path,
            best_checkpoint=best if os.path.exists(best) else None,
            log_path=log,
            curve_path=curve,
            config=cfg,
            history=read_curve(curve) if history is None else history,
        )

    def counters(self) -> dict[str, Any]:
        """What ``in_folder`` wants back: numbers, and the checkpoint by its name."""
        names = ('solved', 'final_return', 'best_return', 'env_steps', 'train_iters', 'episodes', 'seconds')
        return {
            **{name: getattr(self, name) for name in names},
            'checkpoint': self.checkpoint and os.path.basename(self.checkpoint),
        }

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


def read_curve(path: str) -> list[tuple[int, int, float]]:
    """The evaluations in ``curve.csv``: updates, env steps and mean return of each."""
    if not os.path.exists(path):  # nothing was evaluated
        return []
    with open(path, encoding='utf-8', newline='') as f:
        return [(int(r['train_iter']), int(r['env_step']), float(r['return_mean'])) for r in csv.DictReader(f)]
