"""``nervex export``: a run becomes a file, and each mistake is one line with exit code 2."""

import os
import shutil
import sys

import numpy as np
import pytest

from nervex import Agent, runtime
from nervex.entry.cli import main


def nervex(capsys, *args):
    """Exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as ended:
        main(list(args))
        raise SystemExit(0)
    return ended.value.code, *capsys.readouterr()


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    """A short run, with its agent."""
    folder = tmp_path_factory.mktemp('runs') / 'pole'
    agent = Agent(
        'dqn', 'CartPole-v1', exp_name=str(folder), learn=dict(init_data_count=64), evaluator=dict(n_episode=1)
    )
    agent.learn(200, progress=False)
    return agent


def test_a_run_becomes_a_file_that_acts_and_tells_what_it_takes(run, tmp_path, capsys):
    path = str(tmp_path / 'new' / 'policy.npz')
    code, out, _ = nervex(capsys, 'export', run.folder, '-o', path)
    assert code == 0 and out.splitlines() == [
        f'{path}: dqn for CartPole-v1; acts as in evaluations',
        'inputs:  obs float32 [batch, 4]',
        'outputs: action int64 [batch]',
    ]
    obs = np.array([0.1, -0.2, 0.05, 0.3], np.float32)
    assert runtime.load(path).act(obs)[0] == run.predict(obs)
    assert os.listdir(tmp_path / 'new') == ['policy.npz']
    code, out, _ = nervex(capsys, 'export', run.checkpoint, '-o', path, '--force')
    assert code == 0 and 'dqn for CartPole-v1' in out


def test_mistakes_are_one_line_and_exit_code_2(run, tmp_path, capsys, monkeypatch):
    there, empty = tmp_path / 'there.npz', tmp_path / 'empty'
    there.write_text('mine')
    empty.mkdir()
    monkeypatch.setitem(sys.modules, 'onnxscript', None)
    for args, text in [
        ((run.folder, '-o', str(there)), 'there.npz is there already; give another name, or --force to replace it'),
        ((run.folder, '-o', 'policy.tflite'), "got 'policy.tflite', must end in one of .onnx, .pt2, .npz"),
        ((run.folder, '-o', str(tmp_path / 'p.onnx')), 'pip install nervex[export]'),
        ((str(empty), '-o', 'p.npz'), 'is no folder of a run'),
        (('nowhere', '-o', 'p.npz'), 'nowhere: is no folder of a run'),
    ]:
        code, out, err = nervex(capsys, 'export', *args)
        assert code == 2 and text in err and len(err.splitlines()) == 1 and not out, (args, err)
    assert there.read_text() == 'mine'


def test_a_run_without_a_checkpoint_is_refused(run, tmp_path, capsys):
    folder = tmp_path / 'bare'
    shutil.copytree(run.folder, folder)
    for path in folder.rglob('*.pth.tar'):
        path.unlink()
    code, _, err = nervex(capsys, 'export', str(folder), '-o', str(tmp_path / 'p.npz'))
    assert code == 2 and 'holds no checkpoint yet' in err and len(err.splitlines()) == 1
