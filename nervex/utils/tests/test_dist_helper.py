import json
import pathlib
import subprocess
import sys

import pytest
import torch
from torch import nn

import nervex
from nervex.torch_utils import Adam, FlatParameters
from nervex.utils import dist_helper
from nervex.utils.dist_helper import (
    DistContext,
    allreduce,
    allreduce_gradients,
    broadcast,
    dist_init,
    dist_mode,
    get_rank,
    get_world_size,
)

WORKER = """
import json, sys
import torch
from torch import nn
from nervex.torch_utils import Adam, FlatParameters, GraphedLoss
from nervex.utils.dist_helper import *

rank, folder = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
shares = [slice(0, 2), slice(2, 8)]   # uneven shards of a batch of 8
data = torch.load(folder + '/data.pt')
out = {}
with DistContext(backend='gloo', rank=rank, world_size=2, init_method='file://' + folder + '/store') as context:
    assert (get_rank(), get_world_size()) == (rank, 2) == (context.rank, context.world_size) == dist_init()
    for kind in ('flat', 'graph'):
        torch.manual_seed(rank)       # other weights on rank 1, until the broadcast
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1), nn.BatchNorm1d(1).eval())
        flat = FlatParameters(net)
        broadcast(flat.data)
        opt = Adam(flat, lr=0.1)
        loss_fn = lambda b: net(b['x']).pow(2).mean()
        update = GraphedLoss(loss_fn, flat, 'ts') if kind == 'graph' else None
        for x in data[:, shares[rank]]:
            if kind == 'flat':
                flat.gradient(loss_fn({'x': x}))
            else:
                update({'x': x})
            allreduce_gradients(flat, weight=len(x))
            opt.apply()
        out[kind] = torch.cat([p.detach().reshape(-1) for p in net.parameters()]).tolist()
    out['sum'] = allreduce(torch.tensor([rank + 1, 10]), 'sum').tolist()
    out['mean'] = allreduce(torch.tensor([float(rank)])).tolist()
    out['max'] = allreduce(torch.tensor([rank]), 'max').item()
    out['broadcast'] = broadcast(torch.tensor([float(rank)]), src=1).item()
    try:
        allreduce(torch.tensor([1]))
    except TypeError as e:
        out['error'] = str(e)
    # a layer that only rank 1 uses, and one that nobody uses
    layers = nn.ModuleList([nn.Linear(1, 1, bias=False) for _ in range(3)])
    flat = FlatParameters(layers)
    flat.data.fill_(1.)
    flat.gradient(layers[0](torch.ones(1, 1)).sum() + (layers[1](torch.ones(1, 1)).sum() if rank else 0.))
    allreduce_gradients(flat)
    out['unused'] = [flat.grad.tolist(), list(flat.unused)]
assert get_world_size() == 1
json.dump(out, open(f'{folder}/out{rank}.json', 'w'))
"""


@pytest.fixture(scope='module')
def two_processes(tmp_path_factory):
    folder = tmp_path_factory.mktemp('dist')
    torch.save(torch.randn(6, 8, 3, generator=torch.Generator().manual_seed(0)), folder / 'data.pt')
    root = str(pathlib.Path(nervex.__file__).parents[1])
    commands = [[sys.executable, '-c', WORKER, str(r), str(folder)] for r in (0, 1)]
    running = [subprocess.Popen(c, cwd=root, stderr=subprocess.PIPE, text=True) for c in commands]
    errors = [p.communicate(timeout=120)[1] for p in running]
    assert [p.returncode for p in running] == [0, 0], errors
    return folder, [json.loads((folder / f'out{r}.json').read_text()) for r in (0, 1)]


@pytest.mark.slow
@pytest.mark.parametrize('kind', ['flat', 'graph'])
def test_two_processes_make_the_update_of_one_on_the_joined_batch(two_processes, kind):
    folder, found = two_processes
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1), nn.BatchNorm1d(1).eval())
    opt = Adam(FlatParameters(net), lr=0.1)
    for x in torch.load(folder / 'data.pt'):
        opt.minimize(net(x).pow(2).mean())
    expected = torch.cat([p.detach().reshape(-1) for p in net.parameters()])
    assert found[0][kind] == found[1][kind]
    assert torch.allclose(torch.tensor(found[0][kind]), expected, atol=1e-5)


@pytest.mark.slow
def test_operations_over_two_processes(two_processes):
    for out in two_processes[1]:
        assert (out['sum'], out['mean'], out['max'], out['broadcast']) == ([3, 20], [0.5], 1, 1.0)
        assert "op='sum'" in out['error']


@pytest.mark.slow
def test_parameter_is_unused_only_if_no_process_used_it(two_processes):
    for out in two_processes[1]:
        assert out['unused'] == [[1.0, 0.5, 0.0], [2]]


def test_one_process_needs_no_group():
    x = torch.tensor([3.0])
    assert (get_rank(), get_world_size()) == (0, 1)
    assert allreduce(x) is x and broadcast(x) is x and x.item() == 3.0
    net = nn.Linear(1, 1)
    flat = FlatParameters(net)
    flat.gradient(net(torch.ones(1, 1)).sum())
    allreduce_gradients(flat)
    assert flat.grad.tolist() == [1.0, 1.0]


def test_group_of_one_works_and_ends_after_an_error(tmp_path):
    context = DistContext(backend='gloo', rank=0, world_size=1, init_method=f'file://{tmp_path}/store')
    with pytest.raises(RuntimeError, match='boom'), context:
        assert dist_helper.is_distributed() and dist_init() == (0, 1)
        raise RuntimeError('boom')
    assert not dist_helper.is_distributed()


def test_environment_of_torchrun_is_read(monkeypatch, tmp_path):
    from nervex.utils.system_helper import find_free_port

    settings = {'RANK': '0', 'WORLD_SIZE': '1', 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(find_free_port())}
    for k, v in settings.items():
        monkeypatch.setenv(k, v)
    assert dist_mode(lambda: (get_rank(), get_world_size(), dist_helper.is_distributed()))() == (0, 1, True)
    assert not dist_helper.is_distributed()


def test_missing_and_wrong_settings_are_named(monkeypatch):
    for name in ('RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'SLURM_PROCID', 'SLURM_NTASKS', 'SLURM_NODELIST'):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match=r'rank is not given .*torchrun'):
        dist_init('gloo')
    with pytest.raises(ValueError, match='rank 2 of 2'):
        dist_init('gloo', rank=2, world_size=2)
    with pytest.raises(ValueError, match='MASTER_ADDR'):
        dist_init('gloo', rank=0, world_size=1)
    with pytest.raises(ValueError, match="got 'average'"):
        allreduce(torch.ones(1), 'average')
