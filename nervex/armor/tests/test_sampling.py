import copy

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from nervex.armor import Armor, BaseArmor, add_plugin


class Fixed(torch.nn.Module):
    """A model whose output is given."""

    def __init__(self, logit, action_mask=None):
        super().__init__()
        self.output = {'logit': logit} if action_mask is None else {'logit': logit, 'action_mask': action_mask}

    def forward(self, data):
        return self.output


def armor_of(plugin, logit, mask=None, **kwargs):
    armor = BaseArmor(Fixed(logit, mask))
    add_plugin(armor, plugin, **kwargs)
    return armor


def test_argmax_one_head():
    logit = torch.tensor([[1.0, 3.0, 2.0], [5.0, 4.0, 0.0]])
    assert armor_of('argmax_sample', logit).forward({})['action'].tolist() == [1, 0]


def test_argmax_several_heads_and_leading_dims():
    logits = [torch.randn(4, 3, 2), torch.randn(4, 3, 5)]
    action = armor_of('argmax_sample', logits).forward({})['action']
    assert isinstance(action, list)
    assert all(torch.equal(a, x.argmax(-1)) and a.shape == (4, 3) for a, x in zip(action, logits))


def test_mask_hides_the_best_and_stored_logits_stay():
    logit = torch.tensor([[-1e12, 9.0, 8.0]])
    kept = logit.clone()
    output = armor_of('argmax_sample', logit, torch.tensor([[1.0, 0.0, 0.0]])).forward({})
    assert output['action'].tolist() == [0]
    assert torch.equal(logit, kept) and output['logit'] is logit


def test_sampling_does_not_write_into_the_models_dict():
    armor = armor_of('argmax_sample', torch.zeros(2, 3))
    armor.forward({})
    assert set(armor.model.output) == {'logit'}


def test_eps_greedy_tosses_a_coin_for_each_row():
    logit = torch.zeros(4000, 4)
    logit[:, 2] = 1.0
    action = armor_of('eps_greedy_sample', logit, seed=0).forward({}, eps=0.4)['action']
    counts = torch.bincount(action, minlength=4) / 4000
    assert abs(counts[2] - 0.7) < 0.03  # 0.6 greedy + 0.4 / 4
    assert all(abs(counts[i] - 0.1) < 0.02 for i in (0, 1, 3))


def test_eps_greedy_heads_toss_independent_coins():
    logits = [torch.eye(10)[0].expand(2000, 10)] * 2
    first, second = armor_of('eps_greedy_sample', logits, seed=1).forward({}, eps=0.5)['action']
    both = ((first != 0) & (second != 0)).float().mean()
    assert abs(both - 0.45**2) < 0.04


@pytest.mark.parametrize('eps', [0.0, 1.0])
def test_eps_greedy_limits(eps):
    logit = torch.randn(500, 3)
    output = armor_of('eps_greedy_sample', logit, seed=2).forward({}, eps=eps)
    same = (output['action'] == logit.argmax(-1)).float().mean()
    assert same == 1.0 if eps == 0.0 else abs(same - 1 / 3) < 0.08
    assert output['logit'] is logit


def test_eps_greedy_explores_legal_actions_only_and_evenly():
    mask = torch.tensor([0.0, 1.0, 0.0, 1.0, 1.0]).expand(3000, 5)
    action = armor_of('eps_greedy_sample', torch.randn(3000, 5), mask, seed=3).forward({}, eps=1.0)['action']
    counts = torch.bincount(action, minlength=5) / 3000
    assert counts[0] == counts[2] == 0 and all(abs(counts[i] - 1 / 3) < 0.04 for i in (1, 3, 4))


def test_eps_for_each_env_and_all_its_agents():
    logit = torch.eye(50)[7].expand(2, 40, 50)
    action = armor_of('eps_greedy_sample', logit, seed=4).forward({}, eps=[0.0, 1.0])['action']
    assert (action[0] == 7).all() and (action[1] != 7).float().mean() > 0.8


@pytest.mark.parametrize(
    'eps, error', [(1.5, ValueError), (-1, ValueError), ([0.0, 2.0], ValueError), (None, TypeError)]
)
def test_eps_out_of_range_is_refused(eps, error):
    with pytest.raises(error, match=r'eps|probability'):
        armor_of('eps_greedy_sample', torch.zeros(2, 3)).forward({}, eps=eps)


@pytest.mark.parametrize('rows', [1, 7, 32])
def test_few_rows_and_many_rows_choose_alike(rows):
    logit = torch.randn(rows, 5)
    few, by_row, many = (armor_of('eps_greedy_sample', x, seed=6) for x in (logit, logit, logit.unsqueeze(0)))
    for eps in (0.0, 0.3, 1.0):
        action = few.forward({}, eps=eps)['action']
        assert torch.equal(action, many.forward({}, eps=eps)['action'][0])
        assert torch.equal(action, by_row.forward({}, eps=[eps] * rows)['action'])


FREQUENCIES = {
    'multinomial_sample': ({}, (0.1, 0.2, 0.7)),
    'eps_greedy_sample': ({'eps': 0.4}, (0.4 / 3, 0.4 / 3, 0.6 + 0.4 / 3)),
    'eps_multinomial_sample': ({'eps': 0.4}, (0.06 + 0.4 / 3, 0.12 + 0.4 / 3, 0.42 + 0.4 / 3)),
}


@pytest.mark.parametrize('plugin', FREQUENCIES)
def test_few_rows_at_a_time_have_the_right_frequencies(plugin):
    kwargs, expected = FREQUENCIES[plugin]
    logit = torch.tensor([0.1, 0.2, 0.7]).log().expand(8, 3)
    armor = armor_of(plugin, logit, seed=7)
    counts = sum(torch.bincount(armor.forward({}, **kwargs)['action'], minlength=3) for _ in range(1000)) / 8000
    assert all(abs(c - p) < 0.02 for c, p in zip(counts, expected))


@pytest.mark.parametrize('rows', [3, 50])
@pytest.mark.parametrize(
    'plugin, kwargs',
    [
        ('multinomial_sample', {}),
        ('eps_greedy_sample', {'eps': 0.9}),
        ('eps_multinomial_sample', {'eps': 0.9}),
    ],
)
def test_random_sequence_continues_from_a_saved_state(plugin, kwargs, rows):
    armor, other = (armor_of(plugin, torch.zeros(rows, 5), seed=s) for s in (1, 2))
    for _ in range(4):
        armor.forward({}, **kwargs)
    saved = copy.deepcopy(armor.run_state_dict())
    expected = [armor.forward({}, **kwargs)['action'].tolist() for _ in range(100)]
    other.load_run_state_dict(saved)
    assert [other.forward({}, **kwargs)['action'].tolist() for _ in range(100)] == expected


def test_a_recording_follows_its_input():
    armor = BaseArmor(torch.nn.Identity())
    add_plugin(armor, 'argmax_sample')
    recorded = make_fx(lambda x: armor.forward({'logit': x})['action'])(torch.eye(3))
    assert recorded(torch.eye(3).flip(0)).tolist() == [2, 1, 0]


def test_row_without_legal_action_gets_the_first():
    mask = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    for plugin, kwargs in (('argmax_sample', {}), ('multinomial_sample', {}), ('eps_greedy_sample', {'eps': 1.0})):
        assert armor_of(plugin, torch.ones(2, 3), mask).forward({}, **kwargs)['action'].tolist() == [0, 2]


def test_masks_for_some_heads():
    logits, masks = [torch.eye(3)[:1], torch.eye(3)[:1]], [None, torch.tensor([[0.0, 1.0, 1.0]])]
    assert [a.item() for a in armor_of('argmax_sample', logits, masks).forward({})['action']] == [0, 1]


def test_pair_of_mean_and_deviation_is_not_taken_for_two_heads():
    pair = torch.full((1, 2), 0.5), torch.ones(1, 2)
    assert armor_of('argmax_sample', pair).forward({})['action'].tolist() == [[0.5, 0.5]]
    with pytest.raises(TypeError, match='continuous'):
        armor_of('eps_greedy_sample', pair).forward({}, eps=0.5)


def test_drawing_inside_a_recording_is_refused():
    armor = armor_of('multinomial_sample', torch.zeros(2, 3))
    with pytest.raises(RuntimeError, match='would freeze'):
        make_fx(lambda x: armor.forward({'logit': x})['action'])(torch.eye(3))


def test_multinomial_follows_the_softmax_in_any_shape():
    logit = torch.tensor([0.1, 0.2, 0.7]).log().expand(5, 800, 3)
    action = armor_of('multinomial_sample', logit, seed=5).forward({})['action']
    counts = torch.bincount(action.flatten(), minlength=3) / 4000
    assert action.shape == (5, 800) and all(abs(c - p) < 0.03 for c, p in zip(counts, (0.1, 0.2, 0.7)))


def test_multinomial_never_takes_an_illegal_action():
    mask = torch.tensor([False, True, False]).expand(300, 3)
    assert (armor_of('multinomial_sample', torch.randn(300, 3), mask).forward({})['action'] == 1).all()


@pytest.mark.parametrize('plugin, kwargs', [('multinomial_sample', {}), ('eps_greedy_sample', {'eps': 0.5})])
def test_same_seed_same_actions_and_global_chance_untouched(plugin, kwargs):
    logit = torch.zeros(64, 5)
    before = torch.get_rng_state()
    runs = [armor_of(plugin, logit, seed=11).forward({}, **kwargs)['action'] for _ in range(2)]
    assert torch.equal(*runs) and torch.equal(before, torch.get_rng_state())
    assert not torch.equal(runs[0], armor_of(plugin, logit, seed=12).forward({}, **kwargs)['action'])


def test_missing_logit_and_misfitting_masks_are_named():
    armor = BaseArmor(torch.nn.Identity())
    add_plugin(armor, 'argmax_sample')
    with pytest.raises(KeyError, match='logit'):
        armor.forward({'q': 1})
    with pytest.raises(ValueError, match='2 action heads'):
        armor_of('argmax_sample', [torch.zeros(1, 2)] * 2, torch.ones(1, 2)).forward({})
    with pytest.raises(ValueError, match='action_mask'):
        armor_of('argmax_sample', torch.zeros(1, 2), torch.ones(1, 3)).forward({})


def test_eps_without_its_plugin_says_what_is_missing():
    with pytest.raises(TypeError, match='eps_greedy_sample'):
        Armor(torch.nn.Identity()).forward({}, eps=0.1)
