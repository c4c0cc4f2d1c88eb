import pytest
import torch

from nervex.rl_utils import gae, gae_data
from nervex.rl_utils.checks import ShapeError


def test_constant_reward_by_hand():
    # r = 1, V = 0, gamma .99, lambda .95: 1; 1 + .9405 = 1.9405; 1 + .9405 * 1.9405 = 2.82504
    adv = gae(gae_data(torch.zeros(4, 1), torch.ones(3, 1)), 0.99, 0.95)
    assert adv[:, 0].tolist() == pytest.approx([2.82504, 1.9405, 1.0], abs=1e-5)


def test_termination_inside_cuts_bootstrap_and_recursion():
    value = torch.tensor([[1.0], [2.0], [4.0], [8.0]])
    done = torch.tensor([[False], [True], [False]])
    # gamma = lambda = .5: d2 = 1 + 4 - 4 = 1; d1 = 1 - 2 = -1 (terminated); d0 = 1 + 1 - 1 = 1, A0 = 1 + .25 * -1
    adv = gae(gae_data(value, torch.ones(3, 1), done), 0.5, 0.5)
    assert adv[:, 0].tolist() == [0.75, -1.0, 1.0]
    assert torch.equal(adv, gae(gae_data(value, torch.ones(3, 1), done.float()), 0.5, 0.5))


def test_truncation_bootstraps_from_its_own_final_observation():
    value = torch.tensor([[1.0], [2.0], [4.0]])
    next_value = torch.tensor([[2.0], [6.0], [8.0]])
    done = torch.tensor([[False], [True], [False]])
    # d1 = 1 + .5 * 6 - 2 = 2 and not 1 + .5 * 4 - 2; A1 = 2: the recursion is cut; A0 = 1 + 1 - 1 + .25 * 2 = 1.5
    for cast in (bool, float):
        flags = done.to(torch.bool if cast is bool else torch.float32)
        adv = gae(gae_data(value, torch.ones(3, 1), flags, flags, next_value), 0.5, 0.5)
        assert adv[:, 0].tolist() == [1.5, 2.0, 1.0]


def test_truncation_without_next_value_is_refused():
    done = torch.zeros(3, 1, dtype=torch.bool)
    with pytest.raises(ValueError, match='next_value'):
        gae(gae_data(torch.zeros(4, 1), torch.ones(3, 1), done, done))


def test_value_without_the_last_row_is_refused():
    with pytest.raises(ShapeError, match='append the value'):
        gae(gae_data(torch.zeros(3, 1), torch.ones(3, 1)))


def test_single_step_and_one_axis():
    assert gae(gae_data(torch.tensor([1.0, 2.0]), torch.tensor([3.0])), 0.5, 0.9).tolist() == [3.0]
