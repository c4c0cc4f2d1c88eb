import math

import pytest
import torch

from nervex.rl_utils import ppo_data, ppo_error, ppo_value_data, ppo_value_error
from nervex.rl_utils.checks import ShapeError

LOG2 = math.log(2.0)


def sample(adv, weight=None):
    # new probabilities (2/3, 1/3), old ones (1/2, 1/2): ratios 4/3 for action 0 and 2/3 for action 1
    logit_new = torch.tensor([[LOG2, 0.0], [LOG2, 0.0]], requires_grad=True)
    return ppo_data(
        logit_new,
        torch.zeros(2, 2),
        torch.tensor([0, 1]),
        torch.tensor([1.0, 2.0], requires_grad=True),
        torch.tensor([0.5, 2.5]),
        torch.tensor(adv),
        torch.tensor([2.0, 2.0]),
        weight,
    )


def test_clipped_surrogate_by_hand():
    loss, info = ppo_error(sample([1.0, 1.0]), clip_ratio=0.2)
    # min(4/3, 1.2) = 1.2 and min(2/3, .8) = 2/3
    assert loss.policy_loss.item() == pytest.approx(-(1.2 + 2 / 3) / 2)
    # values: max((2-1)^2, (2-.7)^2) = 1.69 and max(0, (2-2.3)^2) = .09; half of the mean
    assert loss.value_loss.item() == pytest.approx(0.5 * (1.69 + 0.09) / 2)
    assert loss.entropy_loss.item() == pytest.approx(-(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3)))
    assert info.clipfrac.item() == 1.0
    kl = ((4 / 3 - 1 - math.log(4 / 3)) + (2 / 3 - 1 - math.log(2 / 3))) / 2
    assert info.approx_kl.item() == pytest.approx(kl)
    sum(loss).backward()


def test_dual_clip_bounds_negative_advantages_only():
    data = sample([-1.0, 1.0])
    # action 0, A = -1: min(-4/3, -1.2) = -4/3, and dual clip 1.1 makes it max(-4/3, -1.1) = -1.1
    assert ppo_error(data, 0.2)[0].policy_loss.item() == pytest.approx((4 / 3 - 2 / 3) / 2)
    assert ppo_error(data, 0.2, dual_clip=1.1)[0].policy_loss.item() == pytest.approx((1.1 - 2 / 3) / 2)
    with pytest.raises(ValueError, match='dual_clip'):
        ppo_error(data, dual_clip=0.5)


def test_weights_scale_the_samples():
    loss, _ = ppo_error(sample([1.0, 1.0], torch.tensor([2.0, 0.0])))
    assert loss.policy_loss.item() == pytest.approx(-1.2)


def test_value_without_clip():
    data = ppo_value_data(torch.tensor([1.0]), None, torch.tensor([3.0]), None)
    assert ppo_value_error(data, use_value_clip=False).item() == 2.0


def test_heads_share_one_ratio():
    data = sample([1.0, 1.0])
    heads = data._replace(
        logit_new=[data.logit_new] * 2, logit_old=[data.logit_old] * 2, action=torch.tensor([[0, 1], [1, 0]])
    )
    # the joint ratio is 4/3 * 2/3 = 8/9 in both rows
    assert ppo_error(heads)[0].policy_loss.item() == pytest.approx(-8 / 9)


def test_wrong_advantage_shape_is_refused():
    with pytest.raises(ShapeError, match='adv has shape'):
        ppo_error(sample([[1.0], [1.0]]))
