"""The learner with a policy that answers what the test wants."""

import math
import os
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from nervex.utils import TrainingError
from nervex.utils.autolog import LoggedModel, LoggedValue, Monitor, NaturalTime, TickTime
from nervex.worker.learner import (
    BaseLearner,
    LearnerHook,
    add_learner_hook,
    build_learner_hook_by_cfg,
    merge_hooks,
    register_learner_hook,
)

NO_HOOKS = dict(load_ckpt=None, log_show=None, save_ckpt_after_run=None)


def mode(answers, monitor=('loss',)):
    given = iter(answers)
    return SimpleNamespace(
        data_preprocess=lambda data: data,
        forward=lambda data: dict(next(given)),
        monitor_vars=lambda: list(monitor),
        state_dict=lambda: {'model': {}},
        load_state_dict=lambda state: None,
    )


@pytest.fixture
def learner(tmp_path):
    made = []

    def make(answers, names=('loss',), **cfg):
        made.append(BaseLearner(dict(hook=NO_HOOKS, **cfg), exp_name=str(tmp_path)))
        made[-1].policy = mode(answers, names)
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_window_averages_over_the_values_that_are_there(learner):
    one = learner(
        [{'loss': 1.0}, {'loss': torch.tensor(3.0)}, {'loss': 5.0, 'rare': 8.0}, {'loss': 7.0}],
        ('loss', 'rare'),
        log_window=3,
    )
    for _ in range(4):
        one.train([0])
    assert one.monitor.averages() == {'loss': 5.0, 'rare': 8.0}  # (3 + 5 + 7) / 3; one value of rare
    assert one.monitor.loss == 7.0


class Extremes(LoggedModel):
    """Somebody's own monitor: the largest value of four updates, and the average of two of its variables."""

    loss = LoggedValue(float)
    rare = LoggedValue(float)
    elsewhere = LoggedValue(float)

    def __init__(self, time_, expire):
        super().__init__(time_, expire)
        self.register_attribute_value('max', 'loss', lambda: max(v for _, v in self.range_values['loss']()))
        for name in ('loss', 'rare'):
            self.register_attribute_value('avg', name, partial(self._avg, name))

    def _avg(self, name):
        values = [v for _, v in self.range_values[name]()]
        return sum(values) / len(values)


@pytest.mark.parametrize('by_config', [False, True])
def test_a_monitor_of_somebodys_own_says_what_is_logged(learner, by_config):
    answers = [{'loss': torch.tensor([k, k + 1.0]), 'rare': k, 'other': 9.0} for k in range(6)]
    if by_config:
        one = learner(answers, ('loss', 'other'), monitor=Extremes, log_window=4)
    else:
        one = learner(answers, ('loss', 'other'))
        one.monitor = Extremes(TickTime(), 4)
    seen = {}
    one.tb_logger.listener = SimpleNamespace(log=seen.update)
    for _ in range(6):
        one.train([0])
    one.write_log()
    logged = {name.removeprefix('learner/'): value for name, value in seen.items()}
    logged.pop('updates_per_s')
    assert logged == {'loss': 4.0, 'loss_max': 5.5, 'rare': 3.5}  # updates 2 to 5: 2.5, 3.5, 4.5, 5.5
    assert 'loss 5.5, rare 5' in Path(one.log.text.path).read_text()


def test_a_monitor_must_count_updates(learner):
    with pytest.raises(TypeError, match='must be a LoggedModel over a TickTime'):
        learner([]).monitor = Monitor(NaturalTime(), 10)


def test_the_monitor_goes_on_in_a_resumed_run(learner):
    first = learner([{'loss': float(k)} for k in range(7)])
    for _ in range(7):
        first.train([0])
    again = learner([{'loss': 7.0}])
    again.load_run_state_dict({**first.run_state_dict(), 'last_iter': 7})
    again.train([0])
    assert again.monitor.averages() == {'loss': 3.5} and again.train_iter == 8


def test_hooks_run_in_order_of_priority_at_multiples_of_freq(learner):
    ran = []

    class Note(LearnerHook):
        def __call__(self, learner):
            ran.append((self.name, learner.train_iter))

    one = learner([{'loss': 0.0}] * 4)
    one.register_hook(Note('late', 30, 'after_iter', {'freq': 2}))
    one.register_hook(Note('early', 10, 'after_iter', {'freq': 2}))
    for _ in range(4):
        one.train([0])
    assert ran == [('early', 2), ('late', 2), ('early', 4), ('late', 4)]


def test_hooks_from_long_and_short_form():
    hooks = build_learner_hook_by_cfg(
        dict(
            log_show_after_iter=100,
            save_ckpt_after_run=True,
            load_ckpt_before_run='',
            mine=dict(type='save_ckpt', position='after_iter', ext_args=dict(freq=7)),
        )
    )
    assert [h.freq for h in hooks['after_iter']] == [100, 7]
    assert len(hooks['after_run']) == 1 and not hooks['before_run']
    assert len(merge_hooks(hooks, hooks)['after_iter']) == 4


def test_log_reduce_averages_the_log_over_the_learners(learner, monkeypatch):
    monkeypatch.setattr('nervex.utils.dist_helper.get_world_size', lambda: 2)
    monkeypatch.setattr('nervex.utils.dist_helper.allreduce', lambda x: x.add_(3.0).div_(2))  # the other one has 3
    one = learner([{'loss': torch.tensor(1.0)}])
    add_learner_hook(one._hooks, build_learner_hook_by_cfg({'log_reduce_after_iter': 1})['after_iter'][0])
    one.train([])
    assert float(one.log.last['loss']) == 2.0  # (1 + 3) / 2


def test_wrong_hooks_say_what_is_right():
    with pytest.raises(ValueError, match='after_iter'):
        LearnerHook('x', 1, 'sometimes')
    with pytest.raises(ValueError, match='freq'):
        LearnerHook('x', 1, 'after_iter', {'freq': 0})
    with pytest.raises(ValueError, match='_after_run'):
        build_learner_hook_by_cfg({'log_show': 3})
    with pytest.raises(TypeError, match='LearnerHook'):
        register_learner_hook('mine', int)


def test_priorities_must_be_one_a_row(learner):
    with pytest.raises(ValueError, match='2 values for a batch of 3 rows'):
        learner([{'loss': 0.0, 'priority': [1.0, 2.0]}]).train([{}, {}, {}])


def test_priorities_carry_the_buffers_keys_of_their_rows(learner):
    rows = [{'replay_unique_id': f'a_{k}', 'replay_buffer_idx': k} for k in range(2)]
    one = learner([{'loss': 0.0, 'priority': torch.tensor([1.0, 2.0])}])
    one.train(rows)
    assert one.priority_info['replay_unique_id'] == ['a_0', 'a_1']
    assert one.priority_info['priority'].tolist() == [1.0, 2.0]
    assert one.learn_info['priority_info'] is one.priority_info


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_with_its_name_and_the_last_checkpoint(learner, value):
    one = learner([{'loss': 1.0}, {'loss': value}])
    one.train([0])
    path = one.save_checkpoint()
    one.train([0])
    with pytest.raises(TrainingError, match=f'iteration 2: loss is {value}.*{path}'):
        one.write_log()


def test_the_first_bad_update_of_the_window_is_named_and_no_checkpoint_of_it_is_written(learner):
    one = learner([{'loss': 1.0}] * 3 + [{'loss': math.nan}] * 2)
    for _ in range(3):
        one.train([0])
    path = one.save_checkpoint()
    for _ in range(2):
        one.train([0])
    with pytest.raises(TrainingError, match=f'iteration 4: loss is nan.*{path}'):
        one.save_checkpoint('ckpt_best.pth.tar')
    assert one.last_checkpoint == path and os.listdir(one.ckpt_path) == [os.path.basename(path)]


def test_a_window_that_is_bad_throughout_says_that_it_began_earlier(learner):
    one = learner([{'loss': math.nan}] * 12)
    for _ in range(12):
        one.train([0])
    with pytest.raises(TrainingError, match=r'iteration 3 \(or before\): loss is nan'):
        one.write_log()


def test_special_keys_reach_tensorboard_and_wrong_ones_are_refused(learner):
    one = learner([{'loss': 0.0, '[histogram]action': torch.arange(5)}, {'loss': 0.0, '[histgram]action': 1}])
    one.train([0])
    one.write_log()
    one.train([0])
    with pytest.raises(ValueError, match='histogram'):
        one.write_log()


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_weights_that_are_not_finite_are_never_saved_though_the_loss_is(learner, value):
    one = learner([{'loss': 1.0}])
    path = one.save_checkpoint()
    one.train([0])
    masked = torch.tensor([0.0, -math.inf])
    one.policy.state_dict = lambda: {'model': {'mask': masked, 'body.weight': torch.tensor([1.0, value, -2.0])}}
    for save in (one.save_checkpoint, one.run_state_dict):
        with pytest.raises(TrainingError, match=f'iteration 1: {value} is in the weights body.weight.*{path}'):
            save()
    one.policy.state_dict = lambda: {'model': {'mask': masked}}
    assert one.save_checkpoint() != path


def test_the_documented_learner_section_is_accepted(tmp_path):
    cfg = dict(load_path='', use_cuda=False, use_distributed=False, dataloader=dict(batch_size=32, num_workers=0))
    learner = BaseLearner(cfg, exp_name=str(tmp_path))
    assert 'dataloader' not in learner.cfg
    learner.close()
