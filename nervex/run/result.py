"""What a run answers to whoever started it."""

from __future__ import annotations

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
        best = os.path.join(ckpt_path, 'ckpt_best.pth.tar')
        return cls(
            solved=solved,
            final_return=run.evaluator.last_mean,
            best_return=max(run.evaluator.best, run.evaluator.last_mean),
            env_steps=run.actor.total_step,
            train_iters=run.learner.train_iter,
            episodes=run.actor.total_episode,
            seconds=run.seconds,
            seed=run.seed,
            exp_path=run.folder.path,
            ckpt_path=ckpt_path,
            checkpoint=checkpoint,
            best_checkpoint=best if os.path.exists(best) else None,
            log_path=run.folder.log,
            curve_path=run.evaluator.curve_path,
            config=run.cfg,
            history=list(run.evaluator.history),
        )
