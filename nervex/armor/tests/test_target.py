import copy

import pytest
import torch

from nervex.armor import Armor
from nervex.torch_utils.flat import FlatParameters


def net_of(value):
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    with torch.no_grad():
        for p in net.parameters():
            p.fill_(value)
        net[1].running_mean.fill_(value)
        net[1].num_batches_tracked.fill_(int(value))
    return net


def armor_of(**kwargs):
    armor = Armor(net_of(1.0))
    armor.add_model('target', net_of(0.0), **kwargs)
    return armor


def weight(armor):
    return armor.target_model[0].weight[0, 0].item()


@pytest.mark.parametrize('flat', [True, False])
@pytest.mark.parametrize('as_module', [True, False])
def test_assign_copies_on_every_third_call(as_module, flat):
    armor = armor_of(update_type='assign', update_kwargs={'freq': 3})
    flats = [FlatParameters(armor.model), FlatParameters(armor.target_model)] if flat else []
    seen = []
    for step in range(1, 7):
        with torch.no_grad():
            armor.model[0].weight.fill_(float(step))
        armor.target_update(armor.model if as_module else armor.state_dict()['model'])
        seen.append(weight(armor))
    assert seen == [0.0, 0.0, 3.0, 3.0, 3.0, 6.0]
    assert armor.target_model[1].running_mean.tolist() == [1.0] * 3
    assert armor.target_model[1].num_batches_tracked.item() == 1
    assert all(f.intact() for f in flats)


@pytest.mark.parametrize('flat', [True, False])
@pytest.mark.parametrize('as_module', [True, False])
def test_momentum_moves_parameters_and_copies_buffers(as_module, flat):
    armor = armor_of(update_type='momentum', update_kwargs={'theta': 0.25})
    flats = [FlatParameters(armor.model), FlatParameters(armor.target_model)] if flat else []
    for expected in (0.25, 0.4375):  # 0 + 0.25 (1 - 0); 0.25 + 0.25 (1 - 0.25)
        armor.target_update(armor.model if as_module else armor.state_dict()['model'])
        assert weight(armor) == pytest.approx(expected)
        assert armor.target_model[1].weight[0].item() == pytest.approx(expected)
        assert armor.target_model[1].running_mean.tolist() == [1.0] * 3
    assert armor.model[0].weight[0, 0].item() == 1.0 and len(flats) in (0, 2)


def test_direct_copies_now_and_counts_anew():
    armor = armor_of(update_type='assign', update_kwargs={'freq': 2})
    armor.target_update(armor.model)
    armor.target_update(armor.model, direct=True)
    assert weight(armor) == 1.0
    with torch.no_grad():
        armor.model[0].weight.fill_(5.0)
    armor.target_update(armor.model)
    assert weight(armor) == 1.0
    armor.target_update(armor.model)
    assert weight(armor) == 5.0
    momentum = armor_of(update_type='momentum', update_kwargs={'theta': 0.25})
    momentum.target_update(momentum.model, direct=True)
    assert weight(momentum) == 1.0


def test_reset_counts_anew_and_the_count_is_saved():
    armor = armor_of(update_type='assign', update_kwargs={'freq': 2})
    armor.target_update(armor.model)
    saved = copy.deepcopy(armor.run_state_dict())
    armor.target_reset()
    armor.target_update(armor.model)
    assert weight(armor) == 0.0
    armor.load_run_state_dict(saved)
    armor.target_update(armor.model)
    assert weight(armor) == 1.0


def test_source_stays_untouched_and_target_keeps_no_graph():
    armor = armor_of(update_type='momentum', update_kwargs={'theta': 0.5})
    armor.target_update(armor.model)
    assert all(p.is_leaf and p.grad_fn is None for p in armor.target_model.parameters())
    assert all((p == 1.0).all() for p in armor.model.parameters())


def test_a_source_that_does_not_fit_is_refused_before_anything_is_written():
    armor = armor_of(update_type='momentum', update_kwargs={'theta': 0.5})
    with pytest.raises(ValueError, match=r"missing \['1.bias'"):
        armor.target_update(torch.nn.Sequential(torch.nn.Linear(2, 3)))
    with pytest.raises(ValueError, match=r'0.weight \(3, 2\) against \(3, 4\)'):
        armor.target_update(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)))
    assert weight(armor) == 0.0


@pytest.mark.parametrize(
    'kwargs',
    [
        {'update_type': 'copy'},
        {'update_type': 'assign'},
        {'update_type': 'assign', 'update_kwargs': {'theta': 0.1}},
        {'update_type': 'assign', 'update_kwargs': {'freq': 0}},
        {'update_type': 'assign', 'update_kwargs': {'freq': True}},
        {'update_type': 'momentum', 'update_kwargs': {'theta': 1.5}},
    ],
)
def test_wrong_settings_are_refused(kwargs):
    with pytest.raises(ValueError):
        armor_of(**kwargs)


def test_a_source_that_is_no_model_is_a_type_error():
    with pytest.raises(TypeError, match='follows a module or a state dict, got a NoneType'):
        armor_of(update_kwargs={'freq': 1}).target_update(None)


def test_tied_weights_and_double_precision():
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)).double()
    net[1].weight = net[0].weight
    armor = Armor(net)
    armor.add_model('target', update_type='momentum', update_kwargs={'theta': 0.5})
    with torch.no_grad():
        net[0].weight.add_(1.0)
    before = armor.target_model[0].weight.clone()
    armor.target_update(net.state_dict())
    assert armor.target_model[1].weight is armor.target_model[0].weight
    assert torch.allclose(armor.target_model[0].weight, before + 0.5)


def test_parts_that_are_flat_follow_part_by_part():
    model = torch.nn.ModuleDict({'actor': net_of(1.0), 'critic': net_of(2.0)})
    armor = Armor(model)
    armor.add_model('target', update_type='momentum', update_kwargs={'theta': 0.5})
    flats = [FlatParameters(m[part]) for m in (armor.model, armor.target_model) for part in ('actor', 'critic')]
    flats[0].data.fill_(5.0)
    model['critic'][1].running_mean.fill_(7.0)
    armor.target_update(model)
    assert armor.target_model['actor'][0].weight[0, 0].item() == 3.0  # 1 + 0.5 (5 - 1)
    assert armor.target_model['critic'][0].weight[0, 0].item() == 2.0
    assert armor.target_model['critic'][1].running_mean.tolist() == [7.0] * 3
    assert all(f.intact() for f in flats)


def test_a_part_that_shares_a_layer_still_follows():
    """The second flat tensor takes the shared layer away from the first: then the parts are copied the slow way."""
    shared = torch.nn.Linear(2, 2)
    model = torch.nn.ModuleDict(
        {
            'actor': torch.nn.Sequential(shared, torch.nn.Linear(2, 1)),
            'critic': torch.nn.Sequential(shared, torch.nn.Linear(2, 1)),
        }
    )
    armor = Armor(model)
    armor.add_model('target', update_type='momentum', update_kwargs={'theta': 0.5})
    FlatParameters(model['actor']), FlatParameters(model['critic'])
    with torch.no_grad():
        shared.weight.fill_(4.0)
        armor.target_model['actor'][0].weight.fill_(0.0)
    armor.target_update(model)
    assert armor.target_model['critic'][0].weight.tolist() == [[2.0, 2.0], [2.0, 2.0]]
