"""Sizes as users write them, and inputs that do not fit."""

import numpy as np
import pytest
import torch

from nervex.model import MLP, QAC, ComaNetwork, ConvEncoder, FCDiscreteNet, FCEncoder, InputShapeError, QMix


@pytest.mark.parametrize(
    'obs_dim, action_dim',
    [
        (np.int64(4), np.int64(2)),
        (torch.Size([4]), (2,)),
        (np.array([4]), np.array([2])),
    ],
)
def test_sizes_come_from_any_kind_of_integer(obs_dim, action_dim):
    assert FCDiscreteNet(obs_dim, action_dim)(torch.zeros(3, 4))['logit'].shape == (3, 2)


@pytest.mark.parametrize('obs_dim', ['4', '84', 4.5, [4.0], [], 0, None])
def test_what_is_no_size_is_refused(obs_dim):
    with pytest.raises(ValueError, match='is a positive int or a shape such as'):
        FCDiscreteNet(obs_dim, 2)


def test_widths_are_positive():
    with pytest.raises(ValueError, match=r'widths of layers, positive ints, got \[8, 0\]'):
        MLP(4, [8, 0])


@pytest.mark.parametrize(
    'net, obs',
    [
        (FCEncoder(3, [4]), torch.ones(2, 3)),
        (ConvEncoder([1, 8, 8], [4], [2], [3], [2]), torch.ones(2, 1, 8, 8)),
    ],
)
def test_inputs_follow_the_weights_to_another_dtype_and_back(net, obs):
    assert net.double()(obs).dtype == torch.float64 and net(obs.double()).dtype == torch.float64
    assert net.float()(obs.double()).dtype == torch.float32
    with pytest.raises(TypeError, match='is a ndarray, expected a tensor'):
        net(obs.numpy())


def test_entries_that_an_input_lacks_are_named():
    obs = torch.zeros(2, 3)
    with pytest.raises(KeyError, match="this model needs 'action' in its input, got 'obs'"):
        QAC(3, 1)({'obs': obs}, mode='compute_q')
    with pytest.raises(KeyError, match="needs 'action' in its input, got one tensor"):
        QAC(3, 1)(obs, mode='compute_q')
    with pytest.raises(KeyError, match="needs 'global_state' in its input, got 'agent_state'"):
        QMix(2, 3, 4, 5)({'obs': {'agent_state': torch.zeros(1, 2, 3)}})


@pytest.mark.parametrize('net', [QMix(2, 3, 4, 5), QMix(2, 3, 4, 5, use_mixer=False), ComaNetwork(2, 3, 5, 8, None, 4)])
def test_another_number_of_agents_is_refused(net):
    obs = {'agent_state': torch.zeros(1, 3, 3), 'global_state': torch.zeros(1, 4)}
    with pytest.raises(InputShapeError, match=r'agent_state of shape \(1, 3, 3\).*, 2, 3\)'):
        net({'obs': obs})


@pytest.mark.parametrize(
    'net, obs',
    [
        (FCDiscreteNet(4, 2), {'x': torch.zeros(3, 4)}),
        (FCDiscreteNet(4, 2), [1.0, 2.0, 3.0, 4.0]),
        (FCEncoder(4), None),
        (ConvEncoder([1, 36, 36]), {'x': 1}),
        (ConvEncoder([1, 36, 36]), np.zeros((1, 1, 36, 36))),
    ],
)
def test_what_is_no_tensor_is_a_type_error(net, obs):
    with pytest.raises(TypeError, match=r'is a (dict|list|NoneType|ndarray), expected a tensor'):
        net({'obs': obs} if isinstance(net, FCDiscreteNet) else obs)
