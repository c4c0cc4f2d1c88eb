"""--resume of a run that has come to its end changes nothing, unless its limits are raised: then it goes on exactly."""

import copy
from pathlib import Path

import pytest
import torch
import yaml
from gymnasium.envs.classic_control import CartPoleEnv
from gymnasium.wrappers import TimeLimit

from nervex.config.save import plain_config
from nervex.entry import serial_pipeline
from nervex.entry.cli import main
from nervex.policy.dqn import DQNPolicy
from nervex.run.folder import saved_run
from nervex.utils import CheckpointError, ConfigError


def files(folder):
    return {p: p.read_bytes() for p in Path(folder).rglob('*') if p.is_file()}


def run(cfg, folder, steps, **kwargs):
    overrides = (f'commander.max_env_step={steps}',)
    if kwargs.get('resume') is None:
        overrides += (f'exp_name={folder}',)
    return serial_pipeline(cfg, 3, overrides=overrides, **kwargs)


def weights(result):
    return torch.load(result.checkpoint, weights_only=True)['model']


@pytest.fixture
def short(short_dqn, empty_folder):
    return short_dqn


@pytest.mark.parametrize('name', ['short_dqn', 'short_ppo'])
def test_a_finished_run_is_left_as_it_is(request, empty_folder, name, caplog):
    ended = run(request.getfixturevalue(name), 'a', 300)
    before = files('a')
    again = run(None, 'a', 300, resume='a')
    assert files('a') == before
    same = copy.copy(again)
    same.config = ended.config
    assert {**vars(same), 'exp_path': 'a'} == {**vars(ended), 'exp_path': 'a'}
    assert 'already finished' in caplog.text and 'commander.max_env_step' in caplog.text


@pytest.mark.parametrize('name', ['short_dqn', 'short_ppo'])
def test_with_a_higher_limit_it_goes_on_as_if_it_had_had_it_from_the_beginning(request, empty_folder, name):
    cfg = request.getfixturevalue(name)
    straight = run(cfg, 'straight', 600)
    run(cfg, 'halves', 300)
    resumed = run(None, 'halves', 600, resume='halves')
    assert (resumed.env_steps, resumed.train_iters) == (straight.env_steps, straight.train_iters)
    assert resumed.history == straight.history
    assert all(torch.equal(a, b) for a, b in zip(weights(straight).values(), weights(resumed).values()))
    columns = [[row.split(',')[:2] for row in Path(r.curve_path).read_text().splitlines()] for r in (straight, resumed)]
    assert columns[0] == columns[1]
    facts = yaml.safe_load(Path('halves/log/run.yaml').read_text())
    assert facts['finished'] == 'limit reached' and facts['resumed'] == 1


def test_a_solved_run_goes_on_with_another_stop_value_only(short, caplog):
    short.evaluator.stop_val = 1.0
    assert run(short, 'a', 300).solved
    before = files('a')
    assert run(None, 'a', 900, resume='a').solved and files('a') == before
    assert 'already solved' in caplog.text
    resumed = serial_pipeline(None, resume='a', overrides=('evaluator.stop_val=1000',))
    assert not resumed.solved and resumed.env_steps >= 300


def test_a_finished_run_without_a_saved_state_says_what_to_do(short):
    short.learner = dict(resume=dict(interval_s=None))
    run(short, 'a', 300)
    before = files('a')
    with pytest.raises(CheckpointError, match=r'is finished.*--load'):
        run(None, 'a', 600, resume='a')
    assert files('a') == before


def test_a_run_keeps_its_result_where_its_end_cannot_be_saved(short, monkeypatch, caplog):
    def full(path, state):
        raise OSError(28, 'No space left on device', path)

    monkeypatch.setattr('nervex.run.state.save_file', full)
    assert run(short, 'a', 300).env_steps >= 300
    assert 'No space left' in caplog.text and saved_run('a').finished == 'limit reached'


def test_the_command_says_that_the_run_has_ended(short, capsys):
    run(short, 'a', 300)
    main(['-m', 'serial', '--resume', 'a'])
    assert 'finished: return' in capsys.readouterr().out


def test_a_run_that_goes_on_is_not_finished_until_it_ends_again(short, monkeypatch):
    def stop(*_):
        raise RuntimeError('stop here')

    run(short, 'a', 300)
    assert saved_run('a').finished == 'limit reached'
    monkeypatch.setattr(DQNPolicy, '_forward_learn', stop)
    with pytest.raises(RuntimeError, match='stop here'):
        run(None, 'a', 600, resume='a')
    assert saved_run('a').finished is None and saved_run('a').counters is None


def test_without_an_eval_freq_nothing_is_evaluated_and_the_run_ends_at_its_limit(short_dqn, tmp_path):
    short_dqn.exp_name, short_dqn.evaluator.eval_freq = str(tmp_path), None
    result = serial_pipeline(short_dqn, seed=0)
    assert result.history == [] and result.verdict == 'finished: not evaluated' and not result.solved
    assert result.env_steps >= 400 and Path(result.checkpoint).exists()
    assert serial_pipeline(None, resume=str(tmp_path)).env_steps == result.env_steps


def test_classes_and_functions_in_a_config_come_back_from_the_folder_alone(short, caplog):
    env = dict(env_type='gym', env_fn=CartPoleEnv, wrappers=[dict(type=TimeLimit, max_episode_steps=50)])
    run({**short, 'env': {**short.env, 'import_names': None, **env}}, 'a', 200)
    assert 'cannot be resumed' not in caplog.text
    resumed = run(None, 'a', 300, resume='a')
    assert resumed.env_steps >= 300 and resumed.config.env.wrappers[0]['max_episode_steps'] == 50


CONFIG = """
import gymnasium
class Mine(gymnasium.Wrapper):
    pass
main_config = {**short, 'env': dict(env_type='gym', env_id='CartPole-v1', wrappers=[dict(type=Mine)])}
"""


def test_a_run_that_needs_its_config_to_be_resumed_says_so_at_its_start(short, caplog):
    source = f'short = {dict(plain_config(short))!r}\n' + CONFIG
    Path('mine.py').write_text(source)
    run('mine.py', 'a', 200)
    line = next(r.getMessage() for r in caplog.records if 'cannot be resumed from its folder alone' in r.getMessage())
    assert line.startswith('env.wrappers.0.type: ')
    with pytest.raises(ConfigError, match=r'env\.wrappers'):
        run(None, 'a', 300, resume='a')
    assert run('mine.py', 'a', 300, resume='a').env_steps >= 300


@pytest.mark.parametrize('name', ['run.yaml', 'config.yaml'])
@pytest.mark.parametrize('text', ['', '- 1', 'a: [', 'seed: 2024-02-30', '&a [*a]'])
def test_a_damaged_description_of_a_run_is_one_error_that_names_the_file(short, name, text):
    run(short, 'a', 100)
    (Path('a/log') / name).write_text(text)
    with pytest.raises((CheckpointError, ConfigError), match=name):
        run(None, 'a', 600, resume='a')
