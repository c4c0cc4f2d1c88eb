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
import yaml

from app_zoo.classic_control.cartpole.entry import cartpole_dqn_default_config, cartpole_ppo_default_config
from app_zoo.classic_control.pendulum.entry import pendulum_sac_default_config
from nervex.entry import serial_pipeline
from nervex.utils import CheckpointError, ConfigError
from nervex.utils.tests import quick_start

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from run_contents import checkpoints, curves, numbers, same_models

CONFIGS = {
    'dqn': cartpole_dqn_default_config,
    'ppo': cartpole_ppo_default_config,
    'sac': pendulum_sac_default_config,
}
TEAMS = (
    *('qmix', 'qmix_gru', 'mappo', 'mappo_gru', 'maddpg', 'matd3_gru'),
    *('coma', 'coma_gru', 'collaQ_gru', 'atoc'),
)
NERVEX = [sys.executable, '-m', 'nervex.entry.cli']


def to_plain(value):
    return {k: to_plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def config(name: str, manager: str) -> dict:
    """Long enough to be killed several times, and saved at every chance."""
    if name in TEAMS:
        return team_config(name, manager)
    name, is_beside, _ = name.partition('_beside')
    cfg = to_plain(copy.deepcopy(CONFIGS[name]))
    cfg['env'].update(env_manager_type=manager, actor_env_num=4, evaluator_env_num=2)
    cfg['evaluator'].update(stop_val=1000, n_episode=2)
    cfg['learner'] = dict(resume=dict(interval_s=0.0, max_cost=None), hook=dict(log_show=dict(ext_args=dict(freq=10))))
    if name == 'dqn':
        cfg['policy']['use_priority'] = True
        cfg['policy']['learn']['init_data_count'] = 256
        cfg['commander'] = dict(max_env_step=4000)
    elif name == 'sac':
        cfg['commander'] = dict(max_env_step=2500)
    else:
        cfg['actor'] = dict(n_sample=128)
        cfg['commander'] = dict(max_env_step=12000)
    if is_beside:
        cfg['actor']['beside_learning'] = True
        cfg['env']['manager'] = dict(norm_obs=name == 'ppo')
    return cfg


def team_config(name: str, manager: str, steps: int = 2500) -> dict:
    """Battles (for who pushes continuously, navigation), with observations that are scaled."""
    kind, _, memory = name.partition('_')
    scaled = dict(norm_obs=True, norm_reward=True)
    off_policy = kind not in ('mappo', 'coma')
    battle = dict(env_type='smac', map_name='3m', episode_limit=20, observe_alone=kind == 'collaQ')
    points = dict(env_type='cooperative_navigation', episode_limit=20, continuous=True, observe_positions=True)
    model = dict(T_initiate=3) if kind == 'atoc' else dict(lstm_type=memory or None)
    learn = dict(train_step=4, batch_size=8) if off_policy else dict(epochs=2, batch_size=8)
    return dict(
        env=dict(
            **(points if kind == 'atoc' else battle),
            **dict(env_manager_type=manager, manager=scaled, actor_env_num=4, evaluator_env_num=2),
        ),
        policy=dict(
            policy_type=kind,
            model=dict(hidden_dim_list=[16], **model),
            learn=learn,
            collect=dict(unroll_len=10, traj_len='inf'),
        ),
        actor=dict(n_episode=4),
        evaluator=dict(n_episode=2, eval_freq=10, stop_val=1000),
        learner=dict(resume=dict(interval_s=0.0, max_cost=None), hook=dict(log_show=dict(ext_args=dict(freq=10)))),
        commander=dict(max_env_step=steps),
    )


def steps_saved(folder: Path) -> int:
    """The env steps of the newest complete state."""
    return max((int(re.findall(r'\d+', p.name)[1]) for p in folder.glob('ckpt*/run_state_*')), default=-1)


def start(path: Path, folder: str, *more: str, by: type = quick_start.Popen) -> quick_start.Popen:
    command = [*NERVEX, '-m', 'serial', '-c', str(path), '-s', '3', '-o', f'exp_name={folder}', *more]
    return by(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    'name, manager, kills',
    [
        ('dqn', 'base', 3),
        ('dqn_beside', 'base', 3),
        pytest.param('ppo_beside', 'base', 5, marks=pytest.mark.slow),
        pytest.param('sac_beside', 'sync_subprocess', 5, marks=pytest.mark.slow),
        *[pytest.param(name, 'vector', 5, marks=pytest.mark.slow) for name in TEAMS],
        pytest.param('qmix_gru', 'sync_subprocess', 5, marks=pytest.mark.slow),
        pytest.param('ppo', 'base', 10, marks=pytest.mark.slow),
        pytest.param('sac', 'base', 10, marks=pytest.mark.slow),
        pytest.param('dqn', 'base', 10, marks=pytest.mark.slow),
        pytest.param('dqn', 'sync_subprocess', 10, marks=pytest.mark.slow),
        pytest.param('ppo', 'sync_subprocess', 10, marks=pytest.mark.slow),
        pytest.param('sac', 'sync_subprocess', 10, marks=pytest.mark.slow),
    ],
)
def test_killed_and_resumed_is_as_never_stopped(name, manager, kills, tmp_path):
    path, cfg = tmp_path / 'config.yaml', config(name, manager)
    if kills < 5:  # for a few, half as many steps are enough: a state is saved every ten
        cfg['commander']['max_env_step'] //= 2
    path.write_text(yaml.safe_dump(cfg), encoding='utf-8')
    straight = start(path, 'a', by=subprocess.Popen)  # by a Python of its own, whose sets have an order of their own
    _, err = straight.communicate(timeout=600)
    assert straight.returncode == 0, err

    chance, killed = random.Random(0), 0
    limit, run = yaml.safe_load(path.read_text(encoding='utf-8'))['commander']['max_env_step'], start(path, 'b')
    for moment in [0.0, *sorted(chance.uniform(0, 0.9) for _ in range(kills - 1))]:
        while run.poll() is None and steps_saved(tmp_path / 'b') < moment * limit:
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.1))
        if run.poll() is None:
            run.send_signal(signal.SIGKILL)
            killed += 1
        run.communicate()
        run = start(path, 'b', '--resume', 'b')
    _, err = run.communicate(timeout=600)
    assert run.returncode == 0, err
    assert killed >= 1

    assert numbers(tmp_path / 'a') == numbers(tmp_path / 'b')
    assert curves(tmp_path / 'a') == curves(tmp_path / 'b') and len(curves(tmp_path / 'a')) > 100
    assert same_models(checkpoints(tmp_path / 'a'), checkpoints(tmp_path / 'b'))


@pytest.mark.parametrize('name', ['dqn', 'dqn_beside'])
def test_ctrl_c_then_resume_goes_on_without_a_gap(name, tmp_path):
    path = tmp_path / 'config.yaml'
    cfg = config(name, 'base')
    cfg['learner']['resume']['interval_s'] = None
    cfg['commander']['max_env_step'] = 10**9
    path.write_text(yaml.safe_dump(cfg), encoding='utf-8')
    run = start(path, 'a')
    while not list(tmp_path.glob('a/ckptBaseLearner*/iteration_*')):
        assert run.poll() is None
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=120)
    assert run.returncode == 130, err
    limit = f'commander.max_env_step={steps_saved(tmp_path / "a") + 1000}'
    resume = [*NERVEX, '-m', 'serial', '--resume', 'a', '-o', limit]
    resumed = quick_start.run(resume, capture_output=True, text=True, timeout=300)
    assert resumed.returncode == 0, resumed.stderr
    straight = start(path, 'b', '-o', limit, by=subprocess.Popen)
    straight.communicate(timeout=300)
    name = max(checkpoints(tmp_path / 'b'), key=lambda name: int(re.sub(r'\D', '', name) or 0))
    assert same_models(checkpoints(tmp_path / 'a')[name], checkpoints(tmp_path / 'b')[name])


def test_a_damaged_state_falls_back_to_the_one_before(short_dqn, caplog):
    short_dqn.exp_name = 'run'
    short_dqn.learner = dict(resume=dict(interval_s=0.0, max_cost=None))
    longer = ('commander.max_env_step=600',)
    straight = serial_pipeline(short_dqn, seed=1, overrides=(*longer, 'exp_name=straight'))
    first = serial_pipeline(short_dqn, seed=1)
    states = sorted(Path(first.ckpt_path).glob('run_state_*'), key=os.path.getmtime)
    assert len(states) == 2  # only the newest two are kept
    states[-1].write_bytes(states[-1].read_bytes()[:100])
    again = serial_pipeline(None, resume='run', overrides=longer)
    assert again.history == straight.history
    assert 'cannot be read' in caplog.text


def test_what_a_killed_save_left_is_removed(short_dqn):
    short_dqn.exp_name = 'run'
    first = serial_pipeline(short_dqn, seed=1)
    left = Path(first.ckpt_path) / '.run_state_9_9.pth.tar.x1.tmp'
    left.write_bytes(b'half')
    serial_pipeline(None, resume='run', overrides=('commander.max_env_step=500',))
    assert not left.exists()


def test_resume_refuses_other_settings_and_folders_without_a_run(short_dqn):
    short_dqn.exp_name = 'run'
    serial_pipeline(short_dqn, seed=1)
    short_dqn.policy.learn.learning_rate = 0.5
    with pytest.raises(ConfigError, match=r'policy.learn.learning_rate.*0.5.*0.0002'):
        serial_pipeline(short_dqn, resume='run')
    with pytest.raises(CheckpointError, match='holds no run to resume'):
        serial_pipeline(None, resume='nowhere')


def test_settings_that_a_later_version_brings_are_at_their_defaults_in_a_run_without_them(short_dqn):
    short_dqn.exp_name = 'run'
    serial_pipeline(short_dqn, seed=1)
    written = Path('run/log/config.yaml')
    older = yaml.safe_load(written.read_text(encoding='utf-8'))
    del older['actor']['beside_learning'], older['policy']['use_cuda']
    written.write_text(yaml.safe_dump(older), encoding='utf-8')
    longer = ('commander.max_env_step=600',)
    with pytest.raises(ConfigError, match=r'actor.beside_learning: is True, .*with None'):
        serial_pipeline(None, resume='run', overrides=(*longer, 'actor.beside_learning=true'), trust=True)
    assert serial_pipeline(None, resume='run', overrides=longer, trust=True).env_steps == 600


def test_a_run_may_be_continued_beyond_its_old_limit(short_dqn):
    short_dqn.exp_name = 'run'
    short_dqn.learner = dict(resume=dict(interval_s=0.0, max_cost=None))
    serial_pipeline(short_dqn, seed=1)
    longer = serial_pipeline(None, resume='run', overrides=('commander.max_env_step=600',))
    assert longer.env_steps == 600


@pytest.mark.parametrize('name, manager', [*((name, 'vector') for name in TEAMS), ('qmix_gru', 'base')])
def test_a_team_that_goes_on_is_as_one_that_never_stopped(name, manager, tmp_path):
    for folder, steps in (('straight', 600), ('stopped', 300)):
        serial_pipeline({**team_config(name, manager, steps), 'exp_name': folder}, seed=1)
    serial_pipeline(None, resume='stopped', overrides=('commander.max_env_step=600',))
    assert numbers(tmp_path / 'straight') == numbers(tmp_path / 'stopped')
    ends = [checkpoints(tmp_path / folder) for folder in ('straight', 'stopped')]
    assert same_models(ends[0], {kind: ends[1][kind] for kind in ends[0]})  # where it stopped there is one more


def test_settings_that_a_policy_gave_once_are_in_the_curves_of_a_resumed_run(short_dqn, tmp_path):
    from nervex.policy import DQNPolicy

    class Once(DQNPolicy):
        def _get_setting_collect(self, command_info):
            return {'eps': 0.5} if command_info['envstep'] == 0 else {}

    short_dqn.learner = dict(resume=dict(interval_s=0.0, max_cost=None))
    short_dqn.actor.traj_print_freq = short_dqn.actor.collect_print_freq = 1
    for name in 'ab':
        short_dqn.exp_name, short_dqn.commander.max_env_step = name, 800 if name == 'a' else 400
        serial_pipeline(short_dqn, seed=1, policy_fn=Once)
    serial_pipeline(None, resume='b', policy_fn=Once, overrides=('commander.max_env_step=800',))
    found = [[point for point in curves(tmp_path / name) if 'collect_eps' in point[1]] for name in 'ab']
    assert found[0] == found[1] and len(found[0]) > 10
