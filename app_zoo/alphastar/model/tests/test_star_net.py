"""Acting and judging are one computation; parts are chosen only where orders have them, and only legal ones."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from app_zoo.alphastar.envs import Drill
from app_zoo.alphastar.envs.features import SELF
from app_zoo.alphastar.envs.orders import NUMBER, PARTS, PLACES, USES
from app_zoo.alphastar.model import StarNet
from app_zoo.alphastar.model.heads import Choice, UnitSelection, divergence
from nervex.envs import Duels
from nervex.torch_utils.crossing import to_tensors

SMALL = dict(map_size=16, max_units=8, max_selected=4)
TINY = dict(width=16, core_dim=16, entity_layers=1, map_channels=4, map_blocks=1, key_dim=8)


def seen(num=32, steps=0):
    engine = Duels(Drill).create_vector_env([SMALL] * num)
    views = [engine.start(list(range(num)))]
    for _ in range(steps):
        views.append(engine.exchange(np.zeros((num, 9), int)).obs)
    if steps:
        return to_tensors({key: np.stack([view[key] for view in views]) for key in views[0]})
    return to_tensors(views[0])


def net(**more):
    torch.manual_seed(0)
    return StarNet(Drill(SMALL).action_num, **{**TINY, **more})


def drawn(model, obs, seed=0, **more):
    with torch.no_grad():
        return model({'obs': obs, 'generator': torch.Generator().manual_seed(seed), **more})


def test_judging_orders_gives_what_acting_gave():
    obs, model = seen(), net(lstm_layers=0)
    acted = drawn(model, obs)
    with torch.no_grad():
        judged = model({'obs': obs, 'action': acted['action']})
    assert (judged['action'] == acted['action']).all()
    for key in ('log_prob', 'entropy', 'value'):
        torch.testing.assert_close(judged[key], acted[key])


def test_sequences_are_the_steps_one_after_the_other():
    obs, model = seen(4, steps=3), net()
    with torch.no_grad():
        whole = model({'obs': obs, 'prev_state': None, 'enable_fast_timestep': True})
        state, steps = None, []
        for t in range(4):
            steps.append(model({'obs': {key: part[t] for key, part in obs.items()}, 'prev_state': state}))
            state = steps[-1]['next_state']
    for key in ('log_prob', 'value'):
        torch.testing.assert_close(whole[key], torch.stack([step[key] for step in steps]), atol=1e-5, rtol=1e-4)
    assert (whole['action'] == torch.stack([step['action'] for step in steps])).all()


def test_fewer_orders_than_observations_are_judged():
    obs, model = seen(4, steps=3), net()
    orders = drawn(model, obs, prev_state=None)['action']
    given = {'obs': obs, 'prev_state': None}
    with torch.no_grad():
        whole, part = model({**given, 'action': orders}), model({**given, 'action': orders[:-1]})
    assert part['value'].shape == (4, 4) and part['log_prob'].shape == (3, 4, 6)
    torch.testing.assert_close(part['log_prob'], whole['log_prob'][:-1])


def test_what_is_drawn_is_legal_and_unused_parts_are_empty():
    obs, model = seen(64), net(lstm_layers=0)
    for seed in range(10):
        output = drawn(model, obs, seed)
        order = output['action']
        kind, selected = order[:, 0], order[:, PLACES['selected_units']]
        assert (obs['type_mask'].gather(1, kind.unsqueeze(1)) == 1).all()
        uses = torch.from_numpy(USES)[kind]
        assert ((output['log_prob'] < 0) == uses).all() or (output['log_prob'][~uses] == 0).all()
        assert (output['log_prob'] > -1e6).all() and (output['entropy'][~uses] == 0).all()
        has = dict(zip(PARTS, uses.unbind(1)))
        assert ((selected < 8).any(1) == has['selected_units']).all()
        own = torch.nn.functional.pad(obs['select_mask'], (0, 1), value=1)
        assert (own.gather(1, selected) == 1).all()
        for part in ('queued', 'target_unit', 'target_location'):
            assert (order[~has[part], PLACES[part]] == 0).all()
        assert (obs['target_mask'].gather(1, order[:, -2:-1])[has['target_unit']] == 1).all()


def test_only_units_that_can_obey_are_selected():
    obs, model = seen(1), net(lstm_layers=0)
    obs['entity_info'][0, :3, 0] = torch.tensor([84, 73, 74])  # a probe, a zealot, a stalker
    obs['entity_info'][0, :3, 1] = SELF
    for mask in ('select_mask', 'target_mask'):
        obs[mask][0] = 0
        obs[mask][0, :3] = 1
    obs['type_mask'][0] = 0
    obs['type_mask'][0, NUMBER['Build_Pylon_pt']] = 1
    found = {tuple(drawn(model, obs, seed)['action'][0, 3:7].tolist()) for seed in range(20)}
    assert found == {(0, 8, 8, 8)}


def test_probabilities_of_all_selections_sum_to_one():
    torch.manual_seed(1)
    selection = UnitSelection(4, 5, 6)
    nn.init.normal_(selection.end)
    features, units, able = torch.randn(1, 4), torch.randn(1, 3, 5), torch.tensor([[True, True, False]])
    every = [(0, 3), (1, 3), (0, 1), (1, 0)]  # 3 is the end; unit 2 is not able
    total = 0.0
    for given in every:
        order = torch.tensor([[0, 0, 0, *given, 0, 0]])
        _, logit, made, _ = selection(features, units, able, torch.tensor([True]), Choice(order, None), 2)
        log_p = logit.log_softmax(-1).gather(-1, order[:, 3:5].unsqueeze(-1)).squeeze(-1)
        total += (log_p * made).sum().exp().item()
    assert total == pytest.approx(1.0, abs=1e-5)


class NeverTheEnd(Choice):
    """The likeliest unit, as long as there is one."""

    def __call__(self, logit, place):
        return (logit - 1e6 * torch.eye(logit.shape[1])[-1]).argmax(-1)


def test_selecting_ends_when_nobody_is_left():
    torch.manual_seed(0)
    selection, able = UnitSelection(4, 5, 6), torch.tensor([[True, False], [True, True]])
    given = torch.randn(2, 4), torch.randn(2, 2, 5), able, torch.tensor([True, True]), NeverTheEnd(None, None), 4
    chosen, _, made, _ = selection(*given)
    assert chosen[0].tolist() == [0, 2, 2, 2] and made[0].tolist() == [True, True, False, False]
    assert sorted(chosen[1].tolist()) == [0, 1, 2, 2] and made[1].tolist() == [True, True, True, False]


def test_the_order_of_units_does_not_matter():
    obs, model = seen(8), net(lstm_layers=0)
    turned = {**obs, **{k: obs[k].flip(1) for k in ('entity_info', 'select_mask', 'target_mask')}}
    with torch.no_grad():
        one, two = model({'obs': obs}), model({'obs': turned})
    torch.testing.assert_close(one['value'], two['value'], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(one['logit']['action_type'], two['logit']['action_type'], atol=1e-4, rtol=1e-4)


def test_rows_that_are_no_units_change_nothing():
    obs, model = seen(8), net(lstm_layers=0)
    other = {**obs, 'entity_info': obs['entity_info'].clone()}
    other['entity_info'][obs['target_mask'] == 0] = 37
    with torch.no_grad():
        torch.testing.assert_close(model({'obs': obs})['value'], model({'obs': other})['value'])


def test_later_parts_depend_on_earlier_ones():
    obs, model = seen(1), net(lstm_layers=0)
    logits = {}
    for kind, delay in itertools.product((NUMBER['Attack_pt'], NUMBER['Move_pt']), (0, 1)):
        order = torch.tensor([[kind, delay, 0, 0, 8, 8, 8, 0, 0]])
        with torch.no_grad():
            logits[kind, delay] = model({'obs': obs, 'action': order})['logit']['target_location']
    values = list(logits.values())
    assert all((one - two).abs().max() > 1e-6 for one, two in itertools.combinations(values, 2))


def test_every_parameter_has_a_gradient():
    obs, model = seen(64, steps=2), net()
    orders = drawn(model, obs, prev_state=None)['action']
    output = model({'obs': obs, 'prev_state': None, 'action': orders})
    (output['log_prob'].sum() + output['value'].sum()).backward()
    unused = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0}
    assert not unused


def test_divergence_of_a_teacher_by_hand():
    # types: p = (1/2, 1/2), t = (1/4, 3/4): 1/4 log(1/2) + 3/4 log(3/2) = 0.1308; selection: two of three steps count
    def both(kind):
        rest = {part: torch.zeros(1, 2) for part in PARTS}
        return {**rest, 'action_type': torch.tensor([kind]).log(), 'selected_units': torch.tensor([[kind] * 3]).log()}

    made = {part: torch.ones(1, dtype=torch.bool) for part in PARTS}
    made['selected_units'] = torch.tensor([[True, True, False]])
    found = divergence(both([0.25, 0.75]), both([0.5, 0.5]), made)
    assert found[0].tolist() == pytest.approx([0.13081, 0, 0, 2 * 0.13081, 0, 0], abs=1e-4)


def test_another_env_is_told_apart():
    with pytest.raises(ValueError, match=r'action_dim: .* 75, 32, 2, .* got \[2, 3\]'):
        StarNet([2, 3])
