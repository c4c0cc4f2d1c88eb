"""What time is it: seconds, or ticks that the program counts itself."""

import time
from abc import ABC, abstractmethod
from enum import Enum, unique


@unique
class TimeMode(Enum):
    """What the times in ``range_values`` are counted from."""

    ABSOLUTE = 0  # as the time object gives them
    RELATIVE_LIFECYCLE = 1  # from the creation of the model
    RELATIVE_CURRENT_TIME = 2  # from now: the past is negative


class BaseTime(ABC):
    """A clock that never goes back. Derive from it for a clock of your own."""

    @abstractmethod
    def time(self) -> int | float:
        """The present time."""


class NaturalTime(BaseTime):
    """Seconds since 1970; stands still where the system clock is set back."""

    _last = 0.0

    def time(self) -> float:
        """Seconds, as a float."""
        self._last = max(self._last, time.time())
        return self._last


class TickTime(BaseTime):
    """Counts steps of the program."""

    def __init__(self, init: int = 0) -> None:
        self._tick = init

    def step(self, delta: int = 1) -> int:
        """Go on by ``delta`` ticks; returns the new time."""
        if not isinstance(delta, int) or isinstance(delta, bool):
            raise TypeError(f'delta must be a positive int, got {type(delta).__name__}')
        if delta < 1:
            raise ValueError(f'delta must be at least 1, got {delta}')
        self._tick += delta
        return self._tick

    def time(self) -> int:
        """Ticks so far."""
        return self._tick


class TimeProxy(BaseTime):
    """
    Overview:
        Another clock, which can be frozen for those who read it here.
    Interfaces:
        time, current_time, freeze, unfreeze, is_frozen
    """

    def __init__(self, time_: BaseTime, frozen: bool = False) -> None:
        self._source = time_
        self._frozen_at = time_.time() if frozen else None

    @property
    def is_frozen(self) -> bool:
        """Whether ``time`` stands still."""
        return self._frozen_at is not None

    def freeze(self) -> None:
        """Let ``time`` stand still from now on; a second call changes nothing."""
        self._frozen_at = self.time()

    def unfreeze(self) -> None:
        """Let ``time`` follow the clock again."""
        self._frozen_at = None

    def time(self) -> int | float:
        """The time, or the moment of freezing."""
        frozen_at = self._frozen_at
        return self._source.time() if frozen_at is None else frozen_at

    def current_time(self) -> int | float:
        """The time, frozen or not."""
        return self._source.time()
