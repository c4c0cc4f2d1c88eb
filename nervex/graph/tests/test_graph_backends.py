import logging
import math

import pytest
import torch
from torch import nn

from nervex.graph.program import trace
from nervex.graph.script import compile_script, write_gradient_in_place
from nervex.torch_utils import FlatParameters, GraphedLoss


def test_simplified_program_is_short_and_equal():
    weight = nn.Parameter(torch.randn(3, 4))
    x = torch.randn(5, 4)

    def step(x):
        loss = (x @ weight.t()).pow(2).mean()
        return [torch.autograd.grad(loss, weight)[0], loss.detach()]

    program = trace(step, [x])
    names = [call.name for call in program.calls]
    # the transposed weight and the seed of the backward pass (ones, expand, div) are computed once; pow(x, 1) is x
    assert names == ['mm', 'pow', 'mean', 'mul', 'mul', 't', 'mm']
    assert all(torch.equal(a, b) for a, b in zip(compile_script(program)(x), step(x)))


def test_updates_of_constants_in_place_are_seen_through_views():
    weight = torch.ones(2, 3)
    run = compile_script(trace(lambda x: [x @ weight.t()], [torch.ones(1, 3)]))
    weight.mul_(5.0)
    assert run(torch.ones(1, 3))[0].tolist() == [[15.0, 15.0]]


def test_memory_that_is_written_to_is_not_computed_in_advance():
    def step(x):
        total = torch.zeros(2)
        total.add_(x)
        same = total.pow(1.0)
        total.add_(x)
        return [total, same]

    x = torch.tensor([1.0, 2.0])
    run = compile_script(trace(step, [x]))
    for _ in range(3):
        assert [r.tolist() for r in run(x)] == [[2.0, 4.0], [1.0, 2.0]]


def test_in_place_gradient_has_the_bits_of_the_joined_one():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 7), nn.Linear(7, 1))
    params, x = list(net.parameters()), torch.randn(3, 1, 6, 6)

    def step(x):
        loss = net(x).pow(2).mean()
        return [torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, params)]), loss.detach()]

    program = trace(step, [x])
    shorter = write_gradient_in_place(program)
    assert 'cat' not in [c.name for c in shorter.calls]
    assert torch.equal(compile_script(program)(x)[0], step(x)[0])


LITERALS = {
    'none, bool, int list': lambda x: x.sum([0, 1], keepdim=True) + x.mean((0,), dtype=None),
    'float for int': lambda x: torch.nn.functional.softplus(x, 1, 20),
    'string': lambda x: torch.div(x, 3.0, rounding_mode='floor') + torch.nn.functional.gelu(x, approximate='tanh'),
    'dtype and device': lambda x: x.to(torch.float64).float() + torch.full((2,), 2.0, dtype=torch.float, device='cpu'),
    'optional tensors': lambda x: torch.nn.functional.layer_norm(x, (2,)),
    'several results': lambda x: torch.cat([x.max(1).values, x.topk(1, 1)[0].reshape(-1), *x.split(1)[0].unbind(1)]),
    'tensor list': lambda x: torch.stack([x, x * 2]).cumsum(0),
    'index list': lambda x: x[torch.tensor([1, 0]), torch.tensor([0, 0])] + x[:, torch.tensor([1])].squeeze(),
    'negative and huge numbers': lambda x: x.clamp(-1e-8, 1e30) * -3 + x.masked_fill(x > 0, float('-inf')).exp(),
    'infinities': lambda x: x.masked_fill(x > 3, math.inf).masked_fill(x < 0, -math.inf).clamp(-9, math.inf),
    'keyword arguments': lambda x: torch.add(x, x, alpha=3) + torch.std(x, 0, correction=0),
    'bool results': lambda x: torch.where((x > 0) & (x < 2), x, -x),
}


@pytest.mark.parametrize('name', list(LITERALS))
def test_all_kinds_of_arguments(name):
    x = torch.tensor([[1.0, 4.0], [-2.0, 0.5]])
    run = compile_script(trace(lambda x: [LITERALS[name](x)], [x]))
    for value in (x, x * 2, -x):
        assert torch.equal(run(value)[0], LITERALS[name](value))


def test_an_input_may_be_an_output_and_be_given_twice():
    x, y = torch.ones(2), torch.zeros(2)
    run = compile_script(trace(lambda a, b: [a, a + b, a], [x, y]))
    assert [r.tolist() for r in run(y, y)] == [[0.0, 0.0]] * 3


def square_loss(net):
    return lambda b: net(b['x']).pow(2).mean()


def test_a_program_that_torchscript_refuses_runs_in_eager_mode(monkeypatch, caplog):
    def refuse(*_):
        raise RuntimeError('no such function')

    monkeypatch.setattr(torch._C, '_create_function_from_graph', refuse)
    net = nn.Linear(3, 2)
    update = GraphedLoss(square_loss(net), FlatParameters(net))
    batch = {'x': torch.randn(4, 3)}
    with caplog.at_level(logging.WARNING):
        assert update(batch)[0] == square_loss(net)(batch)
    assert 'TorchScript refuses the program: no such function' in caplog.text and update.backend == 'off'


def test_the_program_does_not_depend_on_the_batch_that_it_was_recorded_with():
    """A resumed run records with another batch than the run that it continues, and must round alike."""
    torch.manual_seed(0)
    body, value, advantage = nn.Linear(4, 33), nn.Linear(33, 1), nn.Linear(33, 2)
    params = [p for part in (body, value, advantage) for p in part.parameters()]

    def step(x):
        hidden = body(x).relu()
        loss = (value(hidden) + advantage(hidden)).mul(0.3).pow(2).mean()
        return [torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, params)]), loss.detach()]

    sources = set()
    for scale in [0.0, *torch.logspace(-8, 8, 30).tolist()]:
        x = torch.randn(64, 4) * scale
        sources.add(compile_script(trace(step, [x])).source)
    assert len(sources) == 1


def test_torchscript_draws_from_the_generators_that_the_loss_was_given():
    model, generator = torch.nn.Linear(3, 2), torch.Generator()
    flat = FlatParameters(model)

    def loss_fn(batch):
        noise = torch.randn(batch['x'].shape, generator=generator)
        return model(batch['x'] + noise).pow(2).mean(), {'noise': noise.mean()}

    found = {}
    for backend in ('off', 'ts'):
        generator.manual_seed(3)
        update = GraphedLoss(loss_fn, flat, backend)
        runs = [update({'x': torch.ones(5, 3)}) for _ in range(5)]
        found[backend] = [(loss.item(), aux['noise'].item()) for loss, aux in runs]
    assert found['ts'] == found['off'] and 'Generator' in update._last.run.source
