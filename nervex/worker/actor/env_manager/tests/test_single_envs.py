"""What managers do that have each env on its own: parts of them step, parameters differ, seeds are sent."""

import contextlib
import os
import time

import gymnasium
import numpy as np
import pytest
import torch

from nervex.envs import BaseEnvInfo, GymEnv
from nervex.envs.tests.fakes import CounterEnv, box
from nervex.worker.actor.env_manager import (
    AsyncSubprocessEnvManager,
    EnvState,
    EnvStateError,
    SyncSubprocessEnvManager,
    create_env_manager,
)
from nervex.worker.actor.env_manager.tests.managers import (
    build,
    check_counter_rows,
    drive,
    nothing_left_behind,
    whole_episodes,
)

ALL = dict(wait_num=4, step_wait_timeout=10)  # makes async managers wait for all that were asked


def counters(n=4, **cfg):
    return [dict(tag=i, length=3 + i, **cfg) for i in range(n)]


def test_part_of_the_envs_step(single_kind):
    with build(single_kind, counters(), **ALL) as manager:
        timesteps = manager.step({3: 1, 1: 0})
        assert sorted(timesteps) == [1, 3]
        assert timesteps[3].obs.tolist() == [3, 1, 1, 1] and timesteps[1].obs.tolist() == [1, 1, 1, 0]
        ready = manager.ready_obs
        assert ready[0].tolist() == [0, 1, 0, -1] and ready[2].tolist() == [2, 1, 0, -1]
        assert ready[1].tolist() == [1, 1, 1, 0]
        manager.step({0: 1})
        timesteps = manager.step(dict.fromkeys(range(4), 1))
        assert {i: int(t.obs[2]) for i, t in timesteps.items()} == {0: 2, 1: 2, 2: 1, 3: 2}


def test_partial_steps_in_any_order_are_true(single_kind):
    rng = np.random.default_rng(3)
    with build(single_kind, counters(obs='dict')) as manager:
        last = {i: v['vector'].tolist() for i, v in manager.ready_obs.items()}
        for _ in range(40):
            ready = manager.ready_obs
            for i in ready:
                last[i] = ready[i]['vector'].tolist()
            chosen = rng.choice(list(ready), rng.integers(1, len(ready) + 1), replace=False).tolist()
            timesteps = manager.step(dict.fromkeys(chosen, 1))
            for i, t in timesteps.items():
                assert t.obs['vector'].tolist() == [i, last[i][1], last[i][2] + 1, 1]
                assert t.obs['image'].unique().tolist() == [t.reward.item()]
                assert t.done == (last[i][2] + 1 == 3 + i)


@pytest.mark.parametrize('name', ['base', 'sync', 'sync_hybrid', 'async', 'thread'])
def test_two_actions_for_one_env_are_refused(name):
    with build(name, counters()) as manager, pytest.raises(EnvStateError, match='two actions'):
        manager.advance(np.array([1, 1]), np.array([0, 1]))


def test_reset_param_reaches_the_env_now_and_later(single_kind):
    cfgs = [dict(tag=i, length=2) for i in range(3)]
    with build(single_kind, cfgs, launch=False, **ALL) as manager:
        manager.launch({1: {'level': 5}})
        drive(manager, 3)
        manager.reset({0: {'level': 7}})
        seen = manager.resets_seen
        assert seen[0][0] == {} and seen[0][-1] == {'level': 7}
        assert set(map(str, seen[1])) == {"{'level': 5}"} and len(seen[1]) >= 2
        assert set(map(str, seen[2])) == {'{}'}
        with pytest.raises(ValueError, match='reset_param'):
            manager.reset([{}])
        with pytest.raises(EnvStateError, match='unknown env id 8'):
            manager.reset({8: {}})


def test_reset_of_some_leaves_the_others_alone(single_kind):
    with build(single_kind, [dict(tag=i, length=9) for i in range(4)], **ALL) as manager:
        manager.step(dict.fromkeys(range(4), 1))
        manager.reset({2: None})
        assert manager.ready_obs.obs.tolist() == [[0, 1, 1, 1], [1, 1, 1, 1], [2, 2, 0, -1], [3, 1, 1, 1]]
        block = manager.advance(manager.all_ids, np.zeros(4, np.int64))
        assert block.obs[np.argsort(block.env_id), 2].tolist() == [2, 2, 1, 2]


def test_without_auto_reset_a_finished_env_waits_for_reset(single_kind):
    with build(single_kind, [dict(tag=0, length=1), dict(tag=1, length=5)], auto_reset=False, **ALL) as manager:
        assert manager.step({0: 1, 1: 1})[0].done
        assert manager.ready_env == [1] and manager.env_states[0] is EnvState.RESET
        with pytest.raises(EnvStateError, match='env 0'):
            manager.step({0: 1})
        manager.step({1: 1})
        manager.reset({0: {}})
        assert manager.ready_env == [0, 1] and manager.ready_obs[0].tolist() == [0, 2, 0, -1]
        assert manager.ready_obs[1].tolist() == [1, 1, 2, 1]


def draws(manager, episodes=3):
    """The random number that each env draws for each of its episodes."""
    found = [manager.draw]
    for _ in range(episodes - 1):
        manager.reset()
        found.append(manager.draw)
    return np.array(found)


@pytest.mark.parametrize('before_launch', [True, False])
def test_int_list_and_dict_seeds(single_kind, before_launch):
    def run(seed, dynamic):
        with build(single_kind, counters(3), launch=False) as manager:
            if before_launch:
                manager.seed(seed, dynamic_seed=dynamic)
                manager.launch()
            else:
                manager.launch()
                manager.seed(seed, dynamic_seed=dynamic)
                manager.reset()
            return draws(manager)

    expected = np.array([np.random.default_rng(s).random(3) for s in (5, 6, 7)]).T
    assert (run(5, True) == expected).all()  # s + i, and each episode differs
    assert (run([5, 6, 7], True) == expected).all()
    assert (run({0: 5, 1: 6, 2: 7}, True) == expected).all()
    assert (run(5, False) == expected[[0, 0, 0]]).all()  # fixed: all episodes alike


@pytest.mark.parametrize(
    'seed,error',
    [('abc', TypeError), (True, TypeError), ([1, 2], ValueError), (1.5, TypeError), ({9: 1}, EnvStateError)],
)
def test_bad_seeds_are_refused(seed, error):
    with pytest.raises(error, match=r'seed|env id'):
        build('base', counters(3), launch=False).seed(seed)


def test_unseeded_envs_differ_between_workers():
    class Global(CounterEnv):
        def reset(self, **kwargs):
            obs = super().reset(**kwargs)
            self.draw = float(np.random.random())
            return obs

    with build('sync', counters(3), env=Global) as manager:
        assert len(set(manager.draw)) == 3  # forked processes do not share one global stream


def test_infos_of_every_step(single_kind):
    with build(single_kind, counters(step_info=True), **ALL) as manager:
        assert [t.info for t in manager.step(dict.fromkeys(range(4), 1)).values()] == [{'step': 1}] * 4
        for _ in range(2):
            timesteps = manager.step({0: 0})
        assert timesteps[0].info == {'step': 3, 'final_eval_reward': 6.0, 'truncated': False}


def test_objects_in_observations(single_kind):
    with build(single_kind, counters(obs='object')) as manager:
        rows, _ = drive(manager, 10000, until=whole_episodes(1))
        assert all(check_counter_rows(rows[i], i, 3 + i) for i in range(4))
        timesteps = manager.step(dict.fromkeys(manager.ready_obs, 1))  # waits until one is ready
        assert all(len(t.obs['units']) == t.obs['vector'][2] for t in timesteps.values())


class Untold(CounterEnv):
    """Says nothing about its actions, which are dicts."""

    def step(self, action):
        return super().step(action['move'])

    def info(self):
        return BaseEnvInfo(1, box((4,)), None, box((1,)))


def test_actions_of_any_kind_travel(single_kind):
    with build(single_kind, counters(), env=Untold, **ALL) as manager:
        timesteps = manager.step({i: {'move': i % 2, 'fire': [1.0, 2.0]} for i in range(4)})
        assert {i: int(t.obs[3]) for i, t in timesteps.items()} == {0: 0, 1: 1, 2: 0, 3: 1}
        timesteps = manager.step({2: {'move': 1, 'fire': [1.0, 2.0]}})
        assert timesteps[2].obs.tolist() == [2, 1, 2, 1]


class VectorReward(CounterEnv):
    """Two rewards a step."""

    def step(self, action):
        t = super().step(action)
        return t._replace(reward=np.array([self.steps, -1.0], np.float32))

    def info(self):
        return super().info()._replace(rew_space=box((2,)))


def test_vector_rewards(single_kind):
    with build(single_kind, counters(2), env=VectorReward, **ALL) as manager:
        for _ in range(3):
            ids, _ = manager.observe()
            block = manager.advance(ids, np.zeros(len(ids), np.int64))
        assert block.reward.shape == (2, 2) and block.reward[:, 1].tolist() == [-1, -1]
        k = block.env_id.tolist().index(0)
        assert block.done[k] and block.episode_return[k] == (1 + 2 + 3) - 3
        assert manager.step({1: 0})[1].reward.tolist() == [4.0, -1.0]


@pytest.mark.parametrize('context', ['fork', 'forkserver', 'spawn'])
@pytest.mark.parametrize('cls', [SyncSubprocessEnvManager, AsyncSubprocessEnvManager])
def test_start_methods(context, cls):
    cfgs = counters(2)
    # a fork server stays, by design, until this process ends
    left = nothing_left_behind() if context == 'fork' else contextlib.nullcontext()
    with left, cls(CounterEnv, cfgs, 2, manager_cfg=dict(context=context)) as manager:
        manager.launch()
        rows, _ = drive(manager, 10000, until=whole_episodes(1))
        assert all(check_counter_rows(rows[i], i, 3 + i) for i in range(2))


@pytest.mark.slow
@pytest.mark.parametrize('context', ['forkserver', 'spawn'])
def test_functions_made_on_the_spot_reach_other_processes(context):
    with SyncSubprocessEnvManager(lambda cfg: CounterEnv(cfg), counters(1), 1, manager_cfg=dict(context=context)) as m:
        m.launch()
        assert m.tag == [0]


def test_same_numbers_in_base_and_sync():
    def run(name, **cfg):
        with build(name, counters(), launch=False, **cfg) as manager:
            manager.seed(3)
            manager.launch()
            rows = []
            for t in range(25):
                ids, obs = manager.observe()
                block = manager.advance(ids, (ids + t) % 2)
                rows += [obs.copy(), block.obs.copy(), block.reward.copy(), block.done.copy()]
            return rows, manager.draw

    reference = run('base')
    for name in ('sync', 'sync_grouped', 'sync_hybrid', 'sync_pipe'):
        rows, draw = run(name)
        assert draw == reference[1] and all((a == b).all() for a, b in zip(rows, reference[0]))


def test_create_env_manager_by_name_and_class():
    manager = create_env_manager('aynsc_subprocess', CounterEnv, counters(2), dict(wait_num=1))
    assert type(manager) is AsyncSubprocessEnvManager and manager.env_num == 2 and manager.closed
    assert type(create_env_manager('subprocess', CounterEnv, counters(2))) is SyncSubprocessEnvManager
    assert type(create_env_manager(AsyncSubprocessEnvManager, CounterEnv, counters(2))) is AsyncSubprocessEnvManager
    with pytest.raises(KeyError, match="did you mean 'async_subprocess'"):
        create_env_manager('asinc_subprocess', CounterEnv, counters(2))
    with pytest.raises(ValueError, match="did you mean 'step_timeout'"):
        create_env_manager('base', CounterEnv, counters(2), dict(step_timout=3))


@pytest.mark.parametrize(
    'kwargs,match',
    [
        (dict(env_cfg={}), 'list'),
        (dict(env_cfg=[]), 'list'),
        (dict(env_cfg=[{}], env_num=2), 'env_num is 2'),
        (dict(env_cfg=[{}], env_fn=3), 'env_fn'),
        (dict(env_cfg=[{}], episode_num=0), 'episode_num'),
        (dict(env_cfg=[{}], manager_cfg=dict(retry_type='again')), 'retry_type'),
    ],
)
def test_bad_arguments_are_named(kwargs, match):
    with pytest.raises((TypeError, ValueError), match=match):
        AsyncSubprocessEnvManager(**{'env_fn': CounterEnv, **kwargs})


def test_episode_num_may_be_the_word_inf():
    assert build('base', counters(1), episode_num='inf')._cfg['episode_num'] == float('inf')


class GatedEnv(CounterEnv):
    """Its steps wait until the file ``gate`` is there."""

    config = dict(gate=None)

    def step(self, action):
        while self._cfg.gate is not None and not os.path.exists(self._cfg.gate):
            time.sleep(0.001)
        return super().step(action)


def test_step_answers_while_the_slow_env_still_steps(tmp_path):
    gate = tmp_path / 'gate'
    cfgs = [dict(tag=0, length=9, gate=str(gate)), dict(tag=1, length=9), dict(tag=2, length=9)]
    with build('async', cfgs, env=GatedEnv, wait_num=2, step_wait_timeout=60) as manager:
        timesteps = manager.step({0: 1, 1: 1, 2: 1})
        assert sorted(timesteps) == [1, 2] and manager.ready_env == [1, 2]
        with pytest.raises(EnvStateError, match='env 0'):
            manager.step({0: 1})
        for steps in range(2, 5):
            assert sorted(manager.step({1: 1, 2: 1})) == [1, 2] and manager.ready_obs[1][2] == steps
        gate.touch()
        while 0 not in timesteps:  # ready_obs waits for the episodes that begin in the background
            timesteps = manager.step(dict.fromkeys(manager.ready_obs, 1))
        assert timesteps[0].obs.tolist() == [0, 1, 1, 1]


def test_wait_timeout_answers_with_what_is_there(tmp_path):
    cfgs = [dict(tag=0, length=9, gate=str(tmp_path / 'gate')), dict(tag=1, length=9)]
    with build('async', cfgs, env=GatedEnv, wait_num=2, step_wait_timeout=0.02) as manager:
        assert list(manager.step({0: 1, 1: 1})) == [1]
        (tmp_path / 'gate').touch()


def test_ready_obs_holds_tensors_of_each_dtype():
    with build('base', [dict(obs='dict')]) as manager:
        obs = manager.ready_obs[0]
        assert obs['vector'].dtype == torch.float32 and obs['image'].dtype == torch.uint8
        assert manager.ready_obs.obs['image'].shape == (1, 2, 3)


@pytest.mark.parametrize('name', ['async', 'thread'])
def test_waiting_for_others_while_a_ready_env_is_left_out(name):
    with build(name, [dict(tag=0, length=1), dict(tag=1, length=9)], wait_num=2, step_wait_timeout=10) as manager:
        manager.step({0: 1, 1: 1})  # env 0 begins a new episode now
        no = np.zeros(0, np.int64)
        while 0 not in manager.observe()[0]:
            assert len(manager.advance(no, no)) == 0  # sleeps until it has
        assert manager.ready_obs[0].tolist() == [0, 2, 0, -1] and manager.ready_obs[1].tolist() == [1, 1, 1, 1]
        with pytest.raises(EnvStateError, match='no env was given an action'):
            manager.advance(no, no)


@pytest.mark.parametrize('rows', [1, 2, 4])
def test_a_step_of_all_envs_needs_an_action_for_each(single_kind, rows):
    with (
        build(single_kind, [dict(tag=i, length=9) for i in range(3)]) as manager,
        pytest.raises(ValueError, match=f'3 ids, but {rows} actions'),
    ):
        manager.advance(manager.observe()[0], np.zeros(rows, np.int64))


class OneForEver(gymnasium.Env):
    """Goes on until it is stopped."""

    observation_space, action_space = gymnasium.spaces.Box(0, 1, (2,), np.float32), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.ones(2, np.float32), 1.0, False, False, {'said': True} if action else {}


@pytest.mark.parametrize('kind', ['base', 'sync', 'sync_grouped', 'sync_hybrid'])
def test_time_limit_counts_the_steps_of_each_env_alone(kind):
    cfgs = [dict(env_fn=OneForEver, max_episode_steps=3 + i) for i in range(3)]
    lengths = {0: [], 1: [], 2: []}
    with build(kind, cfgs, env=GymEnv) as manager:
        for chosen in ([0, 1, 2], [1], [1, 2], [0, 1], [0, 1, 2], [0], [0, 2], [0, 1, 2], [2], [1]):
            block = manager.advance(np.array(chosen), np.array([i == 1 for i in chosen], np.int64))
            assert sorted(block.env_id.tolist()) == chosen and (block.done == block.truncated).all()
            for k, i in enumerate(block.env_id.tolist()):
                if block.done[k]:
                    lengths[i].append(int(block.episode_length[k]))
                    assert block.info[k].get('said', False) == (i == 1)
                    assert block.episode_return[k] == block.episode_length[k] == 3 + i
    assert lengths == {0: [3, 3], 1: [4], 2: [5]}


def test_the_last_worker_alone_wakes_the_main_process():
    with build('sync', [dict(length=9, sleep_s=0.1 + 0.05 * i) for i in range(3)]) as manager:
        backend, control = manager._live.backend, manager._live.backend.control
        while backend._ready.poll(0.05):  # what was told before
            os.read(backend._ready_fd, 4096)
        for g in range(3):
            backend.step(g, 1, [g], np.zeros(1, np.int64))
        while any(control.done[g] != control.asked[g] for g in range(3)):
            time.sleep(0.01)
        assert backend._ready.poll(5) and len(os.read(backend._ready_fd, 4096)) == 2  # two bytes a worker


class SlowResets(CounterEnv):
    """Takes ``reset_s`` seconds to begin an episode."""

    def reset(self, **kwargs):
        time.sleep(self._cfg.reset_s)
        return super().reset(**kwargs)


def test_what_came_while_an_episode_began_is_answered_to_a_step_of_no_env():
    cfgs = [dict(length=1, reset_s=0.3), dict(length=9, reset_s=0.0, sleep_s=0.1)]
    with build('async', cfgs, env=SlowResets, wait_num=1) as manager:
        assert manager.advance(manager.observe()[0], np.zeros(2, np.int64)).env_id.tolist() == [0]
        assert manager.observe()[0].tolist() == [0]  # env 1 has stepped meanwhile
        assert manager.advance(np.zeros(0, np.int64), np.zeros(0, np.int64)).env_id.tolist() == [1]
