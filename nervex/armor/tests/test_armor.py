import copy
import pickle

import pytest
import torch

from nervex.armor import (
    ActionNoiseHelper,
    Armor,
    BaseArmor,
    EpsGreedySampleHelper,
    HiddenStateHelper,
    IArmorPlugin,
    IArmorStatefulPlugin,
    TargetNetworkHelper,
    add_plugin,
    register_plugin,
)
from nervex.utils.registry_factory import ARMOR_PLUGIN_REGISTRY


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 4)

    def forward(self, data, scale=1.0):
        return {'logit': self.fc(data['obs']) * scale}


OBS = {'obs': torch.randn(5, 3)}


class AddOne(IArmorPlugin):
    """Written by wrapping."""

    def __init__(self, amount=1.0):
        self.amount = amount

    def wrap(self, forward):
        def add_forward(data, **kwargs):
            output = forward(data, **kwargs)
            return {**output, 'logit': output['logit'] + self.amount}

        return add_forward


class Double(IArmorPlugin):
    """Written by replacing armor.forward."""

    @classmethod
    def register(cls, armor, factor=2.0):
        inner = armor.forward

        def double_forward(*args, **kwargs):
            output = inner(*args, **kwargs)
            return {**output, 'logit': output['logit'] * factor}

        armor.forward = double_forward


class CountCalls(IArmorStatefulPlugin):
    def __init__(self):
        self.calls = 0

    def wrap(self, forward):
        def counting(data, **kwargs):
            self.calls += 1
            return forward(data, **kwargs)

        return counting

    def reset(self, data_id=None):
        self.calls = 0

    def state_dict(self):
        return {'calls': self.calls}

    def load_state_dict(self, state):
        self.calls = state['calls']


def test_base_armor_runs_the_model():
    armor = BaseArmor(Net())
    assert torch.equal(armor.forward(OBS)['logit'], armor.model(OBS)['logit'])
    expected = 3.0 * armor.model(OBS)['logit']
    assert torch.equal(armor.forward(OBS, param={'scale': 3.0})['logit'], expected)
    assert torch.equal(armor.forward(OBS, scale=3.0, data_id=[0])['logit'], expected)


def test_state_dict_is_that_of_the_model_under_one_key():
    armor, other = Armor(Net()), Armor(Net())
    assert set(armor.state_dict()) == {'model'}
    other.load_state_dict(armor.state_dict())
    assert torch.equal(other.model.fc.weight, armor.model.fc.weight)


def test_prefix_routes_to_the_other_model():
    armor = Armor(Net())
    armor.add_model('target', update_type='assign', update_kwargs={'freq': 1})
    armor.add_model('teacher', Net(), teacher_cfg={'weight': 2})
    armor.mode(train=False)
    armor.target_mode(train=True)
    assert not armor.model.training and armor.target_model.training
    assert armor.target_model is not armor.model
    assert torch.equal(armor.target_forward(OBS)['logit'], armor.forward(OBS)['logit'])
    assert not torch.equal(armor.teacher_forward(OBS)['logit'], armor.forward(OBS)['logit'])
    assert armor.teacher_cfg == {'weight': 2} == armor.teacher_model.teacher_cfg
    armor.reset()
    armor.target_reset(data_id=[1])
    new = Net()
    armor.target_model = new
    assert armor.target_model is new and torch.equal(armor.target_forward(OBS)['logit'], new(OBS)['logit'])
    armor.model = new
    assert armor.model is new


def test_target_is_a_copy_not_an_alias():
    armor = Armor(Net())
    armor.add_model('target', update_type='assign', update_kwargs={'freq': 1})
    before = armor.target_model.fc.weight.clone()
    with torch.no_grad():
        armor.model.fc.weight.add_(1.0)
    assert torch.equal(armor.target_model.fc.weight, before)


def test_remove_model():
    armor = Armor(Net())
    armor.add_model('teacher')
    armor.remove_model('teacher')
    assert not hasattr(armor, 'teacher_forward')
    with pytest.raises(KeyError, match='main'):
        armor.remove_model('teacher')


def test_later_plugins_wrap_outside():
    armor = Armor(Net())
    raw = armor.forward(OBS)['logit']
    armor.add_plugin('main', AddOne)
    armor.add_plugin('main', Double, factor=3.0)
    assert torch.allclose(armor.forward(OBS)['logit'], (raw + 1.0) * 3.0)
    other = Armor(armor.model)
    other.add_plugin('main', Double, factor=3.0)
    other.add_plugin('main', AddOne)
    assert torch.allclose(other.forward(OBS)['logit'], raw * 3.0 + 1.0)


def test_removed_plugin_is_gone_and_the_others_stay():
    armor = Armor(Net())
    raw = armor.forward(OBS)['logit']
    for plugin in (AddOne, Double, CountCalls):
        armor.add_plugin('main', plugin)
    armor.remove_plugin('main', 'AddOne')
    assert torch.allclose(armor.forward(OBS)['logit'], raw * 2.0)
    assert armor.plugin('CountCalls').calls == 1
    with pytest.raises(KeyError, match='CountCalls'):
        armor.remove_plugin('main', 'AddOne')


def test_copied_and_pickled_armors_run_their_own_model():
    armor = Armor(Net())
    armor.add_plugin('main', 'eps_greedy_sample', seed=0)
    armor.add_plugin('main', CountCalls)
    for twin in (copy.deepcopy(armor), pickle.loads(pickle.dumps(armor))):
        with torch.no_grad():
            twin.model.fc.weight.zero_()
            twin.model.fc.bias.copy_(torch.tensor([0.0, 9.0, 0.0, 0.0]))
        assert twin.forward(OBS, eps=0.0)['action'].tolist() == [1] * 5
        assert twin.plugin('CountCalls').calls == 1 and armor.plugin('CountCalls').calls == 0


def test_user_plugin_by_name():
    register_plugin('test_add_one', AddOne)
    register_plugin('test_double')(Double)
    armor = BaseArmor(Net())
    raw = armor.forward(OBS)['logit']
    add_plugin(armor, 'test_add_one', amount=2.0)
    add_plugin(armor, 'test_double')
    assert torch.allclose(armor.forward(OBS)['logit'], (raw + 2.0) * 2.0)
    assert 'test_double' in ARMOR_PLUGIN_REGISTRY.query()
    assert armor.plugin('test_add_one').amount == 2.0


def test_stateful_plugins_reset_and_resume():
    armor, other = Armor(Net()), Armor(Net())
    for one in (armor, other):
        one.add_plugin('main', CountCalls)
        one.add_plugin('main', 'multinomial_sample', seed=id(one) % 1000)
    armor.forward(OBS)
    other.load_run_state_dict(copy.deepcopy(armor.run_state_dict()))
    other.load_state_dict(armor.state_dict())
    assert other.plugin('CountCalls').calls == 1
    assert torch.equal(armor.forward(OBS)['action'], other.forward(OBS)['action'])
    armor.reset()
    assert armor.plugin('CountCalls').calls == 0


def test_param_may_come_by_position_through_all_plugins():
    armor = Armor(Net())
    for name, kwargs in (
        ('argmax_sample', {}),
        ('grad', {'enable_grad': False}),
        ('multinomial_sample', {}),
        ('eps_greedy_sample', {}),
    ):
        armor.add_plugin('main', name, **kwargs)
    assert torch.equal(armor.forward(OBS, {'scale': 2.0}, eps=0.0)['logit'], 2.0 * armor.model(OBS)['logit'])


def test_plugin_that_replaces_forward_and_reset_by_hand_survives_copies():
    class Classic(IArmorStatefulPlugin):
        def __init__(self):
            self.log = []

        @classmethod
        def register(cls, armor):
            plugin, forward, reset = cls(), armor.forward, armor.reset
            armor.classic = plugin

            def classic_forward(data, **kwargs):
                plugin.log.append('forward')
                return forward(data, **kwargs)

            def classic_reset(data_id=None, **kwargs):
                plugin.log.append('reset')
                return reset(data_id, **kwargs)

            armor.forward, armor.reset = classic_forward, classic_reset

    armor = Armor(Net())
    armor.add_plugin('main', Classic)
    armor.add_plugin('main', 'hidden_state', state_num=1)
    armor.reset(data_id=[0], state=[None])
    assert armor.classic.log == ['reset']
    twin = copy.deepcopy(armor)
    twin.remove_plugin('main', 'hidden_state')
    twin.forward(OBS)
    twin.reset()
    assert twin.classic.log == ['forward', 'reset'] and armor.classic.log == ['reset']


def test_own_armor_type():
    class Halved(BaseArmor):
        def forward(self, data, param=None, **kwargs):
            return {'logit': super().forward(data, param, **kwargs)['logit'] / 2}

    armor = Armor(Net(), armor_type=Halved)
    armor.add_plugin('main', AddOne)
    armor.add_model('teacher')
    assert torch.allclose(armor.forward(OBS)['logit'], armor.model(OBS)['logit'] / 2 + 1)
    assert torch.allclose(armor.teacher_forward(OBS)['logit'], armor.model(OBS)['logit'] / 2)


def test_unknown_names_say_what_exists():
    armor = Armor(Net())
    with pytest.raises(KeyError, match=r"'eps_greedy_sample'.*argmax_sample.*hidden_state"):
        armor.add_plugin('main', 'eps_greedy_sampel')
    with pytest.raises(KeyError, match=r'main.*add_model'):
        armor.add_plugin('target', 'argmax_sample')
    with pytest.raises(KeyError, match=r"did you mean 'target'.*main, target, teacher"):
        armor.add_model('targte')
    with pytest.raises(AttributeError, match=r"add_model\('target'"):
        armor.target_forward(OBS)
    with pytest.raises(AttributeError, match="did you mean 'forward'"):
        armor.foward(OBS)
    with pytest.raises(TypeError, match='state_num'):
        armor.add_plugin('main', 'hidden_state', number=3)
    with pytest.raises(ValueError, match='already holds'):
        armor.add_model('main')
    with pytest.raises(TypeError, match='register'):
        armor.add_plugin('main', int)


def test_helper_names():
    assert HiddenStateHelper is ARMOR_PLUGIN_REGISTRY.get('hidden_state')
    assert EpsGreedySampleHelper is ARMOR_PLUGIN_REGISTRY.get('eps_greedy_sample')
    assert ActionNoiseHelper is ARMOR_PLUGIN_REGISTRY.get('action_noise')
    assert TargetNetworkHelper is ARMOR_PLUGIN_REGISTRY.get('target')


@pytest.mark.parametrize('enable', [True, False])
def test_grad_plugin_switches_and_restores(enable):
    armor = BaseArmor(Net())
    add_plugin(armor, 'grad', enable_grad=enable)
    for outside in (True, False):
        with torch.set_grad_enabled(outside):
            logit = armor.forward(OBS)['logit']
            assert torch.is_grad_enabled() is outside
        assert logit.requires_grad is enable and not logit.is_inference()
    with pytest.raises(KeyError):
        armor.forward({})
    assert torch.is_grad_enabled()
