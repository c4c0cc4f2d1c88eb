import math
import random

import pytest
import torch
from torch import nn

from nervex.torch_utils.data_helper import is_differentiable
from nervex.torch_utils.distribution import CategoricalPd, CategoricalPdPytorch
from nervex.torch_utils.loss import (
    LabelSmoothCELoss,
    MultiLogitsLoss,
    SoftFocalLoss,
    build_ce_criterion,
    hamming_distance,
    levenshtein_distance,
    match,
)

LOGITS = torch.tensor([[0.0, math.log(3.0)], [math.log(4.0), 0.0]])  # probabilities (1/4, 3/4) and (4/5, 1/5)


def test_label_smoothing_by_hand():
    # label 1 of row 0 has 3/4, label 1 of row 1 has 1/5; with ratio 0.2 they count 0.8 and the other class 0.2
    expected = -(0.8 * math.log(3 / 4) + 0.2 * math.log(1 / 4) + 0.8 * math.log(1 / 5) + 0.2 * math.log(4 / 5)) / 2
    assert LabelSmoothCELoss(0.2)(LOGITS, torch.tensor([1, 1])).item() == pytest.approx(expected, rel=1e-6)
    labels = torch.tensor([1, 0])
    assert torch.allclose(LabelSmoothCELoss(0.0)(LOGITS, labels), nn.CrossEntropyLoss()(LOGITS, labels))
    with pytest.raises(ValueError, match='ratio'):
        LabelSmoothCELoss(1.0)


def test_focal_loss_by_hand():
    labels = torch.tensor([1, 1])
    each = [-((1 / 4) ** 2) * math.log(3 / 4), -((4 / 5) ** 2) * math.log(1 / 5)]
    assert SoftFocalLoss()(LOGITS, labels).item() == pytest.approx(sum(each) / 2, rel=1e-5)
    assert SoftFocalLoss(reduce=False)(LOGITS, labels).tolist() == pytest.approx(each, rel=1e-5)
    weighted = SoftFocalLoss(weight=torch.tensor([1.0, 3.0]), size_average=False)
    assert weighted(LOGITS, labels).item() == pytest.approx(3 * sum(each), rel=1e-5)


def test_criteria_by_name():
    assert isinstance(build_ce_criterion(), nn.CrossEntropyLoss)
    assert build_ce_criterion('label_smooth_ce', ratio=0.1).ratio == 0.1
    with pytest.raises(ValueError, match="did you mean 'cross_entropy'"):
        build_ce_criterion('crossentropy')


@pytest.mark.parametrize('seed', range(20))
def test_matching_is_the_best_of_all(seed):
    from itertools import permutations

    rng = random.Random(seed)
    rows = rng.randint(1, 4)
    columns = rng.randint(rows, 5)
    cost = [[rng.uniform(-3, 3) for _ in range(columns)] for _ in range(rows)]
    found = match(cost)
    best = min(sum(cost[i][j] for i, j in enumerate(p)) for p in permutations(range(columns), rows))
    assert len(set(found)) == rows and sum(cost[i][j] for i, j in enumerate(found)) == pytest.approx(best)


@pytest.mark.parametrize('criterion', ['cross_entropy', 'label_smooth_ce'])
def test_multi_logits_takes_the_cheapest_order_and_is_differentiable(criterion):
    logits = (torch.eye(3)[[2, 0, 1]] * 5.0).requires_grad_()
    loss = MultiLogitsLoss(criterion)(logits, torch.tensor([0, 1, 2]))
    straight = MultiLogitsLoss(criterion)(torch.eye(3) * 5.0, torch.tensor([2, 1, 0]))
    assert loss.item() == pytest.approx(straight.item())
    loss.backward()
    assert logits.grad.abs().sum() > 0
    with pytest.raises(ValueError, match='got 4'):
        MultiLogitsLoss()(logits, torch.zeros(4, dtype=torch.long))


def test_levenshtein_by_hand():
    def distance(a, b, **kwargs):
        a, b = (torch.tensor(x, dtype=torch.long) for x in (a, b))
        return levenshtein_distance(a, b, **kwargs).item()

    assert distance([1, 2, 3], [1, 2, 3]) == 0.0 and distance([1, 2, 3], [1, 3]) == 1.0 and distance([], [4, 5]) == 2.0
    assert distance([1, 2, 3, 4], [4, 2, 5]) == 3.0 and distance([1], []) == 1.0
    extras = dict(pred_extra=torch.tensor([0.0, 1.0]), target_extra=torch.tensor([0.0, 0.5]))
    assert distance([7, 8], [7, 8], extra_fn=lambda a, b: (a - b).abs(), **extras) == 0.5
    with pytest.raises(ValueError, match='extra_fn'):
        distance([1], [1], extra_fn=lambda a, b: 0.0)


def test_hamming_by_hand():
    a, b = torch.tensor([[1, 0, 1], [0, 0, 0]]), torch.tensor([[1, 1, 0], [0, 0, 0]])
    assert hamming_distance(a, b).tolist() == [2.0, 0.0]
    assert hamming_distance(a, b, torch.tensor([5.0, 1.0, 2.0])).tolist() == [3.0, 0.0]
    with pytest.raises(ValueError, match='zeros and ones'):
        hamming_distance(a * 2, b)


@pytest.mark.parametrize('kind', [CategoricalPd, CategoricalPdPytorch])
def test_categorical_by_hand(kind):
    pd = kind()
    pd.update_logits(LOGITS)
    nll = [-math.log(3 / 4), -math.log(4 / 5)]
    assert pd.neglogp(torch.tensor([1, 0]), reduction='none').tolist() == pytest.approx(nll)
    assert pd.neglogp(torch.tensor([1, 0])).item() == pytest.approx(sum(nll) / 2)
    entropy = [-(p * math.log(p) + (1 - p) * math.log(1 - p)) for p in (3 / 4, 4 / 5)]
    assert pd.entropy('none').tolist() == pytest.approx(entropy)
    assert pd.mode().tolist() == [1, 0] and pd.sample().shape == (2,)
    with pytest.raises(ValueError, match='update_logits'):
        kind().mode()
    with pytest.raises(ValueError, match='reduction'):
        pd.entropy('sum')


def test_probabilities_are_read_as_probabilities():
    for scale in (1.0, 5.0):  # they are normalised
        pd = CategoricalPdPytorch(torch.tensor([0.25, 0.75, 0.0]) * scale)
        assert pd.neglogp(torch.tensor(1)).item() == pytest.approx(-math.log(0.75))
        assert pd.entropy().item() == pytest.approx(-(0.25 * math.log(0.25) + 0.75 * math.log(0.75)))
        assert pd.mode() == 1 and pd.sample() != 2
    with pytest.raises(ValueError, match=r'got the probability -1, .* is it a logit'):
        CategoricalPdPytorch(torch.tensor([0.0, -1.0]))


def test_samples_follow_the_probabilities_and_repeat_with_a_generator():
    pd = CategoricalPd(LOGITS[0].expand(20000, 2))
    share = pd.sample(generator=torch.Generator().manual_seed(0)).float().mean().item()
    assert share == pytest.approx(0.75, abs=0.01)
    assert torch.equal(*[pd.sample(generator=torch.Generator().manual_seed(1)) for _ in range(2)])


def test_impossible_values_are_never_drawn_and_cost_no_entropy():
    pd = CategoricalPd(torch.tensor([[0.0, float('-inf')]]).expand(1000, 2))
    assert pd.sample().sum() == 0 and pd.entropy().item() == 0.0 and pd.noise_mode().sum() == 0
    action, shown = CategoricalPd(LOGITS).mode(viz=True)
    assert action.tolist() == [1, 0] and torch.equal(shown['logit'], LOGITS)


def test_noise_mode_explores_near_ties_only():
    far, near = torch.tensor([[0.0, 1.5]]).expand(500, 2), torch.tensor([[0.0, 0.1]]).expand(500, 2)
    share = CategoricalPd(near).noise_mode().float().mean()
    assert CategoricalPd(far).noise_mode().float().mean() == 1.0 and 0.3 < share < 0.9


def test_is_differentiable_lists_what_a_loss_misses():
    a, b = nn.Linear(1, 1), nn.Linear(1, 1)
    is_differentiable(a(torch.ones(1, 1)).sum(), a)
    with pytest.raises(AssertionError, match='have a gradient before'):
        is_differentiable(a(torch.ones(1, 1)).sum(), a)
    a.zero_grad()
    with pytest.raises(AssertionError, match=r'does not reach 1\.weight, 1\.bias'):
        is_differentiable(a(torch.ones(1, 1)).sum(), [a, b])
    a.zero_grad()
    with pytest.warns(UserWarning, match='does not reach'):
        is_differentiable(a(torch.ones(1, 1)).sum(), [a, b], print_instead=True)


@pytest.mark.parametrize('kind', [CategoricalPd, CategoricalPdPytorch])
def test_noise_mode_explores_among_near_ties_only(kind):
    pd, generator = kind(), torch.Generator().manual_seed(0)
    pd.update_logits(torch.tensor([0.0, 0.3, -2.0]).expand(4000, 3))
    share = pd.noise_mode(generator=generator).bincount(minlength=3) / 4000.0
    # noise uniform in [0, 1) turns a difference of 0.3 around with probability 0.7 * 0.7 / 2, one of 2.3 never
    assert share[2] == 0.0 and abs(share[0] - 0.245) < 0.03
