import copy
import io
import warnings

import pytest
import torch
from torch import nn

from nervex.torch_utils import Adam, FlatParameters, RMSprop

KINDS = {
    'adam': (Adam, torch.optim.Adam, {}, {}),
    'adam_decay': (Adam, torch.optim.Adam, dict(weight_decay=0.1, amsgrad=True), dict(weight_decay=0.1, amsgrad=True)),
    'adamw': (Adam, torch.optim.AdamW, dict(optim_type='adamw', weight_decay=0.1), dict(weight_decay=0.1)),
    'maximize': (Adam, torch.optim.Adam, dict(maximize=True), dict(maximize=True)),
    'rmsprop': (RMSprop, torch.optim.RMSprop, {}, {}),
    'rmsprop_all': (RMSprop, torch.optim.RMSprop, *[dict(momentum=0.9, centered=True, weight_decay=0.1)] * 2),
}


class TwoBranches(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body, self.left, self.right = nn.Linear(3, 8), nn.Linear(8, 1), nn.Linear(8, 1)

    def forward(self, x, left=True, right=True):
        h = torch.tanh(self.body(x))
        return (self.left(h).sum() if left else 0.0) + (self.right(h).pow(2).sum() if right else 0.0)


def distance(a, b):
    return max((x - y).abs().max().item() for x, y in zip(a.parameters(), b.parameters()))


def backward_step(opt, loss):
    opt.zero_grad()
    loss.backward()
    opt.step()


def batches(count):
    return torch.randn(count, 4, 3, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize('way', ['step', 'minimize'])
@pytest.mark.parametrize('flat', [False, True])
@pytest.mark.parametrize('kind', list(KINDS))
def test_equal_to_torch(kind, flat, way):
    mine, theirs, my_options, their_options = KINDS[kind]
    model, reference = TwoBranches(), TwoBranches()
    opt = mine(FlatParameters(model) if flat else model.parameters(), lr=1e-2, **my_options)
    reference_opt = theirs(reference.parameters(), lr=1e-2, **their_options)
    for x in batches(20):
        backward_step(reference_opt, reference(x))
        backward_step(opt, model(x)) if way == 'step' else opt.minimize(model(x))
    assert distance(model, reference) < 2e-6


@pytest.mark.parametrize('options', [dict(fused=True), dict(foreach=True), dict(foreach=False)])
def test_implementations_of_torch_can_be_chosen_and_agree(options):
    model, reference = TwoBranches(), TwoBranches()
    opt = Adam(model.parameters(), lr=1e-2, grad_clip_type='clip_norm', clip_value=0.5, **options)
    flat_opt = Adam(FlatParameters(reference), lr=1e-2, grad_clip_type='clip_norm', clip_value=0.5)
    for x in batches(20):
        opt.minimize(model(x))
        flat_opt.minimize(reference(x))
    assert distance(model, reference) < 2e-6


def test_private_kernel_and_fallback_agree(monkeypatch):
    model, reference = TwoBranches(), TwoBranches()
    options = dict(lr=1e-2, optim_type='adamw', weight_decay=0.1)
    opt, reference_opt = (Adam(FlatParameters(m), **options) for m in (model, reference))
    for x in batches(20):
        opt.minimize(model(x))
        with monkeypatch.context() as patch:
            patch.setattr('nervex.torch_utils.optimizer_helper._DIRECT', False)
            reference_opt.minimize(reference(x))
    assert distance(model, reference) < 1e-6


@pytest.mark.parametrize('kind', ['adam', 'adamw', 'rmsprop'])
def test_layer_left_out_of_some_losses_is_skipped_as_torch_does(kind):
    mine, theirs, my_options, their_options = KINDS[kind]
    model, reference = TwoBranches(), TwoBranches()
    opt = mine(FlatParameters(model), lr=1e-2, **my_options)
    reference_opt = theirs(reference.parameters(), lr=1e-2, **their_options)
    for i, x in enumerate(batches(12)):
        right = i % 3 == 0
        before = model.right.weight.detach().clone()
        backward_step(reference_opt, reference(x, right=right))
        backward_step(opt, model(x, right=right)) if i % 2 else opt.minimize(model(x, right=right))
        assert right or torch.equal(model.right.weight, before)
    assert distance(model, reference) < 2e-6


def test_momentum_rules_agree_between_flat_and_ordinary_with_a_layer_left_out():
    rules = dict(grad_clip_type='clip_momentum', clip_coef=0.3, clip_momentum_timestep=2)
    model, reference = TwoBranches(), TwoBranches()
    opt, reference_opt = Adam(FlatParameters(model), lr=1e-2, **rules), Adam(reference.parameters(), lr=1e-2, **rules)
    for i, x in enumerate(batches(12)):
        opt.minimize(model(x, right=i % 3 != 1))
        reference_opt.minimize(reference(x, right=i % 3 != 1))
    assert distance(model, reference) < 2e-6


def through_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize('source', ['flat', 'ordinary', 'torch'])
@pytest.mark.parametrize('target', ['flat', 'ordinary', 'torch'])
def test_state_goes_on_exactly_between_all_kinds(source, target):
    def build(kind, model):
        if kind == 'torch':
            return torch.optim.Adam(model.parameters(), lr=1e-2)
        return Adam(FlatParameters(model) if kind == 'flat' else model.parameters(), lr=1e-2)

    whole, first = TwoBranches(), TwoBranches()
    whole_opt, first_opt = build('torch', whole), build(source, first)
    xs = batches(10)
    for x in xs[:5]:
        backward_step(whole_opt, whole(x))
        backward_step(first_opt, first(x))
    second = TwoBranches()
    second.load_state_dict(first.state_dict())
    second_opt = build(target, second)
    second_opt.load_state_dict(through_file(first_opt.state_dict()))
    for x in xs[5:]:
        backward_step(whole_opt, whole(x))
        backward_step(second_opt, second(x))
    assert distance(whole, second) < 1e-6


@pytest.mark.parametrize('flat', [False, True])
def test_averages_of_the_rules_and_uneven_steps_are_in_the_state(flat):
    rules = dict(grad_clip_type='clip_momentum', clip_coef=0.3, clip_momentum_timestep=3)

    def build(model):
        return Adam(FlatParameters(model) if flat else model.parameters(), lr=1e-2, **rules)

    whole, xs = TwoBranches(), batches(10)
    opt = build(whole)
    for i, x in enumerate(xs[:5]):
        opt.minimize(whole(x, right=i != 2))
    other = copy.deepcopy(whole)
    other_opt = build(other)
    other_opt.load_state_dict(through_file(opt.state_dict()))
    for x in xs[5:]:
        opt.minimize(whole(x))
        other_opt.minimize(other(x))
    assert distance(whole, other) == 0.0


def test_loading_a_state_leaves_the_file_data_alone():
    model = TwoBranches()
    opt = Adam(FlatParameters(model), lr=1e-2)
    opt.minimize(model(batches(1)[0]))
    state = through_file(opt.state_dict())
    kept = copy.deepcopy(state)
    opt.load_state_dict(state)
    opt.minimize(model(batches(1)[0]))
    assert len(kept['state']) == 6
    assert all(torch.equal(kept['state'][i][k], v) for i, s in state['state'].items() for k, v in s.items())


@pytest.mark.parametrize('flat', [False, True])
@pytest.mark.parametrize('way', ['step', 'minimize'])
def test_schedulers_change_the_rate_without_a_warning(flat, way):
    model = TwoBranches()
    opt = Adam(FlatParameters(model) if flat else model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(opt, 1, gamma=0.0)
    x = batches(1)[0]
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        backward_step(opt, model(x)) if way == 'step' else opt.minimize(model(x))
        schedule.step()
    before = copy.deepcopy(model)
    opt.minimize(model(x))
    assert distance(model, before) == 0.0 and opt.param_groups[0]['lr'] == 0.0


def test_backward_twice_accumulates_on_flat_parameters():
    model, reference = TwoBranches(), TwoBranches()
    opt, reference_opt = Adam(FlatParameters(model), lr=1e-2), torch.optim.Adam(reference.parameters(), lr=1e-2)
    for _ in range(3):
        for m, o in ((model, opt), (reference, reference_opt)):
            o.zero_grad(set_to_none=False)
            for x in batches(2):
                m(x).backward()
            o.step()
    assert distance(model, reference) < 1e-6


def test_zero_grad_and_create_graph_cannot_detach_the_gradient():
    model = TwoBranches()
    opt = Adam(FlatParameters(model), lr=1e-2)
    for zero, create in ((model.zero_grad, False), (opt.zero_grad, True)):
        zero()
        before = copy.deepcopy(model)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # torch warns of cycles through create_graph
            model(batches(1)[0]).backward(create_graph=create)
        opt.step()
        assert distance(model, before) > 1e-3


def test_gradient_norm_is_there_before_a_step_and_without_any_gradient():
    model = TwoBranches()
    for source in (model.parameters(), FlatParameters(model)):
        model.zero_grad()
        opt = Adam(source)
        assert opt.get_grad() == 0.0
        model(batches(1)[0]).backward()
        expected = torch.cat([p.grad.reshape(-1) for p in model.parameters()]).norm().item()
        assert opt.get_grad() == pytest.approx(expected)


def test_minimize_reports_the_norm_only_where_a_rule_needs_it():
    model = TwoBranches()
    assert Adam(FlatParameters(model)).minimize(model(batches(1)[0])) is None
    opt = Adam(FlatParameters(model), grad_clip_type='clip_norm', clip_value=1e9)
    loss = model(batches(1)[0])
    grads = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
    expected = torch.cat([g.reshape(-1) for g in grads])
    assert opt.minimize(loss).item() == pytest.approx(expected.norm().item())


def test_closures_and_groups():
    model = TwoBranches()
    opt = Adam([{'params': model.body.parameters()}, {'params': model.left.parameters(), 'lr': 0.0}], lr=1e-2)
    before = copy.deepcopy(model)
    loss = opt.step(lambda: (model(batches(1)[0]).backward(), torch.tensor(3.0))[1])
    assert loss.item() == 3.0 and distance(model.left, before.left) == 0.0 and distance(model.body, before.body) > 0.0
    with pytest.raises(ValueError, match='one parameter group'):
        Adam(FlatParameters(model)).add_param_group({'params': [nn.Parameter(torch.zeros(1))]})


def test_wrong_optim_type_is_refused():
    with pytest.raises(ValueError, match="did you mean 'adamw'"):
        Adam([nn.Parameter(torch.zeros(1))], optim_type='adam_w')


def test_float64_and_rates_as_tensors():
    model = TwoBranches().double()
    opt = Adam(FlatParameters(model), lr=torch.tensor(1e-2))
    reference = TwoBranches().double()
    reference_opt = torch.optim.Adam(reference.parameters(), lr=1e-2)
    for x in batches(5).double():
        opt.minimize(model(x))
        backward_step(reference_opt, reference(x))
    assert distance(model, reference) < 1e-8


@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs CUDA')
def test_flat_parameters_on_cuda():
    model, reference = TwoBranches().cuda(), TwoBranches().cuda()
    opt, reference_opt = Adam(FlatParameters(model), lr=1e-2), torch.optim.Adam(reference.parameters(), lr=1e-2)
    for x in batches(5).cuda():
        opt.minimize(model(x))
        backward_step(reference_opt, reference(x))
    assert distance(model, reference) < 1e-5
