"""The sub-commands, and the folder that each run has for itself."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from click.shell_completion import ShellComplete

from nervex.config import compile_config, save_config
from nervex.entry import serial_pipeline
from nervex.entry.cli import main
from nervex.policy.dqn import DQNPolicy
from nervex.run.folder import AUTO, RunFolder, find_runs, free_folders, run_at, saved_run
from nervex.utils import POLICY_REGISTRY
from nervex.utils.tests import quick_start

NERVEX = [sys.executable, '-m', 'nervex']


def facts(folder):
    return yaml.safe_load((Path(folder) / 'log/run.yaml').read_text(encoding='utf-8'))


def ends(capsys, *args):
    """The exit code of the command, what it said, and what it complained about."""
    code = 0
    try:
        main(list(args))
    except SystemExit as e:
        code = e.code
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def config_file(short_dqn):
    save_config(short_dqn, 'short.yaml')
    return 'short.yaml'


@pytest.fixture
def two_runs(short_dqn):
    for seed in (0, 1):
        serial_pipeline({**short_dqn, 'exp_name': AUTO}, seed=seed)
    return ['runs/cartpole_dqn_s0', 'runs/cartpole_dqn_s1']


# ---- folders ----
def test_every_run_has_a_folder_of_its_own_and_their_names_tell_them_apart(config_file, capsys):
    for args in (['-s', '0'], ['-s', '0'], ['-s', '3'], ['-s', '0', '-o', 'exp_name=mine']):
        code, out, _ = ends(capsys, 'train', config_file, *args)
        assert code == 0 and 'checkpoint:' in out
    assert sorted(p.name for p in Path('runs').iterdir()) == ['cartpole_dqn_s0', 'cartpole_dqn_s0_2', 'cartpole_dqn_s3']
    assert facts('mine')['seed'] == 0 and facts('runs/cartpole_dqn_s3')['seed'] == 3
    assert len(list(Path('runs/cartpole_dqn_s3').rglob('events.out*'))) == 1  # one entry in TensorBoard
    saved = yaml.safe_load(Path('runs/cartpole_dqn_s0_2/log/config.yaml').read_text(encoding='utf-8'))
    assert saved['exp_name'] == 'runs/cartpole_dqn_s0_2'
    assert Path('runs/cartpole_dqn_s0/log/evaluator/curve.png').read_bytes().startswith(b'\x89PNG')


def test_a_run_without_a_command_keeps_its_place(config_file, capsys):
    assert ends(capsys, '-m', 'serial', '-c', config_file, '-s', '0')[0] == 0
    assert Path('log/run.yaml').exists() and not Path('runs').exists()


@pytest.mark.parametrize('override', ['mode=parallel', 'backend=ray', 'seed=1'])
def test_train_runs_on_many_processes_where_the_config_or_an_override_says_so(config_file, override, monkeypatch):
    modes = []
    monkeypatch.setattr('nervex.entry.commands.run_mode', lambda mode, **_: modes.append(mode))
    main(['train', config_file, '-o', override])
    assert modes == ['serial' if override == 'seed=1' else 'parallel']


def test_overrides_belong_to_the_env_that_a_policy_is_chosen_for(monkeypatch):
    chosen = []
    monkeypatch.setattr('nervex.entry.commands.run_mode', lambda mode, config, **_: chosen.append(config))
    monkeypatch.setattr('rich.print', lambda *_: None)
    main(['train', '-p', 'dqn', '-e', 'FrozenLake-v1', '-o', 'env.make_kwargs.map_name=8x8', '-o', 'actor.n_sample=8'])
    (cfg,) = chosen
    assert cfg['evaluator'] == {**cfg['evaluator'], 'stop_val': None, 'eval_freq': 200_000 * 4 // 8 // 20}


def test_names_of_folders_by_hand(tmp_path):
    def first(template, **names):
        return next(free_folders(template, **names))

    names = dict(env='ALE/Pong-v5', policy='dqn', seed=3)
    assert first(AUTO, **names) == 'runs/ALE-Pong-v5_dqn_s3'
    assert first('mine', **names) == 'mine' and list(free_folders('', **names)) == ['']
    (tmp_path / 'runs/ALE-Pong-v5_dqn_s3/log').mkdir(parents=True)
    assert first(AUTO, **names) == 'runs/ALE-Pong-v5_dqn_s3'  # nothing ran there
    (tmp_path / 'runs/ALE-Pong-v5_dqn_s3/log/run.yaml').touch()
    assert first(AUTO, **names) == 'runs/ALE-Pong-v5_dqn_s3_2'


def test_a_folder_that_another_run_is_about_to_use_is_left_to_it(short_dqn):
    with RunFolder('runs/cartpole_dqn_s0'):
        assert serial_pipeline({**short_dqn, 'exp_name': AUTO}, seed=0).exp_path == 'runs/cartpole_dqn_s0_2'


def test_a_wrong_config_leaves_no_folder(config_file, capsys):
    code, _, err = ends(capsys, 'train', config_file, '-o', 'policy.learn.learning_rte=1')
    assert code == 2 and "did you mean 'learning_rate'" in err and not Path('runs').exists()


def test_envs_and_policies_that_are_passed_name_the_folder(short_dqn):
    from app_zoo.classic_control.cartpole.envs import CartPoleEnv

    class OwnPolicy(DQNPolicy):
        """Nothing new."""

    setting = (CartPoleEnv, [dict(short_dqn.env)] * 2, [dict(short_dqn.env)])
    result = serial_pipeline({**short_dqn, 'exp_name': AUTO}, 0, setting, OwnPolicy)
    assert result.exp_path == 'runs/CartPoleEnv_OwnPolicy_s0'


# ---- how a run ended ----
def test_a_folder_tells_how_its_run_ended(short_dqn, monkeypatch):
    cfg = {**short_dqn, 'exp_name': 'run'}
    assert serial_pipeline(cfg, seed=0) and facts('run')['state'] == saved_run('run').state == 'finished'

    def stop(*_):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(DQNPolicy, '_forward_learn', stop)
        error = RuntimeError('two\nlines')
        with pytest.raises(RuntimeError):
            serial_pipeline(cfg, seed=0)
        assert facts('run')['state'] == 'failed' and facts('run')['error'] == 'RuntimeError: two lines'
        assert Path('run/log/evaluator/curve.png').exists()
        error = KeyboardInterrupt()
        with pytest.raises(KeyboardInterrupt):
            serial_pipeline(None, resume='run')
        assert facts('run')['state'] == 'interrupted' and facts('run')['error'] is None
    serial_pipeline(None, resume='run')
    assert facts('run')['state'] == 'finished'


def test_a_run_that_goes_on_says_so_and_one_that_was_killed_too(config_file):
    with quick_start.Popen([*NERVEX, 'train', config_file, '-s', '0', '--steps', '10000000']) as process:
        wait_for(lambda: Path('runs/cartpole_dqn_s0/log/run.yaml').exists())
        assert saved_run('runs/cartpole_dqn_s0').state == 'running'
        process.kill()
    assert saved_run('runs/cartpole_dqn_s0').state == 'killed' and facts('runs/cartpole_dqn_s0')['state'] == 'running'


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


# ---- finding runs ----
def test_a_run_is_found_by_its_folder_or_a_checkpoint_of_it(two_runs, capsys):
    assert find_runs('.') == ['./' + run for run in two_runs] and find_runs(two_runs[0]) == two_runs[:1]
    best = saved_run(two_runs[1]).checkpoint
    assert run_at(best).folder == run_at(two_runs[1]).folder == two_runs[1]
    outputs = [ends(capsys, 'eval', what, '-n', '2', '-s', '5') for what in (two_runs[1], best)]
    assert outputs[0] == outputs[1] and outputs[0][0] == 0 and '2 episodes: mean' in outputs[0][1]


@pytest.mark.parametrize('command', ['eval', 'resume', 'collect'])
def test_where_several_runs_are_a_command_for_one_names_them(two_runs, command, capsys):
    code, _, err = ends(capsys, command, 'runs')
    assert code == 2 and 'holds 2 runs' in err and all(run in err for run in two_runs) and err.count('\n') == 1


def test_plot_takes_folders_checkpoints_and_what_holds_them(two_runs, capsys):
    pytest.importorskip('matplotlib')
    for args in (['runs'], two_runs, [saved_run(two_runs[0]).checkpoint]):
        assert ends(capsys, 'plot', *args, '--out', 'picture')[1] == 'picture.png\npicture.svg\n'


def test_collect_and_offline_on_a_run(two_runs, capsys):
    assert ends(capsys, 'collect', two_runs[0], '-n', '10', '--out', 'data')[1].startswith('10 episodes')
    limits = ['-o', 'commander.max_train_iter=20', '-o', 'evaluator.n_episode=1', '-s', '0']
    code, out, err = ends(capsys, 'offline', 'cartpole_il', '--data', 'data', *limits)
    assert code == 0 and 'runs/cartpole_il_s0' in out, err
    assert facts('runs/cartpole_il_s0')['mode'] == 'offline'
    more = ends(capsys, 'resume', 'runs/cartpole_il_s0', '-o', 'commander.max_train_iter=30')
    assert more[0] == 0 and ', 30 updates' in more[1], more


def test_resume_goes_on_exactly_where_the_run_was(config_file, two_runs, capsys):
    main(['train', config_file, '-s', '0', '--steps', '800', '-o', 'exp_name=straight'])
    code, out, _ = ends(capsys, 'resume', two_runs[0], '-o', 'commander.max_env_step=800')
    assert code == 0 and 'after 80' in out
    curves = [Path(run, 'log/evaluator/curve.csv').read_text().splitlines() for run in ('straight', two_runs[0])]
    without_seconds = [[row.split(',')[:2] + row.split(',')[3:] for row in curve] for curve in curves]
    assert without_seconds[0] == without_seconds[1]


def test_a_run_that_goes_on_has_its_own_seed_and_weights(two_runs, capsys):
    code, _, err = ends(capsys, '-m', 'serial', '--resume', two_runs[0], '-s', '7')
    assert code == 2 and f'-s 7: {two_runs[0]} goes on with its own seed, 0' in err
    assert ends(capsys, '-m', 'serial', '--resume', two_runs[0], '-s', '0')[0] == 0
    code, _, err = ends(capsys, '-m', 'serial', '--resume', two_runs[0], '--load', two_runs[1])
    assert code == 2 and f'--load {two_runs[1]}: {two_runs[0]} goes on with its own weights' in err


def test_ctrl_c_says_how_to_go_on(config_file):
    command = [*NERVEX, 'train', config_file, '-s', '0', '--steps', '10000000']
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: list(Path().glob('runs/cartpole_dqn_s0/ckpt*/iteration_0*')))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and 'to go on: nervex resume runs/cartpole_dqn_s0\n' in err
    assert facts('runs/cartpole_dqn_s0')['state'] == 'interrupted'


# ---- what there is ----
def test_list_tells_names_and_what_they_are_without_importing_them(capsys):
    policies = {
        name: text
        for name, _, text in (line.partition(' ') for line in ends(capsys, 'list', 'policies')[1].splitlines())
    }
    assert policies['dqn'].strip().startswith('Deep Q-learning') and set(policies) == set(POLICY_REGISTRY.query())
    assert 'CartPole by double DQN\n' in ends(capsys, 'list', 'configs')[1]
    envs = ends(capsys, 'list', 'envs')[1]
    assert 'cartpole ' in envs and 'CartPole-v1' in envs and 'GymV' not in envs
    assert ends(capsys, 'list', 'policy') == ends(capsys, 'list', 'policies')
    for what in ends(capsys, 'list')[1].strip().partition(': ')[2].split(', ')[:-1]:
        assert ends(capsys, 'list', what)[0] == 0, what


def test_list_and_show_tell_of_runs(two_runs, capsys):
    os.remove(Path(two_runs[1], 'log/config.yaml'))
    head, first, second = ends(capsys, 'list', 'runs')[1].splitlines()
    assert head.split() == ['run', 'state', 'env', 'steps', 'last', 'best']
    assert first.split()[:2] == ['./' + two_runs[0], 'finished'] and first.split()[2] == '400'
    assert second.split()[:2] == ['./' + two_runs[1], 'damaged']
    assert 'state: finished' in ends(capsys, 'show', 'run', two_runs[0])[1]
    assert ends(capsys, 'list', 'runs', 'nowhere')[0] == 2


def test_show_tells_settings_and_configs(capsys):
    assert 'policy dqn: nervex.policy.dqn' in ends(capsys, 'show', 'policy', 'dqn')[1]
    assert ends(capsys, 'show', 'configs', 'cartpole_dqn')[1].startswith('"""CartPole by double DQN."""')
    for args, near in (
        (['polices', 'dqn'], 'policies'),
        (['policy', 'dqm'], 'dqn'),
        (['config', 'cartpole_dqm'], '_dqn'),
    ):
        code, _, err = ends(capsys, 'show', *args)
        assert code == 2 and 'did you mean' in err and near in err


def test_doctor_tells_what_is_there_and_the_line_that_installs_what_is_not(capsys, monkeypatch):
    from nervex.entry import doctor

    wanted = {
        'nervex': ['torch>=2', 'pixels[png]>=1; extra == "shown"', 'gone; extra == "shown"', 'pixels; extra == "fine"'],
        'pixels': [
            'inner==2; python_version >= "3.10" and extra == "png"',
            'later; python_version >= "3.99" and extra == "png"',
            'unused; extra == "jpg"',
        ],
    }
    monkeypatch.setattr(doctor.metadata, 'requires', wanted.get)
    monkeypatch.setattr(doctor.metadata, 'metadata', lambda name: Message(['shown', 'fine', 'all']))
    versions = {'pixels': '1.0', 'torch': '2.9'}
    monkeypatch.setattr(doctor, '_version', versions.get)
    lines = ends(capsys, 'doctor')[1].splitlines()
    assert "extra     shown        ! gone, inner: pip install 'nervex[shown]'" in lines
    assert 'extra     fine         pixels 1.0' in lines
    packages = next(line for line in lines if line.startswith('packages'))
    assert 'torch 2.9' in packages and 'numpy ! missing' in packages


class Message:
    """The metadata of a package."""

    def __init__(self, extras):
        self.extras = extras

    def get_all(self, name):
        return self.extras if name == 'Provides-Extra' else None


def test_looking_around_imports_no_torch():
    for args in (['-h'], ['list', 'policies'], ['list', 'runs', '.'], ['doctor'], ['train', '-h'], ['plot', 'nowhere']):
        code = f"""
import sys
from nervex.entry.cli import main
try:
    main({args!r})
except SystemExit:
    pass
print([m for m in ('torch', 'matplotlib', 'gymnasium') if m in sys.modules], file=sys.stderr)
"""
        said = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stderr
        assert said.splitlines()[-1] == '[]', args


@pytest.mark.parametrize(
    'words, found',
    [
        ('nervex tra', ['train']),
        ('nervex --resu', ['--resume']),
        ('nervex train -p dqn_', ['dqn_vanilla']),
        ('nervex train cartpole_ppo_', ['cartpole_ppo_recurrent', 'cartpole_ppo_vanilla']),
        ('nervex train --vid', []),
        ('nervex list polic', ['policies']),
        ('nervex show policy sac', ['sac', 'sac_discrete']),
        ('nervex show configs cartpole_ppo_v', ['cartpole_ppo_vanilla']),
        ('nervex show nothing a', []),
        ('nervex train -e MountainCarC', ['MountainCarContinuous-v0']),
        ('nervex train -e two_s', ['two_step']),
        ('nervex -m ser', ['serial']),
    ],
)
def test_shells_complete_commands_options_and_names(words, found):
    from nervex.entry.commands import front_door

    complete = ShellComplete(front_door, {}, 'nervex', '_NERVEX_COMPLETE')
    *before, incomplete = words.split()[1:]
    assert [item.value for item in complete.get_completions(before, incomplete)] == found


# ---- wrong usage ----
@pytest.mark.parametrize(
    'args, said',
    [
        (['tran'], "did you mean 'train'"),
        (['train', 'cartpole_dqm'], "did you mean 'cartpole_dqn'"),
        (['train', 'cartpole_dqn', '-p', 'dqn'], 'give a config, or a policy'),
        (['train', '-p', 'dqn'], 'a policy and an environment'),
        (['train', 'cartpole_dqn', '--step', '3'], '--steps'),
        (['train', 'cartpole_dqn', '--video'], '--video'),
        (['eval', 'runs', '--steps', '3'], '--steps'),
        (['resume', 'runs', '-s', '3'], '-s'),
        (['plot', 'runs', '-o', 'a=1'], '-o'),
        (['plot', 'runs'], 'runs: there is no such folder'),
        (['eval', 'nowhere'], 'is no folder of a run'),
        (['plot', 'runs', '--axis', 'env_steps'], 'env_step'),
        (['offline', 'cartpole_il'], '--data'),
    ],
)
def test_what_a_command_does_not_take_is_one_line_and_exit_code_2(args, said, capsys):
    code, out, err = ends(capsys, *args)
    assert code == 2 and said.lower() in err.lower() and out == '' and len(err.splitlines()) <= 2, err


def test_a_misspelt_run_names_the_one_that_is_there(two_runs, capsys):
    assert "did you mean 'runs/cartpole_dqn_s1'?" in ends(capsys, 'eval', 'runs/cartpole_dqm_s1')[2]


def test_the_help_names_every_command_and_each_command_has_an_example(capsys):
    from nervex.entry.commands import front_door

    text = ends(capsys, '-h')[1]
    for name in front_door.commands:
        assert f'\n  {name} ' in text
        assert f'\n  nervex {name}' in ends(capsys, name, '-h')[1]


# ---- a value of another env ----
def test_a_stop_value_that_was_meant_for_another_env_is_told(caplog):
    compile_config('acrobot_dqn', overrides=['env.env_id=CartPole-v1'])
    assert 'stop_val: -90 of the config was meant for Acrobot-v1; for CartPole-v1' in caplog.text


@pytest.mark.parametrize(
    'overrides', [['env.env_id=Acrobot-v1'], [], ['env.env_id=CartPole-v1', 'evaluator.stop_val=195'], ['exp_name=x']]
)
def test_a_stop_value_that_fits_or_was_given_is_not(overrides, caplog):
    compile_config('acrobot_dqn', overrides=overrides)
    assert 'was meant for' not in caplog.text
