"""Merging the time and env axes of what was collected."""

from typing import Any

from nervex.data import Batch
from nervex.utils import tree


def flatten_time(traj: Any) -> Any:
    """
    Overview:
        Merge the time and env axes of a Batch; columns stay views where their memory allows it.
    Shapes:
        - traj (:obj:`Batch`): columns :math:`(T, N, *)`; the result has columns :math:`(T N, *)`
    """
    return Batch.of({name: tree.map(_merged, column) for name, column in traj.items()})


def _merged(column: Any) -> Any:
    shape = column.shape
    if shape[0] == 1:
        return column[0]
    return column[:, 0] if shape[1] == 1 else column.reshape(shape[0] * shape[1], *shape[2:])
