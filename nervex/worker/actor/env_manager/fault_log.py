"""Counts what went wrong, says it in the log once each time, and decides when an env has failed for good."""

import logging
from collections import Counter, deque
from collections.abc import Callable, Hashable

from nervex.envs.hosting.messages import EnvFault
from nervex.utils.errors import EnvError

logger = logging.getLogger(__name__)

PROGRESS_STEPS = 1000  # so many good steps count as progress even if no episode ended
PATIENCE = 20  # restarts without progress that are borne, in units of max_retry + 1


class FaultLog:
    """
    Overview:
        An env is restarted after a fault. It has failed for good when ``max_retry`` restarts in a row brought not one
        good step, or when many restarts brought neither a finished episode nor ``PROGRESS_STEPS`` good steps.
    Interfaces:
        record, strike, good_steps, tried_in_vain, tried_well, error, counts, recent
    """

    def __init__(self, env_num: int, max_retry: int, describe: Callable[[int], str]) -> None:
        self.counts: Counter = Counter()  # kind of fault -> how often
        self.per_env = [0] * env_num  # faults of each env
        self.recent: deque[EnvFault] = deque(maxlen=100)
        self.suspects: set[int] = set()  # envs that have not made progress since their last fault
        self._max_retry, self._describe = max_retry, describe
        self._in_a_row, self._without_progress = [0] * env_num, [0] * env_num
        self._good = [0] * env_num
        self._tries: Counter = Counter()  # what is tried (resets of an env, starts of a group) -> in vain in a row

    @property
    def total(self) -> int:
        """All faults so far."""
        return sum(self.per_env)

    def record(self, fault: EnvFault) -> None:
        """Count and log one fault."""
        self.counts[fault.kind] += 1
        self.per_env[fault.env_id] += 1
        self.recent.append(fault)
        logger.warning(
            'env %d: %s in %s (its fault number %d); its unfinished episode is dropped, it restarts\n%s',
            fault.env_id,
            fault.kind,
            fault.phase,
            self.per_env[fault.env_id],
            fault.text,
        )

    def strike(self, fault: EnvFault) -> None:
        """Record a fault that ended an episode; raises EnvError when the env has had its chances."""
        i = fault.env_id
        self._in_a_row[i] += 1
        self._without_progress[i] += 1
        self._good[i] = 0
        self.suspects.add(i)
        self.record(fault)
        if self._in_a_row[i] > self._max_retry or self._without_progress[i] > PATIENCE * (self._max_retry + 1):
            raise self.error(fault)

    def good_steps(self, stepped: list[int], finished: list[int]) -> None:
        """Tell which envs stepped well; only suspects are looked at."""
        for i in self.suspects.intersection(stepped):
            self._in_a_row[i] = 0
            self._good[i] += 1
            if i in finished or self._good[i] >= PROGRESS_STEPS:
                self._without_progress[i] = 0
                self.suspects.discard(i)

    def tried_in_vain(self, fault: EnvFault, what: Hashable) -> None:
        """Record a reset or a start that failed; raises EnvError when ``max_retry`` more have failed, too."""
        self.record(fault)
        self._tries[what] += 1
        if self._tries[what] > self._max_retry:
            raise self.error(fault)

    def tried_well(self, what: Hashable) -> None:
        """What may have failed before has worked."""
        if self._tries:
            self._tries.pop(what, None)

    def error(self, fault: EnvFault) -> EnvError:
        """The error that ends the run: which env, its config, its own traceback."""
        i = fault.env_id
        return EnvError(
            f'env {i} failed for good: {fault.kind} in {fault.phase} (max_retry={self._max_retry}, its faults so far: '
            f'{self.per_env[i]})\n{self._describe(i)}\n--- what the env raised ---\n{fault.text}'
        )
