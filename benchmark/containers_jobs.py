"""The operations of the container benchmark for each container."""

from collections.abc import Callable
from typing import Any

import numpy as np
from clock import Clock

CASES = ['create8', 'index256', 'stack64', 'split8x256', 'get', 'attribute']
NAMES = ('obs', 'next_obs', 'action', 'reward', 'done', 'value', 'logit', 'weight')


def _arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=(256, 4)).astype(np.float32) for name in NAMES}


def _cases(jobs: dict[str, Callable[[], Any]]) -> dict:
    return {name: lambda clock, job=job: _repeat(clock, job) for name, job in jobs.items()}


def _repeat(clock: Clock, job: Callable[[], Any]) -> int:
    return clock.repeat(job)


def _jobs(create: Callable, index: Callable, stack: Callable, split: Callable, row: Callable, attribute: bool) -> dict:
    arrays = _arrays()
    whole, chosen = create(arrays), np.random.default_rng(1).integers(0, 256, 256)
    rows = [row(whole, k) for k in range(64)]
    jobs = {
        'create8': lambda: create(arrays),
        'index256': lambda: index(whole, chosen),
        'stack64': lambda: stack(rows),
        'split8x256': lambda: split(whole),
        'get': lambda: whole['obs'],
    }
    if attribute:
        jobs['attribute'] = lambda: whole.obs
    return _cases(jobs)


def nervex_batch() -> dict:
    from nervex.data import Batch

    return _jobs(Batch, lambda b, i: b[i], Batch.stack, lambda b: list(b.split(32)), lambda b, k: b[k], True)


def dict_of_arrays() -> dict:
    return _jobs(
        dict,
        lambda b, i: {k: v[i] for k, v in b.items()},
        lambda rows: {k: np.stack([row[k] for row in rows]) for k in rows[0]},
        lambda b: [{k: v[s : s + 32] for k, v in b.items()} for s in range(0, 256, 32)],
        lambda b, n: {k: v[n] for k, v in b.items()},
        False,
    )


def dict_of_tensors() -> dict:
    import torch

    def index(b: dict, i: Any) -> dict:
        i = torch.from_numpy(i)
        return {k: v[i] for k, v in b.items()}

    return _jobs(
        lambda arrays: {k: torch.from_numpy(v) for k, v in arrays.items()},
        index,
        lambda rows: {k: torch.stack([row[k] for row in rows]) for k in rows[0]},
        lambda b: [{k: v[s : s + 32] for k, v in b.items()} for s in range(0, 256, 32)],
        lambda b, n: {k: v[n] for k, v in b.items()},
        False,
    )


def tianshou_batch() -> dict:
    from tianshou.data import Batch

    return _jobs(
        lambda a: Batch(**a),
        lambda b, i: b[i],
        Batch.stack,
        lambda b: list(b.split(32, shuffle=False)),
        lambda b, k: b[k],
        True,
    )


def tensordict() -> dict:
    import torch
    from tensordict import TensorDict

    return _jobs(
        lambda a: TensorDict({k: torch.from_numpy(v) for k, v in a.items()}, [256]),
        lambda b, i: b[torch.from_numpy(i)],
        torch.stack,
        lambda b: b.split(32),
        lambda b, k: b[k],
        False,
    )
