"""What an actor writes down: its log file and its curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from nervex.utils.log_helper import TextLogger


class CollectLog:
    """
    Overview:
        The file ``log/actor/<name>_logger.txt`` and the curves ``actor_iter/...`` and ``actor_envstep/...``.
    Arguments:
        - name (:obj:`str | None`): None writes no file until ``rename`` gives one
        - tb_logger (:obj:`Any`): where the curves go; None: nowhere
    """

    def __init__(self, exp_name: str, name: str | None, tb_logger: Any) -> None:
        self._path, self._tb_logger = f'{exp_name}/log/actor', tb_logger
        self._logger: TextLogger | None = None
        if name is not None:
            self.rename(name)

    def rename(self, name: str) -> None:
        """Go on in the file of another name."""
        self.close()
        self._logger = TextLogger(self._path, name)

    def line(self, text: str) -> None:
        """A line in the file, if there is one."""
        if self._logger is not None:
            self._logger.info(text)

    def totals(self, actor: Any, iter_count: int) -> None:
        """Where the actor stands."""
        n, speed = len(actor.recent_returns), actor.total_step / max(actor.total_duration, 1e-9)
        mean = f'{np.mean(actor.recent_returns):.3f}' if n else 'none yet'
        self.line(
            f'round {actor.rounds}: {actor.total_step} env steps, {actor.total_sample} samples, '
            f'{actor.total_episode} episodes, mean return of the last {n}: {mean}, {speed:.0f} env steps/s'
        )
        if self._tb_logger is None:
            return
        values = {'envsteps_per_s': speed}
        if n:
            values.update(return_mean=np.mean(actor.recent_returns), length_mean=np.mean(actor.recent_lengths))
        for mode, given in actor.settings.items():
            values.update({f'{mode}_{k}': v for k, v in given.items() if isinstance(v, (int, float))})
        self._tb_logger.add_both('actor', values, iter_count, actor.total_step)

    def close(self) -> None:
        """Close the file; the curves belong to somebody else. Closing twice is fine."""
        if self._logger is not None:
            self._logger.close()
            self._logger = None
