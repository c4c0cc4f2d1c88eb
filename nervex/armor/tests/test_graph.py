import copy

import numpy as np
import pytest
import torch

from nervex.armor import Armor
from nervex.model import FCDiscreteNet, FCValueAC


def armor_of(model, *plugins):
    armor = Armor(model)
    armor.add_plugin('main', 'graph')
    for name, kwargs in plugins:
        armor.add_plugin('main', name, **kwargs)
    return armor


def test_recorded_acting_equals_the_model_and_sees_new_weights():
    model, obs = FCDiscreteNet(4, 3), torch.randn(5, 4)
    armor = armor_of(model, ('argmax_sample', {}))
    for _ in range(4):
        output, expected = armor.forward({'obs': obs}), model(obs)['logit']
        assert torch.allclose(output['logit'], expected, atol=1e-5) and not output['logit'].requires_grad
        assert torch.equal(output['action'], expected.argmax(-1))
        with torch.no_grad():
            for p in model.parameters():
                p.add_(0.1 * torch.randn_like(p))


@pytest.mark.parametrize(
    'plugin, kwargs',
    [
        ('argmax_sample', {}),
        ('multinomial_sample', {}),
        ('eps_greedy_sample', {'eps': 0.5}),
    ],
)
@pytest.mark.parametrize('action_dim', [3, [3, 2]])
def test_arrays_in_arrays_out_with_the_same_choices(plugin, kwargs, action_dim):
    model, obs = FCDiscreteNet(4, action_dim), torch.randn(6, 4)
    seed = {} if plugin == 'argmax_sample' else {'seed': 3}
    armor, plain = armor_of(model, (plugin, seed)), Armor(model)
    plain.add_plugin('main', plugin, **seed)
    got = armor.forward({'obs': obs.numpy()}, **kwargs)['action']
    expected = plain.forward({'obs': obs}, **kwargs)['action']
    heads = [(got, expected)] if action_dim == 3 else zip(got, expected)
    for a, b in heads:
        assert isinstance(a, np.ndarray) and a.dtype == np.int64 and a.tolist() == b.tolist()


def test_arrays_with_masks():
    class Net(torch.nn.Module):
        def forward(self, data):
            return {'logit': data['obs'], 'action_mask': data['mask']}

    armor = armor_of(Net(), ('argmax_sample', {}))
    data = {'obs': np.array([[1.0, 9.0, 2.0]], dtype=np.float32), 'mask': np.array([[1.0, 0.0, 1.0]], dtype=np.float32)}
    assert armor.forward(data)['action'].tolist() == [2] and data['obs'].tolist() == [[1.0, 9.0, 2.0]]


def test_arguments_run_the_model_itself():
    model, obs = FCValueAC(4, 3), torch.randn(5, 4)
    armor = armor_of(model)
    assert set(armor.forward({'obs': obs})) == {'logit', 'value'}
    assert set(armor.forward({'obs': obs}, param={'mode': 'compute_action'})) == {'logit'}
    assert set(armor.forward({'obs': obs}, mode='compute_action', data_id=[0])) == {'logit'}


def test_a_new_model_and_a_copied_armor_are_recorded_anew():
    armor, obs = armor_of(FCDiscreteNet(4, 3)), torch.randn(5, 4)
    armor.forward({'obs': obs})
    twin = copy.deepcopy(armor)
    with torch.no_grad():
        twin.model.head.value.bias.add_(7.0)
    assert torch.allclose(twin.forward({'obs': obs})['logit'], twin.model(obs)['logit'], atol=1e-5)
    assert torch.allclose(armor.forward({'obs': obs})['logit'], armor.model(obs)['logit'], atol=1e-5)
    armor.model = FCDiscreteNet(4, 3)
    assert torch.allclose(armor.forward({'obs': obs})['logit'], armor.model(obs)['logit'], atol=1e-5)


def test_it_must_come_first():
    armor = Armor(FCDiscreteNet(4, 3))
    armor.add_plugin('main', 'argmax_sample')
    with pytest.raises(ValueError, match='before all others'):
        armor.add_plugin('main', 'graph')
