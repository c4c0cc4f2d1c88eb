"""Which files a serial run leaves, and where."""

import csv
import errno
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml

from nervex.entry import serial_pipeline
from nervex.run.folder import RunFolder

TREE = (
    'log/learner/learner_logger.txt',
    'log/learner/learner_tb_logger',
    'log/actor/collect_logger.txt',
    'log/evaluator/evaluator_logger.txt',
    'log/evaluator/evaluator_tb_logger',
    'log/evaluator/curve.csv',
    'log/buffer/agent_buffer/agent_logger.txt',
    'log/buffer/agent_buffer/agent_tb_logger',
    'log/config.yaml',
)


@pytest.mark.parametrize('exp_name', ['', 'runs/first'])
def test_file_tree(short_dqn, exp_name, empty_folder):
    short_dqn.exp_name = exp_name
    result = serial_pipeline(short_dqn, seed=3)
    base = empty_folder / exp_name
    for name in TREE:
        assert (base / name).exists(), name
    (ckpt,) = base.glob('ckptBaseLearner*')
    assert ckpt.name.removeprefix('ckptBaseLearner').isdigit()
    assert (ckpt / 'iteration_0.pth.tar').exists() and (ckpt / 'ckpt_best.pth.tar').exists()
    assert Path(result.checkpoint).parent.name == ckpt.name
    outside = {p.name for p in empty_folder.iterdir()} - {'log', ckpt.name, 'runs'}
    assert not outside


def test_the_evaluator_names_the_checkpoints_that_are_there_and_the_best_is_the_newest_of_them(short_dqn):
    short_dqn.evaluator.eval_freq = 10
    result = serial_pipeline(short_dqn, seed=0)
    log = Path('log/evaluator/evaluator_logger.txt').read_text(encoding='utf-8')
    named = re.findall(r'ckpt_name ([^,]*),', log)
    assert named[0] == 'iteration_0.pth.tar' and 'none' in named and len(named) == len(result.history) > 3
    named = [name for name in named if name != 'none']
    assert all((Path(result.ckpt_path) / name).exists() for name in named)
    best = torch.load(result.best_checkpoint, weights_only=True)['last_iter']
    assert named[-1] == f'iteration_{best}.pth.tar' and best == max(int(re.findall(r'\d+', n)[0]) for n in named)


def test_the_best_checkpoint_has_the_largest_iteration_also_where_the_run_ends_behind_it(short_dqn):
    """The rounds after the best evaluation: the end has a name of its own, until a later evaluation is better."""

    def newest(result):
        iterations = [int(p.name.split('_')[1].split('.')[0]) for p in Path(result.ckpt_path).glob('iteration_*')]
        return max(iterations), torch.load(result.best_checkpoint, weights_only=True)['last_iter']

    short_dqn.exp_name, short_dqn.evaluator.eval_freq = 'run', 10
    result = serial_pipeline(short_dqn, seed=0)
    assert not result.solved and newest(result)[0] == newest(result)[1] < result.train_iters
    assert result.checkpoint.endswith('ckpt_last.pth.tar')
    assert torch.load(result.checkpoint, weights_only=True)['last_iter'] == result.train_iters
    again = serial_pipeline(None, resume='run', overrides=('commander.max_env_step=900',))
    assert newest(again)[0] == newest(again)[1]
    assert (Path(again.ckpt_path) / 'ckpt_last.pth.tar').exists() == (newest(again)[0] < again.train_iters)


def test_the_only_buffer_is_called_armor_where_the_config_names_none(short_ppo, empty_folder):
    serial_pipeline(short_ppo)
    assert (empty_folder / 'log/buffer/armor_buffer/armor_logger.txt').exists()


def test_checkpoint_holds_what_a_learner_needs_and_loads_safely(short_dqn):
    result = serial_pipeline(short_dqn)
    state = torch.load(result.checkpoint, weights_only=True)
    assert {'model', 'target_model', 'optimizer', 'last_iter', 'version'} <= set(state)
    assert state['last_iter'] == result.train_iters


def test_curve_has_one_row_an_evaluation(short_dqn):
    result = serial_pipeline(short_dqn)
    with open(result.curve_path, encoding='utf-8') as f:
        rows = list(csv.DictReader(f))
    assert [int(r['train_iter']) for r in rows] == [h[0] for h in result.history]
    assert [float(r['return_mean']) for r in rows] == [h[2] for h in result.history]


def test_saved_config_repeats_the_run(short_dqn):
    first = serial_pipeline(short_dqn, seed=5)
    saved = Path('log/config.yaml')
    assert yaml.safe_load(saved.read_text(encoding='utf-8'))['seed'] == 5
    saved.rename('again.yaml')
    second = serial_pipeline('again.yaml', seed=5)
    assert second.history == first.history


def test_two_runs_in_one_folder_keep_their_checkpoints_apart(short_dqn, empty_folder):
    first, second = serial_pipeline(short_dqn), serial_pipeline(short_dqn)
    assert first.ckpt_path < second.ckpt_path
    assert len(list(empty_folder.glob('ckptBaseLearner*'))) == 2


def test_a_full_disk_at_the_end_leaves_the_folder_to_the_next_run(tmp_path, monkeypatch):
    folder = RunFolder(str(tmp_path))
    folder.ended(SimpleNamespace(solved=True, counters=dict))

    def full(**facts):
        raise OSError(errno.ENOSPC, 'no space left', 'run.yaml')

    monkeypatch.setattr(folder, 'note', full)
    with pytest.raises(OSError, match='no space left'):
        folder.close()
    monkeypatch.undo()
    RunFolder(str(tmp_path), resume=True).close()  # nobody owns it any more
