import math

import pytest
import torch

from nervex.rl_utils import (
    a2c_data,
    a2c_error,
    a2c_error_continuous,
    coma_data,
    coma_error,
    gaussian_entropy,
    gaussian_kl_divergence,
    gaussian_log_prob,
    kl_divergence,
    ppg_data,
    ppg_joint_error,
    ppo_data,
    ppo_error_continous,
    ppo_error_continuous,
)
from nervex.rl_utils.checks import ShapeError
from nervex.rl_utils.coma import of_the_living

LOG2 = math.log(2.0)
ONE = torch.ones(1)


def test_a2c_by_hand():
    # uniform over 2, adv 3, value 1, return 4: policy 3 log 2, value 9, entropy log 2; weight 2 doubles all
    data = a2c_data(torch.zeros(1, 2), torch.tensor([1]), ONE, 3 * ONE, 4 * ONE, None)
    assert [x.item() for x in a2c_error(data)] == pytest.approx([3 * LOG2, 9.0, LOG2])
    assert [x.item() for x in a2c_error(data._replace(weight=2 * ONE))] == pytest.approx([6 * LOG2, 18.0, 2 * LOG2])
    with pytest.raises(ShapeError, match='adv has shape'):
        a2c_error(data._replace(adv=torch.ones(1, 1)))


def test_gaussian_by_hand():
    # standard normal in two dimensions at its mean: density 1 / (2 pi), entropy log(2 pi e)
    pair = (torch.zeros(1, 2), torch.ones(1, 2))
    assert gaussian_log_prob(pair, torch.zeros(1, 2)).item() == pytest.approx(-math.log(2 * math.pi))
    assert gaussian_entropy({'mu': pair[0], 'sigma': pair[1]}).item() == pytest.approx(math.log(2 * math.pi * math.e))
    shared = (torch.zeros(3, 2), torch.ones(2))
    assert gaussian_entropy(shared).shape == gaussian_log_prob(shared, torch.zeros(3, 2)).shape == (3,)
    assert gaussian_log_prob((torch.zeros(3), torch.ones(3)), torch.zeros(3)).shape == (3,)
    with pytest.raises(ShapeError, match='action has shape'):
        gaussian_log_prob(pair, torch.zeros(1))
    with pytest.raises(ShapeError, match='sigma has shape'):
        gaussian_log_prob((torch.zeros(3, 2), torch.ones(3, 1, 2)), torch.zeros(3, 2))


def test_continuous_losses_by_hand():
    # the action moved by one sigma from the old mean to the new one: log-ratio .5, ratio e^.5 clipped to 1.2
    old, new = (torch.zeros(1, 1), torch.ones(1, 1)), (torch.ones(1, 1), torch.ones(1, 1))
    data = ppo_data(new, old, torch.ones(1, 1), ONE, ONE, ONE, 3 * ONE, None)
    loss, info = ppo_error_continuous(data)
    assert loss.policy_loss.item() == pytest.approx(-1.2) and loss.value_loss.item() == 2.0
    assert info.clipfrac.item() == 1.0 and info.approx_kl.item() == pytest.approx(math.exp(0.5) - 1.5)
    assert ppo_error_continous is ppo_error_continuous
    logp = -0.5 * math.log(2 * math.pi)
    losses = a2c_error_continuous(a2c_data(new, torch.ones(1, 1), ONE, 3 * ONE, ONE, None))
    assert losses.policy_loss.item() == pytest.approx(-3 * logp)


def test_ppg_clones_the_whole_distribution():
    # old (1/2, 1/2), new (2/3, 1/3): KL = .5 log(3/4) + .5 log(3/2), whichever action was taken
    new = torch.tensor([[LOG2, 0.0]], requires_grad=True)
    expected = 0.5 * math.log(3 / 4) + 0.5 * math.log(3 / 2)
    for action in (0, 1):
        data = ppg_data(new, torch.zeros(1, 2), torch.tensor([action]), 2 * ONE, ONE, 3 * ONE, None)
        loss = ppg_joint_error(data)
        # value: max((3 - 2)^2, (3 - 1.2)^2) / 2
        assert loss.behavioral_cloning_loss.item() == pytest.approx(expected)
        assert loss.auxiliary_loss.item() == pytest.approx(1.62)
    loss.behavioral_cloning_loss.backward()
    assert new.grad[0].tolist() == pytest.approx([2 / 3 - 1 / 2, 1 / 3 - 1 / 2])  # new minus old


def test_kl_of_equal_policies_is_zero_and_masks_are_left_out():
    logit = torch.tensor([[0.3, -torch.inf, 2.0]])
    assert kl_divergence(logit, logit).item() == 0.0
    assert kl_divergence([logit, logit], [logit, torch.zeros(1, 3)]).item() > 0
    with pytest.raises(ShapeError, match='logit_new'):
        kl_divergence(logit, torch.zeros(1, 2))


def coma_fields(**changes):
    # two steps, one agent, two actions, action 0 taken; uniform policy
    q = torch.tensor([[4.0, 0.0], [2.0, 2.0]]).reshape(2, 1, 1, 2)
    target = torch.tensor([[9.0, 9.0], [6.0, 0.0]]).reshape(2, 1, 1, 2)
    data = coma_data(torch.zeros(2, 1, 1, 2), torch.zeros(2, 1, 1, dtype=torch.long), q, target, torch.ones(2, 1), None)
    return data._replace(**changes)


def test_coma_by_hand():
    # advantages 4 - 2 and 2 - 2: policy 2 log 2 / 2; target of step 0: 1 + .5 * 6 = 4, error 0; step 1 is followed by
    # nothing
    assert [x.item() for x in coma_error(coma_fields(), 0.5, 0.8)] == pytest.approx([LOG2, 0.0, LOG2])
    # with an end after step 1 its return is the reward, 1: error (1 - 2)^2; step 0: 1 + .5 (.2 * 6 + .8 * 1) = 2,
    # error 4
    ended = coma_fields(done=torch.tensor([[False], [True]]))
    assert coma_error(ended, 0.5, 0.8).q_value_loss.item() == pytest.approx((4 + 1) / 2)
    # with an end after step 0: (1 - 4)^2 alone
    ended = coma_fields(done=torch.tensor([[1.0], [0.0]]))
    assert coma_error(ended, 0.5, 0.8).q_value_loss.item() == pytest.approx(9.0)


def test_coma_weights_and_a_single_step():
    weight = torch.tensor([[2.0], [0.0]])
    by_step, by_agent = (coma_error(coma_fields(weight=w), 0.5, 0.8) for w in (weight, weight.unsqueeze(-1)))
    assert by_step == by_agent and by_step.policy_loss.item() == pytest.approx(2 * LOG2)
    single = coma_data(*(None if x is None else x[:1].clone() for x in coma_fields()))
    single.logit.requires_grad_(), single.q_value.requires_grad_()
    loss = coma_error(single, 0.5, 0.8)
    assert loss.q_value_loss.item() == 0.0
    sum(loss).backward()
    with pytest.raises(ShapeError, match='weight has shape'):
        coma_error(coma_fields(weight=torch.ones(3)), 0.5, 0.8)


def test_coma_where_an_agent_leaves_by_hand():
    """Two agents of whom the second has left behind step 0: to it, too, step 1 is worth what it is to the first, 6."""
    q = torch.tensor([[[4.0, 0.0], [1.0, 5.0]], [[2.0, 2.0], [70.0, 80.0]]]).unsqueeze(1)
    target = torch.tensor([[[9.0, 9.0], [9.0, 9.0]], [[6.0, 0.0], [90.0, 95.0]]]).unsqueeze(1)
    action, alive = torch.zeros(2, 1, 2, dtype=torch.long), torch.tensor([[[1.0, 1.0]], [[1.0, 0.0]]])
    done = torch.tensor([[False], [True]])
    data = coma_data(torch.zeros(2, 1, 2, 2), action, q, target, torch.ones(2, 1), None, done, None, alive)
    # returns: step 1: 1; step 0 of both: 1 + .5 (.2 * 6 + .8 * 1) = 2; errors 1, and 2 and 1; advantages 0, 2 and -2
    expected = [LOG2 * (0 + 2 - 2) / 3, (1 + 4 + 1) / 3, LOG2]
    assert [x.item() for x in coma_error(data, 0.5, 0.8)] == pytest.approx(expected, abs=1e-6)
    # without an end step 1 is followed by nothing and does not train; returns of step 0 are 1 + .5 * 6 = 4
    assert coma_error(data._replace(done=None), 0.5, 0.8).q_value_loss.item() == pytest.approx((0 + 9) / 2)
    # cut behind step 0: the same, by the mean of who lives there
    cut = data._replace(done=None, mask=torch.tensor([[True], [False]]))
    assert coma_error(cut, 0.5, 0.8).q_value_loss.item() == pytest.approx((0 + 9) / 2)
    # three of whom one has left: worth (6 + 2) / 2
    value, living = torch.tensor([[6.0, 2.0, 50.0]]), torch.tensor([[1.0, 1.0, 0.0]])
    assert of_the_living(value, living, each=False).tolist() == [[6.0, 2.0, 4.0]]
    assert of_the_living(value, living, each=True).tolist() == [[6.0, 2.0, 0.0]]
    assert of_the_living(value, living * 0, each=False).tolist() == [[0.0, 0.0, 0.0]]


def test_coma_behind_the_end_of_a_sequence():
    """A sequence of two steps in three rows, by hand; then padding of any length changes nothing."""
    q = torch.tensor([[4.0, 0.0], [2.0, 2.0], [7.0, 7.0]]).reshape(3, 1, 1, 2)
    target = torch.tensor([[9.0, 9.0], [6.0, 0.0], [4.0, 8.0]]).reshape(3, 1, 1, 2)
    data = coma_data(torch.zeros_like(q), torch.zeros(3, 1, 1, dtype=torch.long), q, target, torch.ones(3, 1), None)
    data = data._replace(mask=torch.tensor([[True], [True], [False]]))
    # step 1: 1 + .5 * 4 = 3, error 1; step 0: 1 + .5 (.2 * 6 + .8 * 3) = 2.8, error 1.44; advantages 2 and 0
    expected = pytest.approx([LOG2, (1 + 1.44) / 2, LOG2])
    assert [x.item() for x in coma_error(data, 0.5, 0.8)] == expected
    padded = coma_data(*(None if x is None else torch.cat([x, x[-1:] * 9, x[:1]]) for x in data[:-1]), None)
    padded = padded._replace(mask=torch.arange(5).unsqueeze(1) < 2, done=torch.arange(5).unsqueeze(1) > 2)
    padded.logit[3, ..., 0] = -torch.inf
    assert [x.item() for x in coma_error(padded, 0.5, 0.8)] == expected
    ended = data._replace(done=torch.tensor([[False], [True], [False]]))  # step 1: 1; step 0: 1 + .5 (1.2 + .8) = 2
    assert coma_error(ended, 0.5, 0.8).q_value_loss.item() == pytest.approx((1 + 4) / 2)


def test_divergence_of_two_normal_distributions():
    old = torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 2.0]])
    new = torch.tensor([[1.0, 1.0]], requires_grad=True), torch.tensor([[1.0, 1.0]])
    # (0 + (1 + 1) / 2 - 1 / 2) + (log 1 / 2 + 4 / 2 - 1 / 2)
    assert gaussian_kl_divergence(old, new).item() == pytest.approx(0.5 - math.log(2) + 1.5)
    assert gaussian_kl_divergence(old, old).item() == 0
    normal = torch.distributions.Normal
    expected = torch.distributions.kl_divergence(normal(*old), normal(*new)).sum()
    assert gaussian_kl_divergence(old, dict(mu=new[0], sigma=new[1])).item() == pytest.approx(expected.item())
    with pytest.raises(ValueError, match='logit_new'):
        gaussian_kl_divergence(old, (torch.zeros(2, 2), torch.ones(2, 2)))
