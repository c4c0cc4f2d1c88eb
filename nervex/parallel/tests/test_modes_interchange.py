"""A run that was begun in one mode, in the other."""

import os

import pytest

from nervex.entry.parallel_entry import parallel_pipeline
from nervex.entry.serial_entry import serial_pipeline
from nervex.run.state import newest_state
from nervex.utils import CheckpointError, ConfigError
from nervex.utils.file_helper import save_file

CONFIG = dict(
    env=dict(env_type='cartpole', import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
             actor_env_num=4, evaluator_env_num=1),
    policy=dict(policy_type='dqn', model=dict(hidden_dim_list=[8]), learn=dict(train_step=1, batch_size=16)),
    actor=dict(n_sample=8),
    evaluator=dict(n_episode=1, eval_freq=10_000),
    learner=dict(resume=dict(interval_s=0.0, max_cost=None)),
)  # fmt: skip
INLINE = ('parallel.carrier=inline', 'parallel.actor_num=2', 'parallel.save_s=1e-6', 'parallel.block.rows=8')


def test_a_serial_run_goes_on_in_parallel(tmp_path):
    first = serial_pipeline({**CONFIG, 'exp_name': str(tmp_path)}, 3, overrides=('commander.max_env_step=200',))
    second = parallel_pipeline(None, None, resume=str(tmp_path), overrides=('commander.max_env_step=400', *INLINE))
    assert second.seed == 3 and 400 <= second.env_steps < 600 and second.ckpt_path.endswith(first.ckpt_path[-20:])
    assert first.train_iters < second.train_iters < 2 * first.train_iters + 30
    assert [entry[0] for entry in second.history[: len(first.history) - 1]] == [e[0] for e in first.history[:-1]]


def test_a_parallel_run_goes_on_serially_from_its_checkpoint_only(tmp_path):
    cfg = {**CONFIG, 'exp_name': str(tmp_path)}
    first = parallel_pipeline(cfg, 3, overrides=('commander.max_env_step=200', *INLINE))
    with pytest.raises(CheckpointError, match='parallel mode'):
        serial_pipeline(None, None, resume=str(tmp_path), overrides=('commander.max_env_step=400',))
    load = f'learner.load_path={first.checkpoint}'
    second = serial_pipeline({**cfg, 'exp_name': f'{tmp_path}/b'}, 3, overrides=('commander.max_env_step=64', load))
    assert second.train_iters > first.train_iters > 0


def test_a_parallel_run_that_is_resumed_counts_on(tmp_path):
    cfg = {**CONFIG, 'exp_name': str(tmp_path)}
    first = parallel_pipeline(cfg, 3, overrides=('commander.max_env_step=200', *INLINE))
    second = parallel_pipeline(None, None, resume=str(tmp_path), overrides=('commander.max_env_step=500', *INLINE))
    assert second.train_iters > first.train_iters and second.env_steps >= 500
    text = (tmp_path / 'log' / 'coordinator_logger.txt').read_text()
    assert 'actor0 is there' in text and 'incarnation 1000' in text


def test_what_was_logged_behind_the_saved_state_is_taken_back(tmp_path):
    often = {**CONFIG, 'evaluator': dict(n_episode=1, eval_freq=5), 'exp_name': str(tmp_path)}
    parallel_pipeline(often, 3, overrides=('commander.max_env_step=200', 'parallel.save_s=1e9', *INLINE[:2], INLINE[3]))
    stale = tmp_path / 'log' / 'actor' / 'of_no_state_logger.txt'
    stale.write_text('x')
    for state in tmp_path.glob('ckpt*/run_state_*'):  # as a run leaves it that is killed before its first state
        state.unlink()
    facts = tmp_path / 'log' / 'run.yaml'
    facts.write_text(facts.read_text().replace('finished: limit reached', 'finished: null'))
    # no state was saved: the run begins anew, and its curve with it
    first = parallel_pipeline(None, None, resume=str(tmp_path), overrides=('commander.max_env_step=200', *INLINE))
    assert not stale.exists() and curve(first) == [entry[:2] for entry in first.history]
    os.remove(newest_state(first.ckpt_path)[0])  # the one of the end
    known = newest_state(first.ckpt_path)[1]['coordinator']['evaluator']['history']
    assert 0 < len(known) < len(first.history), 'some rows of the curve lie behind the state'
    second = parallel_pipeline(None, None, resume=str(tmp_path), overrides=('commander.max_env_step=500', *INLINE))
    assert curve(second) == [entry[:2] for entry in second.history] and second.seconds > first.seconds
    iters = [entry[0] for entry in second.history]
    assert iters == sorted(iters) and len(iters) > len(known)


def test_a_finished_run_is_left_as_it_is(tmp_path, caplog):
    limit = ('commander.max_env_step=200', *INLINE)
    first = parallel_pipeline({**CONFIG, 'exp_name': str(tmp_path)}, 3, overrides=limit)
    before = {p: p.read_bytes() for p in tmp_path.rglob('*') if p.is_file()}
    again = parallel_pipeline(None, None, resume=str(tmp_path), overrides=limit)
    assert before == {p: p.read_bytes() for p in tmp_path.rglob('*') if p.is_file()}
    assert 'already finished' in caplog.text
    assert (again.env_steps, again.history) == (first.env_steps, first.history)


def test_states_of_two_learners_are_not_resumed_by_one(tmp_path):
    cfg = {**CONFIG, 'exp_name': str(tmp_path)}
    first = parallel_pipeline(cfg, 3, overrides=('commander.max_env_step=200', *INLINE))
    path, state = newest_state(first.ckpt_path)
    save_file(path, {**state, 'learners': 2})
    with pytest.raises(ConfigError, match='was saved by 2'):
        parallel_pipeline(None, None, resume=str(tmp_path), overrides=('commander.max_env_step=400', *INLINE))


def curve(result):
    with open(result.curve_path, encoding='utf-8') as f:
        return [tuple(int(x) for x in line.split(',')[:2]) for line in f.read().splitlines()[1:]]


def test_without_a_frequency_neither_mode_evaluates_also_not_at_the_end(tmp_path):
    off = ('evaluator.eval_freq=null', 'commander.max_env_step=200')
    serial = serial_pipeline({**CONFIG, 'exp_name': f'{tmp_path}/a'}, 3, overrides=off)
    parallel = parallel_pipeline({**CONFIG, 'exp_name': f'{tmp_path}/b'}, 3, overrides=(*off, *INLINE))
    assert serial.history == parallel.history == []
    assert serial.verdict == parallel.verdict == 'finished: not evaluated' and parallel.env_steps >= 200


def test_the_logs_of_actors_and_of_the_commander_show_what_happens(tmp_path):
    often = ('commander.max_env_step=6000', 'evaluator.stop_val=100000', 'evaluator.eval_freq=200', *INLINE[:3])
    result = parallel_pipeline({**CONFIG, 'exp_name': str(tmp_path)}, 3, overrides=often)
    for path in (tmp_path / 'log' / 'actor').glob('*_logger.txt'):
        lines = path.read_text().splitlines()
        assert len(lines) >= 3 and 'mean return of the last' in lines[1] and "'eps'" in lines[2]
    said = (tmp_path / 'log' / 'commander' / 'commander_logger.txt').read_text()
    for train_iter, env_step, mean in result.history:
        assert (
            f'evaluation of update {train_iter}, asked for at env step {env_step}: 1 episodes, mean return {mean:.3f}'
            in said
        )
