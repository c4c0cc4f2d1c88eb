import math

import pytest
import torch

from nervex.rl_utils import (
    generalized_lambda_returns,
    multi_discrete_td_error,
    q_1step_td_data,
    q_1step_td_error,
    q_nstep_td_data,
    q_nstep_td_error_with_rescale,
    rollout_nstep_data,
    rollout_nstep_return,
    soft_q_nstep_td_data,
    soft_q_nstep_td_error,
    soft_value,
    td_lambda_data,
    td_lambda_error,
    v_1step_td_data,
    v_1step_td_error,
    v_nstep_td_data,
    v_nstep_td_error,
    value_inv_transform,
    value_transform,
)
from nervex.rl_utils.checks import ShapeError


def column(*numbers):
    return torch.tensor(numbers).reshape(-1, 1)


def test_state_values_by_hand():
    # targets 1 + .5 * 4 = 3 and 1 (done); v is 2: errors 1 and -1
    done = torch.tensor([False, True])
    data = v_1step_td_data(torch.full((2,), 2.0), torch.full((2,), 4.0), torch.ones(2), done, None)
    loss, error = v_1step_td_error(data, 0.5)
    assert loss.item() == 1.0 and error.tolist() == [1.0, -1.0]
    # two steps: 1 + .5 + .25 * 4 = 2.5 and 1.5: errors .5 and -.5; the field value_gamma may be left out
    data = v_nstep_td_data(data.v, data.next_v, torch.ones(2, 2), data.done, torch.tensor([1.0, 3.0]))
    loss, error = v_nstep_td_error(data, 0.5, nstep=2)
    assert loss.item() == (0.25 + 3 * 0.25) / 2 and error.tolist() == [0.5, -0.5]


def test_state_values_of_several_agents():
    v = torch.zeros(3, 2, 4)
    assert v_1step_td_error(v_1step_td_data(v, v, v + 1, None, None), 0.9).td_error_per_sample.shape == (3, 2, 4)


def test_rescaled_target_by_hand():
    # eps 0 would be sqrt; here with the documented 1e-2: h(r + .5 * h^-1(next)) of done is h(3) = sqrt(4) - 1 + .03
    action = torch.tensor([0])
    data = q_nstep_td_data(
        torch.zeros(1, 1), torch.ones(1, 1), action, action, torch.tensor([[3.0]]), action == 0, None
    )
    assert q_nstep_td_error_with_rescale(data, 0.5).td_error_per_sample.item() == pytest.approx(1.03)


def test_value_rescale_by_hand_and_near_zero():
    assert value_transform(torch.tensor([3.0, -8.0])).tolist() == pytest.approx([1.03, -2.08])
    x = torch.tensor([0.0, 1e-6, -1e-6, 1e-3, 1.0, -50.0, 1e4])
    assert torch.allclose(value_inv_transform(value_transform(x)), x, rtol=1e-5, atol=0.0)
    assert torch.allclose(value_inv_transform(value_transform(x, 0.0), 0.0), x, rtol=1e-5, atol=0.0)


def test_soft_values_by_hand():
    # both actions worth 1, temperature 2: 1 + 2 log 2, by the sum and by uniform logits
    q = torch.ones(1, 2)
    expected = 1 + 2 * math.log(2)
    assert soft_value(q, 2.0).item() == pytest.approx(expected)
    assert soft_value(q, 2.0, torch.zeros(1, 2)).item() == pytest.approx(expected)
    masked = soft_value(torch.tensor([[3.0, 9.0]]), 2.0, torch.tensor([[0.0, -torch.inf]]))
    assert masked.item() == 3.0
    data = soft_q_nstep_td_data(q, q, torch.tensor([0]), torch.tensor([1.0]), torch.tensor([False]), None)
    assert soft_q_nstep_td_error(data, 0.5, 2.0).td_error_per_sample.item() == pytest.approx(0.5 * expected)


def test_heads_are_averaged_by_size_of_error():
    # errors 1 - 0 and 1 - 3: losses 1 and 4, mean 2.5; sizes 1 and 2, mean 1.5 (signed they would give -.5)
    q = [torch.tensor([[0.0]]), torch.tensor([[3.0, 0.0]])]
    action = torch.zeros(1, 2, dtype=torch.long)
    data = q_nstep_td_data(q, q, action, [action[:, 0]] * 2, torch.ones(1, 1), torch.tensor([1.0]), None)
    loss, error = multi_discrete_td_error(data, 0.9)
    assert loss.item() == 2.5 and error.tolist() == [1.5]
    with pytest.raises(ValueError, match='next_n_q has 1 heads, q has 2'):
        multi_discrete_td_error(data._replace(next_n_q=q[:1]), 0.9)
    one_step = q_1step_td_data(*data._replace(reward=torch.ones(1)))
    with pytest.raises(TypeError, match='no error per sample'):
        multi_discrete_td_error(one_step, 0.9, q_1step_td_error)


def test_lambda_returns_by_hand():
    # V = 1, 2, 4, 8; r = 1; gamma = lambda = .5: G2 = 1 + 4 = 5; G1 = 1 + .5 (2 + 2.5) = 3.25; G0 = 1 + .5 (1 + 1.625)
    value, reward = column(1.0, 2.0, 4.0, 8.0), torch.ones(3, 1)
    assert generalized_lambda_returns(value, reward, 0.5, 0.5)[:, 0].tolist() == [2.3125, 3.25, 5.0]
    assert generalized_lambda_returns(value, reward, 0.5, 0.0)[:, 0].tolist() == [2.0, 3.0, 5.0]
    # lambda 1 with an end after the second step: G1 = 1, G0 = 1 + .5
    done = torch.tensor([[False], [True], [False]])
    assert generalized_lambda_returns(value, reward, 0.5, 1.0, done)[:, 0].tolist() == [1.5, 1.0, 5.0]


def test_td_lambda_by_hand_and_without_gradient_through_targets():
    # lambda 0, targets 1 + .5 * 2 = 2 and 1 + .5 * 4 = 3; errors 1 and 1: half the mean square is .5
    value = column(1.0, 2.0, 4.0).requires_grad_()
    loss = td_lambda_error(td_lambda_data(value, torch.ones(2, 1), None), 0.5, 0.0)
    loss.backward()
    assert loss.item() == 0.5 and value.grad[:, 0].tolist() == [-0.5, -0.5, 0.0]


def test_rollout_nstep_by_hand():
    # V = 1, 2, 4, 8, 16; r = 1; gamma .5; n 2: G0 = 1.5 + .25 * 4; an end after the third step; the last has one step
    # only
    value, reward = column(1.0, 2.0, 4.0, 8.0, 16.0), torch.ones(4, 1)
    done = torch.tensor([[False], [False], [True], [False]])
    result = rollout_nstep_return(rollout_nstep_data(value, reward, done), 0.5, 2)
    assert result[:, 0].tolist() == [2.5, 1.5, 1.0, 9.0]
    # the same end by a time limit, its own final observation worth 6: G2 = 1 + 3, G1 = 1 + .5 * G2
    following = column(2.0, 4.0, 6.0, 16.0)
    result = rollout_nstep_return(rollout_nstep_data(value, reward, done, done, following), 0.5, 2)
    assert result[:, 0].tolist() == [2.5, 3.0, 4.0, 9.0]
    assert rollout_nstep_return(rollout_nstep_data(value, reward), 1.0, 99)[:, 0].tolist() == [20.0, 19.0, 18.0, 17.0]
    with pytest.raises(ValueError, match='nstep'):
        rollout_nstep_return(rollout_nstep_data(value, reward), 1.0, 0)


def test_wrong_shapes_name_the_field():
    v = torch.zeros(2)
    with pytest.raises(ShapeError, match='reward has shape'):
        v_1step_td_error(v_1step_td_data(v, v, torch.zeros(2, 1), None, None), 0.9)
    with pytest.raises(ShapeError, match='next_n_q has shape'):
        soft_q_nstep_td_error(
            soft_q_nstep_td_data(torch.zeros(2, 3), torch.zeros(2, 4), v.long(), v, v, None), 0.9, 1.0
        )
    with pytest.raises(ShapeError, match='weight has shape'):
        td_lambda_error(td_lambda_data(torch.zeros(3, 2), torch.zeros(2, 2), torch.zeros(2)))
