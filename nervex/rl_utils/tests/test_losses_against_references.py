"""Every operator against its slow reference: shapes, dtypes, kinds of done, weights, gradients."""

import pytest
import torch

import nervex
from nervex.rl_utils.tests import cases_policies, cases_values
from nervex.rl_utils.tests.cases import CASES, Draw

assert cases_policies and cases_values  # importing them fills the table
SHAPES = [(1, 1, 2), (1, 4, 3), (2, 1, 2), (4, 3, 5), (9, 6, 4)]  # T, B, N: T of one and batch of one among them
FUSED = [
    'gae',
    'gae_with_time_limits',
    'rollout_nstep_return',
    'vtrace_error',
    'td_lambda_error',
    'upgo_loss',
    'coma_error',
]
TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-4}


def outputs(result):
    return [result] if isinstance(result, torch.Tensor) else list(result)


@pytest.mark.parametrize('dtype', [torch.float64, torch.float32])
@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize('name', CASES)
def test_equal_to_the_reference(name, shape, dtype):
    for seed in range(3):
        for weighted in (True, False):
            case = CASES[name](Draw(*shape, dtype, float_done=seed == 1, weighted=weighted, seed=seed))
            results = outputs(case.call(*case.inputs))
            assert len(results) == len(case.expected)
            for result, expected in zip(results, case.expected):
                expected = torch.as_tensor(expected, dtype=torch.float64)
                assert result.dtype is dtype and result.shape == expected.shape
                tolerance = TOLERANCE[dtype]
                assert torch.allclose(result.double(), expected, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize('name', CASES)
def test_done_as_bool_and_as_float_are_the_same(name):
    draws = [Draw(4, 3, 5, torch.float64, float_done=float_done, seed=5) for float_done in (False, True)]
    first, second = (CASES[name](draw) for draw in draws)
    for one, other in zip(outputs(first.call(*first.inputs)), outputs(second.call(*second.inputs))):
        assert torch.equal(one, other)


@pytest.mark.parametrize('shape', [(1, 1, 2), (3, 2, 3)])
@pytest.mark.parametrize('name', CASES)
def test_gradient(name, shape):
    case = CASES[name](Draw(*shape, torch.float64, seed=7))
    inputs = [x.clone().requires_grad_() for x in case.inputs]
    if case.surrogate is not None:
        for result, expected in zip(outputs(case.call(*inputs)), outputs(case.surrogate(*inputs))):
            gradients = [
                torch.autograd.grad(y, inputs, retain_graph=True, allow_unused=True, materialize_grads=True)
                for y in (result, expected)
            ]
            assert all(torch.allclose(x, y, atol=1e-9) for x, y in zip(*gradients))
        return

    def differentiable(*inputs):
        return tuple(x for x in outputs(case.call(*inputs)) if x.requires_grad)

    assert torch.autograd.gradcheck(differentiable, inputs, atol=1e-6)


@pytest.mark.parametrize('name', CASES)
def test_inputs_keep_their_values(name):
    case = CASES[name](Draw(4, 3, 5, torch.float32, seed=3))
    before = [x.clone() for x in case.inputs]
    case.call(*case.inputs)
    assert all(torch.equal(x, y) for x, y in zip(case.inputs, before))


@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize('name', FUSED)
def test_equal_to_the_reference_with_fused_kernels(name, shape, monkeypatch):
    pytest.importorskip('numba')
    monkeypatch.setattr(nervex, 'enable_hpc_rl', True)
    for dtype, tolerance in TOLERANCE.items():
        case = CASES[name](Draw(*shape, dtype, seed=11))
        for result, expected in zip(outputs(case.call(*case.inputs)), case.expected):
            expected = torch.as_tensor(expected, dtype=torch.float64)
            assert torch.allclose(result.double(), expected, atol=tolerance, rtol=tolerance)
