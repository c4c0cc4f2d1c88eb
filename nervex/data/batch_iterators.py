"""Batches that are made one by one while a learner iterates them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from nervex.data.quick_lock import QuickLock


def locked(batches: Iterator, lock: QuickLock) -> Iterator:
    """Hold the lock while the next batch is made, not while it is learned from."""

    def close() -> None:
        with lock:
            batches.close()  # type: ignore[attr-defined]

    try:
        while True:
            with lock:
                batch = next(batches, None)
            if batch is None:
                return
            yield batch
    except GeneratorExit:  # the consumer has had enough
        if lock.locked:  # maybe by this very thread, in the middle of a call that garbage collection has interrupted
            threading.Thread(target=close, name='end of batches').start()
        else:
            close()
        raise


def joined(parts: dict[str, Iterator]) -> Iterator[dict]:
    """Dicts with the next batch of each, as long as all have one."""
    try:
        while True:
            batch = {name: next(part, None) for name, part in parts.items()}
            if any(b is None for b in batch.values()):
                return
            yield batch
    finally:
        for part in parts.values():
            part.close()  # type: ignore[attr-defined]
