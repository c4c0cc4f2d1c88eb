"""A run that was begun in one mode, in the other."""

import pytest

from nervex.entry.parallel_entry import parallel_pipeline
from nervex.entry.serial_entry import serial_pipeline
from nervex.utils import CheckpointError

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
        serial_pipeline(None, None, resume=str(tmp_path))
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
