import copy
import logging

import pytest
import torch
from torch import nn

from nervex.graph.update import GraphedLoss
from nervex.torch_utils import Adam, FlatParameters
from nervex.utils.errors import TrainingError

BACKENDS = ['ts']


class Dueling(nn.Module):
    def __init__(self, width=16, norm=False, dropout=0.0):
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(
            nn.Linear(4, width),
            nn.LayerNorm(width) if norm else nn.Identity(),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(width, width),
            nn.ReLU(),
        )
        self.advantage, self.value = nn.Linear(width, 2), nn.Linear(width, 1)

    def forward(self, data):
        h = self.body(data['obs'])
        a = self.advantage(h)
        return {'logit': a - a.mean(-1, keepdim=True) + self.value(h)}


def batches(count, size=8):
    g = torch.Generator().manual_seed(1)
    return [
        dict(
            obs=torch.randn(size, 4, generator=g),
            next_obs=torch.randn(size, 4, generator=g),
            action=torch.randint(0, 2, (size,), generator=g),
            reward=torch.randn(size, generator=g),
            done=(torch.rand(size, generator=g) < 0.2).float(),
        )
        for _ in range(count)
    ]


def dqn_loss(net, target):
    def loss_fn(b):
        q = net({'obs': b['obs']})['logit'].gather(1, b['action'].unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            q_next = target({'obs': b['next_obs']})['logit'].max(1).values
        error = b['reward'] + 0.9 * (1.0 - b['done']) * q_next - q
        return error.pow(2).mean(), {'priority': error.abs()}

    return loss_fn


def mean_square(net):
    return lambda b: (net(b)['logit'].pow(2).mean(), {})


def train(backend, steps=20, **options):
    net = Dueling(**options)
    target = copy.deepcopy(net)
    update = GraphedLoss(dqn_loss(net, target), FlatParameters(net), backend)
    target_flat = FlatParameters(target)
    optimizer = Adam(update.flat, lr=1e-2, grad_clip_type='clip_norm', clip_value=1.0)
    seen = []
    for i, batch in enumerate(batches(steps)):
        loss, aux = update(batch)
        optimizer.apply()
        seen.append((loss.item(), aux['priority'].clone()))
        if i % 5 == 4:
            target_flat.copy_from(update.flat)
    return net, update, seen


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('norm', [False, True])
def test_training_equals_eager_number_for_number(backend, norm):
    net, update, seen = train(backend, norm=norm)
    reference, _, expected = train('off', norm=norm)
    assert update.eager_reason is None
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), reference.state_dict().values()))
    assert all(a == b and torch.equal(p, q) for (a, p), (b, q) in zip(seen, expected))


@pytest.mark.parametrize('backend', BACKENDS)
def test_dropout_draws_the_same_numbers_as_eager_and_leaves_the_same_state(backend):
    torch.manual_seed(5)
    net, update, _ = train(backend, dropout=0.5)
    after = torch.rand(3)
    torch.manual_seed(5)
    reference, _, _ = train('off', dropout=0.5)
    assert update.eager_reason is None and torch.equal(after, torch.rand(3))
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), reference.parameters()))


@pytest.mark.parametrize('backend', BACKENDS)
def test_tracing_leaves_batchnorm_statistics_and_random_state_alone(backend):
    nets = [nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)) for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    updates = [
        GraphedLoss(lambda b, n=n: n(b['obs']).pow(2).mean(), FlatParameters(n), k)
        for n, k in zip(nets, (backend, 'off'))
    ]
    for i, batch in enumerate(batches(4)):
        state = torch.get_rng_state()
        for update in updates:
            update(batch)
        assert torch.equal(state, torch.get_rng_state())
        assert nets[0][1].num_batches_tracked == i + 1
        assert torch.equal(nets[0][1].running_mean, nets[1][1].running_mean)
    assert updates[0].eager_reason is None


def test_generator_of_the_user_is_drawn_from_once_per_call():
    net = Dueling()
    g, h = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)

    def noisy(generator):
        return lambda b: (net(b)['logit'] * torch.rand(8, 1, generator=generator)).pow(2).mean()

    flat = FlatParameters(net)
    graphed, eager = GraphedLoss(noisy(g), flat, 'ts'), GraphedLoss(noisy(h), flat, 'off')
    for batch in batches(4):
        assert graphed(batch)[0] == eager(batch)[0]
    assert torch.equal(g.get_state(), h.get_state()) and graphed.eager_reason is None


def test_other_batch_sizes_get_a_program_of_their_own():
    net = Dueling()
    update = GraphedLoss(mean_square(net), FlatParameters(net), 'ts')
    for size in (8, 3, 8, 3):
        batch = batches(1, size)[0]
        loss, _ = update(batch)
        assert loss == mean_square(net)(batch)[0]
    assert len(update._plans) == 2 and update.eager_reason is None


def test_train_and_eval_mode_are_told_apart():
    net = Dueling(dropout=0.5)
    update = GraphedLoss(mean_square(net), FlatParameters(net), 'ts')
    batch = batches(1)[0]
    losses = set()
    for training in (True, True, False, False, False, True):
        net.train(training)
        loss = update(batch)[0].item()
        losses.add(loss)
        assert training or loss == mean_square(net)(batch)[0].item()
    assert update.eager_reason is None and len(losses) == 4


def test_a_schedule_as_a_tensor_is_followed():
    net = Dueling()
    update = GraphedLoss(lambda b: net(b)['logit'].pow(2).mean() * b['scale'], FlatParameters(net), 'ts')
    batch = batches(1)[0]
    one = update({**batch, 'scale': torch.tensor(1.0)})[0]
    assert all(update({**batch, 'scale': torch.tensor(s)})[0] == one * s for s in (0.5, 2.0, 4.0))


def test_a_number_in_the_batch_is_not_frozen(caplog):
    net = Dueling()
    update = GraphedLoss(lambda b: net(b)['logit'].pow(2).mean() * b['scale'], FlatParameters(net), 'ts')
    batch = batches(1)[0]
    with caplog.at_level(logging.WARNING):
        one, two = update({**batch, 'scale': 1.0})[0], update({**batch, 'scale': 2.0})[0]
    assert two == one * 2 and 'give numbers as 0-dim tensors' in caplog.text and len(caplog.records) == 1


def test_a_number_that_changes_behind_the_graph_is_found_by_the_checks(caplog):
    net, settings = Dueling(), {'scale': 1.0}
    update = GraphedLoss(lambda b: net(b)['logit'].pow(2).mean() * settings['scale'], FlatParameters(net), 'ts')
    batch = batches(1)[0]
    one = update(batch)[0]
    settings['scale'] = 2.0
    assert update(batch)[0] == one * 2 and 'Python number that changes' in caplog.text
    assert update(batch)[0] == one * 2


def test_a_number_that_changes_late_is_found_too(caplog):
    net, settings = Dueling(), {'scale': 1.0}
    update = GraphedLoss(lambda b: net(b)['logit'].pow(2).mean() * settings['scale'], FlatParameters(net), 'ts')
    batch = batches(1)[0]
    for call in range(1, 65):
        settings['scale'] = 2.0 if call > 40 else 1.0
        loss = update(batch)[0]
    assert loss == GraphedLoss(update.loss_fn, update.flat, 'off')(batch)[0] and 'call 64' in caplog.text


@pytest.mark.parametrize(
    'loss',
    [
        lambda y, b: y.sum() if y.sum() > 0 else y.pow(2).sum(),
        lambda y, b: y.sum() * float(y.mean().detach()),
        lambda y, b: y[torch.nonzero(b['done'])].sum() + y.sum(),
        lambda y, b: y[b['done'] > 0].sum() + y.sum(),
        lambda y, b: torch.masked_select(y, y > 0).sum(),
    ],
)
def test_what_cannot_be_recorded_runs_in_eager_mode_and_says_so_once(loss, caplog):
    net = Dueling()
    update = GraphedLoss(lambda b: loss(net(b)['logit'], b), FlatParameters(net), 'ts')
    for batch in batches(3):
        found = update(batch)[0]
        grad = update.flat.grad.clone()
        expected = loss(net(batch)['logit'], batch)
        assert found == expected and torch.equal(grad, update.flat.gradient(expected))
    mine = [r.getMessage() for r in caplog.records if r.name.startswith('nervex')]
    assert len(mine) == 1 and 'runs in eager mode: it cannot be recorded' in mine[0]


def test_lstm_gives_the_gradient_of_eager_mode(caplog):
    lstm = nn.LSTM(4, 5)
    update = GraphedLoss(lambda b: lstm(b['obs'].unsqueeze(0))[0].pow(2).mean(), FlatParameters(lstm), 'ts')
    for batch in batches(3):
        update(batch)
        grad = update.flat.grad.clone()
        assert torch.allclose(grad, update.flat.gradient(update.loss_fn(batch)), atol=1e-6)


def test_random_numbers_from_outside_torch_are_found(caplog):
    import random

    net = Dueling()
    update = GraphedLoss(lambda b: net(b)['logit'].pow(2).mean() * random.random(), FlatParameters(net), 'ts')
    for batch in batches(3):
        update(batch)
    assert 'random numbers from outside torch' in caplog.text


class Counting(Dueling):
    calls = 0

    def forward(self, data):
        self.calls += 1
        return super().forward(data)


def test_a_module_that_counts_in_forward_keeps_its_count(caplog):
    net = Counting()
    update = GraphedLoss(mean_square(net), FlatParameters(net), 'ts')
    for batch in batches(3):
        update(batch)
    assert net.calls == 3 and "Counting sets its attribute 'calls' in forward" in caplog.text


def test_writing_into_a_foreign_tensor_is_refused(caplog):
    net, total = Dueling(), torch.zeros(())

    def loss_fn(b):
        y = net(b)['logit'].pow(2).mean()
        total.add_(y.detach())
        return y

    update = GraphedLoss(loss_fn, FlatParameters(net), 'ts')
    update(batches(1)[0])
    assert 'no buffer of a module' in caplog.text


def test_a_result_that_is_no_tensor_is_refused(caplog):
    net = Dueling()
    update = GraphedLoss(lambda b: (net(b)['logit'].mean(), {'n': 3}), FlatParameters(net), 'ts')
    assert update(batches(1)[0])[1] == {'n': 3} and "'n' is no tensor" in caplog.text


def test_new_weights_in_the_target_are_seen():
    net, other = Dueling(), Dueling()
    target = copy.deepcopy(net)
    update = GraphedLoss(dqn_loss(net, target), FlatParameters(net), 'ts')
    batch = batches(1)[0]
    update(batch)
    with torch.no_grad():
        other.value.bias.add_(1.0)
    for change in (
        lambda: target.load_state_dict(other.state_dict(), assign=True),
        lambda: setattr(target.value, 'weight', nn.Parameter(torch.ones(1, 16))),
        lambda: target.double().float(),
        lambda: FlatParameters(target).data.mul_(2.0),
    ):
        change()
        assert update(batch)[0] == dqn_loss(net, target)(batch)[0]
    assert update.eager_reason is None


def test_new_weights_in_the_trained_module_are_refused_by_name():
    net = Dueling()
    update = GraphedLoss(mean_square(net), FlatParameters(net), 'ts')
    update(batches(1)[0])
    net.load_state_dict(Dueling().state_dict(), assign=True)
    with pytest.raises(TrainingError, match='assign=True'):
        update(batches(1)[0])


def test_freezing_a_layer_is_refused_by_name():
    net = Dueling()
    update = GraphedLoss(mean_square(net), FlatParameters(net), 'ts')
    update(batches(1)[0])
    net.value.requires_grad_(False)
    with pytest.raises(TrainingError, match='frozen'):
        update(batches(1)[0])


def test_layers_that_a_loss_does_not_reach_do_not_move():
    net = Dueling()
    update = GraphedLoss(lambda b: net.advantage(net.body(b['obs'])).pow(2).mean(), FlatParameters(net), 'ts')
    optimizer = Adam(update.flat, lr=0.1)
    before = net.value.weight.detach().clone()
    GraphedLoss(mean_square(net), update.flat, 'off')(batches(1)[0])
    optimizer.apply()
    moved = net.value.weight.detach().clone()
    for batch in batches(3):
        update(batch)
        optimizer.apply()
    assert update.eager_reason is None and not torch.equal(before, moved)
    assert torch.equal(net.value.weight, moved)


def test_nested_batches_and_none_work():
    net = Dueling()

    def loss_fn(b):
        y = net(b['now'])['logit'].pow(2).mean(1)
        return (y if b['weight'] is None else y * b['weight']).mean()

    update = GraphedLoss(loss_fn, FlatParameters(net), 'ts')
    for weight in (None, torch.rand(8), None, torch.rand(8)):
        batch = {'now': {'obs': torch.randn(8, 4)}, 'weight': weight}
        assert update(batch)[0] == loss_fn(batch)
    assert update.eager_reason is None and len(update._plans) == 2


def test_slices_and_transposed_columns_are_taken_as_they_are():
    net = Dueling()
    update = GraphedLoss(mean_square(net), FlatParameters(net), 'ts')
    big = torch.randn(4, 40)
    for obs in (torch.randn(8, 4), big.t()[:16:2], big.t()[:16:2].clone(), torch.randn(20, 6)[:8, 1:5]):
        for _ in range(2):
            assert torch.equal(update({'obs': obs})[0], mean_square(net)({'obs': obs})[0])
            assert torch.equal(update.flat.grad, update.flat.gradient(mean_square(net)({'obs': obs})[0]))
    assert update.eager_reason is None


def test_too_many_shapes_end_in_eager_mode(caplog, monkeypatch):
    monkeypatch.setattr('nervex.graph.recorded._MAX_PLANS', 4)
    net = Dueling()
    update = GraphedLoss(mean_square(net), FlatParameters(net), 'ts')
    for size in range(1, 7):
        batch = batches(1, size)[0]
        assert update(batch)[0] == mean_square(net)(batch)[0]
    assert 'shapes or modes change too often' in caplog.text


def test_errors_of_the_loss_function_stay_what_they_are():
    net = Dueling()
    update = GraphedLoss(lambda b: net(b)['logits'].mean(), FlatParameters(net), 'ts')
    with pytest.raises(KeyError, match='logits'):
        update(batches(1)[0])
    update = GraphedLoss(mean_square(net), update.flat, 'ts')
    with pytest.raises(RuntimeError, match='mat1 and mat2'):
        update({'obs': torch.randn(8, 5)})


def test_convolutions_and_embeddings():
    conv = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2))
    table = nn.Embedding(5, 4)
    flat = FlatParameters([conv, table])
    update = GraphedLoss(lambda b: conv(b['image']).pow(2).mean() + table(b['id']).sum(), flat, 'ts')
    for _ in range(3):
        batch = {'image': torch.randn(4, 2, 6, 6), 'id': torch.randint(0, 5, (4,))}
        update(batch)
        grad = flat.grad.clone()
        assert torch.allclose(grad, flat.gradient(update.loss_fn(batch)), atol=1e-5)
    assert update.eager_reason is None


def test_wrong_backend_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'ts'"):
        GraphedLoss(lambda b: b, FlatParameters(nn.Linear(1, 1)), 'tss')


def test_outputs_survive_the_next_call():
    net = Dueling()
    update = GraphedLoss(lambda b: (net(b)['logit'].mean(), {'q': net(b)['logit']}), FlatParameters(net), 'ts')
    first, second = batches(2)
    update(first)
    loss, aux = update(first)
    kept = loss.clone(), aux['q'].clone()
    update(second)
    assert loss == kept[0] and torch.equal(aux['q'], kept[1]) and not aux['q'].requires_grad
