"""Backends: one made outside of nervex, and faults that no backend may let end the run."""

import random

import numpy as np
import pytest

from nervex.envs.hosting.block import BlockStore
from nervex.envs.tests.fakes import CounterEngine, CounterEnv, FaultyEnv
from nervex.utils import EnvError
from nervex.utils.registry_factory import ENV_MANAGER_REGISTRY
from nervex.worker.actor.env_manager import Backend, EnvManager, WorkerLost, create_env_manager
from nervex.worker.actor.env_manager.tests.managers import (
    build,
    check_counter_rows,
    drive,
    whole_episodes,
)


class Shuffled(Backend):
    """One group an env; jobs are done in any order, and now and then a group is lost."""

    def __init__(self, env_num, cfg, together):
        super().__init__(env_num, cfg, together)
        self.groups = [range(i, i + 1) for i in range(env_num)]
        self.hosts, self.todo, self.lost, self._chance = {}, [], 0, random.Random(0)

    def launch(self, g, setup):
        self.hosts[g] = setup.host()
        self.todo.append((g, self.hosts[g].make, ()))

    def share(self, layout, reward_size, action_rows):
        self.store, self.rows = BlockStore(layout, len(self.groups), reward_size), action_rows
        return self.store

    def attach(self, g):
        self.hosts[g].attach(self.store, g, self.rows)

    def step(self, g, slot, ids, actions):
        self.todo.append((g, self.hosts[g].step, (slot, actions)))

    def ask(self, g, name, args):
        self.todo.append((g, self.hosts[g].obey, (name, args)))

    def wait(self, timeout):
        if not self.todo:
            return []
        g, function, args = self.todo.pop(self._chance.randrange(len(self.todo)))
        if len(args) == 2 and isinstance(args[0], int) and self._chance.random() < 0.02:
            self.lost += 1
            return [(g, WorkerLost('crash', 'the toy broke'))]
        return [(g, function(*args))]

    def close(self):
        return [fault for host in self.hosts.values() for fault in host.close()]


@ENV_MANAGER_REGISTRY.register('toy_together')
class ToyManager(EnvManager):
    backend = Shuffled


@ENV_MANAGER_REGISTRY.register('toy_apart')
class ToyApart(EnvManager):
    backend = Shuffled
    together = False


@pytest.mark.parametrize('name', ['toy_together', 'toy_apart'])
def test_a_backend_from_outside_makes_a_manager(name):
    cfg = dict(max_retry=5, retry_waiting_time=0.001)
    with create_env_manager(name, CounterEnv, [dict(tag=i, length=4 + i) for i in range(3)], cfg) as manager:
        manager.launch()
        rows, dropped = drive(manager, 10000, until=whole_episodes(30))
        assert all(check_counter_rows(rows[i], i, 4 + i, renewed=True) >= 30 for i in range(3))
        lost = manager._live.backend.lost
        assert lost > 3 and sum(dropped.values()) == lost == manager.faults.counts['crash']
        assert manager.tag == [0, 1, 2]


def test_an_env_that_ends_the_process_is_a_fault_like_any_other(single_kind, tmp_path):
    cfgs = [dict(tag=i, length=5) for i in range(3)]
    cfgs[1].update(fault='system_exit', once_file=str(tmp_path / 'once'), episodes=[2])
    with build(single_kind, cfgs, env=FaultyEnv) as manager:
        rows, dropped = drive(manager, 10000, until=whole_episodes(4))
        assert all(check_counter_rows(rows[i], i, 5, renewed=True) >= 4 for i in range(3))
        assert dict(manager.faults.counts) == {'crash': 1} and dropped == {0: 0, 1: 1, 2: 0}
        assert 'SystemExit' in manager.faults.recent[0].text


class Unreliable(CounterEngine):
    """Goes wrong in every ``every``-th step of all engines together."""

    steps, error = 0, RuntimeError('the engine broke')

    def exchange(self, actions):
        Unreliable.steps += 1
        if Unreliable.steps % 20 == 0:
            raise self.error
        return super().exchange(actions)


class Quitting(Unreliable):
    error = SystemExit(0)


@pytest.mark.parametrize('engine, kind', [(Unreliable, 'error'), (Quitting, 'crash')])
def test_seldom_faults_of_a_vectorised_env_do_not_end_the_run(engine, kind):
    """Between two faults are 19 good steps, and episodes are longer: no step ends one; every other restart may."""
    manager = create_env_manager('vector', engine, [dict(tag=7, length=15)] * 3, dict(retry_waiting_time=0.001))
    with manager:
        manager.launch()
        rows, dropped = drive(manager, 300)
        assert manager.faults.counts == {kind: sum(dropped.values()) // 3} and manager.faults.total >= 10
        assert all(check_counter_rows(rows[i], 7, 15, renewed=True) >= 5 for i in range(3))


def test_a_good_step_between_two_faults_of_a_vectorised_env_is_enough():
    """No episode ends here: it took an ending step to count as good."""
    manager = create_env_manager('vector', Unreliable, [dict(tag=7, length=10**6)] * 2, dict(retry_waiting_time=0.001))
    with manager:
        manager.launch()
        for _ in range(400):
            ids, _ = manager.observe()
            manager.advance(ids, np.zeros(len(ids), np.int64))
        assert 15 <= manager.faults.total <= 25


@pytest.mark.parametrize('reward', [np.inf, -np.inf, np.nan, 1e300])
def test_a_vectorised_env_that_gives_infinity_is_named_with_the_step(reward):
    class Infinite(CounterEngine):
        def exchange(self, actions):
            answer = super().exchange(actions)
            rewards = answer.reward.astype(np.float64)
            rewards[1] = reward if self.envs[1].steps == 3 else rewards[1]
            return answer._replace(reward=rewards)

    manager = create_env_manager('vector', Infinite, [dict(tag=7)] * 3, dict(max_retry=0))
    with manager:
        manager.launch()
        value = 'nan' if reward != reward else '-inf' if reward < 0 else 'inf'
        with pytest.raises(EnvError, match=f'reward of env 1 at step 3 of the episode has {value} in it'):
            drive(manager, 10)
