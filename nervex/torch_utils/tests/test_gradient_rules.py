import math

import pytest
import torch
from torch import nn

from nervex.torch_utils import Adam, FlatParameters, RMSprop
from nervex.torch_utils.gradient_rules import GradientRules

# Two parameters of one number each, so that norms go over several tensors. beta2 = 0.5, coef = 1: short sums.
# Momentum rules after the gradients (2, 0) and (3, 4), the second step being the first that is judged:
#   average of g^2: (2, 0), then 0.5 * (2, 0) + 0.5 * (9, 16) = (5.5, 8); divided by 1 - 0.5^2: (22/3, 32/3)
#   bounds: (sqrt(22/3), sqrt(32/3)) = (2.708, 3.266), their norm sqrt(18) = 4.243; the norm of the gradient is 5
BOUNDS = (math.sqrt(22 / 3), math.sqrt(32 / 3))
SCALE = math.sqrt(18) / 5
CASES = {
    'clip_value': (dict(clip_value=3.5), (3.0, 3.5)),
    'clip_norm': (dict(clip_value=2.5), (1.5, 2.0)),
    'clip_momentum': (dict(clip_coef=1.0, clip_momentum_timestep=1), BOUNDS),
    'clip_momentum_norm': (dict(clip_coef=1.0, clip_momentum_timestep=1), (3 * SCALE, 4 * SCALE)),
    'ignore_value': (dict(ignore_value=3.5), (0.0, 0.0)),
    'ignore_norm': (dict(ignore_value=4.9), (0.0, 0.0)),
    'ignore_momentum': (dict(ignore_coef=1.0, ignore_momentum_timestep=1), (0.0, 0.0)),
    'ignore_momentum_norm': (dict(ignore_coef=1.0, ignore_momentum_timestep=1), (0.0, 0.0)),
}
GENTLE = {  # the same rules with limits that the gradient (3, 4) does not reach
    'clip_value': dict(clip_value=4.0),
    'clip_norm': dict(clip_value=5.1),
    'ignore_value': dict(ignore_value=4.0),
    'ignore_norm': dict(ignore_value=5.0),
    'clip_momentum': dict(clip_coef=1.3, clip_momentum_timestep=1),
    'clip_momentum_norm': dict(clip_coef=1.2, clip_momentum_timestep=1),
    'ignore_momentum': dict(ignore_coef=1.3, ignore_momentum_timestep=1),
    'ignore_momentum_norm': dict(ignore_coef=1.2, ignore_momentum_timestep=1),
}


def optimizer(kind: str, flat: bool, mode: str, **options):
    params = [nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))]
    rules = {('grad_clip_type' if mode.startswith('clip') else 'grad_ignore_type'): mode, **options}
    source = FlatParameters(params) if flat else params
    if kind == 'adam':
        return params, Adam(source, lr=0.1, betas=(0.9, 0.5), **rules)
    return params, RMSprop(source, lr=0.1, alpha=0.5, **rules)


def give(params, opt, gradient):
    for p, g in zip(params, gradient):
        p.grad = torch.tensor([g])
    opt.step()
    return tuple(p.grad.item() for p in params)


@pytest.mark.parametrize('flat', [False, True])
@pytest.mark.parametrize('kind', ['adam', 'rmsprop'])
@pytest.mark.parametrize('mode', list(CASES))
def test_rule_by_hand(mode, kind, flat):
    options, expected = CASES[mode]
    params, opt = optimizer(kind, flat, mode, **options)
    assert give(params, opt, (2.0, 0.0)) == (2.0, 0.0)
    assert give(params, opt, (3.0, 4.0)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize('flat', [False, True])
@pytest.mark.parametrize('mode', list(GENTLE))
def test_gradient_within_the_limit_is_untouched(mode, flat):
    params, opt = optimizer('adam', flat, mode, **GENTLE[mode])
    give(params, opt, (2.0, 0.0))
    assert give(params, opt, (3.0, 4.0)) == (3.0, 4.0)


@pytest.mark.parametrize('mode', ['clip_momentum', 'ignore_momentum', 'clip_momentum_norm', 'ignore_momentum_norm'])
def test_momentum_rules_wait_for_their_timestep_but_keep_count(mode):
    kind = mode.split('_')[0]
    params, opt = optimizer('adam', True, mode, **{f'{kind}_coef': 1.0, f'{kind}_momentum_timestep': 3})
    for _ in range(3):
        assert give(params, opt, (1.0, 1.0)) == (1.0, 1.0)
    assert give(params, opt, (100.0, 1.0)) != (100.0, 1.0)


def test_momentum_average_is_of_the_gradient_before_clipping():
    params, opt = optimizer('adam', False, 'clip_momentum', clip_coef=0.1, clip_momentum_timestep=0)
    clipped = give(params, opt, (2.0, 4.0))  # v = g^2, the bound is 0.1 * |g|
    assert clipped == pytest.approx((0.2, 0.4))
    assert [opt.state[p]['grad_average'].item() for p in params] == pytest.approx([0.5 * 4, 0.5 * 16])


def test_negative_elements_are_clipped_to_the_negative_bound():
    params, opt = optimizer('adam', True, 'clip_momentum', clip_coef=0.5, clip_momentum_timestep=0)
    assert give(params, opt, (-2.0, 4.0)) == pytest.approx((-1.0, 2.0))


@pytest.mark.parametrize('norm_type, norm', [(1.0, 7.0), (2.0, 5.0), (math.inf, 4.0)])
def test_norm_types(norm_type, norm):
    grads = [torch.tensor([3.0]), torch.tensor([-4.0])]
    returned = GradientRules(grad_clip_type='clip_norm', clip_value=1.0, clip_norm_type=norm_type).apply(grads)
    assert returned.item() == pytest.approx(norm) and grads[1].item() == pytest.approx(-4.0 / norm, rel=1e-5)


def test_clip_norm_equals_torch():
    torch.manual_seed(0)
    params = [nn.Parameter(torch.zeros(3, 4)), nn.Parameter(torch.zeros(7))]
    for p in params:
        p.grad = torch.randn_like(p)
    mine = [p.grad.clone() for p in params]
    norm = GradientRules(grad_clip_type='clip_norm', clip_value=0.5).apply(mine)
    assert norm.item() == pytest.approx(torch.nn.utils.clip_grad_norm_(params, 0.5).item())
    assert all(torch.allclose(m, p.grad) for m, p in zip(mine, params))


@pytest.mark.parametrize('bad', [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize('mode', [m for m in CASES if m.startswith('ignore')])
def test_ignore_rules_drop_a_gradient_that_is_not_finite(mode, bad):
    params, opt = optimizer('adam', True, mode, **CASES[mode][0])
    give(params, opt, (1.0, 1.0))
    before = [p.item() for p in params]
    assert give(params, opt, (bad, 1.0)) == (0.0, 0.0)
    assert give(params, opt, (1.0, 1.0)) == (1.0, 1.0)  # the moving average was not spoilt either
    assert all(math.isfinite(p.item()) for p in params) and [p.item() for p in params] != before


def test_ignore_judges_before_clip_and_both_apply():
    rules = GradientRules(
        grad_clip_type='clip_value', clip_value=1.0, grad_ignore_type='ignore_value', ignore_value=3.0
    )
    small, large = [torch.tensor([2.0])], [torch.tensor([4.0])]
    rules.apply(small)
    rules.apply(large)
    assert small[0].item() == 1.0 and large[0].item() == 0.0


def test_norm_is_reported_before_clipping_and_get_grad_after():
    params, opt = optimizer('adam', True, 'clip_norm', clip_value=2.5)
    give(params, opt, (3.0, 4.0))
    assert opt.grad_norm.item() == pytest.approx(5.0) and opt.get_grad() == pytest.approx(2.5, rel=1e-5)


@pytest.mark.parametrize(
    'options, text',
    [
        (dict(grad_clip_type='clip_nrom', clip_value=1.0), "did you mean 'clip_norm'"),
        (dict(grad_clip_type='ignore_value', clip_value=1.0), 'unknown grad_clip_type'),
        (dict(grad_clip_type='clip_value'), 'needs clip_value > 0, got None'),
        (dict(grad_ignore_type='ignore_norm', ignore_value=-1.0), 'needs ignore_value > 0, got -1'),
        (dict(grad_clip_type='clip_momentum', clip_coef=0.0), 'clip_coef must be positive'),
    ],
)
def test_wrong_settings_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        Adam([nn.Parameter(torch.zeros(1))], **options)


def test_unknown_argument_names_the_nearest():
    with pytest.raises(TypeError, match="did you mean 'clip_value'"):
        Adam([nn.Parameter(torch.zeros(1))], clip_valu=1.0)
