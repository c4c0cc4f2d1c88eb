"""What a run makes of the buffer's settings."""

import copy

import pytest
import torch

from nervex.data.memory import BufferMemoryError, available_bytes
from nervex.run.build import build_serial


@pytest.fixture
def config(tmp_path, monkeypatch):
    from app_zoo.classic_control.cartpole.entry import cartpole_dqn_default_config

    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    cfg = copy.deepcopy(cartpole_dqn_default_config)
    cfg.actor.n_sample, cfg.policy.learn.init_data_count, cfg.policy.learn.batch_size = 16, 0, 8
    return cfg


def rows_collected(cfg):
    with build_serial(cfg, 0) as run:
        run.commander.step()
        run.collect()
        return run.buffer.count()


@pytest.mark.parametrize('wanted', [True, False])
def test_the_buffer_has_priorities_if_the_policy_uses_them(config, wanted):
    config.policy.use_priority = wanted
    with build_serial(config, 0) as run:
        run.commander.step()
        run.collect()
        batch = next(iter(run.batches()))
        assert ('IS' in list(batch.keys())) == wanted


def test_collecting_goes_on_until_the_buffer_may_be_sampled(config):
    assert rows_collected(config) == 16
    config.replay_buffer = dict(buffer_name=['agent'], agent=dict(meta_maxlen=1000, replay_start_size=40))
    assert rows_collected(config) == 48
    config.replay_buffer.agent = dict(meta_maxlen=1000, min_sample_ratio=7.5)
    assert rows_collected(config) == 64
    config.replay_buffer.agent = dict(meta_maxlen=1000, max_reuse=1)  # 5 updates of 8 rows, each row once
    config.policy.learn.train_step = 5
    assert rows_collected(config) == 48


def test_more_rows_than_the_buffer_holds_are_an_error_and_no_endless_loop(config):
    config.replay_buffer = dict(buffer_name=['agent'], agent=dict(meta_maxlen=50, min_sample_ratio=7.5))
    with pytest.raises(ValueError, match='want 60 rows, but meta_maxlen is 50'):
        rows_collected(config)


def test_a_buffer_that_cannot_fit_says_so_before_the_first_step(config):
    if available_bytes() is None:
        pytest.skip('this machine does not tell its memory')
    config.replay_buffer = dict(buffer_name=['agent'], agent=dict(meta_maxlen=10**12))
    with pytest.raises(BufferMemoryError, match=rf"'agent': {10**12} rows of 20 bytes need {20 * 10**12} bytes"):
        build_serial(config, 0)


def test_background_work_of_the_buffer_runs_and_ends_with_the_run(config):
    config.replay_buffer = dict(buffer_name=['agent'], agent=dict(enable_cache=True, cache_maxlen=4))
    with build_serial(config, 0) as run:
        assert run.buffer._caches
        run.commander.step()
        run.collect()
        buffer = run.buffer
    assert not buffer._caches and buffer.count() >= 16
