"""Parallel mode. Its place and its name are fixed; the mode itself is not built yet."""

from __future__ import annotations

from typing import Any

NOT_YET = "parallel mode is not available in this version; run the same config with '-m serial'"


def parallel_pipeline(
    filename: str | dict,
    seed: int = 0,
    platform: str = 'local',
    coordinator_host: str = '',
    learner_host: str = '0.0.0.0',
    actor_host: str = '0.0.0.0',
    enable_total_log: bool = False,
    disable_flask_log: bool = True,
) -> Any:
    """Train on several processes. Raises NotImplementedError until that mode exists."""
    raise NotImplementedError(NOT_YET)
