import pytest
import torch

from nervex.torch_utils.network import RNN, get_lstm


def make(kind, layers=1):
    torch.manual_seed(0)
    return RNN(3, 4, kind, layers)


@pytest.mark.parametrize('kind', ['lstm', 'gru'])
@pytest.mark.parametrize('layers', [1, 2])
def test_steps_with_states_equal_the_sequence(kind, layers):
    net, x = make(kind, layers), torch.randn(5, 2, 3)
    whole, last = net(x)
    state, steps = None, []
    for t in range(5):
        y, state = net(x[t : t + 1], state)
        steps.append(y)
    assert torch.allclose(torch.cat(steps), whole, atol=1e-6)
    flat = [s[0] if kind == 'lstm' else s for s in state]
    assert isinstance(state, list) and len(state) == 2 and flat[0].shape == (layers, 1, 4)
    assert torch.allclose(flat[1], last[1][0] if kind == 'lstm' else last[1], atol=1e-6)


@pytest.mark.parametrize('kind', ['lstm', 'gru'])
def test_one_step_equals_torchs_layer_with_gradients(kind):
    net, x = make(kind, 2), torch.randn(1, 3, 3)
    state = net.joined(net(torch.randn(4, 3, 3))[1], x)
    state = tuple(s.detach() for s in state) if kind == 'lstm' else state.detach()
    expected, expected_state = net.rnn(x, state)
    y, rows = net(x, state)
    got_state = net.joined(rows, x)
    assert torch.allclose(y, expected, atol=1e-6)
    for a, b in zip(*[s if kind == 'lstm' else (s,) for s in (got_state, expected_state)]):
        assert torch.allclose(a, b, atol=1e-6)
    parameters = list(net.parameters())
    for a, b in zip(torch.autograd.grad(y.sum(), parameters), torch.autograd.grad(expected.sum(), parameters)):
        assert torch.allclose(a, b, atol=1e-6)


@pytest.mark.parametrize('kind', ['lstm', 'gru'])
def test_none_means_zeros_for_single_rows(kind):
    net, x = make(kind), torch.randn(1, 3, 3)
    state = net(x)[1]
    mixed = net(x, [state[0], None, state[2]])[0]
    assert torch.allclose(mixed[:, 1], net(x)[0][:, 1], atol=1e-6)
    assert torch.allclose(mixed[:, 0], net(x, state)[0][:, 0], atol=1e-6)
    assert torch.allclose(net(x, [net.initial_state()] * 3)[0], net(x)[0])


def test_other_forms_of_an_lstm_state():
    net, x = make('lstm'), torch.randn(1, 2, 3)
    state = net(x)[1]
    expected = net(x, state)[0]
    stacked = tuple(torch.cat(parts, 1) for parts in zip(*state))
    assert torch.allclose(net(x, stacked)[0], expected)
    assert torch.allclose(net(x, [{'h': h, 'c': c} for h, c in state])[0], expected)
    assert torch.allclose(net(x, [[h, c] for h, c in state])[0], expected)
    assert torch.allclose(net(x, [(h[:, 0], c[:, 0]) for h, c in state])[0], expected)


def test_states_of_the_wrong_number_or_size_are_named():
    net, x = make('lstm'), torch.randn(1, 2, 3)
    with pytest.raises(ValueError, match='list of 3 states, the batch has 2 rows'):
        net(x, [None] * 3)
    with pytest.raises(ValueError, match=r'2 tensors of shape \(1, 1, 4\)'):
        net(x, [(torch.zeros(1, 1, 4), torch.zeros(1, 1, 4)), (torch.zeros(2, 1, 4), torch.zeros(1, 1, 4))])
    with pytest.raises(KeyError, match="did you mean 'lstm'"):
        make('lsmt')


@pytest.mark.parametrize('name, kind', [('normal', 'lstm'), ('pytorch', 'lstm'), ('hpc', 'lstm'), ('gru', 'gru')])
def test_get_lstm_knows_the_older_names(name, kind):
    torch.manual_seed(0)
    net, x = get_lstm(name, 3, 4), torch.randn(5, 2, 3)
    same = make(kind)
    same.load_state_dict(net.state_dict())
    y, state = net(x, [None, None])
    assert torch.equal(y, same(x)[0]) and y.shape == (5, 2, 4) and len(state) == 2
    parts = state[0] if kind == 'lstm' else [state[0]]
    assert all(part.shape == (1, 1, 4) for part in parts)
