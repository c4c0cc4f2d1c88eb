"""What a run answers to whoever started it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from easydict import EasyDict

from nervex.run.curve import curve_rows


@dataclass
class RunResult:
    """What a script needs to know about a finished run; paths and curve are found in its folder."""

    solved: bool
    final_return: float
    best_return: float
    env_steps: int
    train_iters: int
    episodes: int
    seconds: float
    checkpoint: str | None  # a file in ``ckpt_path``
    seed: int
    exp_path: str
    ckpt_path: str
    config: EasyDict = field(repr=False)
    win_rate: float | None = None  # of the last evaluation; None: the env does not say who won
    agent_returns: list[float] | None = None  # likewise, of each agent; None: a reward is the team's
    notes: list[str] = field(default_factory=list, repr=False)  # more lines for people
    best_checkpoint: str | None = field(init=False)
    log_path: str = field(init=False)
    curve_path: str = field(init=False)
    history: list[tuple[int, int, float]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        best, last = os.path.join(self.ckpt_path, 'ckpt_best.pth.tar'), self.checkpoint
        self.checkpoint = last and os.path.join(self.ckpt_path, os.path.basename(last))
        self.best_checkpoint = best if os.path.exists(best) else None
        self.log_path = os.path.join(self.exp_path, 'log')
        self.curve_path = os.path.join(self.log_path, 'evaluator', 'curve.csv')
        rows = curve_rows(self.curve_path)
        self.history = [(int(r['train_iter']), int(r['env_step']), float(r['return_mean'])) for r in rows]

    @classmethod
    def of(cls, run: Any, solved: bool, ckpt_path: str, checkpoint: str | None) -> RunResult:
        """The result of a run of any mode: of its ``actor``, ``learner``, ``evaluator`` and ``folder``."""
        last, actor = float(run.evaluator.last_mean), run.actor
        best = max(float(run.evaluator.best), last)
        counters = (actor.total_step, run.learner.train_iter, actor.total_episode, run.seconds, checkpoint)
        team = run.evaluator.last_win_rate, run.evaluator.last_agent_means
        return cls(solved, last, best, *counters, run.seed, run.folder.path, ckpt_path, run.cfg, *team)

    def counters(self) -> dict[str, Any]:
        """The numbers, and the checkpoint by its name: what the folder does not tell."""
        names = ('solved', 'final_return', 'best_return', 'env_steps', 'train_iters', 'episodes', 'seconds')
        numbers = {name: getattr(self, name) for name in (*names, 'win_rate', 'agent_returns')}
        return {**numbers, 'checkpoint': self.checkpoint and os.path.basename(self.checkpoint)}

    @property
    def verdict(self) -> str:
        """How it ended, in words."""
        cfg, won = self.config.evaluator, '' if self.win_rate is None else f', win rate {self.win_rate:.2f}'
        stated = [f'{name} {cfg[name]:g}' for name in ('stop_val', 'stop_win_rate') if cfg[name] is not None]
        if self.solved:
            return f'solved: return {self.final_return:.1f}{won} reached {" and ".join(stated)}'
        if self.final_return != self.final_return:
            return 'finished: not evaluated'
        wanted = f'{" and ".join(stated)} not reached' if stated else 'stop_val not set'
        return f'finished: return {self.final_return:.1f} (best {self.best_return:.1f}){won}, {wanted}'
