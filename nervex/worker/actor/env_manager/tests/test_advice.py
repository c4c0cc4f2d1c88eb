"""Which kind of manager is recommended, and on what measurement."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from nervex.envs.hosting import step_times
from nervex.envs.hosting.step_times import MEASURED, StepTime
from nervex.envs.tests.fakes import CounterEnv
from nervex.worker.actor.env_manager import create_env_manager
from nervex.worker.actor.env_manager.advice import advise, joined, pays_off_from, suitable


@pytest.mark.parametrize(
    'mean,std,busy,processors,best',
    [
        (5e-6, 1e-6, 1.0, 2, 'base'),
        (59e-6, 0.0, 1.0, 2, 'base'),
        (61e-6, 0.0, 1.0, 2, 'subprocess'),
        (35e-6, 0.0, 1.0, 16, 'subprocess'),
        (1.0, 0.0, 1.0, 1, 'base'),
        (1e-3, 1e-3, 1.0, 2, 'async_subprocess'),
        (1e-3, 0.0, 0.01, 1, 'subprocess'),
        (1e-3, 1e-3, 0.01, 1, 'async_subprocess'),
    ],
)
def test_kind_by_step_time_spread_and_waiting(mean, std, busy, processors, best):
    assert suitable(StepTime(mean, std, busy), processors) == best


def test_break_even_by_hand():
    """n steps of t, each with a wake-up of 30 us, shared by 2 cores: n t = n 30 us + n t / 2, so t = 60 us."""
    assert pays_off_from(2) == pytest.approx(60e-6) and pays_off_from(1) == float('inf')


def test_spread_of_one_env_from_that_of_means_over_four():
    assert joined([StepTime(1.0, 0.5, 1.0), StepTime(3.0, 0.5, 0.0)], 4) == StepTime(2.0, 1.0, 0.5)


@pytest.mark.parametrize(
    'kind,said',
    [
        ('base', "takes 5 us (spread 20%): the env manager 'base' suits it; 'subprocess' pays off from about 60 us on"),
        ('hybrid', "the env manager 'hybrid' suits it"),
        ('subprocess', "env.env_manager_type=base would be faster than 'subprocess'"),
    ],
)
def test_words_for_a_cheap_env(kind, said):
    assert said in advise(kind, StepTime(5e-6, 1e-6, 1.0), 2)


def test_words_for_a_client():
    text = advise('thread', StepTime(2e-3, 2e-4, 0.02), 2)
    assert 'of which the processor works 2%' in text and "'thread' suits it" in text
    assert 'env_manager_type=subprocess would be faster' in advise('base', StepTime(2e-3, 2e-4, 0.02), 2)


def run(manager, rounds):
    for _ in range(rounds):
        ids, _ = manager.observe()
        manager.advance(ids, np.zeros(len(ids), np.int64))


@pytest.mark.parametrize('kind', ['base', 'subprocess', 'async_subprocess', 'thread'])
def test_steps_are_measured_for_a_while_and_then_no_more(kind):
    cfgs = [dict(length=7)] * 2
    with create_env_manager(kind, CounterEnv, cfgs, dict(wait_num=2, step_wait_timeout=10)) as manager:
        manager.launch()
        run(manager, 5)
        assert manager.advice() is None
        run(manager, 400)
        assert f"'{kind}'" in manager.advice() and 'a step of one env takes' in manager.advice()


def test_what_is_measured_is_the_step():
    with create_env_manager('base', CounterEnv, [dict(sleep_s=1e-3)] * 2) as manager:
        manager.launch()
        begin = time.perf_counter()
        run(manager, 221)
        spent = time.perf_counter() - begin
        measured = manager._host.times.result
        assert 2 * MEASURED * 1e-3 <= 2 * MEASURED * measured.mean <= spent  # 2 envs in each call that is measured
        assert manager._host._loop.__name__ == 'loop'  # the host's own again
        assert manager.advice().startswith('a step of one env takes')
        with create_env_manager('vector', CounterEnv, [{}]) as vectorised:
            vectorised.launch()
            assert vectorised.advice() is None


def test_share_of_the_processor_is_that_of_the_steps(monkeypatch):
    """On a clock where a step takes 4 ms and the processor works for 1 ms of them."""
    wall, cpu = iter(i * 4e-3 for i in range(10**6)), iter(i * 1e-3 for i in range(10**6))
    clock = SimpleNamespace(perf_counter=lambda: next(wall), thread_time=lambda: next(cpu))
    monkeypatch.setattr(step_times, 'time', clock)
    with create_env_manager('base', CounterEnv, [{}]) as manager:
        manager.launch()
        run(manager, 221)
        assert manager._host.times.result == pytest.approx((4e-3, 0.0, 0.25))
