"""Mistakes in a config: one clear message each, all at once, exit code 2, before anything starts."""

import os
import sys
import time

import gymnasium
import numpy as np
import pytest
from click.testing import CliRunner

from nervex.config import compile_config
from nervex.entry import serial_pipeline
from nervex.entry.cli import main
from nervex.utils import ConfigError


def problems(cfg, **kwargs) -> str:
    before = set(os.listdir())
    with pytest.raises(ConfigError) as error:
        serial_pipeline(cfg, **kwargs)
    assert set(os.listdir()) == before, 'something was written before the config was checked'
    return str(error.value)


@pytest.mark.parametrize(
    'path, value, said',
    [
        ('polcy', {}, "did you mean 'policy'"),
        ('policy.lern', {}, "did you mean 'learn'"),
        ('policy.learn.learnig_rate', 1e-3, "did you mean 'learning_rate'"),
        ('policy.learn.algo.nsteps', 3, "did you mean 'nstep'"),
        ('policy.model.hiden_dim_list', [3], "did you mean 'hidden_dim_list'"),
        ('env.actor_env_nun', 3, "did you mean 'actor_env_num'"),
        ('replay_buffer.agent.max_reus', 3, "did you mean 'max_reuse'"),
        ('actor.n_sampel', 3, "did you mean 'n_sample'"),
        ('evaluator.stop_vall', 3, "did you mean 'stop_val'"),
        ('learner.hok', {}, "did you mean 'hook'"),
        ('commander.max_env_stp', 3, "did you mean 'max_env_step'"),
        ('policy.learn.batch_size', 'many', 'many'),
        ('policy.learn.batch_size', -1, '-1'),
        ('policy.learn.algo.discount_factor', 1.5, '1.5'),
        ('policy.policy_type', 'dqm', "did you mean 'dqn'"),
        ('env.env_type', 'cartpol', "did you mean 'cartpole'"),
        ('env.env_manager_type', 'bas', "did you mean 'base'"),
        ('policy.import_names', ['nervex.polcy.dqn'], 'nervex.polcy'),
    ],
)
def test_each_mistake_names_its_path_and_the_remedy(short_dqn, path, value, said):
    *parents, name = path.split('.')
    at = short_dqn
    for parent in parents:
        at = at.setdefault(parent, type(short_dqn)())
    at[name] = value
    message = problems(short_dqn)
    assert path in message and said in message, message


def test_a_batch_larger_than_the_buffer(short_dqn):
    short_dqn.replay_buffer.agent.meta_maxlen = 32
    message = problems(short_dqn)
    assert 'policy.learn.batch_size' in message and '64' in message and '32' in message


def test_a_missing_section(short_dqn):
    short_dqn.pop('policy')
    assert 'policy' in problems(short_dqn)


def test_all_problems_at_once(short_dqn):
    short_dqn.policy.learn.batch_size = 0
    short_dqn.actor.n_sampel = 3
    short_dqn.evaluator.n_episode = 'five'
    message = problems(short_dqn)
    for path in ('policy.learn.batch_size', 'actor.n_sampel', 'evaluator.n_episode'):
        assert path in message


def test_an_unknown_armor_plugin_says_what_exists():
    import torch

    from nervex.armor import Armor

    with pytest.raises(KeyError, match='argmax_sample'):
        Armor(torch.nn.Linear(1, 1)).add_plugin('main', 'argmax_sampel')


@pytest.mark.parametrize(
    'name, text, said',
    [
        ('broken.yaml', 'env: [1, 2\npolicy: {}\n', 'broken.yaml'),
        ('no_main.py', 'config = {}\n', 'main_config'),
        ('broken.py', 'main_config = {\n', 'broken.py'),
        ('raises.py', 'main_config = 1 / 0\n', 'division by zero'),
        ('no_dict.yaml', '- 1\n- 2\n', 'no_dict.yaml'),
        ('config.txt', 'x', '.yaml'),
    ],
)
def test_files_that_are_no_config(tmp_path, name, text, said):
    from nervex.entry.cli import main

    (tmp_path / name).write_text(text, encoding='utf-8')
    assert said in problems(name)
    with pytest.raises(SystemExit) as stop:
        main(['-m', 'serial', '-c', name])
    assert stop.value.code == 2


def test_a_wrong_override_exits_with_2_and_no_traceback(capsys):
    from nervex.entry.cli import main

    with pytest.raises(SystemExit) as stop:
        main(['-m', 'serial', '-c', 'cartpole_dqn', '-o', 'policy.learn.learnig_rate=1', '-o', 'actor.n_sample=x'])
    err = capsys.readouterr().err
    assert stop.value.code == 2
    assert "'learning_rate'" in err and 'actor.n_sample' in err and 'Traceback' not in err


class Unbounded(gymnasium.Env):
    """Its actions have no bounds."""

    observation_space, action_space = gymnasium.spaces.Box(0, 1, (2,)), gymnasium.spaces.Box(-np.inf, np.inf, (1,))


def no_package(*args, **kwargs):
    raise gymnasium.error.DependencyNotInstalled('mujoco is missing, run `pip install "gymnasium[mujoco]"`')


@pytest.mark.parametrize(
    'env, said',
    [
        ({'env_id': 'CartPol-v1'}, "did you mean 'CartPole-v1'?"),
        ({}, 'GymEnv needs env.env_id'),
        ({'env_id': 'CartPole-v1', 'wrappers': ['time_limt']}, "did you mean 'time_limit'"),
        ({'env_id': 'CartPole-v1', 'wrappers': [{'type': 'time_limit'}]}, 'max_episode_steps'),
        ({'env_fn': Unbounded, 'use_act_scale': True}, 'no finite bounds'),
        ({'env_id': 'HalfCheetah-v5'}, 'pip install "nervex[mujoco]"'),
        ({'env_id': 'ALE/Pong-v5'}, 'pip install "nervex[atari]"'),
    ],
)
def test_an_env_that_cannot_be_made_is_one_line_among_the_others(short_dqn, monkeypatch, caplog, env, said):
    monkeypatch.setitem(sys.modules, 'ale_py', None)
    for name in [name for name in gymnasium.registry if name.startswith('ALE/')]:
        monkeypatch.delitem(gymnasium.registry, name)
    if env.get('env_id') == 'HalfCheetah-v5':
        monkeypatch.setattr(gymnasium, 'make', no_package)
    short_dqn.env = dict(env_type='gym', **env)
    short_dqn.evaluator.n_episode = 'five'
    lines = problems(short_dqn).splitlines()
    assert len(lines) == 2 and not caplog.records
    about_env, about_episodes = sorted(lines, key=lambda line: line.startswith('evaluator.'))
    assert about_env.startswith('env') and said in about_env and about_episodes.startswith('evaluator.n_episode')


def test_a_run_without_its_env_exits_with_2(capsys):
    from nervex.entry.cli import main

    with pytest.raises(SystemExit) as stop:
        main(['-m', 'serial', '-c', 'cartpole_dqn', '-o', 'env.env_type=gym', '-o', 'env.env_id=CartPol-v1'])
    err = capsys.readouterr().err
    assert stop.value.code == 2 and len(err.splitlines()) == 2 and "'CartPole-v1'" in err


def test_help_does_not_import_torch():
    from nervex.entry.cli import cli

    assert CliRunner().invoke(cli, ['-h']).exit_code == 0


def test_older_spellings_are_accepted(short_dqn):
    cfg = short_dqn
    cfg.policy.learn['update_per_collect'] = cfg.policy.learn.pop('train_step')
    cfg.evaluator['stop_value'] = cfg.evaluator.pop('stop_val')
    cfg.replay_buffer.agent['replay_buffer_size'] = cfg.replay_buffer.agent.pop('meta_maxlen')
    cfg['collector'] = cfg.pop('actor')
    result = serial_pipeline(cfg)
    assert result.config.policy.learn.train_step == 4
    assert result.config.replay_buffer.agent.meta_maxlen == 20000
    assert result.config.evaluator.stop_val == 1000


def test_two_spellings_with_two_values_are_an_error(short_dqn):
    short_dqn.policy.learn.train_iteration = 9
    assert 'train_iteration' in problems(short_dqn)


@pytest.mark.parametrize(
    'override, said',
    [
        ('policy.model.hidden_dim_list=[]', 'policy.model: hidden_dim_list needs at least one width'),
        ('policy.model.hidden_dim_list=[-1]', 'policy.model: hidden_dim_list holds the widths of layers'),
        ('actor.transform={a: 1}', 'actor.transform.a: got 1, must be a dict'),
        ('env.env_id=LunarLander-v3', 'env_type: gym'),
    ],
)
def test_what_only_the_builder_can_tell_is_one_message_too(short_dqn, tmp_path, capsys, override, said):
    from nervex.config.save import config_text
    from nervex.entry.cli import main

    (tmp_path / 'short.yaml').write_text(config_text(short_dqn), encoding='utf-8')
    with pytest.raises(SystemExit) as stop:
        main(['-m', 'serial', '-c', str(tmp_path / 'short.yaml'), '-o', override])
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    'text, said',
    [
        ('seed: !!int x', 'not valid YAML'),
        ('seed: !!timestamp x', 'not valid YAML'),
        ('seed: ' + '9' * 4300, 'seed: got'),
        ('seed: ' + '9' * 200_000 + 'x', 'seed: got'),
        ('exp_name: "\\U00110000"', 'not valid YAML'),
        ('exp_name: "\\ud800"', 'must be text'),
        ('seed: &a [*a]', 'holds itself'),
        ('seed: ' + '[' * 5000, 'nested too deep'),
        ('seed: ' + '[' * 100 + ']' * 100, 'more than 30 levels'),
        ('3: 4', 'the key 3 is a int'),
        ('actor: {__class__: 3, n_sample: 8}', "the key '__class__' is a name of Python itself"),
        ('a: &a [x, x, x, x, x, x, x, x, x]\n' + ''.join(
            f'{here}: &{here} [{", ".join([f"*{before}"] * 9)}]\n' for before, here in zip('abcdefg', 'bcdefgh')
        ), 'more than 100000 values'),
        ('a: &a {x: 1, y: 2, z: 3}\n' + ''.join(
            f'{here}: &{here} {{<<: [{", ".join([f"*{before}"] * 9)}]}}\n' for before, here in zip('abcdefg', 'bcdefgh')
        ), 'brings too many keys'),
    ],
)  # fmt: skip
def test_a_text_that_is_no_config_is_one_report_at_once(tmp_path, text, said):
    path = tmp_path / 'c.yaml'
    path.write_text('env: {env_type: cartpole}\npolicy: {policy_type: dqn}\n' + text, encoding='utf-8')
    began = time.process_time()
    with pytest.raises(ConfigError) as error:
        compile_config(str(path))
    assert said in str(error.value) and time.process_time() - began < 5


def test_a_date_is_a_word(tmp_path):
    path = tmp_path / 'c.yaml'
    path.write_text(
        '{env: {env_type: cartpole}, policy: {policy_type: dqn}, actor: {n_sample: 8}, exp_name: 2024-02-30}'
    )
    assert compile_config(str(path)).exp_name == '2024-02-30'


def test_a_python_config_that_holds_itself_is_reported():
    config = dict(env=dict(env_type='cartpole'), policy=dict(policy_type='dqn'), actor=dict(n_sample=10**5000))
    assert 'int that cannot be shown' in problems(config)
    config['policy']['learn'] = config
    assert 'holds itself' in problems(config)


@pytest.mark.parametrize(
    'override, said',
    [
        ('env.actor_env_num=1000000', 'must be an int in [1, 65536]'),
        ('replay_buffer.agent.meta_maxlen=1000000000000', 'are free'),
        ('replay_buffer.agent.meta_maxlen=9223372036854775807', 'at most 2**53'),
        ('replay_buffer.agent.frame_axis=7', 'not a stack of images'),
        ('policy.learn.algo.nstep=9223372036854775807', 'must be an int in [1, 10000]'),
        ('policy.model.hidden_dim_list=[10000000000]', 'more memory than there is'),
        ('env.manager.norm_clip=-1', 'norm_clip'),
        ('policy.learn.algo.nstep=x', "got 'x', must be an int in [1, 10000]"),
        ('policy.model.hidden_dim_list=[]', 'needs at least one width'),
        ('policy.model.hidden_dim_list=[-1]', 'positive ints'),
        ('actor.transform={a: 1}', 'actor.transform.a: got 1, must be a dict'),
        ('commander.max_env_step=1.5', 'must be an int >= 1'),
        ('env.env_manager_type=vector', 'has no create_vector_env'),
        ('env.manager.auto_reset=false', 'must be True in a run'),
        ('policy.command.eps.start=0.01', 'must be at least policy.command.eps.end'),
        ('policy.torch_threads=1000000000', 'must be an int in [1, 1024]'),
        ('policy.learn={__class__: 3}', 'a name of Python itself'),
        ('policy.__class__=3', 'a name of Python itself'),
        ('.'.join(['a'] * 5000) + '=1', 'more than 30 levels'),
    ],
)
def test_sizes_and_rules_between_settings_are_checked_before_the_run(capsys, override, said):
    with pytest.raises(SystemExit) as stop:
        main(['-m', 'serial', '-c', 'cartpole_dqn', '-s', '0', '-o', override])
    assert stop.value.code == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize(
    'arguments, said',
    [
        (['-s', '-1'], '-s'),
        (['-s', '9' * 30], '-s'),
        (['-m', 'parallel', '-lh', 'a[1-999999999]'], 'at most 10000 names'),
        (['-m', 'parallel', '-ah', 'a[1-9999][1-9999]'], 'at most 10000 names'),
    ],
)
def test_options_are_bounded(capsys, arguments, said):
    with pytest.raises(SystemExit) as stop:
        main(['-m', 'serial', '-c', 'cartpole_dqn', *arguments])
    assert stop.value.code == 2 and said in capsys.readouterr().err


def test_a_path_on_the_command_line_is_no_yaml(capsys):
    with pytest.raises(SystemExit):
        main(['-m', 'serial', '-c', 'cartpole_dqn', '-s', '0', '--load', 'a #1: [x/y.pth.tar'])
    assert 'a #1: [x/y.pth.tar' in capsys.readouterr().err


def test_a_misspelt_env_id_stands_beside_other_mistakes_of_its_section():
    config = dict(
        env=dict(env_type='gym', env_id='CartPol-v1', actr_env_num=3, manager=dict(step_timeout='long')),
        policy=dict(policy_type='dqn', learn=dict(batch_size=0)),
        actor=dict(n_sample=8),
    )
    said = problems(config)
    for word in ("did you mean 'CartPole-v1'?", "did you mean 'actor_env_num'?", 'step_timeout', 'batch_size'):
        assert word in said


def test_counts_may_be_written_as_floats_and_null_switches_off():
    cfg = compile_config('cartpole_ppo', overrides=['commander.max_env_step=1e5', 'evaluator.eval_freq=null'])
    assert cfg.commander.max_env_step == 100_000 and type(cfg.commander.max_env_step) is int
    assert cfg.evaluator.eval_freq is None
    assert compile_config('cartpole_ppo', overrides=['commander.max_env_step=null']).commander.max_env_step is None
    with pytest.raises(ConfigError, match=r'entropy_weight: got .x., must be a finite number'):
        compile_config('cartpole_ppo', overrides=['policy.learn.algo.entropy_weight=x'])


def test_hindsight_over_several_steps_is_an_error_of_the_config():
    with pytest.raises(ConfigError, match=r'actor\.transform\.her: .* set policy\.learn\.algo\.nstep to 1'):
        serial_pipeline('bitflip_her_dqn', seed=0, overrides=('policy.learn.algo.nstep=2',))


@pytest.mark.parametrize('mode', ['serial', 'eval', 'collect'])
def test_a_section_that_is_no_dict_is_reported_in_every_mode(tmp_path, capsys, mode):
    (tmp_path / 'c.yaml').write_text('env: {env_type: cartpole}\npolicy: {policy_type: dqn}\nactor: 16\n')
    with pytest.raises(SystemExit) as stop:
        main(['-m', mode, '-c', str(tmp_path / 'c.yaml')])
    assert stop.value.code == 2 and 'actor: got 16' in capsys.readouterr().err
