import pytest
import torch

import nervex
from nervex.rl_utils import (
    gae,
    gae_data,
    reverse_scan,
    rollout_nstep_data,
    rollout_nstep_return,
    vtrace_targets,
    vtrace_targets_data,
)

pytest.importorskip('numba')
SHAPES = [(1, 1), (2, 1), (5, 1), (2048, 1), (7, 3), (128, 8), (9, 100), (6,), (3, 2, 2)]


@pytest.fixture
def hpc(monkeypatch):
    return lambda on: monkeypatch.setattr(nervex, 'enable_hpc_rl', on)


def rollout(shape, dtype, kind):
    generator = torch.Generator().manual_seed(len(shape) + shape[0])
    value = torch.randn(shape[0] + 1, *shape[1:], generator=generator, dtype=dtype)
    reward, next_value = torch.randn(2, *shape, generator=generator, dtype=dtype)
    done, truncated = torch.rand(2, *shape, generator=generator) < 0.3
    if kind == 'plain':
        return value, reward, None, None, None
    if kind == 'bool':
        return value, reward, done, None, None
    if kind == 'float':
        return value, reward, done.to(dtype), None, None
    if kind == 'truncated':
        return value, reward, done, done & truncated, next_value
    return value[1:], reward, done.to(dtype), (done & truncated).to(dtype), next_value


@pytest.mark.parametrize('kind', ['plain', 'bool', 'float', 'truncated', 'all float'])
@pytest.mark.parametrize('shape', SHAPES)
def test_equal_to_plain_torch(shape, kind, hpc):
    for dtype in (torch.float32, torch.float64):
        fields = rollout(shape, dtype, kind)
        log_rho = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=dtype)
        jobs = [
            lambda fields=fields: gae(gae_data(*fields), 0.97, 0.9),
            lambda fields=fields: rollout_nstep_return(rollout_nstep_data(*fields), 0.97, 3),
            lambda fields=fields, log_rho=log_rho: torch.stack(
                vtrace_targets(vtrace_targets_data(log_rho, *fields), 0.97, 0.9, 1.5, 0.8, 0.7)
            ),
            *(
                lambda fields=fields, log_rho=log_rho, lambda_=lambda_: torch.stack(
                    vtrace_targets(vtrace_targets_data(log_rho, *fields), 0.97, lambda_, 1.2, 1.2, 1.2)
                )
                for lambda_ in (1.0, 0.9, 0.2)
            ),
        ]
        for job in jobs:
            hpc(False)
            expected = job()
            hpc(True)
            result = job()
            assert result.dtype is dtype and result.shape == expected.shape
            assert torch.allclose(result, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize('shape', SHAPES)
def test_scan_with_and_without_init_and_with_gradient(shape, hpc):
    generator = torch.Generator().manual_seed(1)
    a, b = torch.rand(2, *shape, generator=generator)
    init = torch.rand(shape[1:], generator=generator)
    for factors, start in ((a, None), (a, init), (0.9, None), (0.9, 2.0)):
        results = []
        for on in (False, True):
            hpc(on)
            terms = b.clone().requires_grad_()
            y = reverse_scan(factors, terms, start)
            (y**2).sum().backward()
            results.append((y.detach(), terms.grad))
        for plain, fast in zip(*results):
            assert torch.allclose(plain, fast, atol=1e-5, rtol=1e-5)


def test_the_kernels_really_answer(hpc, monkeypatch):
    from nervex.hpc_rl import kernels

    calls = []
    monkeypatch.setattr(kernels, 'gae', lambda *args: calls.append(args) or args[-1].fill(7.0))
    fields = gae_data(torch.zeros(3, 2), torch.zeros(2, 2))
    assert gae(fields).tolist() == [[0.0, 0.0], [0.0, 0.0]] and not calls
    hpc(True)
    assert gae(fields).tolist() == [[7.0, 7.0], [7.0, 7.0]] and len(calls) == 1
    gae(fields._replace(value=torch.zeros(3, 2, requires_grad=True)))
    assert len(calls) == 1  # a gradient is wanted: the ordinary way


def test_wrong_shapes_are_explained_as_without(hpc):
    hpc(True)
    with pytest.raises(ValueError, match='append the value'):
        gae(gae_data(torch.zeros(3, 1), torch.ones(3, 1)))


def test_memory_in_any_order(hpc):
    value, reward = torch.randn(4, 6).t(), torch.randn(4, 5).t()
    expected = gae(gae_data(value, reward))
    hpc(True)
    assert torch.allclose(gae(gae_data(value, reward)), expected, atol=1e-6)


def test_addresses_are_taken_of_what_fits_exactly():
    from functools import partial

    from nervex.hpc_rl import kernels
    from nervex.hpc_rl.operators import addressed as by_address

    addressed = partial(by_address, kernels.gae)
    value, reward, done = torch.zeros(5, 3), torch.zeros(4, 3), torch.zeros(4, 3, dtype=torch.bool)
    assert addressed(value, reward, done, None, None) is addressed(value, reward, done, None, None) is not None
    assert addressed(value.double(), reward.double(), done.double(), None, None) is not None
    learning = torch.zeros(5, 3, requires_grad=True)
    others = [
        (value, reward, None, None, None),
        (value, reward, done, done, reward),
        (value, reward, done, None, reward),
        (value[:4], reward, done, None, None),
        (value[:, :2], reward, done, None, None),
        (value, reward, done[:3], None, None),
        (value, reward, done.long(), None, None),
        (value, reward, done.double(), None, None),
        (value.double(), reward, done, None, None),
        (value.half(), reward.half(), done, None, None),
        (value.t().contiguous().t(), reward, done, None, None),
        (value, reward.t().contiguous().t(), done, None, None),
        (value, reward, done.t().contiguous().t(), None, None),
        (value[:1], reward[:0], done[:0], None, None),
        (value[:, :0], reward[:, :0], done[:, :0], None, None),
        (value[:, 0], reward[:, 0], done[:, 0], None, None),
        (learning, reward, done, None, None),
        (torch.zeros(5, 3, device='meta'), reward, done, None, None),
    ]
    assert [addressed(*fields) for fields in others] == [None] * len(others)
    with torch.no_grad():
        assert addressed(learning, reward, done, None, None) is not None


@pytest.mark.parametrize('turned', [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)])
def test_turned_memory_gives_the_same(turned, hpc):
    fields = rollout((6, 4), torch.float32, 'bool')[:3]
    seen = [field.t().contiguous().t() if turn else field for field, turn in zip(fields, turned)]
    hpc(True)
    assert torch.equal(gae(gae_data(*seen)), gae(gae_data(*fields)))


@pytest.mark.parametrize('place', [0, 1, 2])
def test_what_is_no_tensor_is_explained_as_without(place, hpc):
    fields = list(rollout((6, 4), torch.float32, 'bool')[:3])
    fields[place] = fields[place].numpy()
    hpc(True)
    with pytest.raises(TypeError, match='is a ndarray, expected a tensor'):
        gae(gae_data(*fields))
