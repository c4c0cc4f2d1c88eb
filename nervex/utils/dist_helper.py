"""Several learner processes as one: torch.distributed with the few operations that training needs."""

import datetime
import gc
import logging
import os
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

import torch
import torch.distributed as dist

logger = logging.getLogger(__name__)


def get_rank() -> int:
    """Number of this process, 0 where nothing is distributed."""
    return dist.get_rank() if is_distributed() else 0


def get_world_size() -> int:
    """How many processes train together, 1 where nothing is distributed."""
    return dist.get_world_size() if is_distributed() else 1


def is_distributed() -> bool:
    """Whether a process group is up."""
    return dist.is_available() and dist.is_initialized()


def dist_init(
    backend: str | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    init_method: str | None = None,
    timeout_s: float = 600.0,
) -> tuple[int, int]:
    """
    Overview:
        Join the process group. What is not given comes from the environment: that of ``torchrun`` (RANK, WORLD_SIZE,
        MASTER_ADDR, MASTER_PORT) or of slurm.
    Arguments:
        - backend (:obj:`str | None`): 'gloo' (CPU) or 'nccl' (GPU); None takes nccl where there is a GPU
        - init_method (:obj:`str | None`): e.g. ``'tcp://10.0.0.1:29500'`` or ``'file:///shared/path'``
        - timeout_s (:obj:`float`): how long one operation waits for the other processes before it fails
    Returns:
        - rank, world_size (:obj:`tuple[int, int]`): of this process and in all
    """
    if is_distributed():
        return get_rank(), get_world_size()
    rank = _from_environment('rank', rank, ('RANK', 'SLURM_PROCID'))
    world_size = _from_environment('world_size', world_size, ('WORLD_SIZE', 'SLURM_NTASKS'))
    if not 0 <= rank < world_size:
        raise ValueError(f'rank must be in [0, world_size), got rank {rank} of {world_size}')
    if init_method is None:
        _set_master_from_slurm()
        init_method = 'env://'
    backend = backend or ('nccl' if torch.cuda.is_available() else 'gloo')
    if backend == 'nccl':
        torch.cuda.set_device(int(os.environ.get('LOCAL_RANK', rank)) % torch.cuda.device_count())
    timeout = datetime.timedelta(seconds=timeout_s)
    dist.init_process_group(backend, init_method=init_method, rank=rank, world_size=world_size, timeout=timeout)
    logger.info('process %d of %d, %s', rank, world_size, backend)
    return rank, world_size


def dist_finalize() -> None:
    """
    Overview:
        Leave the process group, if there is one. Its threads end here too: one that still lets go of a tensor while the
        interpreter ends would abort the process.
    """
    if is_distributed():
        dist.destroy_process_group()
        gc.collect()


class DistContext(ContextDecorator):
    """
    Overview:
        ``with DistContext():`` joins the process group and leaves it at the end, whatever happens. Arguments as
        ``dist_init``.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs

    def __enter__(self) -> 'DistContext':
        self.rank, self.world_size = dist_init(**self._kwargs)
        return self

    def __exit__(self, *exc: object) -> None:
        dist_finalize()


def dist_mode(function: Callable) -> Callable:
    """Run a function inside a DistContext."""
    return DistContext()(function)


def allreduce(x: torch.Tensor, op: str = 'mean') -> torch.Tensor:
    """Combine a tensor over all processes, in place, by 'mean', 'sum', 'max' or 'min'."""
    ops = {'mean': dist.ReduceOp.SUM, 'sum': dist.ReduceOp.SUM, 'max': dist.ReduceOp.MAX, 'min': dist.ReduceOp.MIN}
    if op not in ops:
        raise ValueError(f'op must be one of {", ".join(ops)}, got {op!r}')
    if get_world_size() > 1:
        if op == 'mean' and not x.is_floating_point():
            raise TypeError(f"the mean of {x.dtype} numbers is not one; use op='sum' or convert to float first")
        dist.all_reduce(x, ops[op])
        if op == 'mean':
            x.div_(get_world_size())
    return x


def broadcast(x: torch.Tensor, src: int = 0) -> torch.Tensor:
    """Give every process the tensor of process ``src``, in place."""
    if get_world_size() > 1:
        dist.broadcast(x, src)
    return x


@torch.no_grad()
def allreduce_gradients(flat: Any, weight: float = 1.0) -> None:
    """
    Overview:
        Average the gradient over all processes, in one message. With mean losses over shards of a batch and the
        shard's length as weight, this is the gradient of the joined batch. A parameter counts as unused only if no
        process used it.
    Arguments:
        - flat (:obj:`FlatParameters`): whose ``grad`` and ``unused`` are replaced
        - weight (:obj:`float`): of this process, e.g. its number of samples
    """
    if get_world_size() == 1:
        return
    tail = [weight] + [float(i not in flat.unused) for i in range(len(flat.params))]
    message = torch.cat([flat.grad * weight, flat.grad.new_tensor(tail)])
    dist.all_reduce(message)
    size = flat.grad.numel()
    flat.grad = message[:size] / message[size]
    flat.unused = tuple(i for i, used in enumerate(message[size + 1 :].tolist()) if used == 0.0)


def _from_environment(what: str, given: int | None, names: tuple[str, ...]) -> int:
    found = given if given is not None else next((os.environ[name] for name in names if name in os.environ), None)
    if found is None:
        raise ValueError(
            f'{what} is not given and none of {", ".join(names)} is set; start by torchrun or slurm, or pass {what}='
        )
    return int(found)


def _set_master_from_slurm() -> None:
    if 'MASTER_ADDR' not in os.environ and 'SLURM_NODELIST' in os.environ:
        from nervex.utils.slurm_helper import node_list

        os.environ['MASTER_ADDR'] = node_list(os.environ['SLURM_NODELIST'])[0]
    os.environ.setdefault('MASTER_PORT', '29500')
    if 'MASTER_ADDR' not in os.environ:
        raise ValueError('MASTER_ADDR is not set; start by torchrun or slurm, or pass init_method=')
