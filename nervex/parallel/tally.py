"""What has been collected and learned, each block counted once; what the commander and the progress line are told."""

from __future__ import annotations

from collections import deque
from typing import Any

from nervex.parallel.blocks import Header, Ledger

_WINDOW = 100  # episodes of the mean return


class Tally:
    """
    Overview:
        The counters of a run, with the names that commanders know from the actor and the learner of serial mode.
    """

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.total_step = self.total_episode = self.blocks = self.doubles = 0
        self.train_iter = self.sampled = self.inserted = self.stale_rows = self.lost_blocks = 0
        self.returns: deque[float] = deque(maxlen=_WINDOW)
        self.staleness: deque[int] = deque(maxlen=_WINDOW)  # of the newest blocks, in updates
        self.max_staleness = 0
        self.collect_s = self.learn_s = 0.0  # of all actors; of updates
        self.updates = self.run_steps = 0  # of this process, not of the run that it continues
        self.settings: dict[str, dict[str, Any]] = {}
        self._rows: dict[int, tuple[int, int]] = {}  # sampled and inserted, by learner

    def collected(self, header: Header) -> bool:
        """Count a block; False if it was counted before."""
        if not self.ledger.take(*header.key):
            self.doubles += 1
            return False
        self.blocks += 1
        self.total_step += header.steps
        self.run_steps += header.steps
        self.total_episode += len(header.returns)
        self.returns.extend(header.returns)
        self.collect_s += header.seconds
        return True

    def learned(self, info: dict[str, Any], rank: int = 0) -> None:
        """Count an answer of the learner, or of one of several."""
        self._rows[rank] = info['sampled'], info['inserted']
        self.sampled, self.inserted = (sum(rows) for rows in zip(*self._rows.values()))
        self.stale_rows += info['stale']
        self.staleness.extend(info['staleness'])
        self.max_staleness = max([self.max_staleness, *info['staleness']])
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

    def state_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            'env_steps': self.total_step,
            'episodes': self.total_episode,
            'returns': list(self.returns),
            'blocks': self.blocks,
            'stale_rows': self.stale_rows,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``state_dict`` gave; a serial run's state has fewer of them."""
        self.total_step, self.total_episode = state['env_steps'], state['episodes']
        self.returns.extend(state['returns'])
        self.blocks, self.stale_rows = state.get('blocks', 0), state.get('stale_rows', 0)
