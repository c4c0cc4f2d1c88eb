import torch

from nervex.graph.update import GraphedLoss
from nervex.torch_utils import FlatParameters


def test_a_batch_with_none_takes_the_short_way(monkeypatch):
    """A batch that differs in what is None is another kind of batch; the same one is not taken apart again."""
    net = torch.nn.Linear(3, 1)

    def loss_fn(b):
        y = net(b['obs']).squeeze(-1)
        return (y if b['weight'] is None else y * b['weight']).mean()

    update = GraphedLoss(loss_fn, FlatParameters(net), 'ts')
    searched = []
    find = update._find
    monkeypatch.setattr(update, '_find', lambda *a: searched.append(1) or find(*a))
    for weight in (None, None, None, torch.full((4,), 2.0), torch.full((4,), 3.0)):
        batch = {'weight': weight, 'obs': torch.randn(4, 3)}
        assert torch.allclose(update(batch)[0], loss_fn(batch))
    assert len(searched) == 2 and update.eager_reason is None
