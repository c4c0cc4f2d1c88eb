import pytest
import torch

from nervex.rl_utils import (
    nstep_return,
    nstep_return_data,
    q_1step_td_data,
    q_1step_td_error,
    q_nstep_td_data,
    q_nstep_td_error,
)
from nervex.rl_utils.checks import ShapeError


def two_samples(reward, done=None, weight=None):
    q = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    next_q = torch.tensor([[5.0, 6.0], [7.0, 8.0]], requires_grad=True)
    fields = (q, next_q, torch.tensor([1, 0]), torch.tensor([0, 1]), torch.as_tensor(reward), done, weight)
    return q_nstep_td_data(*fields)


@pytest.mark.parametrize('done', [torch.tensor([0.0, 1.0]), torch.tensor([False, True]), torch.tensor([0, 1])])
def test_three_steps_by_hand(done):
    # targets: 1 + .5 * 2 + .25 * 4 + .125 * 5 = 3.625 and 1 + .5 + .25 = 1.75 (done); q: 2 and 3; errors 1.625 and
    # -1.25
    data = two_samples([[1.0, 1.0], [2.0, 1.0], [4.0, 1.0]], done)
    loss, td_error = q_nstep_td_error(data, 0.5, nstep=3)
    assert td_error.tolist() == [1.625, -1.25]
    assert loss.item() == pytest.approx((1.625**2 + 1.25**2) / 2)
    loss.backward()
    # d loss / d q = -2 * error / B at the taken actions, and nothing reaches the target
    assert data.q.grad.tolist() == [[0.0, -1.625], [1.25, 0.0]] and data.next_n_q.grad is None


def test_value_gamma_and_cum_reward_and_weight():
    data = two_samples([4.0, 5.0], torch.tensor([False, False]), torch.tensor([1.0, 0.5]))
    # targets: 4 + .1 * 5 = 4.5 and 5 + .2 * 8 = 6.6; errors 2.5 and 3.6
    result = q_nstep_td_error(data, 0.5, nstep=2, cum_reward=True, value_gamma=torch.tensor([0.1, 0.2]))
    assert torch.allclose(result.td_error_per_sample, torch.tensor([2.5, 3.6]))
    assert result.item() == pytest.approx((2.5**2 + 0.5 * 3.6**2) / 2)
    result.backward()
    assert data.q.grad is not None


def test_one_step_is_a_plain_tensor_that_can_be_summed():
    data = two_samples([1.0, 1.0], torch.tensor([0.0, 1.0]))
    # targets 1 + .5 * 5 = 3.5 and 1; errors 1.5 and -2; mean of squares 3.125
    loss = q_1step_td_error(q_1step_td_data(*data), 0.5)
    assert loss.item() == 3.125 and sum([loss, loss]).item() == 6.25
    assert q_nstep_td_error(data, 0.5).item() == 3.125  # rewards (B, ) stand for one step


def test_done_may_be_missing():
    _, td_error = q_nstep_td_error(two_samples([[1.0, 1.0]], None), 0.5)
    assert td_error.tolist() == [1.5, 2.0]


def test_rewards_with_batch_first_name_the_remedy():
    with pytest.raises(ShapeError, match=r'permute\(1, 0\)'):
        q_nstep_td_error(two_samples([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]), 0.5, nstep=3)


def test_wrong_shapes_name_the_field():
    data = two_samples([[1.0, 1.0]])
    with pytest.raises(ShapeError, match=r'action has shape \(2, 1\), expected \(2,\)'):
        q_nstep_td_error(data._replace(action=torch.zeros(2, 1, dtype=torch.long)), 0.5)
    with pytest.raises(ShapeError, match='q has shape'):
        q_nstep_td_error(data._replace(q=torch.zeros(2)), 0.5)
    with pytest.raises(ShapeError, match="reduction='none'"):
        q_nstep_td_error(data._replace(done=None), 0.5, criterion=torch.nn.MSELoss())


def test_nstep_return_by_hand():
    # 1 + .5 * 2 + .25 * 8 = 4; done: 1 + .5 * 2 = 2
    data = nstep_return_data(
        torch.tensor([[1.0, 1.0], [2.0, 2.0]]), torch.tensor([8.0, 8.0]), torch.tensor([False, True])
    )
    assert nstep_return(data, 0.5, 2).tolist() == [4.0, 2.0]


def test_nothing_flows_into_the_target():
    reward, done = torch.ones(1, 2, requires_grad=True), torch.zeros(2, requires_grad=True)
    data = two_samples([[1.0, 1.0]])._replace(reward=reward, done=done)  # e.g. from a reward model
    q_nstep_td_error(data, 0.5).backward()
    assert reward.grad is None and done.grad is None and data.next_n_q.grad is None and data.q.grad is not None


def test_integer_rewards_of_several_steps():
    q, action = torch.tensor([[1.0, 2.0]]), torch.tensor([1])
    data = q_nstep_td_data(q, q, action, action, torch.tensor([[3], [4]]), None, None)
    # 3 + 0.5 * 4 + 0.25 * 2 - 2
    assert q_nstep_td_error(data, 0.5, nstep=2).td_error_per_sample.tolist() == [3.5]


def test_number_of_rewards_is_at_least_one():
    q, action = torch.tensor([[1.0, 2.0]]), torch.tensor([1])
    data = q_nstep_td_data(q, q, action, action, torch.tensor([[3.0]]), None, None)
    with pytest.raises(ValueError, match='nstep is the number of rewards, at least 1, got 0'):
        q_nstep_td_error(data, 0.5, nstep=0)


def test_backward_passes_its_arguments_on():
    q, action = torch.tensor([[1.0, 2.0]], requires_grad=True), torch.tensor([1])
    loss = q_nstep_td_error(q_nstep_td_data(q, q, action, action, torch.tensor([3.0]), None, None), 0.0)
    loss.backward(retain_graph=True)
    loss.backward(gradient=torch.tensor(2.0))
    assert q.grad.tolist() == [[0.0, -6.0]]  # d/dq (3 - q)^2 = -2 at q = 2, once and twice
