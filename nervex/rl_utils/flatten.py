"""Merging the time and env axes of what was collected."""

from typing import Any

import numpy as np

from nervex.data import Batch
from nervex.utils import tree


def flatten_time(traj: Any) -> Any:
    """
    Overview:
        Merge the time and env axes of a Batch; columns stay views where their memory allows it.
    Shapes:
        - traj (:obj:`Batch`): columns :math:`(T, N, *)`; the result has columns :math:`(T N, *)`
    """
    merged = {n: _merged(c) if type(c) is np.ndarray else tree.map(_merged, c) for n, c in traj.items()}
    return Batch.of(merged)


def _merged(column: Any) -> Any:
    shape = column.shape
    if shape[0] == 1:
        return column[0]
    return column[:, 0] if shape[1] == 1 else column.reshape(shape[0] * shape[1], *shape[2:])
