"""A loss moves what it is to move, and nothing that only says where to."""

import pytest
import torch

from nervex.rl_utils import (
    a2c_data,
    a2c_error,
    coma_data,
    coma_error,
    ppg_data,
    ppg_joint_error,
    ppo_data,
    ppo_error,
    ppo_error_continuous,
    td_lambda_data,
    td_lambda_error,
    upgo_loss,
    vtrace_data,
    vtrace_error,
)

T, B, A, N = 3, 2, 2, 4


def leaf(*shape):
    return torch.rand(*shape).add(0.1).requires_grad_()


def action(*shape):
    return torch.zeros(shape, dtype=torch.long)


def total(result):
    if isinstance(result, torch.Tensor):
        return result
    return sum(result[0] if isinstance(result[0], tuple) else result)


# loss, its data, and the fields that learn
CASES = {
    'a2c': (a2c_error, a2c_data(leaf(B, N), action(B), leaf(B), leaf(B), leaf(B), None), {'logit', 'value'}),
    'ppo': (
        ppo_error,
        ppo_data(leaf(B, N), leaf(B, N), action(B), leaf(B), leaf(B), leaf(B), leaf(B), None),
        {'logit_new', 'value_new'},
    ),
    'ppo continuous': (
        ppo_error_continuous,
        ppo_data(
            torch.stack([leaf(B, 2), leaf(B, 2)]).detach().requires_grad_(),
            torch.rand(2, B, 2) + 0.1,
            torch.rand(B, 2),
            leaf(B),
            leaf(B),
            leaf(B),
            leaf(B),
            None,
        ),
        {'logit_new', 'value_new'},
    ),
    'ppg': (
        ppg_joint_error,
        ppg_data(leaf(B, N), leaf(B, N), action(B), leaf(B), leaf(B), leaf(B), None),
        {'logit_new', 'value_new'},
    ),
    'coma': (
        lambda data: coma_error(data, 0.9, 0.8),
        coma_data(leaf(T, B, A, N), action(T, B, A), leaf(T, B, A, N), leaf(T, B, A, N), leaf(T, B), None),
        {'logit', 'q_value'},
    ),
    'td_lambda': (td_lambda_error, td_lambda_data(leaf(T + 1, B), leaf(T, B), None, None, None, leaf(T, B)), {'value'}),
    'vtrace': (
        vtrace_error,
        vtrace_data(leaf(T, B, N), leaf(T, B, N), action(T, B), leaf(T + 1, B), leaf(T, B), None),
        {'target_output', 'value'},
    ),
}


@pytest.mark.parametrize('name', CASES)
def test_only_what_learns_gets_a_gradient(name):
    loss, data, learning = CASES[name]
    total(loss(data)).backward()
    moved = {field for field, value in zip(data._fields, data) if getattr(value, 'grad', None) is not None}
    assert moved == learning


def test_upgo_moves_the_policy_alone():
    target, others = leaf(T, B, N), [leaf(T, B), leaf(T, B), leaf(T + 1, B)]
    rhos, rewards, values = others
    upgo_loss(target, rhos, action(T, B), rewards, values).backward()
    assert target.grad is not None and all(tensor.grad is None for tensor in others)
