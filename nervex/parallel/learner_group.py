"""Several learners as one: they meet, agree on how many updates there are, and fall together."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import torch

from nervex.parallel.carrier import RoleDiedError
from nervex.parallel.role import RoleSpec
from nervex.parallel.saved_states import learner_folder
from nervex.run.state import newest_state, read_state, state_iters
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

    def agree(self, count: int | None) -> int | None:
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
                raise RoleDiedError(f'another learner is gone: {str(e).splitlines()[0][:120]}') from e
            raise

    def common_state(self) -> tuple[str | None, dict[str, Any] | None]:
        """The newest saved state that all learners have."""
        if self.count == 1:
            return newest_state(self.ckpt_path)
        mine: list[Any] = state_iters(self.ckpt_path)
        everyone: list[Any] = [None] * self.count
        torch.distributed.all_gather_object(everyone, mine)
        common = set(everyone[0]).intersection(*everyone[1:])
        return (None, None) if not common else read_state(self.ckpt_path, max(common))


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
