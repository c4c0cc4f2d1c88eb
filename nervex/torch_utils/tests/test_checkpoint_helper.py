import os
import signal

import pytest
import torch
from torch import nn

from nervex.torch_utils import Adam, FlatParameters
from nervex.torch_utils.checkpoint_helper import CountVar, auto_checkpoint, build_checkpoint_helper
from nervex.utils.errors import CheckpointError


def trained(flat):
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    opt = Adam(FlatParameters(model) if flat else model.parameters(), lr=0.1)
    for _ in range(3):
        opt.minimize(model(torch.ones(4, 2)).pow(2).mean())
    return model, opt


@pytest.mark.parametrize('flat', [False, True])
def test_everything_comes_back(tmp_path, flat):
    helper, path = build_checkpoint_helper(), str(tmp_path / 'x.pth.tar')
    model, opt = trained(flat)
    schedule = torch.optim.lr_scheduler.StepLR(opt, 2)
    schedule.step()
    helper.save(path, model, opt, CountVar(5), CountVar(6), CountVar(7), lr_scheduler=schedule)
    other = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    other_opt = Adam(FlatParameters(other), lr=0.1)
    other_schedule = torch.optim.lr_scheduler.StepLR(other_opt, 2)
    counts = CountVar(0), CountVar(0), CountVar(0)
    helper.load(path, other, other_opt, *counts, lr_scheduler=other_schedule)
    assert [c.val for c in counts] == [5, 6, 7] and other_schedule.last_epoch == 1
    for m, o in ((model, opt), (other, other_opt)):
        o.minimize(m(torch.ones(4, 2)).pow(2).mean())
    assert all(torch.allclose(a, b, atol=1e-7) for a, b in zip(model.parameters(), other.parameters()))


def test_prefix_and_mask(tmp_path):
    helper, path = build_checkpoint_helper(None), str(tmp_path / 'x')
    model, _ = trained(False)
    helper.save(path, model, prefix_op='add', prefix='module.')
    other = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    helper.load(path, other, prefix_op='remove', prefix='module.')
    assert torch.equal(other[0].weight, model[0].weight)
    changed = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    helper.load(path, changed, prefix_op='remove', prefix='module.', state_dict_mask=['1.'])
    assert torch.equal(changed[0].weight, model[0].weight)


def test_mistakes_are_named(tmp_path):
    helper, path = build_checkpoint_helper(), str(tmp_path / 'x')
    model, opt = trained(False)
    helper.save(path, model)
    with pytest.raises(CheckpointError, match="holds no 'optimizer'; it has model, version"):
        helper.load(path, model, opt)
    with pytest.raises(CheckpointError, match='does not fit the model'):
        helper.load(path, nn.Linear(1, 1))
    with pytest.raises(ValueError, match='prefix_op'):
        helper.save(path, model, prefix_op='cut', prefix='x')
    torch.save({'model': {}, 'version': 99}, path)
    with pytest.raises(CheckpointError, match='version 99'):
        helper.load(path, model)
    torch.save([1], path)
    with pytest.raises(CheckpointError, match='no checkpoint'):
        helper.load(path, model)


def test_count_var():
    count = CountVar(3)
    count.add(2)
    assert count.val == 5
    count.update(9)
    assert count.val == 9


class Work:
    def __init__(self):
        self.saved = 0

    def save_checkpoint(self):
        self.saved += 1

    @auto_checkpoint
    def run(self, what):
        return what()


@pytest.mark.parametrize('error', [RuntimeError, KeyboardInterrupt])
def test_an_early_end_saves_and_goes_on_its_way(error):
    work = Work()

    def fail():
        raise error('boom')

    with pytest.raises(error):
        work.run(fail)
    assert work.saved == 1 and work.run(lambda: 4) == 4 and work.saved == 1


def test_a_request_to_end_saves_and_the_old_handler_comes_back():
    work, old = Work(), signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as found:
        work.run(lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert found.value.code == 128 + 15 and work.saved == 1 and signal.getsignal(signal.SIGTERM) is old


def test_the_older_spelling_of_the_schedule(tmp_path):
    helper, path = build_checkpoint_helper(), str(tmp_path / 'x')
    model, opt = trained(False)
    schedule = torch.optim.lr_scheduler.StepLR(opt, 2)
    schedule.step()
    helper.save(path, model, opt, lr_scheduler=schedule)
    other = torch.optim.lr_scheduler.StepLR(opt, 2)
    helper.load(path, model, lr_schduler=other)
    assert other.last_epoch == 1
