"""Finished runs on disk: one file a row, one JSON line a run."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from rows import Row


class Records:
    """
    Overview:
        ``add`` stores a run at once; a run of the same seed takes the place of an older one. Runs with other settings
        than the row's count as missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def add(self, row: Row, record: dict[str, Any]) -> None:
        """Store one run of a row."""
        with self._lock:
            kept = [r for r in self.of(row) if r['seed'] != record['seed']]
            lines = sorted([*kept, record], key=lambda r: r['seed'])
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._path(row)
            fresh = path.with_suffix('.tmp')
            fresh.write_text(''.join(json.dumps(line) + '\n' for line in lines), encoding='utf-8')
            fresh.replace(path)

    def of(self, row: Row) -> list[dict[str, Any]]:
        """The runs of a row, by seed."""
        path = self._path(row)
        if not path.exists():
            return []
        found = [json.loads(line) for line in path.read_text(encoding='utf-8').splitlines()]
        return [r for r in found if r['overrides'] == list(row.overrides)]

    def has(self, row: Row, seed: int) -> bool:
        """Whether there is a run of this seed."""
        return any(r['seed'] == seed for r in self.of(row))

    def _path(self, row: Row) -> Path:
        return self._folder / f'{row.name}.jsonl'
