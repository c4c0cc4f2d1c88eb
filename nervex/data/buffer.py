"""Buffer: what BufferManager asks of a kind of buffer, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nervex.data.ring import nothing_stored


class Buffer:
    """
    Overview:
        One named buffer of a BufferManager. A kind of one's own derives from this class (or from ``ReplayKind``, the
        ring, or ``OnPolicyKind``), is registered in ``BUFFER_REGISTRY`` and named by ``replay_buffer.type``. Methods
        without a body here have to be written; the others have answers that suit a buffer that does not care. Not
        locked: the manager holds its lock around every call.
    Arguments:
        - name (:obj:`str`): of the buffer
        - cfg (:obj:`Any`): its options as attributes, see ``nervex.data.buffer_options``
        - seed (:obj:`Any`): of its sampling
    Attributes:
        - kind (:obj:`str`): tells apart what ``state_dict`` answers
        - start_size (:obj:`int`): rows that must be collected before the first sample
        - sampled, samples (:obj:`int`): rows that were ever sampled, in so many samples
        - process_fn (:obj:`Callable | None`): answers what is given out in place of a sample, see BufferManager
        - log (:obj:`Any`): gets the sample whose number is ``log_due`` (``log.sampled(sample)``); None: no statistics
        - own_rounds (:obj:`bool`): ``batches`` gives as many batches as its rows make; a buffer beside it that draws at
          random gives as many
        - put (:obj:`Callable`): a quick way of storing a dict row or a Batch; answers the number of rows, or 0 if they
          are for ``push`` (as all are if a derived class has a ``push`` of its own)
    Interfaces:
        push, ready, sample, batches, update, count, pushed, clear, used_data, plan, state_dict, load_state_dict
    """

    kind = ''
    own_rounds = False

    def __init__(self, name: str, cfg: Any, seed: Any = None) -> None:
        self.name, self._cfg = name, cfg
        self.start_size = cfg.replay_start_size
        self.sampled = self.samples = self.log_due = 0
        self.log: Any = None
        self.process_fn: Callable | None = None
        self.put: Callable[..., int] = nothing_stored

    @property
    def count(self) -> int:
        """Rows that can be sampled."""
        raise NotImplementedError

    @property
    def pushed(self) -> int:
        """Rows that were ever pushed."""
        raise NotImplementedError

    def push(self, columns: Mapping) -> None:
        """Append rows, given as columns of equal length."""
        raise NotImplementedError

    def ready(self, batch_size: int, cur_learner_iter: int = 0, samples: int | None = None) -> bool:
        """
        Overview:
            Whether a sample of this size may be taken now, or, with ``samples``, so many of them if rows live on (then
            ValueError if there can never be enough rows).
        """
        raise NotImplementedError

    def sample(self, batch_size: int, cur_learner_iter: int = 0, reuse: bool = False) -> Any:
        """A sample, None when there is not enough data. ``reuse`` may give one of two alternating batches."""
        raise NotImplementedError

    def batches(self, batch_size: int, count: int, cur_learner_iter: int = 0) -> Iterator[Any]:
        """What a learner iterates: up to ``count`` samples, or rounds of them."""
        raise NotImplementedError

    def clear(self) -> None:
        """Forget all rows."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """Contents, counters and generators; loads with ``weights_only=True``."""
        raise NotImplementedError

    def load_state_dict(self, state: Mapping) -> None:
        """Put back what ``state_dict`` gave."""
        raise NotImplementedError

    def update(self, info: Mapping) -> None:
        """New priorities: ``{'priority', 'replay_unique_id', 'replay_buffer_idx'}`` of equal length."""

    def used_data(self) -> dict | None:
        """One of the rows that were removed for their number of uses, oldest first; None if there is none."""
        return None

    def plan(self, columns: Mapping) -> int:
        """Bytes that rows like these will need; BufferMemoryError if they cannot be had."""
        return 0

    def _use_quick_way(self, kind: type[Buffer], put: Callable[..., int]) -> None:
        """Rows go into the ring by ``put``, past ``push``, unless a class derived from ``kind`` has one of its own."""
        self.put = put if type(self).push is kind.push else nothing_stored

    def _check_state(self, state: Mapping, capacity: int | None = None) -> None:
        """Refuse the state of another kind of buffer, or of one of another size."""
        found, own = (state['kind'], state.get('capacity')), (self.kind, capacity)
        if found != own:
            saved, here = (f"kind '{kind}'{f' with {rows} rows' if rows else ''}" for kind, rows in (found, own))
            raise ValueError(f"buffer '{self.name}': the saved buffer is of {saved}, this one of {here}")
