"""A run that is stopped at any moment and resumed ends as if it had never been stopped."""

import copy
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml

from app_zoo.classic_control.cartpole.entry import cartpole_dqn_default_config, cartpole_ppo_default_config
from app_zoo.classic_control.pendulum.entry import pendulum_sac_default_config
from nervex.entry import serial_pipeline
from nervex.utils import CheckpointError, ConfigError

CONFIGS = {
    'dqn': cartpole_dqn_default_config,
    'ppo': cartpole_ppo_default_config,
    'sac': pendulum_sac_default_config,
}
NERVEX = [sys.executable, '-m', 'nervex.entry.cli']


def to_plain(value):
    return {k: to_plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def config(name: str, manager: str) -> dict:
    """Long enough to be killed several times, and saved at every chance."""
    cfg = to_plain(copy.deepcopy(CONFIGS[name]))
    cfg['env'].update(env_manager_type=manager, actor_env_num=4, evaluator_env_num=2)
    cfg['evaluator'].update(stop_val=1000, n_episode=2)
    cfg['learner'] = dict(resume=dict(interval_s=0.0, max_cost=None), hook=dict(log_show=dict(ext_args=dict(freq=10))))
    if name == 'dqn':
        cfg['policy']['use_priority'] = True
        cfg['commander'] = dict(max_env_step=4000)
    elif name == 'sac':
        cfg['commander'] = dict(max_env_step=2500)
    else:
        cfg['actor'] = dict(n_sample=128)
        cfg['commander'] = dict(max_env_step=12000)
    return cfg


def numbers(folder: Path) -> str:
    text = ''
    for name in ('learner/learner_logger.txt', 'evaluator/evaluator_logger.txt', 'actor/collect_logger.txt'):
        text += re.sub(r'^\[.*?\]', '', (folder / 'log' / name).read_text(encoding='utf-8'), flags=re.M)
    text = re.sub(r'(avg_step_per_sec|avg_time_per_episode) \S+', '', text)
    return re.sub(r'\S+ env steps/s|ckptBaseLearner\d+|\./|[ab]/', '', text)


def weights(folder: Path) -> dict:
    (ckpt,) = folder.glob('ckptBaseLearner*')
    newest = max(ckpt.glob('iteration_*'), key=lambda p: int(re.findall(r'\d+', p.name)[0]))
    return {'name': newest.name, **torch.load(newest, weights_only=True)['model']}


def start(path: Path, folder: str, *more: str) -> subprocess.Popen:
    command = [*NERVEX, '-m', 'serial', '-c', str(path), '-s', '3', '-o', f'exp_name={folder}', *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    'name, manager, kills',
    [
        ('dqn', 'base', 3),
        pytest.param('ppo', 'base', 10, marks=pytest.mark.slow),
        pytest.param('sac', 'base', 10, marks=pytest.mark.slow),
        pytest.param('dqn', 'base', 10, marks=pytest.mark.slow),
        pytest.param('dqn', 'sync_subprocess', 10, marks=pytest.mark.slow),
        pytest.param('ppo', 'sync_subprocess', 10, marks=pytest.mark.slow),
        pytest.param('sac', 'sync_subprocess', 10, marks=pytest.mark.slow),
    ],
)
def test_killed_and_resumed_is_as_never_stopped(name, manager, kills, tmp_path):
    path = tmp_path / 'config.yaml'
    path.write_text(yaml.safe_dump(config(name, manager)), encoding='utf-8')
    straight = start(path, 'a')
    began = time.monotonic()
    _, err = straight.communicate(timeout=300)
    assert straight.returncode == 0, err
    lasted = time.monotonic() - began

    chance, killed = random.Random(0), 0
    run = start(path, 'b')
    for _ in range(kills):
        try:
            run.wait(timeout=chance.uniform(0.4, 0.6) * lasted)
            break
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGKILL)
            run.communicate()
            killed += 1
            if not (tmp_path / 'b/log/run.yaml').exists():
                run = start(path, 'b')
            else:
                run = start(path, 'b', '--resume', 'b')
    _, err = run.communicate(timeout=300)
    assert run.returncode == 0, err
    assert killed >= 1

    assert numbers(tmp_path / 'a') == numbers(tmp_path / 'b')
    assert (tmp_path / 'a/log/evaluator/curve.csv').read_text().count('\n') == (
        tmp_path / 'b/log/evaluator/curve.csv'
    ).read_text().count('\n')
    a, b = weights(tmp_path / 'a'), weights(tmp_path / 'b')
    assert a['name'] == b['name']
    assert all(torch.equal(a[k], b[k]) for k in a if k != 'name')


def test_ctrl_c_then_resume_goes_on_without_a_gap(tmp_path):
    path = tmp_path / 'config.yaml'
    cfg = config('dqn', 'base')
    cfg['learner']['resume']['interval_s'] = None
    path.write_text(yaml.safe_dump(cfg), encoding='utf-8')
    run = start(path, 'a')
    while not list(tmp_path.glob('a/ckptBaseLearner*/iteration_*')):
        assert run.poll() is None
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, err = run.communicate(timeout=20)
    assert run.returncode == 130 and time.monotonic() - began < 5, err
    assert list(tmp_path.glob('a/ckptBaseLearner*/run_state_*'))
    resumed = subprocess.run([*NERVEX, '-m', 'serial', '--resume', 'a'], capture_output=True, text=True, timeout=120)
    assert resumed.returncode == 0, resumed.stderr
    straight = start(path, 'b')
    straight.communicate(timeout=120)
    assert all(torch.equal(weights(tmp_path / 'a')[k], v) for k, v in weights(tmp_path / 'b').items() if k != 'name')


def test_a_damaged_state_falls_back_to_the_one_before(short_dqn, caplog):
    short_dqn.exp_name = 'run'
    short_dqn.learner = dict(resume=dict(interval_s=0.0, max_cost=None))
    first = serial_pipeline(short_dqn, seed=1)
    states = sorted(Path(first.ckpt_path).glob('run_state_*'), key=os.path.getmtime)
    assert len(states) == 2  # only the newest two are kept
    states[-1].write_bytes(states[-1].read_bytes()[:100])
    again = serial_pipeline(None, resume='run')
    assert again.history == first.history
    assert 'cannot be read' in caplog.text


def test_what_a_killed_save_left_is_removed(short_dqn):
    short_dqn.exp_name = 'run'
    first = serial_pipeline(short_dqn, seed=1)
    left = Path(first.ckpt_path) / '.run_state_9_9.pth.tar.x1.tmp'
    left.write_bytes(b'half')
    serial_pipeline(None, resume='run')
    assert not left.exists()


def test_resume_refuses_other_settings_and_folders_without_a_run(short_dqn):
    short_dqn.exp_name = 'run'
    serial_pipeline(short_dqn, seed=1)
    short_dqn.policy.learn.learning_rate = 0.5
    with pytest.raises(ConfigError, match=r'policy.learn.learning_rate.*0.5.*0.0005'):
        serial_pipeline(short_dqn, resume='run')
    with pytest.raises(CheckpointError, match='holds no run to resume'):
        serial_pipeline(None, resume='nowhere')


def test_a_run_may_be_continued_beyond_its_old_limit(short_dqn):
    short_dqn.exp_name = 'run'
    short_dqn.learner = dict(resume=dict(interval_s=0.0, max_cost=None))
    serial_pipeline(short_dqn, seed=1)
    longer = serial_pipeline(None, resume='run', overrides=('commander.max_env_step=600',))
    assert longer.env_steps == 600
