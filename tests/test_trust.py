"""What lies in the folder of a run from a stranger neither runs, nor leads out of the folder."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

from nervex.config import compile_config, save_config
from nervex.entry import eval as evaluate
from nervex.entry import serial_pipeline
from nervex.run.folder import reaching_out
from nervex.utils.errors import CheckpointError
from nervex.utils.file_helper import read_file, save_file
from nervex.utils.tests import quick_start
from nervex.utils.trust import UntrustedError

LONGER = ('commander.max_env_step=600',)
HIDDEN = """
from app_zoo.classic_control.cartpole.envs.cartpole_env import CartPoleEnv
from nervex.utils import ENV_REGISTRY


class Clock:
    steps = 0


@ENV_REGISTRY.register('hidden')
class HiddenEnv(CartPoleEnv):
    def __init__(self, cfg=None):
        super().__init__(cfg)
        self.clock = Clock()
"""


class Harm:
    """Makes a file when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ('harm',)


@pytest.fixture(autouse=True)
def own_key(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path / 'home'))


@pytest.fixture
def run(short_dqn):
    """A run of one env that stopped at its limit, with a saved state."""
    short_dqn.exp_name = 'run'
    short_dqn.learner = dict(resume=dict(interval_s=0.0, max_cost=None))
    return short_dqn


def states(result) -> list[Path]:
    return list(Path(result.ckpt_path).glob('run_state_*'))


def put_in(result, data: bytes) -> None:
    for path in states(result):
        state = read_file(str(path))
        state['envs']['envs'] = [torch.frombuffer(bytearray(data), dtype=torch.uint8)] * len(state['envs']['envs'])
        save_file(str(path), state)


@pytest.mark.parametrize('mark', [b'', b'signed:' + b'0' * 32])
def test_a_pickle_in_the_state_of_a_stranger_is_not_opened(run, mark):
    put_in(serial_pipeline(run, seed=1), mark + pickle.dumps(Harm()))
    with pytest.raises(CheckpointError, match='--trust'):
        serial_pipeline(None, resume='run', overrides=LONGER)
    assert not os.path.exists('harm')


def test_envs_of_app_zoo_are_saved_without_pickle(run):
    first = serial_pipeline(run, seed=1)
    assert all(env[0] == ord('[') for path in states(first) for env in read_file(str(path))['envs']['envs'])
    assert not os.path.exists('home')


def test_pickled_envs_resume_for_their_own_user_only_or_with_trust(run, tmp_path, monkeypatch):
    Path('hidden_env.py').write_text(HIDDEN, encoding='utf-8')
    monkeypatch.syspath_prepend(tmp_path)
    run.env.update(env_type='hidden', import_names=['hidden_env'])
    straight = serial_pipeline(run, seed=1, overrides=(*LONGER, 'exp_name=straight'))
    serial_pipeline(run, seed=1)
    key = tmp_path / 'home/nervex/key'
    assert key.stat().st_mode & 0o777 == 0o600
    own = key.read_bytes()
    key.write_bytes(b'x' * 32)
    with pytest.raises(UntrustedError, match='--trust'):
        serial_pipeline(None, resume='run', overrides=LONGER)
    key.write_bytes(own)
    assert serial_pipeline(None, resume='run', overrides=LONGER).history == straight.history
    key.unlink()
    longest = ('commander.max_env_step=700',)
    assert serial_pipeline(None, resume='run', overrides=longest, trust=True).env_steps >= 700


@pytest.mark.parametrize('link', ['log/mine.txt', 'log/learner/x', 'log/mine', '.nervex_lock'])
def test_a_link_in_the_folder_of_a_run_changes_nothing_outside(run, link):
    first = serial_pipeline(run, seed=1)
    outside = Path('outside')
    if link == 'log/mine':
        outside.mkdir()
    else:
        outside.write_text('mine', encoding='utf-8')
        for path in states(first):
            state = read_file(str(path))
            state['log_sizes'][os.path.relpath(link, 'log')] = 0
            save_file(str(path), state)
    (Path('run') / link).parent.mkdir(exist_ok=True)
    (Path('run') / link).symlink_to(outside.absolute())
    with pytest.raises((CheckpointError, OSError)):
        serial_pipeline(None, resume='run', overrides=LONGER)
    assert outside.is_dir() or outside.read_text(encoding='utf-8') == 'mine'


def test_checkpoints_outside_of_the_folder_are_left_alone(run):
    first = serial_pipeline(run, seed=1)
    os.rename(first.ckpt_path, 'elsewhere')
    left = Path('elsewhere/.run_state_9_9.pth.tar.x1.tmp')
    left.write_bytes(b'mine')
    facts = Path('run/log/run.yaml')
    text = facts.read_text(encoding='utf-8').replace(os.path.basename(first.ckpt_path), '../elsewhere')
    facts.write_text(text, encoding='utf-8')
    before = sorted(os.listdir('elsewhere'))
    with pytest.raises(CheckpointError, match='leads out of the folder'):
        serial_pipeline(None, resume='run', overrides=LONGER)
    assert sorted(os.listdir('elsewhere')) == before


def test_a_config_that_names_code_runs_for_its_own_user_only_or_with_trust(run, tmp_path, monkeypatch):
    Path('own_module.py').write_text("import os\nos.makedirs('harm', exist_ok=True)\n", encoding='utf-8')
    monkeypatch.syspath_prepend(tmp_path)
    run.policy.import_names = ['own_module']
    serial_pipeline(run, seed=1)
    os.rmdir('harm')
    sys.modules.pop('own_module')
    (tmp_path / 'home/nervex/key').write_bytes(b'x' * 32)
    for how in (dict(resume='run'), dict(overrides=('exp_name=new',), resume='run')):
        with pytest.raises(UntrustedError, match=r'policy.import_names.*--trust'):
            serial_pipeline(None, **how)
    with pytest.raises(UntrustedError, match='--trust'):
        evaluate(None, load_path='run')
    assert not os.path.exists('harm')
    assert serial_pipeline(None, resume='run', overrides=LONGER, trust=True).env_steps >= 600
    assert os.path.exists('harm')


@pytest.mark.parametrize(
    'setting',
    [
        'import_names: [mine]',
        'env: {wrappers: [{type: "os:system"}]}',
        'x: nervex.run:os.abort',
        'env: {replay_path: videos}',
        'env: {wrappers: [{type: x, folder: ../x}]}',
        'learner: {load_path: /x}',
    ],
)
def test_what_reaches_out_of_the_folder_is_known(setting):
    assert reaching_out(yaml.safe_load(setting))


def test_built_in_configs_need_no_signature():
    for name in ('cartpole_dqn', 'pendulum_sac'):
        save_config({**compile_config(name), 'exp_name': '/x'}, 'config.yaml')
        assert not reaching_out(yaml.safe_load(Path('config.yaml').read_text(encoding='utf-8')))


def nervex(*arguments, run=quick_start.run):
    return run([sys.executable, '-m', 'nervex', *arguments], capture_output=True, text=True, timeout=120)


def test_the_current_folder_shadows_no_package():
    Path('torch.py').write_text("import os\nos.mkdir('harm')\n", encoding='utf-8')
    assert nervex('-q', 'policy', 'dqn', run=subprocess.run).returncode == 0
    assert not os.path.exists('harm')


def test_modules_of_a_config_lie_beside_it(tmp_path):
    folder = tmp_path / 'configs'
    folder.mkdir()
    (folder / 'beside.py').write_text("raise ImportError('was found')\n", encoding='utf-8')
    (folder / 'mine.yaml').write_text('import_names: [beside]\n', encoding='utf-8')
    assert 'was found' in nervex('-m', 'serial', '-c', 'configs/mine.yaml').stderr
