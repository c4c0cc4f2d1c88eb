import logging

import numpy as np
import pytest
import torch
from torch import nn

from nervex.graph.acting import GraphedForward
from nervex.model.qmix import QMix
from nervex.torch_utils import Adam, FlatParameters
from nervex.utils import tree


class Dueling(nn.Module):
    def __init__(self, extra=None):
        super().__init__()
        torch.manual_seed(0)
        middle = [extra] if extra else []
        self.body = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), *middle, nn.Linear(16, 16), nn.Tanh())
        self.advantage, self.value = nn.Linear(16, 2), nn.Linear(16, 1)

    def forward(self, data):
        h = self.body(data['obs'])
        a = self.advantage(h)
        return {'logit': a - a.mean(-1, keepdim=True) + self.value(h), 'hidden': h}


def rows(n=1):
    return np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)


def reference(module, obs):
    with torch.no_grad():
        return {k: v.numpy() for k, v in module({'obs': torch.from_numpy(obs)}).items()}


@pytest.mark.parametrize('backend', ['numpy', 'off'])
@pytest.mark.parametrize('n', [1, 5])
def test_arrays_in_arrays_out_equal_to_the_module(backend, n):
    net = Dueling()
    act = GraphedForward(net, backend)
    for _ in range(4):
        found, expected = act({'obs': rows(n)}), reference(net, rows(n))
        assert list(found) == ['logit', 'hidden']
        assert all(type(v) is np.ndarray and v.dtype == np.float32 for v in found.values())
        assert all(np.allclose(found[k], expected[k], atol=1e-6) for k in expected)
    assert act.backend == backend and act.eager_reason == ('graph is off' if backend == 'off' else None)


@pytest.mark.parametrize('backend', ['numpy', 'off'])
def test_tensors_in_tensors_out(backend):
    net = Dueling()
    act = GraphedForward(net, backend)
    for _ in range(4):
        out = act({'obs': torch.from_numpy(rows(2))})
        assert all(isinstance(v, torch.Tensor) and not v.requires_grad for v in out.values())
        assert np.allclose(out['logit'].numpy(), reference(net, rows(2))['logit'], atol=1e-6)


def test_weights_are_always_current():
    net = Dueling()
    flat = FlatParameters(net)
    optimizer, act = Adam(flat, lr=0.1), GraphedForward(net)
    for _ in range(5):
        act({'obs': rows()})
        optimizer.minimize(net({'obs': torch.from_numpy(rows())})['logit'].pow(2).sum())
        assert np.allclose(act({'obs': rows()})['logit'], reference(net, rows())['logit'], atol=1e-5)
    net.load_state_dict(Dueling().state_dict())
    assert np.allclose(act({'obs': rows()})['logit'], reference(Dueling(), rows())['logit'], atol=1e-5)


@pytest.mark.parametrize(
    'change',
    [
        lambda m: m.load_state_dict({k: v + 1 for k, v in Dueling().state_dict().items()}, assign=True),
        lambda m: setattr(m.value, 'weight', nn.Parameter(torch.ones(1, 16))),
        lambda m: setattr(m.value.weight, 'data', torch.ones(1, 16)),
        lambda m: FlatParameters(m).data.mul_(2.0),
    ],
)
def test_replaced_weights_are_seen(change):
    net = Dueling()
    act = GraphedForward(net)
    for _ in range(3):
        act({'obs': rows()})
    change(net)
    assert np.allclose(act({'obs': rows()})['logit'], reference(net, rows())['logit'], atol=1e-5)
    assert act.backend == 'numpy'


def test_results_of_one_call_survive_the_next():
    act = GraphedForward(Dueling())
    act({'obs': rows()})
    first = act({'obs': rows()})
    kept = {k: v.copy() for k, v in first.items()}
    act({'obs': rows() * 3})
    assert all(np.array_equal(first[k], kept[k]) for k in kept)


def test_input_is_not_written_to():
    act, obs = GraphedForward(nn.ReLU()), rows()
    before = obs.copy()
    for _ in range(3):
        act(obs)
    assert np.array_equal(obs, before) and (before < 0).any()


def test_unknown_operator_is_named_and_the_module_takes_over(caplog):
    net = Dueling(nn.LayerNorm(16))
    act = GraphedForward(net)
    with caplog.at_level(logging.DEBUG):
        for _ in range(3):
            assert np.allclose(act({'obs': rows()})['logit'], reference(net, rows())['logit'], atol=1e-6)
    assert act.backend == 'off' and "no NumPy form of 'native_layer_norm'" in act.eager_reason
    mine = [r for r in caplog.records if r.name.startswith('nervex')]
    assert [r.levelno for r in mine] == [logging.DEBUG]  # nothing to mend


class Branching(nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x - 1


class Noisy(nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)


class Scaled(nn.Module):
    scale = 1.0

    def forward(self, x):
        return x * self.scale


def test_branches_run_in_the_module(caplog):
    act = GraphedForward(Branching())
    assert [act(np.array([v], dtype=np.float32))[0] for v in (1.0, -1.0, 2.0)] == [2.0, -2.0, 3.0]
    assert act.backend == 'off' and 'becomes a Python number' in caplog.text


def test_random_modules_run_in_the_module_and_keep_the_random_stream(caplog):
    act, x = GraphedForward(Noisy()), torch.zeros(3)
    torch.manual_seed(4)
    found = [act(x) for _ in range(3)]
    torch.manual_seed(4)
    assert all(torch.equal(f, Noisy()(x)) for f in found) and 'random' in caplog.text


def test_a_number_that_changes_is_found_by_the_checks(caplog):
    net = Scaled()
    act, x = GraphedForward(net), np.ones(2, dtype=np.float32)
    assert act(x).tolist() == [1.0, 1.0]
    net.scale = 3.0
    assert act(x).tolist() == [3.0, 3.0] and 'Python number' in caplog.text


class Cancelling(nn.Module):
    """Large numbers whose sum is almost nothing: what is left is rounding, which differs with the order of adding."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(301, 1, bias=False)

    def forward(self, x):
        return {'large': 100 * x, 'nothing': self.layer(x) - (x * self.layer.weight).sum(-1, keepdim=True)}


def test_numbers_that_cancel_out_are_no_difference(caplog):
    net = Cancelling()
    for seed in range(40):
        x = np.random.default_rng(seed).standard_normal((1, 301)).astype(np.float32)
        act = GraphedForward(Cancelling())  # each is a first call, which is checked
        found, expected = act(x), net(torch.from_numpy(x))
        assert np.array_equal(found['large'], expected['large']) and abs(found['nothing'].item()) < 1e-3
        assert act.backend == 'numpy' and not caplog.records


def test_small_results_are_checked_all_the_same(caplog):
    net = Scaled()
    act, x = GraphedForward(net), np.full(2, 1e-2, dtype=np.float32)
    act(x)
    net.scale = 1.01
    assert np.allclose(act(x), 1.01e-2) and 'Python number' in caplog.text


def test_training_and_eval_mode_are_told_apart():
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    act = GraphedForward(net.eval())
    for _ in range(3):
        expected = net(torch.from_numpy(rows(4))).detach().numpy()
        assert np.allclose(act(rows(4)), expected, atol=1e-6)
    before = net[1].num_batches_tracked.item()
    net.train()
    for _ in range(3):
        act(rows(4))
    assert net[1].num_batches_tracked == before + 3


def test_many_shapes_and_nested_data():
    class Pair(nn.Module):
        def forward(self, data):
            return [data['a']['x'] * 2.0, None if data['b'] is None else data['b'] + 1.0]

    net = Dueling()
    act = GraphedForward(net)
    for n in [*range(1, 20), 1, 2]:
        assert act({'obs': rows(n)})['logit'].shape == (n, 2)
    assert act.backend == 'numpy'
    pair = GraphedForward(Pair())
    for _ in range(3):
        out = pair({'a': {'x': np.ones(2, np.float32)}, 'b': np.zeros(1, np.float32)})
        assert [o.tolist() for o in out] == [[2.0, 2.0], [1.0]]


class Everything(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(4, 6), nn.Linear(4, 6, bias=False)

    def forward(self, data):
        x, y = self.a(data['obs']), self.b(data['obs'])
        left, right = torch.sigmoid(x).chunk(2, -1)
        first, second = y.split([2, 4], -1)
        return {
            'softmax': torch.softmax(x, -1),
            'clamp': torch.clamp(x, -0.1, 0.2),
            'parts': torch.cat([left, right, first], -1),
            'second': second.unsqueeze(1),
            'mix': 1.0 - x / (2.0 + y.abs()),
            'cut': x[:, 1:5:2],
            'column': y[:, 2],
            'flat': x.reshape(-1),
            'swap': x.t().contiguous() * 2.0,
            'sum': x.sum(-1),
            'mean': y.mean(0, keepdim=True),
            'neg': -torch.tanh(x),
            'product': x @ y.t(),
            'float': data['count'].float() / 255.0,
            'std': torch.clamp(y, -5.0, 2.0).exp(),
            'rows of a new axis': torch.stack([first, second[:, :2]], 1),
            'an input with a new axis, joined': torch.cat([data['obs'].unsqueeze(0), data['obs'].expand(1, 3, 4)], -1),
        }


@pytest.mark.parametrize('kind', ['gru', 'lstm'])
def test_a_team_with_a_memory_acts_by_numpy(kind):
    net = QMix(2, 3, 6, 4, hidden_dim_list=[8], lstm_type=kind, agent_ids=True)
    module = nn.Module()
    module.net, module.forward = net, net.compute_action
    act, rng = GraphedForward(module), np.random.default_rng(0)
    for _ in range(3):
        obs = {'agent_state': rng.normal(size=(5, 2, 3)), 'action_mask': np.ones((5, 2, 4))}
        data = {'obs': obs, 'prev_state': rng.normal(size=(5, *net.state_shape))}
        data = tree.map(lambda x: x.astype(np.float32), data)
        found = act(data)
        with torch.no_grad():
            expected = module(tree.map(torch.from_numpy, data))
        assert all(np.allclose(found[k], expected[k].numpy(), atol=1e-6) for k in ('logit', 'next_state'))
    assert act.eager_reason is None


def test_every_operator_of_the_list():
    net = Everything()
    act = GraphedForward(net)
    for i in range(3):
        data = {'obs': rows(3) + i, 'count': np.arange(6, dtype=np.uint8).reshape(3, 2)}
        found = act(data)
        with torch.no_grad():
            expected = net({k: torch.from_numpy(v) for k, v in data.items()})
        assert list(found) == list(expected)
        for k, v in expected.items():
            assert found[k].dtype == v.numpy().dtype and np.allclose(found[k], v.numpy(), atol=1e-5), k
    assert act.eager_reason is None


def test_wrong_backend_is_refused():
    with pytest.raises(ValueError, match="did you mean 'numpy'"):
        GraphedForward(nn.ReLU(), 'numpi')


def test_other_data_than_arrays_goes_to_the_module(caplog):
    class Loose(nn.Module):
        def forward(self, data):
            return data['x'] * data['k']

    act = GraphedForward(Loose())
    assert act({'x': torch.ones(1), 'k': 3}).item() == 3.0 and 'more than arrays and tensors' in caplog.text


@pytest.mark.parametrize('backend', ['numpy', 'off'])
def test_results_may_be_used_in_a_later_loss(backend):
    act, weight = GraphedForward(Dueling(), backend), torch.ones(2, requires_grad=True)
    for _ in range(3):
        logit = act({'obs': torch.from_numpy(rows())})['logit']
    (logit * weight).sum().backward()  # results of inference_mode would raise here
    assert torch.equal(weight.grad, logit[0])


@pytest.mark.parametrize('n', [1, 3])
def test_gaussian_policies_act_by_numpy(n):
    class Gaussian(nn.Module):
        def __init__(self):
            super().__init__()
            self.mu, self.log_sigma = nn.Linear(4, 2), nn.Parameter(torch.tensor([0.5, -1.0]))

        def forward(self, data):
            mu = self.mu(data['obs'])
            return {'mu': mu, 'sigma': self.log_sigma.exp().expand_as(mu)}

    net = Gaussian()
    act = GraphedForward(net, 'numpy')
    for _ in range(3):
        found, expected = act({'obs': rows(n)}), reference(net, rows(n))
        assert all(np.allclose(found[k], expected[k], atol=1e-6) for k in expected)
        assert found['sigma'].flags.writeable
    assert act.backend == 'numpy' and act.eager_reason is None


def test_another_thread_gets_the_module_itself():
    from concurrent.futures import ThreadPoolExecutor

    net, seen = Dueling(), []
    act = GraphedForward(net)
    for _ in range(3):
        act({'obs': rows()})
    net.register_forward_hook(lambda *_: seen.append(1))
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(act, {'obs': rows()}).result()
    assert seen == [1] and np.allclose(found['logit'], act({'obs': rows()})['logit'], atol=1e-6) and seen == [1]


def test_keys_that_are_no_text_are_fine(caplog):
    class Keyed(nn.Module):
        def forward(self, data):
            return {('q', 1): data[(0, 'x')] * 2.0}

    act = GraphedForward(Keyed())
    for _ in range(3):
        assert act({(0, 'x'): np.ones(2, np.float32)})[('q', 1)].tolist() == [2.0, 2.0]
    assert 'keys that are no text' in caplog.text


def test_layers_that_work_in_place_and_assignments(caplog):
    class Assigning(nn.Module):
        def forward(self, data):
            x = data['obs'] * 2.0
            x[:, 0] = 5.0
            return x

    layers = nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Linear(6, 2))
    for net, backend, given in ((layers, 'numpy', rows(2)), (Assigning(), 'off', {'obs': rows(2)})):
        act = GraphedForward(net)
        for _ in range(5):
            found, expected = act(given), act.eager(given)
            assert np.allclose(found, expected, atol=1e-6)
        assert act.backend == backend


class Wider(nn.Module):
    """Views of an input beside other views, as networks of teams have."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(6, 2)
        self.register_buffer('ids', torch.eye(2))

    def forward(self, data):
        obs, other = data['obs'].unsqueeze(0), data['other'].unsqueeze(0)
        ids = self.ids.expand(*obs.shape[:2], -1, -1)
        return {'y': self.net(torch.cat([obs, ids], -1)).squeeze(0), 'other': other.squeeze(0)}


def test_a_view_of_an_input_is_not_taken_for_another_input():
    """It was, by the id of an array that lived no longer: a matter of chance, so many are made."""
    rng, held = np.random.default_rng(0), []
    for _ in range(20):
        module = Wider()
        act = GraphedForward(module)
        data = {name: rng.normal(size=(3, 2, 4)).astype(np.float32) for name in ('obs', 'other')}
        for _ in range(2):
            found = act(data)
        assert act.eager_reason is None
        expected = module({name: torch.from_numpy(x) for name, x in data.items()})
        assert np.allclose(found['y'], expected['y'].detach().numpy(), atol=1e-6)
        held.append(act)
