import math

import numpy as np
import pytest
import torch

from nervex.rl_utils import (
    compute_importance_weights,
    tb_cross_entropy,
    upgo_loss,
    upgo_returns,
    vtrace_data,
    vtrace_error,
    vtrace_targets,
    vtrace_targets_data,
)
from nervex.rl_utils.checks import ShapeError
from nervex.rl_utils.tests import references as ref

LOG2 = math.log(2.0)


def column(*numbers):
    return torch.tensor(numbers).reshape(-1, 1)


def test_importance_weights_by_hand():
    # (2/3, 1/3) against (1/2, 1/2)
    target, behaviour = torch.tensor([[[LOG2, 0.0], [LOG2, 0.0]]], requires_grad=True), torch.zeros(1, 2, 2)
    weights = compute_importance_weights(target, behaviour, torch.tensor([[0, 1]]))
    assert weights.tolist()[0] == pytest.approx([4 / 3, 2 / 3]) and not weights.requires_grad
    assert compute_importance_weights(target, behaviour, torch.tensor([[0, 1]]), requires_grad=True).requires_grad
    pair = (torch.zeros(1, 1, 1), torch.ones(1, 1, 1))
    assert compute_importance_weights(pair, pair, torch.ones(1, 1, 1), continuous=True).item() == 1.0


@pytest.mark.parametrize('lambda_', [1.0, 0.95, 0.5, 0.3, 0.0])
@pytest.mark.parametrize('ended', [True, False])
def test_equal_clips_give_the_targets_and_advantages_of_the_definition(lambda_, ended):
    generator = torch.Generator().manual_seed(0)
    log_rho, reward = torch.randn(2, 9, 3, generator=generator, dtype=torch.float64)
    value = torch.randn(10, 3, generator=generator, dtype=torch.float64)
    done = torch.rand(9, 3, generator=generator) < 0.2 if ended else None
    found = vtrace_targets(vtrace_targets_data(log_rho, value, reward, done), 0.9, lambda_, 1.1, 1.1, 1.1)
    table = ref.steps_of(value.numpy(), reward.numpy(), None if done is None else done.numpy())
    expected = ref.vtrace(log_rho.exp().numpy(), table, 0.9, lambda_, 1.1, 1.1, 1.1)
    for tensor, array in zip(found, expected):
        assert np.allclose(tensor.numpy(), array, atol=1e-12)


def test_vtrace_on_policy_is_the_lambda_return():
    # rho = 1, gamma .5, lambda 1, V = 1, 2, 4, r = 1: vs1 = 1 + 2 = 3; vs0 = 1 + .5 * 3 = 2.5; adv 1 + .5 vs' - V
    data = vtrace_targets_data(torch.zeros(2, 1), column(1.0, 2.0, 4.0), torch.ones(2, 1))
    vs, adv = vtrace_targets(data, 0.5, 1.0)
    assert vs[:, 0].tolist() == [2.5, 3.0] and adv[:, 0].tolist() == [1.5, 1.0]


def test_vtrace_clips_by_hand():
    # rho = 2: clipped to 1.5 in the errors, 1 in the trace, .5 in the gradient; gamma .5, lambda 1
    # d1 = 1.5 (1 + 2 - 2) = 1.5, vs1 = 3.5; d0 = 1.5 (1 + 1 - 1) = 1.5, vs0 = 1 + 1.5 + .5 * 1.5 = 3.25
    data = vtrace_targets_data(torch.full((2, 1), LOG2), column(1.0, 2.0, 4.0), torch.ones(2, 1))
    vs, adv = vtrace_targets(data, 0.5, 1.0, 1.5, 1.0, 0.5)
    assert vs[:, 0].tolist() == [3.25, 3.5]
    assert adv[:, 0].tolist() == [0.5 * (1 + 0.5 * 3.5 - 1), 0.5 * (1 + 0.5 * 4 - 2)]


def test_vtrace_stops_at_an_end_and_bootstraps_at_a_time_limit():
    value, reward, done = column(1.0, 2.0, 4.0), torch.ones(2, 1), torch.tensor([[True], [False]])
    vs, adv = vtrace_targets(vtrace_targets_data(torch.zeros(2, 1), value, reward, done), 0.5, 1.0)
    assert vs[:, 0].tolist() == [1.0, 3.0] and adv[:, 0].tolist() == [0.0, 1.0]
    data = vtrace_targets_data(torch.zeros(2, 1), value, reward, done, done, column(6.0, 4.0))
    vs, adv = vtrace_targets(data, 0.5, 1.0)
    assert vs[:, 0].tolist() == [4.0, 3.0] and adv[:, 0].tolist() == [3.0, 1.0]


def test_vtrace_losses_by_hand():
    # one step, uniform policies: vs = 1 + .5 * 4 = 3, V = 1, adv = 2: policy 2 log 2, value 4, entropy log 2
    logit = torch.zeros(1, 1, 2, requires_grad=True)
    value = column(1.0, 4.0).requires_grad_()
    loss = vtrace_error(vtrace_data(logit, logit, torch.tensor([[0]]), value, torch.ones(1, 1), None), 0.5)
    assert [x.item() for x in loss] == pytest.approx([2 * LOG2, 4.0, LOG2])
    sum(loss).backward()
    assert value.grad[:, 0].tolist() == [-4.0, 0.0]  # targets hold no gradient
    with pytest.raises(ShapeError, match='reward has shape'):
        vtrace_error(vtrace_data(logit, logit, torch.tensor([[0]]), value, torch.ones(1), None))


def test_upgo_by_hand():
    # V = 1, 2, 4, 8; r = 1, 1, -9: step 1 promises 1 + 4 >= 2, step 2 breaks it: -9 + 8 < 4
    # G2 = -9 + 8 = -1; G1 = 1 + V2 = 5, for step 2 fell short; G0 = 1 + G1 = 6
    value, reward = column(1.0, 2.0, 4.0, 8.0), column(1.0, 1.0, -9.0)
    assert upgo_returns(reward, value)[:, 0].tolist() == [6.0, 5.0, -1.0]
    done = torch.tensor([[False], [True], [False]])
    assert upgo_returns(reward, value, done=done)[:, 0].tolist() == [3.0, 1.0, -1.0]  # step 1 falls short: 1 < 2
    # loss: uniform policy of 2, rho .5: mean of .5 (G - V) log 2 = .5 (5 + 3 - 5) / 3 log 2
    loss = upgo_loss(torch.zeros(3, 1, 2), torch.full((3, 1), 0.5), torch.zeros(3, 1, dtype=torch.long), reward, value)
    assert loss.item() == pytest.approx(0.5 * LOG2)


def test_log_probability_of_several_actions_with_a_mask():
    logit, label = torch.zeros(1, 1, 3, 2), torch.zeros(1, 1, 3, dtype=torch.long)
    assert tb_cross_entropy(logit, label).item() == pytest.approx(-3 * LOG2)
    assert tb_cross_entropy(logit, label, torch.tensor([[[1.0, 0.0, 1.0]]])).item() == pytest.approx(-2 * LOG2)
    assert tb_cross_entropy(logit[0], label[0]).shape == (1, 3)
    with pytest.raises(ShapeError, match='label has shape'):
        tb_cross_entropy(torch.zeros(1, 2), torch.zeros(1, dtype=torch.long))
