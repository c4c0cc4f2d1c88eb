import copy

import pytest
import torch
from torch import nn

from nervex.torch_utils import Adam, FlatParameters
from nervex.utils.errors import TrainingError


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))


def test_parameters_are_views_of_one_tensor_in_module_order():
    module = net()
    before = [p.detach().clone() for p in module.parameters()]
    flat = FlatParameters(module)
    assert len(flat) == 3 * 5 + 5 + 5 * 2 + 2 == flat.data.numel()
    assert torch.equal(flat.data, torch.cat([b.reshape(-1) for b in before]))
    flat.data.zero_()
    assert all(p.abs().sum() == 0 for p in module.parameters())


def test_gradient_is_that_of_backward():
    module = net()
    flat, x = FlatParameters(module), torch.randn(4, 3)
    grad = flat.gradient(module(x).pow(2).sum())
    assert all(p.grad is None for p in module.parameters())
    module(x).pow(2).sum().backward()
    assert torch.allclose(grad, torch.cat([p.grad.reshape(-1) for p in module.parameters()]), atol=1e-6)


def test_unused_parameters_have_zero_gradient_and_are_named():
    module = net()
    flat = FlatParameters(module)
    flat.gradient(module[0](torch.ones(1, 3)).sum())  # the second layer (positions 2 and 3) is not reached
    assert flat.unused == (2, 3)
    assert flat.grad[20:].abs().sum() == 0 and flat.grad[:20].abs().sum() > 0


def test_tied_weights_are_stored_once():
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    module[1].weight = module[0].weight
    assert len(FlatParameters(module)) == 16 + 4 + 4


def test_frozen_parameters_stay_out():
    module = net()
    module[0].requires_grad_(False)
    assert len(FlatParameters(module)) == 12


def test_several_modules_and_bare_parameters_make_one_flat_tensor():
    actor, log_alpha = net(), nn.Parameter(torch.zeros(1))
    flat = FlatParameters([actor, log_alpha])
    flat.data[-1] = 3.0
    assert len(flat) == 33 and log_alpha.item() == 3.0
    flat.check()


def test_mixed_dtypes_are_refused_with_both_names():
    module = net()
    module[2].double()
    with pytest.raises(ValueError, match=r"'0.weight' is torch.float32.*'2.weight' is torch.float64"):
        FlatParameters(module)


@pytest.mark.parametrize(
    'source, text',
    [
        ([], 'no trainable'),
        (['x'], 'str'),
        ([torch.ones(1) * torch.ones(1, requires_grad=True)], 'computed from others'),
    ],
)
def test_wrong_sources_are_refused(source, text):
    with pytest.raises((ValueError, TypeError), match=text):
        FlatParameters(source)


def test_of_finds_the_flat_of_exactly_this_module():
    module = net()
    assert FlatParameters.of(module) is None
    flat = FlatParameters(module)
    assert FlatParameters.of(module) is flat
    assert FlatParameters.of(copy.deepcopy(module)) is None


def test_registry_does_not_keep_the_module_alive():
    import gc
    import weakref

    module = net()
    FlatParameters(module)
    ref = weakref.ref(module)
    del module
    gc.collect()
    assert ref() is None


@pytest.mark.parametrize(
    'harmless',
    [
        lambda m: m.zero_grad(),
        lambda m: m.train(False),
        lambda m: m.to('cpu', torch.float32),
        lambda m: nn.init.zeros_(m[0].weight),
        lambda m: torch.nn.utils.spectral_norm(m[0]),
        lambda m: torch.nn.utils.parametrizations.spectral_norm(m[0]),
        lambda m: m.load_state_dict(net().state_dict()),
    ],
)
def test_harmless_calls_keep_it_flat(harmless):
    module = net()
    flat = FlatParameters(module)
    harmless(module)
    module(torch.ones(1, 3))
    flat.check()
    assert flat.intact()


def double_and_back(m):
    m.double().float()


def replace_parameter(m):
    m[0].weight = nn.Parameter(torch.zeros(5, 3))


def replace_data(m):
    m[0].weight.data = torch.zeros(5, 3)


def add_layer(m):
    m.append(nn.Linear(2, 2))


def drop_layer(m):
    del m[2]


def freeze(m):
    m[0].requires_grad_(False)


@pytest.mark.parametrize(
    'change, text',
    [
        (double_and_back, 'storage was replaced'),
        (replace_data, 'storage was replaced'),
        (FlatParameters, 'storage was replaced'),
        (replace_parameter, "'0.weight' is not part"),
        (add_layer, "'3.weight' is not part"),
        (drop_layer, 'no longer in the module'),
        (freeze, "'0.weight' was frozen"),
        (lambda m: m.load_state_dict(net().state_dict(), assign=True), "'0.weight' is not part"),
    ],
)
def test_changes_that_break_flatness_are_found_and_named(change, text):
    module = net()
    flat = FlatParameters(module)
    change(module)
    with pytest.raises(TrainingError, match=text):
        flat.check()


def test_a_broken_flat_is_no_longer_offered():
    module = net()
    FlatParameters(module)
    replace_parameter(module)
    assert FlatParameters.of(module) is None


def test_optimizer_refuses_a_broken_flat_at_the_next_step():
    module = net()
    optimizer = Adam(FlatParameters(module), lr=0.1)
    optimizer.minimize(module(torch.ones(1, 3)).sum())
    module.load_state_dict(net().state_dict(), assign=True)
    with pytest.raises(TrainingError, match='assign=True'):
        optimizer.apply()


def test_weights_changed_between_forward_and_backward_raise():
    module = net()
    flat = FlatParameters(module)
    optimizer = Adam(flat, lr=0.1)
    stale, fresh = module(torch.ones(1, 3)).sum(), module(torch.ones(1, 3)).sum()
    optimizer.minimize(fresh)
    with pytest.raises(RuntimeError, match='modified by an inplace operation'):
        flat.gradient(stale)


def test_deepcopy_is_an_ordinary_module():
    module = net()
    flat = FlatParameters(module)
    other = copy.deepcopy(module)
    flat.data.zero_()
    assert all(p.abs().sum() > 0 for p in other.parameters())
    assert len({p.untyped_storage().data_ptr() for p in other.parameters()}) == 4


def test_target_copy_and_momentum_include_buffers_and_frozen_parameters():
    source = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Linear(5, 1).requires_grad_(False))
    target = copy.deepcopy(source)
    a, b = FlatParameters(source), FlatParameters(target)
    a.data.fill_(2.0)
    b.data.fill_(1.0)
    source(torch.randn(8, 3))
    source[2].weight.data.fill_(7.0)
    b.copy_from(a, theta=0.25)  # 0.75 * 1 + 0.25 * 2
    assert torch.allclose(b.data, torch.full_like(b.data, 1.25))
    assert torch.equal(target[1].running_mean, source[1].running_mean) and target[1].num_batches_tracked == 1
    assert target[2].weight.unique().item() == 7.0
    b.copy_from(a)
    assert torch.equal(a.data, b.data)


def test_copy_between_different_shapes_is_refused():
    with pytest.raises(ValueError, match='different shapes'):
        FlatParameters(nn.Linear(2, 3)).copy_from(FlatParameters(nn.Linear(3, 2)))
