"""What a parallel run that is resumed finds: the saved states of its learners, and what the logs held at that time."""

from __future__ import annotations

import os
from typing import Any

from nervex.run.state import newest_state, read_state, state_iters
from nervex.utils import ConfigError

# what happened to the run is no result of it: it stays, whatever the newest saved state knows
KEPT_LOGS = ('config.yaml', 'run.yaml', 'coordinator_logger.txt')


def learner_folder(ckpt_path: str, index: int) -> str:
    """Where a learner keeps its checkpoints and states: the first one in the run's folder, the others below it."""
    return os.path.join(ckpt_path, f'learner{index}') if index else ckpt_path


def sizes_of_saved_logs(ckpt_path: str, learners: int) -> dict[str, int]:
    """
    Overview:
        Bytes that each file of the logs had when the state was saved that ``learners`` learners will go on from; empty
        if there is none, so that they begin anew. A state of another number of learners is an error.
    """
    _, state = newest_state(ckpt_path)
    if state is None:
        return {}
    wrote = state.get('learners', 1)
    if wrote != learners:
        raise ConfigError(
            f'parallel.learner_num: is {learners}, but the state of the run in {os.path.dirname(ckpt_path)} was saved '
            f'by {wrote}, each with its part of the data; resume with parallel.learner_num={wrote}'
        )
    state = _common_state(ckpt_path, learners) if learners > 1 else state
    return {} if state is None else state['log_sizes']


def _common_state(ckpt_path: str, learners: int) -> dict[str, Any] | None:
    common = set.intersection(*(set(state_iters(learner_folder(ckpt_path, k))) for k in range(learners)))
    return read_state(ckpt_path, max(common))[1] if common else None
