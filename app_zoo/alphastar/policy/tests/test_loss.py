"""The losses against numbers worked by hand and against loops over steps and parts."""

import math

import pytest
import torch

from app_zoo.alphastar.policy import alphastar_data, alphastar_error
from nervex.rl_utils.checks import ShapeError


def test_one_step_by_hand():
    # one step, two parts; r = 1, V = 0.5, V' = 2, gamma 0.5: target 1 + 0.5 * 2 = 2, advantage 1.5.
    # parts: rho = 0.5 and 3, the second clipped at 1. Policy: -(0.5 * 1.5 * log_prob_0 + 1 * 1.5 * log_prob_1).
    log_prob = torch.tensor([[[math.log(0.2), math.log(0.6)]]], requires_grad=True)
    behaviour = torch.tensor([[[math.log(0.4), math.log(0.2)]]])
    value = torch.tensor([[0.5], [2.0]], requires_grad=True)
    fields = alphastar_data(
        log_prob,
        behaviour,
        entropy=torch.tensor([[[0.3, 0.1]]]),
        divergence=torch.tensor([[[0.7, 0.0]]]),
        value=value,
        reward=torch.ones(1, 1),
        weight=torch.ones(1, 1),
    )
    loss = alphastar_error(fields, gamma=0.5)
    expected = -(0.5 * 1.5 * math.log(0.2) + 1.5 * math.log(0.6))
    assert loss.policy.item() == pytest.approx(expected) and loss.upgo.item() == pytest.approx(expected)
    assert loss.value.item() == pytest.approx(0.5 * 1.5**2)
    assert loss.entropy.item() == pytest.approx(0.4) and loss.teacher.item() == pytest.approx(0.7)
    loss.policy.backward()
    assert log_prob.grad.flatten().tolist() == pytest.approx([-0.75, -1.5])  # weights are no part of the gradient
    assert value.grad is None


def test_upgo_follows_only_what_went_well():
    # V = 0, 1, 1, V_3 = 0; r = 0, 0, 3. Step 1: r + V_2 = 1 >= V_1 = 1; step 2: 3 + 0 >= 1. G = 3, 3, 3.
    # With V_1 = 2 step 1 is worse than promised: G_0 = r_0 + V_1 = 2.
    found = []
    for promised in (1.0, 2.0):
        value = torch.tensor([[0.0], [promised], [1.0], [0.0]])
        zeros, log_prob = torch.zeros(3, 1, 1), torch.full((3, 1, 1), -1.0)
        reward = torch.tensor([[0.0], [0.0], [3.0]])
        weight = torch.tensor([[3.0], [0.0], [0.0]])  # only the first step counts, as if alone
        fields = alphastar_data(log_prob, log_prob, zeros, None, value, reward, weight)
        found.append(alphastar_error(fields).upgo.item())
    assert found == [pytest.approx(3.0), pytest.approx(2.0)]  # -log_prob (G_0 - V_0)


def slow(d, gamma, td_lambda, trace_lambda, clips):
    """The same by loops; ``done`` cuts, and goes on to the step's own next value where ``truncated``."""
    steps, batch, parts = d.log_prob.shape
    policy = upgo = value_loss = 0.0
    for b in range(batch):
        v, r = d.value[:steps, b].tolist(), d.reward[:, b].tolist()
        done, truncated = d.done[:, b].tolist(), d.truncated[:, b].tolist()
        after = [
            d.next_value[t, b].item() * (not done[t] or truncated[t]) for t in range(steps)
        ]  # what follows each step
        better = [r[t] + gamma * after[t] >= v[t] for t in range(steps)]
        g_td, g_up = [0.0] * steps, [0.0] * steps
        for t in reversed(range(steps)):
            last = t + 1 == steps or done[t]
            ahead = after[t] if last else (1 - td_lambda) * after[t] + td_lambda * g_td[t + 1]
            g_td[t] = r[t] + gamma * ahead
            g_up[t] = r[t] + gamma * (after[t] if last or not better[t + 1] else g_up[t + 1])
            value_loss += 0.5 * d.weight[t, b].item() * (g_td[t] - v[t]) ** 2
        for p in range(parts):
            rho = [(d.log_prob[t, b, p] - d.behaviour_log_prob[t, b, p]).exp().item() for t in range(steps)]
            vs = list(v)
            for t in reversed(range(steps)):
                last = t + 1 == steps or done[t]
                delta = min(rho[t], clips[0]) * (r[t] + gamma * after[t] - v[t])
                more = 0.0 if last else gamma * trace_lambda * min(rho[t], clips[1]) * (vs[t + 1] - v[t + 1])
                vs[t] = v[t] + delta + more
            for t in range(steps):
                last = t + 1 == steps or done[t]
                adv = min(rho[t], clips[2]) * (r[t] + gamma * (after[t] if last else vs[t + 1]) - v[t])
                scale = d.weight[t, b].item() * d.log_prob[t, b, p].item()
                policy -= scale * adv
                upgo -= scale * min(rho[t], clips[2]) * (g_up[t] - v[t])
    count = steps * batch
    return policy / count, upgo / count, value_loss / count


@pytest.mark.parametrize('clips', [(1.0, 1.0, 1.0), (2.0, 0.7, 1.5)])
@pytest.mark.parametrize('seed', range(4))
def test_against_loops(seed, clips):
    torch.manual_seed(seed)
    steps, batch, parts = 7, 3, 6
    value = torch.randn(steps + 1, batch)
    done = torch.rand(steps, batch) < 0.3
    truncated = done & (torch.rand(steps, batch) < 0.5)
    ends = (done, truncated, value[1:])
    log_prob, behaviour = -torch.rand(steps, batch, parts) * 2, -torch.rand(steps, batch, parts) * 2
    zeros, weight = torch.zeros(steps, batch, parts), torch.rand(steps, batch)
    fields = alphastar_data(log_prob, behaviour, zeros, None, value, torch.randn(steps, batch), weight, *ends)
    loss = alphastar_error(fields, 0.9, 0.8, 0.95, clips)
    expected = slow(fields, 0.9, 0.8, 0.95, clips)
    assert [loss.policy.item(), loss.upgo.item(), loss.value.item()] == pytest.approx(expected, abs=1e-4)
    assert loss.teacher.item() == 0


def test_a_part_that_an_order_does_not_have_adds_nothing():
    torch.manual_seed(0)
    log_prob, behaviour, value = -torch.rand(4, 2, 2), -torch.rand(4, 2, 2), torch.randn(5, 2)
    with_third = [torch.cat([x, torch.zeros(4, 2, 1)], -1) for x in (log_prob, behaviour)]
    rest = (value, torch.randn(4, 2), torch.ones(4, 2))
    found = [
        alphastar_error(alphastar_data(*two, torch.zeros_like(two[0]), None, *rest))
        for two in ((log_prob, behaviour), with_third)
    ]
    assert [x.item() for x in found[0]] == pytest.approx([x.item() for x in found[1]])


def test_shapes_that_do_not_fit_are_told():
    zeros = torch.zeros(2, 3, 6)
    with pytest.raises(ShapeError, match='behaviour_log_prob'):
        alphastar_error(alphastar_data(zeros, zeros[..., :5], zeros, None, torch.zeros(3, 3), zeros[..., 0], None))
