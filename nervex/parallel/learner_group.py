"""Several learners as one: they meet, agree on how many updates there are, fall together, and go on from one state."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import torch

from nervex.interaction.exception import SlaveDied
from nervex.parallel.role import RoleSpec
from nervex.run.state import newest_state, read_state, state_iters
from nervex.utils import ConfigError
from nervex.utils.dist_helper import allreduce, dist_finalize, dist_init

_MEET_S = 120.0  # in which the others must come, and answer


class LearnerGroup:
    """
    Overview:
        One learner of ``spec.count``. The first one writes the logs and checkpoints of the run, the others keep theirs
        below. Alone it agrees with itself.
    """

    def __init__(self, spec: RoleSpec, stack: contextlib.ExitStack) -> None:
        self.count, self.rank = spec.count, spec.index
        first = self.rank == 0
        self.log_path = spec.exp_path if first else os.path.join(spec.exp_path, 'log', spec.name)
        self.ckpt_path = learner_folder(spec.ckpt_path, self.rank)
        if self.count > 1:
            place = os.path.join(os.path.abspath(spec.ckpt_path), f'.meet_{spec.incarnation}')
            backend = 'nccl' if spec.cfg.policy.use_cuda and torch.cuda.is_available() else 'gloo'
            with self.watched():
                dist_init(backend, self.rank, self.count, f'file://{place}', timeout_s=_MEET_S)
            stack.callback(dist_finalize)
            if first:
                stack.callback(_remove, place)

    def agree(self, count: int) -> int:
        """The smallest of what all learners say."""
        if self.count == 1:
            return count
        device = 'cuda' if torch.distributed.get_backend() == 'nccl' else 'cpu'
        return int(allreduce(torch.tensor(count, device=device), 'min'))

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Where one of the others dies, this one is as good as dead: the group begins anew together."""
        try:
            yield
        except RuntimeError as e:
            if self.count > 1 and any(word in str(e) for word in ('onnection', 'gloo', 'NCCL', 'imeout', 'imed out')):
                raise SlaveDied(f'another learner is gone: {str(e).splitlines()[0][:120]}') from e
            raise

    def common_state(self) -> tuple[str | None, dict[str, Any] | None]:
        """The newest saved state that all learners have."""
        if self.count == 1:
            return newest_state(self.ckpt_path)
        everyone: list[Any] = [None] * self.count
        torch.distributed.all_gather_object(everyone, state_iters(self.ckpt_path))
        common = set(everyone[0]).intersection(*everyone[1:])
        return (None, None) if not common else read_state(self.ckpt_path, max(common))


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
    if learners > 1:
        common = set.intersection(*(set(state_iters(learner_folder(ckpt_path, k))) for k in range(learners)))
        if not common:
            return {}
        _, state = read_state(ckpt_path, max(common))
    return state['log_sizes']


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
