"""Where a run is named by its folder, its own config and its best checkpoint are taken."""

import shutil

import pytest
import torch

from nervex.entry import collect, eval, offline_pipeline, serial_pipeline
from nervex.entry.cli import main
from nervex.run.folder import checkpoint_file, config_beside
from nervex.utils import CheckpointError


@pytest.fixture
def trained(short_dqn, empty_folder):
    short_dqn.exp_name = 'a'
    return serial_pipeline(short_dqn, 0)


def test_eval_and_collect_need_only_the_folder_of_a_run(trained, short_dqn):
    known = eval(short_dqn, 1, load_path=trained.best_checkpoint, n_episode=2)
    for path in ('a', trained.best_checkpoint):
        assert (eval(None, 1, load_path=path, n_episode=2).returns == known.returns).all()
    assert collect(None, 1, load_path='a', n_episode=2)[1] == 2


def test_the_command_evaluates_a_folder(trained, capsys):
    main(['-m', 'eval', '--load', 'a', '--episodes', '2'])
    assert '2 episodes: mean' in capsys.readouterr().out


def test_training_from_a_folder_begins_a_new_run_with_its_weights_in_the_current_folder(trained, capsys, empty_folder):
    main(['-m', 'serial', '--load', 'a', '-s', '1', '-o', 'commander.max_env_step=100'])
    assert 'finished' in capsys.readouterr().out
    assert (empty_folder / 'log/run.yaml').exists()
    learned = torch.load(trained.best_checkpoint, weights_only=True)['last_iter']
    assert learned and (empty_folder / 'log/evaluator/curve.csv').read_text().splitlines()[1].startswith(f'{learned},')


def test_an_offline_run_is_resumed_by_its_folder_alone(trained, capsys):
    collect(None, 1, load_path='a', n_episode=4, folder='data')
    cfg = dict(**config_beside('a'), exp_name='b')
    cfg['commander']['max_train_iter'], cfg['policy']['learn']['batch_size'] = 40, 8
    first = offline_pipeline(cfg, 'data', 0)
    shutil.rmtree('data')
    main(['-m', 'offline', '--resume', 'b', '-o', 'commander.max_train_iter=80'])
    assert first.train_iters == 40 and '80 updates' in capsys.readouterr().out


def test_the_newest_checkpoint_is_taken_where_there_is_no_best_one(trained, empty_folder):
    for path in empty_folder.glob('a/ckpt*/ckpt_best*'):
        path.unlink()
    assert checkpoint_file('a').endswith('ckpt_last.pth.tar') and trained.checkpoint.endswith('ckpt_last.pth.tar')


def test_the_config_is_that_of_the_run_that_wrote_the_checkpoint(trained, short_dqn):
    short_dqn.exp_name, short_dqn.policy.learn.learning_rate = 'a', 0.125
    later = serial_pipeline(short_dqn, 0)
    assert config_beside(later.checkpoint)['policy']['learn']['learning_rate'] == 0.125
    assert config_beside(trained.checkpoint)['policy']['learn']['learning_rate'] != 0.125


def test_a_checkpoint_outside_of_a_run_needs_a_config(trained):
    shutil.copy(trained.checkpoint, 'alone.pth.tar')
    with pytest.raises(CheckpointError, match=r'alone\.pth\.tar: is no folder of a run'):
        config_beside('alone.pth.tar')
