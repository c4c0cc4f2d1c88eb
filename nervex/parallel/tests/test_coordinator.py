"""The coordinator's logic with roles that only pretend, all in this process: tasks, deaths, late and double answers."""

import numpy as np
import pytest

from nervex.parallel.blocks import Header
from nervex.parallel.carrier import RoleError
from nervex.parallel.inline_carrier import InlineCarrier
from nervex.parallel.run import build_parallel
from nervex.utils import COMM_ACTOR_REGISTRY, COMM_LEARNER_REGISTRY, COMMANDER_REGISTRY, TrainingError
from nervex.worker.coordinator import NaiveCommander


class Pretender:
    """A role without envs and networks."""

    all = []

    def __init__(self, spec):
        self.spec, self.events, self.closed = spec, None, False
        Pretender.all.append(self)

    def ready(self):
        return {'pid': 1, 'events': []}

    def ping(self):
        return {'events': []}

    def close(self):
        self.closed = True


class Actor(Pretender):
    repeats = ()  # sequence numbers that are sent twice

    def __init__(self, spec):
        super().__init__(spec)
        self.seq, self.seen = 0, []

    def collect(self, task, request, weights):
        self.seen.append((task['task_id'], request['version'], weights))
        spec, rows = self.spec, request['rows']
        header = Header(spec.index, spec.incarnation, self.seq, task['task_id'], request['version'],
                        request['version'], request['train_iter'], rows, rows, 0.01, 10, [1.0], [rows])  # fmt: skip
        if self.seq not in self.repeats or getattr(self, 'again', False):
            self.seq, self.again = self.seq + 1, False
        else:
            self.again = True
        return header, {'obs': np.arange(rows)}


class Learner(Pretender):
    def __init__(self, spec):
        super().__init__(spec)
        self.iter, self.keys, self.inserted = spec.resume_iter or 0, [], 0

    def begin(self):
        return {'train_iter': self.iter, 'inserted': 0, 'sampled': 0, 'count': 0, 'notes': None,
                'last_checkpoint': None, **self.ready()}  # fmt: skip

    def learn(self, headers, request, *blocks):
        assert [len(block['obs']) for block in blocks] == [header.rows for header in headers]
        updates = 2 if request['updates'] is None else request['updates']
        self.keys += [header.key for header in headers]
        self.inserted += sum(header.rows for header in headers)
        staleness = [self.iter - header.train_iter for header in headers]
        self.iter += updates
        info = dict(train_iter=self.iter, updates=updates, inserted=self.inserted, sampled=self.iter * 32, count=99,
                    learn_seconds=0.001 * updates, seconds=0.001 * updates, learn_info={'learner_step': self.iter},
                    refused=0, stale=0, staleness=staleness, events=[], published=True,
                    saved={'train_iter': self.iter, 'seconds': 0.0} if request['notes'] else None)  # fmt: skip
        return info, {'version of update': self.iter}

    def snapshot(self, number):
        return {'train_iter': self.iter, 'events': []}, {'version of update': self.iter}

    def keep(self, number):
        return {'last_checkpoint': f'iteration_{self.iter}', 'events': []}

    def finish(self, notes):
        return self.begin()


class Evaluator(Pretender):
    good_after = 40  # updates

    def evaluate(self, task, request, weights):
        assert weights == {'version of update': request['train_iter']}
        good = request['train_iter'] >= self.good_after
        return {'reached': good, 'returns': [200.0 if good else 10.0], 'lengths': [10], 'seconds': 0.1, 'events': [],
                **request}  # fmt: skip


@pytest.fixture(autouse=True)
def pretend(monkeypatch):
    Pretender.all = []
    for registry, entries in (
        (COMM_ACTOR_REGISTRY, {'pretend': Actor, 'pretend_evaluator': Evaluator}),
        (COMM_LEARNER_REGISTRY, {'pretend': Learner}),
    ):
        monkeypatch.setattr(registry, '_entries', {**registry._entries, **entries})


@pytest.fixture
def start(tmp_path):
    """Begin a run with pretending roles; it is closed at the end."""
    runs = []

    def begin(on_policy=False, **parallel):
        settings = dict(comm_actor_type='pretend', comm_learner_type='pretend', comm_evaluator_type='pretend_evaluator',
                        carrier='inline', actor_num=2, block=dict(rows=8))  # fmt: skip
        cfg = dict(
            exp_name=str(tmp_path),
            env=dict(env_type='cartpole', import_names=['app_zoo.classic_control.cartpole.envs.cartpole_env'],
                     actor_env_num=8),
            policy=dict(policy_type='ppo' if on_policy else 'dqn'),
            actor=dict(n_sample=16),
            evaluator=dict(stop_val=195, eval_freq=20),
            commander=dict(max_env_step=100_000),
            parallel={**settings, **parallel},
        )  # fmt: skip
        run = build_parallel(cfg, seed=0, carrier=InlineCarrier())
        runs.append(run)
        run.begin()
        return run

    yield begin
    for run in runs:
        run.__exit__()


def go(run, until, steps=2000):
    for _ in range(steps):
        if until() or not run.going_on():
            return
        run.coordinator.step(0.1)
    raise AssertionError('it did not come to that')


def log_of(run):
    with open(run._log.path, encoding='utf-8') as f:
        return f.read()


def roles(cls):
    return [role for role in Pretender.all if isinstance(role, cls)]


@pytest.mark.parametrize('on_policy', [False, True])
def test_a_run_goes_on_until_an_evaluation_is_good_enough(start, on_policy):
    run = start(on_policy)
    go(run, lambda: False)
    result = run.finish()
    assert result.solved and result.final_return == 200.0 and result.train_iters >= 40
    learner = roles(Learner)[0]
    assert len(learner.keys) == len(set(learner.keys)) and {key[0] for key in learner.keys} == {0, 1}
    assert run.tally.blocks == len(learner.keys) + len(run.coordinator.waiting)


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
    go(run, lambda: not slot.outstanding and not run.roster.of('actor')[1].outstanding)
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
    waiting = [header.key for header, _ in run.coordinator.waiting]
    run.roster.carrier.kill(run.roster.of('learner')[0].handle)
    go(run, lambda: False)
    first, second = roles(Learner)
    assert run.coordinator.solved and second.spec.resume_iter >= saved > 0 and second.spec.incarnation == 1
    assert set(waiting) <= set(first.keys) | set(second.keys)
    assert len(second.keys) == len(set(second.keys))


def test_an_evaluation_whose_evaluator_dies_is_done_again(start):
    run = start()
    go(run, lambda: run.coordinator._evaluations > 0)
    run.roster.carrier.kill(run.roster.of('evaluator', ready=False)[0].handle)
    go(run, lambda: False)
    assert run.coordinator.solved and 'evaluator0 died' in log_of(run)


def test_a_role_that_hangs_is_ended_and_what_it_answers_later_is_not_counted(start, monkeypatch):
    monkeypatch.setattr(Evaluator, 'good_after', 10**6)
    run = start(task_timeout_s=0.5)
    go(run, lambda: run.tally.blocks > 4)
    slot = run.roster.of('actor')[1]
    slot.handle.held = True
    go(run, lambda: slot.spec.incarnation == 1)
    assert 'actor1 died (no answer to collect within 0.5 s)' in log_of(run)
    monkeypatch.setattr(Evaluator, 'good_after', 40)
    go(run, lambda: False)
    assert run.coordinator.solved


def test_a_block_that_comes_twice_is_counted_once(start, monkeypatch):
    monkeypatch.setattr(Actor, 'repeats', (1, 3))
    run = start()
    go(run, lambda: False)
    keys = roles(Learner)[0].keys
    assert run.tally.doubles >= 2 and len(keys) == len(set(keys))
    assert run.tally.total_step == 8 * run.tally.blocks


def test_a_role_that_keeps_dying_is_given_up_and_the_others_go_on(start, monkeypatch):
    def dies(self, *args):
        raise RuntimeError('no such env')

    run = start(restarts=2)
    go(run, lambda: run.tally.blocks > 2)
    slot = run.roster.of('actor')[0]
    for _ in range(3):
        go(run, lambda: slot.ready)
        run.roster.carrier.kill(slot.handle)
        go(run, lambda: not slot.ready)
    assert slot.gone and 'the run goes on without it' in log_of(run)
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
    with pytest.raises(RoleError, match=r'(?s)actor0 failed.*no such env'):
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
