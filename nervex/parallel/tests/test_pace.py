"""Who waits for whom: updates per sample as in serial mode, whichever side is slower."""

from types import SimpleNamespace

import pytest

from nervex.config import compile_config
from nervex.entry import parallel_pipeline, serial_pipeline
from nervex.parallel.pace import Overlap, Plan, Rounds, given_up, make_plan, resources_of, role_seed


def plan(**changes):
    # the serial loop: 8 samples, then 4 updates of 64 rows; learning begins with 256 rows
    settings = dict(actors=2, envs_per_actor=4, evaluators=1, learners=1, rounds=False, episodes=False, amount=8,
                    train_step=4, batch=64, rows_wanted=256, updates_per_unit=0.5)  # fmt: skip
    return Plan(**{**settings, **changes})


def overlap(lead=None, **changes):
    calls = SimpleNamespace(rows=10, seconds=0.1, max_bytes=10**6)
    return Overlap(plan(**changes), SimpleNamespace(outstanding=2, queue=2, block=calls, learn_s=0.05, max_lead=lead))


def block(rows, actor=0):
    return SimpleNamespace(seconds=0.01, nbytes=100, rows=rows, actor=actor)


def collect(pace, *units):
    """Blocks of so many rows come."""
    for rows in units:
        pace.under_way += rows
        pace.answered(rows, block(rows))


def sent(pace):
    """What the learner is asked for, with the blocks that wait."""
    updates = pace.next_learn()
    pace.waiting.clear()
    return updates


def learned(pace, updates, done=None, stale=0):
    done = updates if done is None else done
    pace.learned(updates, {'updates': done, 'learn_seconds': updates * 1e-3, 'stale': stale})


def test_a_gpu_is_asked_for_where_one_may_be(monkeypatch):
    cfg = compile_config('cartpole_dqn', overrides=['policy.use_cuda=true'])
    for gpu, here, wanted in ((False, True, 0), (False, False, 1), (True, True, 1)):
        monkeypatch.setattr('torch.cuda.is_available', lambda gpu=gpu: gpu)
        assert resources_of(cfg, 'learner', here)['num_gpus'] == wanted


def test_learning_begins_when_the_buffer_holds_enough():
    pace = overlap()
    collect(pace, 255)
    assert sent(pace) == 0  # inserted, nothing learned
    collect(pace, 1)
    assert sent(pace) == 4  # the updates of the serial loop's first round


def test_updates_follow_what_was_inserted():
    pace = overlap()
    collect(pace, 256)
    updates = sent(pace)
    learned(pace, updates)
    assert sent(pace) is None  # nothing is due
    collect(pace, 100)
    total = sent(pace)  # 100 samples x 0.5 updates = 50, of which a call does what takes learn_s
    while (more := sent(pace)) is not None:
        total += more
    assert total == 50


def test_rows_that_were_left_out_because_they_are_old_owe_no_updates():
    pace = overlap()
    collect(pace, 256)
    learned(pace, sent(pace))
    collect(pace, 20)
    assert sent(pace) == 10
    learned(pace, 10, stale=10)  # of 20 samples 10 were inserted, to which 5 updates belong: 5 were too many
    collect(pace, 30)
    assert sent(pace) == 15 - 5


def test_updates_that_could_not_be_done_are_due_again_when_more_data_comes():
    pace = overlap()
    collect(pace, 256)
    learned(pace, sent(pace), done=1)
    assert sent(pace) is None  # the buffer had not enough: asking again at once would gain nothing
    collect(pace, 8)
    assert sent(pace) == 3 + 4


def test_actors_wait_for_a_slow_learner():
    pace = overlap()
    collect(pace, 256)
    sent(pace)
    collected = 0
    while amount := pace.to_collect(0):
        collect(pace, amount)
        collected += amount
        assert collected < 1000
    assert collected == 40  # queue (2) x actors (2) blocks of 10 samples


def test_actors_never_wait_for_a_part_of_an_update():
    pace = overlap(updates_per_unit=1e-3)
    collect(pace, 300)
    assert sent(pace) == 4
    learned(pace, 4)
    for _ in range(60):  # 600 samples: 0.6 of an update is due
        assert pace.to_collect(0) == 10
        collect(pace, 10)
        assert sent(pace) == 0


def test_without_a_bound_nobody_waits():
    pace = overlap(updates_per_unit=None)
    collect(pace, 256)
    assert sent(pace) >= 1
    for _ in range(50):
        assert pace.to_collect(0) == 10
        collect(pace, 10)
        sent(pace)


def test_an_actor_has_so_many_calls_outstanding():
    pace = overlap()
    assert pace.to_collect(0) and pace.to_collect(1) and not pace.to_collect(2)


@pytest.mark.parametrize('dies', [False, True])
def test_a_round_is_shared_out_and_completed_whoever_dies(dies):
    pace = Rounds(plan(rounds=True, amount=20))
    first = pace.to_collect(0)
    pace.under_way += first
    second = pace.to_collect(0)
    pace.under_way += second
    assert (first, second) == (10, 10) and pace.to_collect(0) == 0
    pace.answered(10, block(10, actor=1))
    assert pace.next_learn() is None
    if dies:
        pace.answered(10)
        assert pace.to_collect(0) == 10  # the one who is left does the other's share
        pace.under_way += 10
    pace.answered(10, block(10, actor=0))
    assert pace.next_learn() == -1 and pace.to_collect(0) == 0
    assert [header.actor for header, _ in pace.waiting] == [0, 1]  # in the order of the actors, whoever was first
    pace.waiting.clear()
    pace.learned(-1, {})
    assert pace.to_collect(0) == 10


def test_seeds_differ_by_role_place_and_incarnation():
    cases = [(0, 'actor', 0, 0), (0, 'actor', 1, 0), (0, 'actor', 0, 1), (0, 'learner', 0, 0), (1, 'actor', 0, 0)]
    assert len({role_seed(*case) for case in cases}) == len(cases)


@pytest.mark.parametrize(('capacity', 'amount'), [(64, 4), (160, 10), (20000, 50)])
def test_what_is_under_way_is_a_small_part_of_a_small_buffer(capacity, amount):
    # 0.05 s a call at 1 ms a sample would be 50; 2 actors with 2 blocks each are to hold a quarter of the buffer
    pace = overlap(capacity=capacity, rows_wanted=16)
    pace.cfg.block.rows = None
    assert pace.amount() == amount


def test_actors_wait_while_a_quarter_of_a_small_buffer_is_under_way():
    # one update a sample, the buffer holds 64: with 16 updates to come, nothing more is collected
    pace = overlap(capacity=64, rows_wanted=16, amount=4, train_step=4, batch=16, updates_per_unit=1.0)
    pace.cfg.block.rows = 4
    collect(pace, 16)
    sent(pace)  # 4 updates
    given = 0
    while amount := pace.to_collect(0):
        pace.under_way += amount
        given += amount
    assert given == 12
    learned(pace, 4)
    assert pace.to_collect(0) == 4


@pytest.mark.parametrize(('inserted', 'ahead'), [(256, 12), (2000, 100), (20000, 250)])
def test_actors_are_ahead_of_the_learner_by_a_small_part_of_what_it_has(inserted, ahead):
    # 5% of the samples inserted; 2 x 2 blocks of 0.1 s / 2 ms = 50 samples wait at most, and one is under way
    pace = overlap(lead=0.05)
    pace.cfg.block.rows, pace.measure = None, False
    collect(pace, inserted)
    learned(pace, sent(pace))
    given = 0
    while amount := pace.to_collect(0):
        pace.under_way += amount
        given += amount
    assert 0.7 * ahead <= given <= ahead


def test_before_learning_begins_actors_collect_about_what_it_begins_with():
    pace, given = overlap(lead=0.05), 0
    while amount := pace.to_collect(0):
        pace.under_way += amount
        given += amount
    assert 256 <= given <= 256 + 12 + 10


def settings(*overrides, config='cartpole_dqn'):
    cfg = compile_config(config, overrides=['parallel.actor_num=2', *overrides])
    return given_up(cfg, make_plan(cfg))


def test_the_default_gives_up_nothing_and_says_nothing():
    assert settings() is None and settings('parallel.ratio=32', 'parallel.block.rows=4') is None
    assert settings(config='cartpole_ppo') is None


@pytest.mark.parametrize(
    'setting', ['ratio=0', 'ratio=8', 'max_lead=null', 'max_lead=0.5', 'block.rows=100', 'synchronous=False']
)
def test_a_setting_that_costs_env_steps_is_told_in_one_line(setting):
    config = 'cartpole_ppo' if setting.startswith('sync') else 'cartpole_dqn'
    line = settings(f'parallel.{setting}', config=config)
    assert 'more env steps than a serial one' in line and f'parallel.{setting.partition("=")[0]}=' in line


INLINE = ('parallel.carrier=inline', 'parallel.actor_num=2', 'commander.max_env_step=20000')


@pytest.mark.slow
@pytest.mark.parametrize('config', ['cartpole_dqn', 'cartpole_ppo'])
def test_a_parallel_run_needs_about_the_env_steps_of_a_serial_one(tmp_path, config):
    def steps(pipeline, *overrides):
        runs = (pipeline(config, seed, overrides=(f'exp_name={tmp_path}/{seed}', *overrides)) for seed in range(5))
        return sorted(run.env_steps for run in runs)[2]

    assert steps(parallel_pipeline, *INLINE) <= 1.5 * steps(serial_pipeline)
