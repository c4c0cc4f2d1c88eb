"""What a caller gets wrong is named: the operator, the field, what came, what is expected."""

import numpy as np
import pytest
import torch

from nervex.rl_utils import (
    a2c_data,
    a2c_error,
    compute_importance_weights,
    dist_nstep_td_data,
    dist_nstep_td_error,
    gae,
    gae_data,
    iqn_nstep_td_data,
    iqn_nstep_td_error,
    ppo_data,
    ppo_error,
    q_nstep_td_data,
    q_nstep_td_error,
    qrdqn_nstep_td_data,
    qrdqn_nstep_td_error,
    reverse_scan,
    upgo_loss,
    vtrace_data,
    vtrace_error,
)
from nervex.rl_utils.checks import ShapeError

Q, ACTION, ROW = torch.zeros(2, 3), torch.tensor([0, 2]), torch.zeros(2)
TD = q_nstep_td_data(Q, Q, ACTION, ACTION, ROW.unsqueeze(0), ROW, None)
PPO = ppo_data(Q, Q, ACTION, ROW, ROW, ROW, ROW, None)


@pytest.mark.parametrize(
    'change, text',
    [
        ({'q': Q.numpy()}, r'q_nstep_td_error: q is a ndarray, expected a tensor'),
        ({'reward': np.zeros((1, 2))}, 'reward is a ndarray'),
        ({'reward': 1.0}, 'reward is a float'),
        ({'done': [False, False]}, r'done is a list, expected a tensor of shape \(2,\): torch.as_tensor'),
        ({'weight': 0.5}, 'weight is a float'),
        ({'action': ACTION.float()}, r'actions are torch.float32, expected integers: action.long\(\)'),
        ({'next_n_action': ACTION.bool()}, 'actions are torch.bool'),
    ],
)
def test_what_is_not_a_tensor_or_not_an_action_is_a_type_error(change, text):
    with pytest.raises(TypeError, match=text):
        q_nstep_td_error(TD._replace(**change), 0.9)


@pytest.mark.parametrize('action', [torch.tensor([0, 3]), torch.tensor([-1, 0])])
def test_actions_that_do_not_exist_are_a_value_error_in_every_loss(action):
    atoms = torch.full((2, 3, 5), 0.2)
    fractions = torch.full((5, 2), 0.5)
    calls = [
        lambda: q_nstep_td_error(TD._replace(action=action), 0.9),
        lambda: dist_nstep_td_error(dist_nstep_td_data(atoms, atoms, action, ACTION, ROW, ROW, None), 0.9, 0.0, 1.0, 5),
        lambda: qrdqn_nstep_td_error(
            qrdqn_nstep_td_data(atoms, atoms, ACTION, action, ROW, ROW, fractions.t(), None), 0.9
        ),
        lambda: iqn_nstep_td_error(
            iqn_nstep_td_data(torch.zeros(5, 2, 3), torch.zeros(4, 2, 3), action, ACTION, ROW, ROW, fractions, None),
            0.9,
        ),
        lambda: a2c_error(a2c_data(Q, action, ROW, ROW, ROW, None)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r'expected 0 ... 2 for 3 actions'):
            call()


def test_policies_over_different_actions_are_not_compared():
    wider = torch.zeros(2, 4)
    with pytest.raises(ShapeError, match=r'logit_old has shape \(2, 4\), expected \(2, 3\)'):
        ppo_error(PPO._replace(logit_old=wider))
    with pytest.raises(ShapeError, match='behaviour_output has shape'):
        compute_importance_weights([Q, Q], [Q, wider], torch.stack([ACTION, ACTION], 1))
    fields = (Q.unsqueeze(0), wider.unsqueeze(0), ACTION.unsqueeze(0), torch.zeros(2, 2), ROW.unsqueeze(0), None)
    with pytest.raises(ShapeError, match='behaviour_output has shape'):
        vtrace_error(vtrace_data(*fields))


def test_ppo_names_the_value_that_does_not_fit():
    with pytest.raises(ShapeError, match=r'value_new has shape \(2, 1\), expected \(2,\)'):
        ppo_error(PPO._replace(value_new=ROW.unsqueeze(1), value_old=ROW.unsqueeze(1), return_=ROW.unsqueeze(1)))
    with pytest.raises(ValueError, match=r'value_old is None.*use_value_clip=False'):
        ppo_error(PPO._replace(value_old=None))
    assert ppo_error(PPO._replace(value_old=None), use_value_clip=False)[0].value_loss.item() == 0.0


def test_logits_that_are_no_tensors_are_a_type_error():
    with pytest.raises(TypeError, match=r'logits are a tensor.*got a ndarray'):
        a2c_error(a2c_data(Q.numpy(), ACTION, ROW, ROW, ROW, None))


def test_recursions_name_what_does_not_fit():
    with pytest.raises(TypeError, match='gae: value is a ndarray'):
        gae(gae_data(np.zeros((2, 2)), ROW.unsqueeze(0)))
    with pytest.raises(ShapeError, match=r'reverse_scan: a has shape \(3,\), which does not broadcast to \(2,\)'):
        reverse_scan(torch.zeros(3), ROW)
    with pytest.raises(ShapeError, match='init has shape'):
        reverse_scan(0.5, torch.zeros(2, 3), torch.zeros(2))
    with pytest.raises(ShapeError, match='rhos has shape'):
        upgo_loss(Q.unsqueeze(0), ROW, ACTION.unsqueeze(0), ROW.unsqueeze(0), torch.zeros(2, 2))


def test_a_width_below_zero_is_refused():
    fields = (torch.zeros(5, 2, 3), torch.zeros(5, 2, 3), ACTION, ACTION, ROW, ROW, torch.full((5, 2), 0.5), None)
    with pytest.raises(ValueError, match='kappa is a width, at least 0, got -1'):
        iqn_nstep_td_error(iqn_nstep_td_data(*fields), 0.9, kappa=-1.0)


@pytest.mark.parametrize('field', ['next_n_q', 'action', 'done', 'weight'])
def test_arrays_of_the_right_shape_are_no_tensors(field):
    q, action = torch.zeros(2, 3), torch.zeros(2, dtype=torch.long)
    data = q_nstep_td_data(q, q, action, action, torch.zeros(1, 2), torch.zeros(2), torch.ones(2))
    data = data._replace(**{field: getattr(data, field).numpy()})
    with pytest.raises(TypeError, match=f'(next_q|{field}) is a ndarray, expected a tensor of shape'):
        q_nstep_td_error(data, 0.9)
