"""Next observations on their way to the learner: where one is an observation of the same block, it does not travel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_WORTH_BYTES = 256  # of a row: below, looking costs more than sending
_WORTH_SHARE = 0.5  # of the rows that must be found
_CHUNK_BYTES = 1 << 18  # compared at once: what is compared stays in the processor's cache


@dataclass
class Following:
    """
    Overview:
        A column of next observations as what it is made of. Row i is row ``i + lag`` of the observations, but for the
        rows ``apart`` (ends of episodes, the block's last steps), whose values lie in ``values``.
    """

    lag: int
    apart: np.ndarray
    values: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.apart.nbytes + self.values.nbytes

    def column(self, obs: np.ndarray) -> np.ndarray:
        """The column itself."""
        column = np.empty_like(obs)
        column[: len(obs) - self.lag] = obs[self.lag :]
        column[self.apart] = self.values
        return column


def fold(obs: Any, next_obs: Any, lags: Sequence[int]) -> Any:
    """
    Overview:
        The shorter form of ``next_obs``, or ``next_obs`` itself where there is none. Rows count as equal if all of
        their bytes are, so that ``unfold`` gives back exactly what was there.
    Arguments:
        - obs, next_obs (:obj:`Any`): arrays, or nested dicts of them; the first axis is the rows
        - lags (:obj:`Sequence[int]`): how many rows further the observation of the next step may be, best guess first
    """
    if isinstance(next_obs, dict):
        return {k: fold(obs[k], v, lags) if isinstance(obs, dict) and k in obs else v for k, v in next_obs.items()}
    if not _comparable(obs, next_obs):
        return next_obs
    for lag in lags:
        if not 0 < lag < len(obs):
            continue
        apart = np.ones(len(obs), dtype=bool)
        apart[:-lag] = _differ(obs[lag:], next_obs[:-lag])
        rows = np.flatnonzero(apart)
        if len(rows) < _WORTH_SHARE * len(obs):
            return Following(lag, rows, next_obs[rows])
    return next_obs


def unfold(obs: Any, next_obs: Any) -> Any:
    """What ``fold`` was given."""
    if isinstance(next_obs, dict):
        return {k: unfold(obs[k], v) if isinstance(obs, dict) and k in obs else v for k, v in next_obs.items()}
    return next_obs.column(obs) if isinstance(next_obs, Following) else next_obs


def _comparable(obs: Any, next_obs: Any) -> bool:
    if not isinstance(obs, np.ndarray) or obs.shape != next_obs.shape or obs.dtype != next_obs.dtype:
        return False
    return obs.dtype != object and len(obs) > 1 and obs[0].nbytes >= _WORTH_BYTES


def _differ(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Which rows of two contiguous columns are not equal, byte by byte."""
    nbytes = a[0].nbytes
    word = np.uint64 if nbytes % 8 == 0 else np.uint8
    a, b = (np.ascontiguousarray(x).reshape(len(x), -1).view(word) for x in (a, b))
    step = max(_CHUNK_BYTES // nbytes, 1)
    parts = [(a[k : k + step] != b[k : k + step]).any(1) for k in range(0, len(a), step)]
    return np.concatenate(parts)
