"""One suite over all kinds of env managers."""

import numpy as np
import pytest
import torch

from nervex.envs.tests.fakes import AsyncCounterEngine, CounterEngine
from nervex.utils.errors import ConfigError
from nervex.worker.actor.env_manager import AsyncVectorEnvManager, EnvState, EnvStateError, VectorEnvManager
from nervex.worker.actor.env_manager.tests.managers import (
    KINDS,
    build,
    check_counter_rows,
    drive,
    first,
    nothing_left_behind,
    whole_episodes,
)


def counters(n=4, **cfg):
    return [dict(tag=i, length=3 + i, **cfg) for i in range(n)]


def same(kind, n=4, **cfg):
    """Configs that also a vectorised env takes: all equal."""
    return [dict(tag=7, length=3, **cfg) for _ in range(n)] if kind.startswith('vector') else counters(n, **cfg)


def tag_length(kind, i):
    return (7, 3) if kind.startswith('vector') else (i, 3 + i)


@pytest.mark.parametrize('obs', ['vector', 'dict'])
@pytest.mark.parametrize('truncate', [False, True])
def test_every_transition_is_true(kind, obs, truncate):
    with nothing_left_behind(), build(kind, same(kind, obs=obs, truncate=truncate)) as manager:
        rows, dropped = drive(manager, 100000, until=whole_episodes(3))
        assert not any(dropped.values())
        for i in range(4):
            assert check_counter_rows(rows[i], *tag_length(kind, i), truncate) >= 3


def test_all_envs_wait_after_launch(kind):
    with build(kind, same(kind)) as manager:
        ids, obs = manager.observe()
        assert ids.tolist() == [0, 1, 2, 3] == manager.ready_env == manager.active_env
        assert first(obs).tolist() == [[tag_length(kind, i)[0], 1, 0, -1] for i in range(4)]
        assert not manager.done and manager.env_num == 4
        assert set(manager.env_states.values()) == {EnvState.RUN}


def test_mapping_form_answers_rows_of_tensors(kind):
    with build(kind, same(kind), wait_num=4, step_wait_timeout=10) as manager:
        ready = manager.ready_obs
        assert torch.equal(ready[2], torch.tensor([tag_length(kind, 2)[0], 1.0, 0.0, -1.0]))
        assert torch.equal(manager.next_obs.obs, ready.obs) and ready.env_id == [0, 1, 2, 3]
        timesteps = manager.step({3: torch.tensor(1), 0: 0, 1: np.int64(1), 2: np.array([0])})
        assert sorted(timesteps) == [0, 1, 2, 3]
        for k, i in enumerate(timesteps.env_id):
            row = timesteps[i]
            assert torch.equal(row.obs, torch.tensor([tag_length(kind, i)[0], 1.0, 1.0, [0.0, 1.0, 0.0, 1.0][i]]))
            assert row.reward.tolist() == [1.0] and row.reward.dtype == torch.float32
            assert row.done is False and row.info == {}
            assert torch.equal(timesteps.obs[k], row.obs) and torch.equal(timesteps.reward[k], row.reward)
        assert timesteps.done.shape == (4,) and len(timesteps.info) == 4


def test_step_takes_stacked_actions_of_the_ready_envs(kind):
    with build(kind, same(kind), wait_num=4, step_wait_timeout=10) as manager:
        timesteps = manager.step(torch.tensor([1, 0, 1, 0]))
        assert {i: int(t.obs[3]) for i, t in timesteps.items()} == {0: 1, 1: 0, 2: 1, 3: 0}
        with pytest.raises(ValueError, match='4 envs are ready, but 2'):
            manager.step(torch.tensor([1, 0]))


def test_what_a_caller_keeps_never_changes(kind):
    with build(kind, same(kind)) as manager:
        kept = [manager.ready_obs]
        copies = [kept[0].obs.clone()]
        for _ in range(8):
            timesteps = manager.step(dict.fromkeys(manager.ready_env, 1))
            kept += [timesteps, manager.ready_obs]
            copies += [timesteps.obs.clone(), kept[-1].obs.clone()]
        assert all(torch.equal(k.obs, c) for k, c in zip(kept, copies))
        timesteps.obs.fill_(-5)  # and nothing that a caller writes reaches the envs
        assert (first(manager.observe()[1]) != -5).all()


def test_blocks_stay_valid_through_the_next_advance(kind):
    with build(kind, same(kind)) as manager:
        history = []
        for _ in range(12):
            ids, obs = manager.observe()
            block = manager.advance(ids, np.zeros(len(ids), np.int64))
            history.append([(a, a.copy()) for a in (obs, block.obs, block.reward, block.done)])
            for arrays in history[-2:]:
                assert all((now == then).all() for now, then in arrays)


def test_final_observation_and_first_of_the_next_episode(kind):
    length = 3
    with build(kind, [dict(tag=7, length=length, truncate=True)] * 2) as manager:
        rows, _ = drive(manager, 100000, until=whole_episodes(2))
        ends = [r for r in rows[0] if r[4]]
        assert ends[0][3][:3] == [7, 1, 3] and ends[0][5] is True
        begin = rows[0][rows[0].index(ends[0]) + 1]
        assert begin[0] == [7, 2, 0, -1]


def test_info_at_the_end_of_an_episode(kind):
    with build(kind, same(kind), wait_num=4, step_wait_timeout=10) as manager:
        infos = []
        while len(infos) < 6:
            timesteps = manager.step(dict.fromkeys(manager.ready_env, 0))
            infos += [(i, t.info) for i, t in timesteps.items() if t.done]
            assert all(t.info == {} for t in timesteps.values() if not t.done)
        for i, info in infos:
            length = tag_length(kind, i)[1]
            assert info == {'final_eval_reward': length * (length + 1) / 2, 'truncated': False}


def test_episode_num_makes_envs_done(kind):
    with build(kind, same(kind), episode_num=2) as manager:
        rows, _ = drive(manager, 200)
        assert manager.done and manager.active_env == [] == manager.ready_env
        for i in range(4):
            tag, length = tag_length(kind, i)
            assert check_counter_rows(rows[i], tag, length) == 2 and len(rows[i]) == 2 * length
        with pytest.raises(EnvStateError, match='not ready'):
            manager.step({0: 1})
        manager.reset()
        assert not manager.done and manager.ready_env == [0, 1, 2, 3]
        again, _ = drive(manager, 200)
        assert all(check_counter_rows(again[i], *tag_length(kind, i)) == 2 for i in range(4)) and manager.done


@pytest.mark.parametrize(
    'actions,match',
    [({9: 0}, 'unknown env id 9'), ({'a': 0}, 'unknown env id'), ({True: 0}, 'unknown env id'), ({}, 'no action')],
)
def test_step_names_what_is_wrong_with_the_ids(kind, actions, match):
    with build(kind, same(kind)) as manager, pytest.raises(ValueError, match=match):
        manager.step(actions)


def test_manager_that_is_not_running_says_so(kind):
    manager = build(kind, same(kind), launch=False)
    for call in (lambda: manager.step({0: 1}), lambda: manager.ready_obs, manager.reset):
        with pytest.raises(EnvStateError, match=r'launch\(\)'):
            call()
    manager.launch()
    with pytest.raises(EnvStateError, match='running already'):
        manager.launch()
    manager.close()
    manager.close()
    assert manager.closed and set(manager.env_states.values()) == {EnvState.VOID}
    manager.launch()  # and again
    assert manager.ready_env == [0, 1, 2, 3]
    manager.close()


def test_attributes_and_methods_of_the_envs(kind):
    with build(kind, same(kind)) as manager:
        tags = [tag_length(kind, i)[0] for i in range(4)]
        assert manager.tag == tags and manager.get_tag(plus=2) == [t + 2 for t in tags]
        with pytest.raises(AttributeError, match='no_such_thing'):
            _ = manager.no_such_thing
        rows, _ = drive(manager, 100000, until=whole_episodes(1))
        assert all(rows.values())  # goes on after the questions


def test_env_info(kind):
    manager = build(kind, same(kind), launch=False)
    assert manager.env_info().act_space.shape == (2,)
    with manager:
        manager.launch()
        info = manager.env_info()
        assert info.obs_space.shape == (4,) and info.rew_space.shape == (1,) and info.agent_num == 1


def test_continuous_actions_reach_the_envs(kind):
    with build(kind, same(kind, act_dim=2), wait_num=4, step_wait_timeout=10) as manager:
        actions = np.array([[0.1, 1], [0.2, 1], [0.3, 1], [0.4, 1]], np.float32)
        block = manager.advance(manager.observe()[0], actions)
        assert block.obs[np.argsort(block.env_id), 3].tolist() == actions[:, 0].tolist()
        with pytest.raises(ValueError, match='do not fit'):
            manager.advance(manager.observe()[0], np.zeros((4, 3), np.float32))


def test_uint8_stays_uint8(kind):
    with build(kind, same(kind, obs='image')) as manager:
        ids, obs = manager.observe()
        assert obs.dtype == np.uint8 and obs.shape == (4, 8, 8)
        assert manager.step(dict.fromkeys(ids.tolist(), 1)).obs.dtype == torch.uint8


def test_reward_and_flags_have_their_types(kind):
    with build(kind, same(kind)) as manager:
        block = manager.advance(manager.observe()[0], np.zeros(4, np.int64))
        assert block.reward.dtype == np.float32 and block.reward.shape == (len(block),)
        assert block.done.dtype == block.truncated.dtype == bool and block.env_id.dtype == np.int64
        assert len(block.abnormal) == 0


@pytest.mark.parametrize('name', list(KINDS))
def test_one_env_alone(name):
    with build(name, same(name, n=1)) as manager:
        rows, _ = drive(manager, 20)
        assert check_counter_rows(rows[0], *tag_length(name, 0)) >= 4


def test_a_block_says_whether_it_is_whole(kind):
    with build(kind, same(kind), wait_num=4, step_wait_timeout=10) as manager:
        for _ in range(20):
            ids, _ = manager.observe()
            block = manager.advance(ids, np.zeros(len(ids), np.int64))
            assert block.whole == (block.env_id.tolist() == [0, 1, 2, 3])
            assert not block.rows(np.array([0])).whole


def test_after_actions_that_do_not_fit_the_envs_go_on(kind):
    with build(kind, same(kind, act_dim=2), wait_num=4, step_wait_timeout=10) as manager:
        for _ in range(2):
            with pytest.raises(ValueError, match='do not fit'):
                manager.advance(manager.observe()[0], np.zeros((4, 3), np.float32))
        block = manager.advance(manager.observe()[0], np.zeros((4, 2), np.float32))
        assert len(block) == 4 and (block.obs[:, 2] == 1).all()


def test_actions_go_to_all_ready_envs_and_the_first_to_answer_are_delivered():
    with build('vector_async', same('vector_async')) as manager:
        assert manager.asynchronous and not manager.partial_steps
        with pytest.raises(EnvStateError, match='a vectorised env steps all ready envs together'):
            manager.advance(np.array([0]), np.array([1]))
        ids, _ = manager.observe()
        assert ids.tolist() == [0, 1, 2, 3]
        block = manager.advance(ids, np.ones(4, np.int64))
        assert len(block) == 2 and manager.observe()[0].tolist() == sorted(block.env_id.tolist())
        ids, _ = manager.observe()
        manager.advance(ids, np.zeros(2, np.int64))
        manager.reset()  # whatever is under way is dropped
        ids, obs = manager.observe()
        assert ids.tolist() == [0, 1, 2, 3] and first(obs)[:, 2].tolist() == [0.0] * 4


@pytest.mark.parametrize('length', [1, 2, 5])
@pytest.mark.parametrize('size', [1, 2, 3, 6])
def test_no_row_is_lost_or_made_whoever_is_first(size, length):
    with AsyncVectorEnvManager(
        lambda cfgs: AsyncCounterEngine(cfgs, size), [dict(tag=7, length=length)] * 6
    ) as manager:
        manager.launch()
        rows, dropped = drive(manager, 100000, until=whole_episodes(20))
        assert not any(dropped.values())
        for i in range(6):
            assert check_counter_rows(rows[i], 7, length) >= 20
    manager = AsyncVectorEnvManager(lambda cfgs: AsyncCounterEngine(cfgs, size), [dict(tag=7, length=length)] * 6, 6, 3)
    with manager:  # done, env by env
        manager.launch()
        rows, _ = drive(manager, 100000)
        assert manager.done and [check_counter_rows(rows[i], 7, length) for i in range(6)] == [3] * 6


def test_infos_of_the_first_to_answer_are_those_of_their_envs():
    class Told(AsyncCounterEngine):
        def recv(self):
            ids, answer = super().recv()
            return ids, answer._replace(infos={'whose': ids.copy()})

    with AsyncVectorEnvManager(lambda cfgs: Told(cfgs, 3), same('vector_async', 6)) as manager:
        manager.launch()
        for _ in range(20):
            ids, _ = manager.observe()
            block = manager.advance(ids, np.zeros(len(ids), np.int64))
            assert {k: info['whose'] for k, info in block.infos.items()} == dict(enumerate(block.env_id.tolist()))


def test_an_engine_that_is_not_asynchronous_is_refused():
    with pytest.raises(ConfigError, match="got 'async_vector', but CounterEngine steps all its envs at once"):
        AsyncVectorEnvManager(CounterEngine, same('vector_async')).launch()
    with pytest.raises(ConfigError, match='got 2, but with env_manager_type vector all 4 envs step together'):
        VectorEnvManager(lambda cfgs: AsyncCounterEngine(cfgs, 2), same('vector_async')).launch()
