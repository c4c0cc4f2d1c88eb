"""How a run ends that cannot go on: with one clear error, and never in a loop; and how one ends that is done."""

import socket

import pytest

from nervex.entry.cli import main
from nervex.interaction.exception import SlaveDied
from nervex.parallel.ray_carrier import check_room
from nervex.parallel.ray_cluster import check_address
from nervex.parallel.tests.pretenders import Actor, Evaluator, Learner, go, log_of, roles
from nervex.utils import ConfigError, EnvError, TrainingError, UnknownNameError


@pytest.mark.parametrize('cls', [Learner, Actor, Evaluator])
def test_a_role_that_dies_in_every_start_ends_the_run(start, monkeypatch, cls):
    def dies(self, spec):
        raise SlaveDied('killed by the system')

    monkeypatch.setattr(cls, '__init__', dies)
    run = start(actor_num=1)
    with pytest.raises(TrainingError, match='0 died 4 times, and did nothing in between, the last time so: killed by'):
        go(run, lambda: False, steps=20000)
    assert run.roster.restarts == 3


def test_a_learner_that_dies_in_every_call_ends_the_run(start, monkeypatch):
    run = start()
    go(run, lambda: run.tally.train_iter >= 10)

    def dies(self, *args):
        raise SlaveDied('killed by the system')

    monkeypatch.setattr(Learner, 'learn', dies)
    with pytest.raises(TrainingError, match='learner0 died 4 times, and did nothing in between'):
        go(run, lambda: False)


def test_a_role_that_dies_often_while_it_has_nothing_to_do_is_started_again(start, monkeypatch):
    monkeypatch.setattr(Evaluator, 'good_after', 10**6)
    run = start()
    slot = run.roster.slots[-1]
    go(run, lambda: run.evaluator.history and not slot.work())
    run.evaluator._cfg.eval_freq = 10**9
    go(run, lambda: slot.task is None)
    for incarnation in range(1, 7):
        run.roster.carrier.kill(slot.handle)
        go(run, lambda: slot.spec.incarnation == incarnation and slot.ready, steps=20000)  # noqa: B023
    assert slot.fruitless <= 1


def test_a_role_is_started_again_at_once_unless_the_last_ones_did_nothing(start, monkeypatch):
    monkeypatch.setattr(Evaluator, 'good_after', 10**6)
    run = start()
    slot = next(slot for slot in run.roster.slots if slot.name == 'actor0')
    for incarnation in range(1, 8):
        blocks = run.tally.blocks
        go(run, lambda: slot.ready and slot.work() and run.tally.blocks > blocks + 6)  # noqa: B023
        run.roster.carrier.kill(slot.handle)
        go(run, lambda: slot.spec.incarnation == incarnation)  # noqa: B023
        assert slot.start_at is None and run.roster.carrier.now() - slot.died_at < 0.1
    slot.ready = False
    run.roster.carrier.kill(slot.handle)
    go(run, lambda: slot.start_at is not None)
    assert slot.spec.incarnation == 7


def test_a_role_for_which_there_is_no_room_ends_the_run(start):
    run = start(start_timeout_s=3.0)
    run.roster.slots[0].handle.held = True
    with pytest.raises(TrainingError, match=r'learner0 was not there within 3 s .*parallel.resources.learner'):
        go(run, lambda: False)


def test_a_run_goes_on_without_an_actor_for_which_there_is_no_room_until_there_is(start, monkeypatch):
    monkeypatch.setattr(Evaluator, 'good_after', 10**6)
    run = start(start_timeout_s=3.0)
    slot = next(slot for slot in run.roster.slots if slot.name == 'actor1')
    slot.handle.held = True
    go(run, lambda: 'actor1 was not there within 3 s' in log_of(run), steps=20000)
    slot.handle.held = False
    go(run, lambda: slot.ready and slot.spec.incarnation == 0)
    monkeypatch.setattr(Evaluator, 'good_after', 40)
    go(run, lambda: False)
    assert run.coordinator.solved and log_of(run).count('goes on without it') < 3


def test_an_error_of_the_framework_in_a_role_is_the_error_of_the_run(start, monkeypatch):
    def breaks(self, *args):
        raise EnvError('env 3 does not come back')

    monkeypatch.setattr(Actor, 'collect', breaks)
    run = start()
    with pytest.raises(EnvError, match='env 3 does not come back') as ended:
        go(run, lambda: False)
    assert 'actor0 failed in collect: env 3 does not come back' in log_of(run)
    run.__exit__(ended.type, ended.value, None)
    assert 'the run ended with EnvError' in log_of(run)


def test_the_evaluation_that_decides_is_the_last_one(start, monkeypatch):
    run = start(evaluator_num=2)
    late = run.roster.slots[-2]
    go(run, lambda: late.task is not None)
    late.handle.held = True
    go(run, lambda: False)
    assert run.coordinator.solved and run.coordinator._evaluations
    monkeypatch.setattr(Evaluator, 'good_after', 10**6)
    late.handle.held = False
    result = run.finish()
    assert result.final_return == 200.0 and result.history[-1][2] == 200.0


def test_the_last_evaluation_waits_for_an_evaluator_that_is_being_built(start):
    run = start()
    evaluator = run.roster.slots[-1]
    evaluator.handle.held = True
    go(run, lambda: run.tally.train_iter >= 10)
    step, steps = run.coordinator.step, []

    def later(timeout_s):
        steps.append(timeout_s)
        evaluator.handle.held = len(steps) < 5
        step(timeout_s)

    run.coordinator.step = later
    run.final_evaluation()
    assert len(run.evaluator.history) == 1 and len(roles(Evaluator)) == 1


def test_nobody_is_waited_for_where_there_are_no_evaluators(start):
    run = start(evaluator_num=0)
    go(run, lambda: run.tally.train_iter >= 10)
    run.final_evaluation()
    assert run.evaluator.history == []


@pytest.mark.parametrize(
    'address', ['nonsense', 'ray://localhost:10001', 'localhost', 'localhost:0', 'localhost:70000']
)
def test_an_address_must_be_one(address):
    with pytest.raises(ConfigError, match='must be HOST:PORT'):
        check_address(address)


def test_an_address_at_which_nothing_answers_is_told_at_once():
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))  # and nobody listens
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f'nothing answers at 127.0.0.1:{port}.*ray start --head --port={port}'):
            check_address(f'127.0.0.1:{port}')
        taken.listen()
        check_address(f'127.0.0.1:{port}')


NODE = {'NodeID': 'a', 'Alive': True, 'NodeManagerAddress': '127.0.0.1', 'Resources': {'CPU': 4.0, 'fast': 1.0}}


def test_a_role_must_have_room_on_the_machine():
    check_room([NODE], 'actor3', dict(num_cpus=4, num_gpus=0, custom={'fast': 0.5}, hosts=['localhost']))
    for resources, said in (
        (dict(num_cpus=5), 'parallel.resources.actor.num_cpus: got 5, but this machine has 4'),
        (dict(num_gpus=0.5), 'num_gpus: got 0.5, but this machine has 0'),
        (dict(custom={'slow': 1}), 'custom.slow: got 1, but this machine has 0'),
        (dict(hosts=['nowhere']), 'hosts: got nowhere, but without --address'),
    ):
        with pytest.raises(ConfigError, match=said):
            check_room([NODE], 'actor3', resources)


CARTPOLE = ['-m', 'parallel', '-c', 'cartpole_dqn', '-o', 'parallel.carrier=inline']


@pytest.mark.parametrize(
    ('setting', 'said'),
    [
        ('parallel.actor_num=0', 'parallel.actor_num: got 0, must be an int >= 1'),
        ('parallel.actors=2', 'parallel.actors: unknown setting'),
        ('parallel.commander_type=niave', "unknown commander 'niave'; did you mean 'naive'"),
        ('parallel.comm_learner_type=flask', "unknown comm learner 'flask'"),
        ('parallel.import_names=[no_such_module]', "parallel.import_names: module 'no_such_module' cannot be imported"),
    ],
)
def test_a_wrong_setting_is_told_before_anything_is_made(tmp_path, monkeypatch, capsys, setting, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr('nervex.parallel.ray_cluster.require_ray', lambda: None)
    with pytest.raises(SystemExit) as ended:
        main([*CARTPOLE, '-o', setting])
    assert ended.value.code == 2 and said in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_names_of_roles_are_looked_up_before_the_folder_is_made(tmp_path):
    from nervex.parallel.tests.running import build_parallel

    with pytest.raises(UnknownNameError, match='unknown comm actor'):
        build_parallel('cartpole_dqn', 0, overrides=(f'exp_name={tmp_path}/x', 'parallel.comm_actor_type=zergling'))
    assert not list(tmp_path.iterdir())
