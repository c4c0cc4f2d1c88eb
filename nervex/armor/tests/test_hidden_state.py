from itertools import permutations

import numpy as np
import pytest
import torch

from nervex.armor import Armor, BaseArmor, add_plugin


class Counter(torch.nn.Module):
    """Counts the steps of each row in its state; the kind of state is chosen."""

    def __init__(self, kind='tensor'):
        super().__init__()
        self.kind = kind
        self.seen = None

    def forward(self, data):
        self.seen = list(data['prev_state'])
        counts = [0.0 if s is None else float(self.read(s)) for s in self.seen]
        return {'logit': torch.tensor(counts).unsqueeze(-1), 'next_state': [self.make(c + 1.0) for c in counts]}

    def make(self, value):
        x = torch.full((1, 1, 2), value)
        return {'tensor': x, 'tuple': (x, x + 10), 'dict': {'h': x}, 'agents': [x, x]}[self.kind]

    def read(self, state):
        x = {'tensor': lambda s: s, 'tuple': lambda s: s[0], 'dict': lambda s: s['h'], 'agents': lambda s: s[0]}
        return x[self.kind](state).flatten()[0]


def armor_of(kind='tensor', state_num=4, **kwargs):
    armor = BaseArmor(Counter(kind))
    add_plugin(armor, 'hidden_state', state_num=state_num, **kwargs)
    return armor


def counts(output):
    return output['logit'].flatten().tolist()


@pytest.mark.parametrize('kind', ['tensor', 'tuple', 'dict', 'agents'])
def test_each_row_keeps_its_own_state_in_partial_batches(kind):
    armor = armor_of(kind)
    assert counts(armor.forward({'obs': torch.zeros(4, 3)})) == [0.0, 0.0, 0.0, 0.0]
    assert counts(armor.forward({'obs': torch.zeros(2, 3)}, data_id=[2, 0])) == [1.0, 1.0]
    assert counts(armor.forward({}, data_id=np.array([3, 2]))) == [1.0, 2.0]
    assert counts(armor.forward({}, data_id=torch.tensor([0]))) == [2.0]
    armor.reset(data_id=[2])
    assert counts(armor.forward({})) == [3.0, 1.0, 0.0, 2.0]
    armor.reset()
    assert counts(armor.forward({})) == [0.0] * 4


def test_model_gets_a_list_and_output_loses_next_state():
    armor = armor_of()
    data = {'obs': torch.zeros(4, 3)}
    output = armor.forward(data)
    assert set(output) == {'logit'} and set(data) == {'obs'}
    assert armor.model.seen == [None] * 4


def test_saved_prev_states_are_detached_and_stay_as_they_were():
    armor = armor_of(save_prev_state=True)
    first = armor.forward({})['prev_state']
    second = armor.forward({})['prev_state']
    assert first == [None] * 4 and isinstance(second, list)
    assert [s.flatten()[0].item() for s in second] == [1.0] * 4 and not second[0].requires_grad
    armor.forward({})
    assert [s.flatten()[0].item() for s in second] == [1.0] * 4


def test_prev_state_of_a_learning_model_is_detached_but_the_kept_one_is_not():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(()))

        def forward(self, data):
            return {'next_state': [self.w if s is None else s * self.w for s in data['prev_state']]}

    armor = BaseArmor(Net())
    add_plugin(armor, 'hidden_state', state_num=1, save_prev_state=True)
    armor.forward({})
    output = armor.forward({})
    assert output['prev_state'][0].requires_grad is False
    assert armor.plugin('hidden_state')._states[0].requires_grad


def test_init_fn_starts_rows():
    armor = armor_of(init_fn=lambda: torch.full((1, 1, 2), 5.0))
    assert counts(armor.forward({})) == [5.0] * 4
    armor.reset([1, 2])
    assert counts(armor.forward({})) == [6.0, 5.0, 5.0, 6.0]


@pytest.mark.parametrize('state', [[torch.full((1, 1, 2), 7.0)], torch.full((1, 1, 2), 7.0)])
def test_reset_of_one_row_takes_a_bare_state(state):
    armor = armor_of()
    armor.reset(data_id=[0], state=state)
    assert counts(armor.forward({})) == [7.0, 0.0, 0.0, 0.0]


def test_reset_of_one_row_keeps_tuples_and_agent_lists_whole():
    armor = armor_of('tuple')
    armor.reset(data_id=[1], state=(torch.full((1, 1, 2), 7.0), torch.zeros(1, 1, 2)))
    assert counts(armor.forward({})) == [0.0, 7.0, 0.0, 0.0]
    armor = armor_of('agents')
    armor.reset(data_id=1, state=[torch.full((1, 1, 2), 7.0), torch.zeros(1, 1, 2)])
    assert counts(armor.forward({})) == [0.0, 7.0, 0.0, 0.0]


def test_reset_of_all_rows_takes_a_list_of_states():
    armor = armor_of()
    armor.reset(state=[torch.full((1, 1, 2), float(i)) for i in range(4)])
    assert counts(armor.forward({})) == [0.0, 1.0, 2.0, 3.0]


def test_mistakes_are_explained():
    armor = armor_of('tuple')
    with pytest.raises(ValueError, match='list of 2 states, got one tuple'):
        armor.reset(data_id=[0, 1], state=(torch.zeros(1), torch.zeros(1)))
    with pytest.raises(ValueError, match='got a list of 1'):
        armor.reset(data_id=[0, 1], state=[None])
    with pytest.raises(KeyError, match=r'rows are 0 \.\.\. 3'):
        armor.forward({}, data_id=[4])
    with pytest.raises(ValueError, match='state_num'):
        armor_of(state_num=0)
    wrong = BaseArmor(torch.nn.Identity())
    add_plugin(wrong, 'hidden_state', state_num=2)
    with pytest.raises(KeyError, match='next_state'):
        wrong.forward({'obs': 1})
    plain = Armor(Counter())
    with pytest.raises(TypeError, match='hidden_state'):
        plain.reset(state=[None])


def test_too_few_next_states_name_the_rows():
    class Short(torch.nn.Module):
        def forward(self, data):
            return {'next_state': [torch.zeros(1)]}

    armor = BaseArmor(Short())
    add_plugin(armor, 'hidden_state', state_num=2)
    with pytest.raises(ValueError, match='data_id'):
        armor.forward({})


@pytest.mark.parametrize('order', list(permutations(['hidden_state', 'eps_greedy_sample', 'grad'])))
def test_discrete_plugins_stack_in_any_order(order):
    armor = Armor(Counter())
    settings = {
        'hidden_state': {'state_num': 3, 'save_prev_state': True},
        'grad': {'enable_grad': False},
        'eps_greedy_sample': {'seed': 0},
    }
    for name in order:
        armor.add_plugin('main', name, **settings[name])
    armor.forward({}, data_id=[0, 2], eps=0.5)
    output = armor.forward({}, data_id=[2, 1], eps=0.5)
    assert output['logit'].flatten().tolist() == [1.0, 0.0] and output['action'].tolist() == [0, 0]
    assert len(output['prev_state']) == 2


@pytest.mark.parametrize('order', list(permutations(['hidden_state', 'action_noise', 'grad'])))
def test_continuous_plugins_stack_in_any_order(order):
    class Net(Counter):
        def forward(self, data):
            return {**super().forward(data), 'action': torch.zeros(len(data['prev_state']), 1)}

    armor = Armor(Net())
    settings = {
        'hidden_state': {'state_num': 3, 'save_prev_state': True},
        'grad': {'enable_grad': False},
        'action_noise': {'noise_type': 'ou', 'seed': 0, 'action_range': None},
    }
    for name in order:
        armor.add_plugin('main', name, **settings[name])
    armor.forward({}, data_id=[0, 2])
    output = armor.forward({}, data_id=[2, 1])
    assert output['logit'].flatten().tolist() == [1.0, 0.0]
    assert len(output['prev_state']) == 2 and len(output['action']) == 2
    armor.reset(data_id=[2])
    assert armor.forward({}, data_id=[0, 1, 2])['logit'].flatten().tolist() == [1.0, 1.0, 0.0]


def test_states_are_part_of_the_plugin_state():
    armor, other = armor_of('tuple'), armor_of('tuple')
    armor.forward({}, data_id=[1])
    other.load_run_state_dict(armor.run_state_dict())
    assert counts(other.forward({})) == [0.0, 1.0, 0.0, 0.0]
