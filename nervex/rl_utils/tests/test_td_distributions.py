import math

import pytest
import torch

from nervex.rl_utils import (
    dist_1step_td_data,
    dist_1step_td_error,
    dist_nstep_td_data,
    dist_nstep_td_error,
    iqn_nstep_td_data,
    iqn_nstep_td_error,
    qrdqn_nstep_td_data,
    qrdqn_nstep_td_error,
)
from nervex.rl_utils.checks import ShapeError
from nervex.rl_utils.td.distributional import project_distribution

ZERO = torch.tensor([0])


def test_projection_by_hand():
    # support 0, 1, 2. Atoms .5 and 1.5 share half and half; 9 counts as 2
    projected = project_distribution(torch.tensor([[0.2, 0.3, 0.5]]), torch.tensor([[0.5, 1.5, 9.0]]), 0.0, 2.0)
    assert projected[0].tolist() == pytest.approx([0.1, 0.1 + 0.15, 0.15 + 0.5])


def test_projection_keeps_atoms_that_hit_the_support():
    prob = torch.tensor([[0.2, 0.3, 0.5]])
    assert torch.equal(project_distribution(prob, torch.tensor([[0.0, 1.0, 2.0]]), 0.0, 2.0), prob)


def dist_fields(**changes):
    dist, next_dist = torch.tensor([[[0.5, 0.25, 0.25]]]), torch.tensor([[[0.2, 0.3, 0.5]]])
    fields = dist_nstep_td_data(dist, next_dist, ZERO, ZERO, torch.tensor([[1.0]]), torch.tensor([0.0]), None)
    return fields._replace(**changes)


def test_distributional_error_by_hand():
    # support 0, 1, 2; atoms 1 + .5 z = 1, 1.5, 2: target 0, .2 + .15, .15 + .5; cross-entropy with .5, .25, .25
    loss, error = dist_nstep_td_error(dist_fields(), 0.5, 0.0, 2.0, 3)
    assert loss.item() == pytest.approx(-math.log(0.25)) and error.tolist() == pytest.approx([-math.log(0.25)])
    # done: everything sits on the reward 1
    done = dist_fields(done=torch.tensor([True]), weight=torch.tensor([2.0]))
    assert dist_nstep_td_error(done, 0.5, 0.0, 2.0, 3).item() == pytest.approx(-2 * math.log(0.25))
    assert dist_nstep_td_error(done, 0.5, 0.0, 2.0, 3).td_error_per_sample.item() == pytest.approx(-math.log(0.25))


def test_one_step_form_is_a_plain_tensor():
    fields = dist_fields(reward=torch.tensor([1.0]))
    loss = dist_1step_td_error(dist_1step_td_data(*fields), 0.5, 0.0, 2.0, 3)
    assert isinstance(loss, torch.Tensor) and loss.item() == pytest.approx(-math.log(0.25))


def test_probability_zero_gives_a_finite_loss():
    loss = dist_nstep_td_error(dist_fields(dist=torch.tensor([[[1.0, 0.0, 0.0]]])), 0.5, 0.0, 2.0, 3).loss
    assert torch.isfinite(loss)


def test_wrong_number_of_atoms():
    with pytest.raises(ShapeError, match='n_atom = 5'):
        dist_nstep_td_error(dist_fields(), 0.5, 0.0, 2.0, 5)


def test_quantile_errors_by_hand():
    # own quantiles 0 and 1 at fractions .25 and .75, target 1 + .5 * 2 = 2, kappa 1
    # errors 2 and 1: Huber 1.5 and .5; both positive, so times .25 and .75: .375 + .375
    q, next_q = torch.tensor([[[0.0]], [[1.0]]]), torch.tensor([[[2.0]]])
    fractions, reward, done = torch.tensor([[0.25], [0.75]]), torch.tensor([[1.0]]), torch.tensor([False])
    data = iqn_nstep_td_data(q, next_q, ZERO, ZERO, reward, done, fractions, None)
    assert iqn_nstep_td_error(data, 0.5).item() == 0.75
    # target -1 (done): errors -1 and -2: Huber .5 and 1.5 times 1 - .25 and 1 - .75: .375 + .375
    negative = data._replace(reward=-reward, done=torch.tensor([1.0]))
    assert iqn_nstep_td_error(negative, 0.5).td_error_per_sample.tolist() == [0.75]
    # kappa 0 is the plain quantile loss: 2 * .25 + 1 * .75
    assert iqn_nstep_td_error(data, 0.5, kappa=0.0).item() == 1.25
    last = [x.permute(1, 2, 0) for x in (q, next_q)]
    fixed = qrdqn_nstep_td_data(*last, ZERO, ZERO, reward, done, fractions[:, 0], None)
    assert qrdqn_nstep_td_error(fixed, 0.5).item() == 0.75
    assert qrdqn_nstep_td_error(fixed._replace(tau=fractions[None]), 0.5).item() == 0.75
    with pytest.raises(ShapeError, match='tau has shape'):
        qrdqn_nstep_td_error(fixed._replace(tau=torch.ones(5)), 0.5)
    with pytest.raises(ShapeError, match='replay_quantiles has shape'):
        iqn_nstep_td_error(data._replace(replay_quantiles=torch.ones(5)), 0.5)


def test_targets_of_several_quantiles_are_averaged():
    # own quantile 0 at .5, targets 1 and 3: (.5 * .5 + .5 * 2.5) / 2
    data = iqn_nstep_td_data(
        torch.zeros(1, 1, 1),
        torch.tensor([[[1.0]], [[3.0]]]),
        ZERO,
        ZERO,
        torch.zeros(1, 1),
        None,
        torch.tensor([[0.5]]),
        None,
    )
    assert iqn_nstep_td_error(data, 1.0).item() == 0.75
