"""The coordinator's logic with roles that only pretend, all in this process: tasks, deaths, late and double answers."""

import re

import pytest

from nervex.interaction import TaskFail
from nervex.parallel.tests.pretenders import Actor, Evaluator, Learner, Pretender, go, log_of, roles
from nervex.utils import COMMANDER_REGISTRY, TrainingError
from nervex.worker.coordinator import NaiveCommander


@pytest.mark.parametrize('on_policy', [False, True])
def test_a_run_goes_on_until_an_evaluation_is_good_enough(start, on_policy):
    run = start(on_policy)
    go(run, lambda: False)
    result = run.finish()
    assert result.solved and result.final_return == 200.0 and result.train_iters >= 40
    learner = roles(Learner)[0]
    assert len(learner.keys) == len(set(learner.keys)) and {key[0] for key in learner.keys} == {0, 1}
    assert run.tally.blocks == len(learner.keys) + len(run.pace.waiting)


def test_actors_get_weights_only_when_there_are_newer_ones(start):
    run = start()
    go(run, lambda: run.tally.train_iter > 20)
    for actor in roles(Actor):
        versions = [version for _, version, _ in actor.seen]
        assert versions == sorted(versions)
        fresh = [k == 0 or versions[k] != versions[k - 1] for k in range(len(versions))]
        assert fresh == [weights is not None for _, _, weights in actor.seen]


def test_an_on_policy_round_is_collected_with_the_newest_weights_only(start):
    run = start(on_policy=True)
    go(run, lambda: run.tally.train_iter >= 20)
    for actor in roles(Actor):
        assert all(weights == {'version of update': 2 * k} for k, (_, _, weights) in enumerate(actor.seen))


def test_a_dead_actor_is_replaced_and_its_task_is_given_again(start):
    run = start()
    go(run, lambda: run.tally.blocks > 4)
    slot = run.roster.of('actor')[0]
    old = slot.task['task_id']
    run.roster.carrier.kill(slot.handle)
    go(run, lambda: False)
    assert run.coordinator.solved
    assert slot.spec.incarnation == 1 and slot.task['task_id'] != old
    keys = [key for learner in roles(Learner) for key in learner.keys]
    assert len(keys) == len(set(keys)) and (0, 1, 0) in keys
    log = log_of(run)
    assert 'actor0 died' in log and 'incarnation 1' in log and run.commander.failed == 1


def test_an_actor_that_dies_while_it_has_nothing_to_do_is_replaced(start):
    run = start()
    go(run, lambda: run.tally.blocks > 4)
    run.roster.of('learner')[0].handle.held = True
    slot = run.roster.of('actor')[0]
    go(run, lambda: not slot.work() and not run.roster.of('actor')[1].work())
    run.roster.carrier.kill(slot.handle)
    go(run, lambda: slot.spec.incarnation == 1 and slot.ready)
    assert 'actor0 died' in log_of(run) and run.roster.restarts == 1


def test_work_is_shared_out_evenly_where_the_learner_is_slow(start):
    run = start()
    go(run, lambda: run.tally.blocks > 40)
    first, second = (actor.seq for actor in roles(Actor))
    assert abs(first - second) <= 2


def test_a_round_is_completed_though_an_actor_dies_in_it(start):
    run = start(on_policy=True)
    go(run, lambda: run.tally.train_iter >= 4)
    run.roster.carrier.kill(run.roster.of('actor')[1].handle)
    go(run, lambda: False)
    assert run.coordinator.solved and run.tally.total_step % 16 in (0, 8)


def test_a_dead_learner_goes_on_from_its_last_saved_state(start):
    run = start(save_s=1e-6)
    go(run, lambda: run.tally.train_iter > 20)
    saved = run.coordinator.saved_iter
    waiting = [header.key for header, _ in run.pace.waiting]
    run.roster.carrier.kill(run.roster.of('learner')[0].handle)
    go(run, lambda: False)
    first, second = roles(Learner)
    assert run.coordinator.solved and second.spec.resume_iter >= saved > 0 and second.spec.incarnation == 1
    assert set(waiting) <= set(first.keys) | set(second.keys)
    assert len(second.keys) == len(set(second.keys))


def test_a_learner_that_dies_before_it_has_saved_is_asked_to_save_again(start, monkeypatch):
    monkeypatch.setattr(Evaluator, 'good_after', 10**6)
    run = start(save_s=1e-6)
    slot = run.roster.slots[0]
    go(run, lambda: run.coordinator._schedule._next == float('inf') and slot.work())
    run.roster.carrier.kill(slot.handle)
    saved = run.coordinator.saved_iter or 0
    go(run, lambda: slot.spec.incarnation == 1 and slot.ready)
    go(run, lambda: (run.coordinator.saved_iter or 0) > saved + 10)
    assert run.coordinator.saved_iter > saved + 10 and slot.ready


def test_an_evaluation_whose_evaluator_dies_is_done_again(start):
    run = start()
    go(run, lambda: run.coordinator._evaluations > 0)
    run.roster.carrier.kill(run.roster.of('evaluator', ready=False)[0].handle)
    go(run, lambda: False)
    assert run.coordinator.solved and 'evaluator0 died' in log_of(run)


@pytest.mark.parametrize('on_policy', [False, True])
def test_actors_wait_for_an_evaluation_that_may_end_the_run_but_not_for_ever(start, monkeypatch, on_policy):
    monkeypatch.setattr(Evaluator, 'good_after', 10**6)
    run = start(on_policy)
    go(run, lambda: run.coordinator._judged is not None)
    (slot,), now = run.roster.of('evaluator'), run.roster.carrier.now
    slot.handle.held = True
    steps, since = run.tally.total_step, now()
    go(run, lambda: now() > since + 15, steps=20000)
    assert run.tally.total_step <= steps + 2 * 2 * 8, 'the calls that they had'
    go(run, lambda: run.tally.total_step > steps + 200, steps=20000)
    assert now() >= since + 20


def test_actors_do_not_wait_for_evaluations_where_what_they_collect_meanwhile_is_little(start, monkeypatch):
    monkeypatch.setattr(Evaluator, 'good_after', 10**6)
    run = start()
    go(run, lambda: run.tally.total_step > 4000 and run.coordinator._judged is not None, steps=20000)
    steps, _ = run.coordinator._judged
    go(run, lambda: run.tally.total_step > steps + 100)
    assert run.tally.total_step > steps + 100


def test_a_role_that_hangs_is_ended_and_what_it_answers_later_is_not_counted(start, monkeypatch):
    monkeypatch.setattr(Evaluator, 'good_after', 10**6)
    run = start(stall_s=0.5)
    go(run, lambda: run.tally.blocks > 4)
    slot = run.roster.of('actor')[1]
    slot.handle.held = True
    go(run, lambda: slot.spec.incarnation == 1, steps=20000)
    assert 'actor1 died (no progress for 1 s in collect)' in log_of(run)
    monkeypatch.setattr(Evaluator, 'good_after', 40)
    go(run, lambda: False)
    assert run.coordinator.solved


def test_a_successor_that_is_not_built_in_time_is_ended_too(start, monkeypatch):
    monkeypatch.setattr(Evaluator, 'good_after', 10**6)
    run = start(start_timeout_s=2.0)
    slot = run.roster.slots[-1]
    go(run, lambda: slot.ready)
    run.roster.carrier.kill(slot.handle)
    go(run, lambda: slot.spec.incarnation == 1)
    slot.handle.held = True
    go(run, lambda: slot.spec.incarnation == 2, steps=20000)
    assert 'evaluator0 died (it was not built within 2 s)' in log_of(run)


@pytest.mark.parametrize('victim', ['learner0', 'actor1', 'evaluator0'])
def test_a_role_that_does_not_get_on_is_told_of_and_then_started_anew(start, monkeypatch, victim):
    monkeypatch.setattr(Evaluator, 'good_after', 10**6)
    run = start(stall_s=4.0)
    slot = next(slot for slot in run.roster.slots if slot.name == victim)
    go(run, lambda: run.tally.blocks > 4 and slot.ready and slot.work(), steps=20000)
    slot.handle.held = True
    go(run, lambda: 'it is started anew after 4 s (parallel.stall_s)' in log_of(run), steps=20000)
    assert slot.ready and slot.spec.incarnation == 0
    go(run, lambda: slot.spec.incarnation == 1 and slot.ready, steps=20000)
    assert re.search(rf'{victim} died \(no progress for [45] s in (learn|collect|evaluate|its life)', log_of(run))
    assert run.roster.restarts == 1, 'nobody else was taken to hang'


def test_nobody_is_taken_to_hang_because_the_coordinator_itself_was_stopped(start, monkeypatch):
    monkeypatch.setattr(Evaluator, 'good_after', 10**6)
    run = start(stall_s=40.0)
    go(run, lambda: run.tally.blocks > 4 and run.roster.of('evaluator'))
    run.roster.carrier._clock += 1000.0
    blocks = run.tally.blocks
    go(run, lambda: run.tally.blocks > blocks + 20)
    assert run.roster.restarts == 0 and 'no progress' not in log_of(run)


def test_a_role_that_has_nothing_to_do_is_not_taken_to_hang(start, monkeypatch):
    monkeypatch.setattr(Evaluator, 'good_after', 10**6)
    run = start(stall_s=4.0)
    go(run, lambda: run.evaluator.history)
    run.evaluator._cfg.eval_freq = 10**9
    run.roster.slots[0].handle.held, since = True, run.roster.carrier.now()
    run.roster.slots[0].moved_at = since + 1000.0
    go(run, lambda: run.roster.carrier.now() > since + 300, steps=20000)
    assert run.roster.restarts == 0


def test_a_block_that_comes_twice_is_counted_once(start, monkeypatch):
    monkeypatch.setattr(Actor, 'repeats', (1, 3))
    run = start()
    go(run, lambda: False)
    keys = roles(Learner)[0].keys
    assert run.tally.doubles >= 2 and len(keys) == len(set(keys)) and 'learner0 refused 1 blocks' in log_of(run)
    assert roles(Learner)[0].inserted == 8 * len(keys)


def test_a_role_that_keeps_dying_is_given_up_and_the_others_go_on(start, monkeypatch):
    monkeypatch.setattr(Evaluator, 'good_after', 10**6)
    run = start(restarts=2)
    go(run, lambda: run.tally.blocks > 2)
    slot = run.roster.of('actor')[0]
    for incarnation in (1, 2, 3):
        go(run, lambda: slot.ready, steps=20000)
        run.roster.carrier.kill(slot.handle)
        go(run, lambda: slot.gone or slot.spec.incarnation == incarnation, steps=20000)  # noqa: B023
    assert slot.gone and 'the run goes on without it' in log_of(run)
    monkeypatch.setattr(Evaluator, 'good_after', 40)
    go(run, lambda: False)
    assert run.coordinator.solved


def test_the_last_actor_that_keeps_dying_ends_the_run(start):
    run = start(restarts=0, actor_num=1)
    go(run, lambda: run.tally.blocks > 2)
    run.roster.carrier.kill(run.roster.of('actor')[0].handle)
    with pytest.raises(TrainingError, match='actor0 died'):
        go(run, lambda: False)


def test_an_error_in_the_making_of_a_role_ends_the_run_and_is_shown(start, monkeypatch):
    def fails(self, spec):
        raise ValueError('no such env')

    monkeypatch.setattr(Actor, '__init__', fails)
    run = start()
    with pytest.raises(TaskFail, match=r'(?s)actor0 failed.*no such env'):
        go(run, lambda: False)


def test_stopping_saves_and_leaves_nothing_running(start):
    run = start()
    go(run, lambda: run.tally.blocks > 4)
    assert run.interrupted().args == (None,)  # the pretended checkpoint
    run.__exit__()
    assert all(role.closed for role in Pretender.all)
    run.__exit__()  # closing twice is fine


class TwoBlocks(NaiveCommander):
    """A task lasts for two blocks."""

    def __init__(self, *args):
        super().__init__(*args)
        self.counts, self.finished = {}, []

    def update_actor_info(self, task, header):
        self.counts[task['task_id']] = self.counts.get(task['task_id'], 0) + 1
        return self.counts[task['task_id']] >= 2

    def finish_actor_task(self, task, result=None):
        self.finished.append(task['task_id'])
        return super().finish_actor_task(task, result)


def test_a_users_commander_gives_the_tasks(start, monkeypatch):
    monkeypatch.setattr(COMMANDER_REGISTRY, '_entries', {**COMMANDER_REGISTRY._entries, 'two_blocks': TwoBlocks})
    run = start(commander_type='two_blocks', outstanding=1)
    go(run, lambda: run.tally.blocks > 9)
    tasks = [[task for task, _, _ in actor.seen] for actor in roles(Actor)]
    assert all(seen[0] == seen[1] != seen[2] == seen[3] for seen in tasks)
    assert set(run.commander.finished) >= {seen[0] for seen in tasks}
