"""Scaling by running statistics: their numbers, who updates them, and how they travel."""

import json

import numpy as np
import pytest

from nervex.envs.tests.fakes import CounterEnv
from nervex.rl_utils.normalize import Normalizer, RunningStatistics
from nervex.worker.actor.env_manager import StepBlock, create_env_manager


def make(kind='base', n=2, **cfg):
    cfgs = [dict(tag=i, length=3 + i) for i in range(n)]
    manager = create_env_manager(kind, CounterEnv, cfgs, dict(norm_obs=True, **cfg))
    manager.launch()
    return manager


def test_statistics_equal_those_of_all_rows():
    rows = np.random.default_rng(0).normal(3, 2, (57, 4))
    stats = RunningStatistics((4,))
    for part in np.split(rows, [1, 4, 30]):
        stats.update(part)
    stats.update(rows[:0])
    assert stats.mean == pytest.approx(rows.mean(0)) and stats.var == pytest.approx(rows.var(0)) and stats.count == 57


@pytest.mark.parametrize('kind', ['base', 'sync_subprocess', 'async_subprocess'])
def test_each_observation_is_counted_once(kind):
    """Per env: the first of each episode, and one for every step."""
    with make(kind) as manager:
        steps = resets = 0
        for _ in range(20):
            ids, _ = manager.observe()
            block = manager.advance(ids, np.zeros(len(ids), np.int64))
            steps += len(block)
            resets += int(block.done.sum())
        counted = manager.normalizer._stats[0].count
        manager.observe()
        assert 2 + steps <= counted <= 2 + steps + resets <= manager.normalizer._stats[0].count + 2


def test_numbers_by_hand():
    """First observations [i, 1, 0, -1]: mean of the first column 0.5, variance 0.25, so -1 and 1."""
    with make() as manager:
        ids, obs = manager.observe()
        assert ids.tolist() == [0, 1]
        assert obs[:, 0] == pytest.approx([-1.0, 1.0], abs=1e-6) and (obs[:, 1:] == 0).all() and obs.dtype == np.float32
        assert manager.observe()[1] is obs  # asked twice, counted once
        block = manager.advance(ids, np.array([1, 1]))
        assert block.obs[:, 2] == pytest.approx([1.0, 1.0], abs=1e-6)  # steps 0, 0, 1, 1: (1 - 0.5) / 0.5
        assert (manager.observe()[1] == block.obs).all()


def test_rewards_are_divided_by_the_spread_of_the_discounted_return():
    with make(norm_reward=True, norm_discount=0.5, n=1) as manager:
        rewards = [float(manager.advance(manager.observe()[0], np.array([0])).reward[0]) for _ in range(3)]
        returns = [1.0, 2.5, 4.25]  # 1; 0.5 + 2; 1.25 + 3
        spread = [np.std(returns[: k + 1]) for k in range(3)]
        expected = [min(r / max(s, 1e-4), 10.0) for r, s in zip([1.0, 2.0, 3.0], spread)]
        assert rewards == pytest.approx(expected, rel=1e-4)
        block = manager.advance(manager.observe()[0], np.array([0]))
        assert block.reward[0] == pytest.approx(1 / np.std([*returns, 1.0]), rel=1e-4)  # a new episode begins with 0


def test_returns_of_episodes_stay_true():
    with make(norm_reward=True) as manager:
        for _ in range(3):
            timesteps = manager.step({0: 1, 1: 1})
        assert timesteps[0].info['final_eval_reward'] == 6.0 and timesteps[0].done


def test_evaluator_follows_and_takes_nothing_in():
    with make() as actor, make(norm_reward=True) as evaluator:
        evaluator.normalizer.follow(actor.normalizer)
        for _ in range(7):
            actor.advance(actor.observe()[0], np.zeros(2, np.int64))
        before = actor.normalizer.state_dict()
        _, obs = evaluator.observe()
        raw = evaluator.raw_observed[1]
        stats = actor.normalizer._stats[0]
        assert obs == pytest.approx((raw - stats.mean) / np.sqrt(stats.var + 1e-8), abs=1e-5)
        block = evaluator.advance(evaluator.all_ids, np.zeros(2, np.int64))
        assert block.reward.tolist() == [1.0, 1.0] and actor.normalizer.state_dict() == before


def test_statistics_travel_in_a_checkpoint():
    with make() as manager, make() as other:
        for _ in range(5):
            manager.advance(manager.observe()[0], np.zeros(2, np.int64))
        state = json.loads(json.dumps(manager.normalizer.state_dict()))  # plain numbers
        other.normalizer.load_state_dict(state)
        other.normalizer.freeze()
        _, obs = other.observe()
        raw = other.raw_observed[1]
        stats = manager.normalizer._stats[0]
        assert obs == pytest.approx((raw - stats.mean) / np.sqrt(stats.var + 1e-8), abs=1e-5)
        assert other.normalizer.state_dict()['obs'][0]['mean'] == state['obs'][0]['mean']


def test_statistics_of_another_shape_are_refused():
    one, two = Normalizer(), Normalizer()
    one.observe(np.zeros((2, 3), np.float32))
    two.observe(np.zeros((2, 4), np.float32))
    with pytest.raises(ValueError, match=r'shape \(4,\) do not fit'):
        one.load_state_dict(two.state_dict())


def test_pixels_stay_pixels():
    cfgs = [dict(tag=i, obs='dict') for i in range(2)]
    with create_env_manager('base', CounterEnv, cfgs, dict(norm_obs=True)) as manager:
        manager.launch()
        block = manager.advance(manager.observe()[0], np.zeros(2, np.int64))
        assert block.obs['image'].dtype == np.uint8 and (block.obs['image'] == 1).all()


def test_everything_else_is_as_without_scaling():
    manager = make()
    assert manager.normalizer is not None
    with manager:
        assert manager.env_num == 2 and manager.tag == [0, 1] and manager.ready_env == [0, 1]
        assert manager.ready_obs[0].shape == (4,)
        manager.reset()
        assert manager.observe()[1].shape == (2, 4)
    assert manager.closed and create_env_manager('base', CounterEnv, [{}]).normalizer is None


def test_state_of_a_run():
    def run(manager, steps):
        return [manager.advance(manager.observe()[0], np.ones(2, np.int64)).obs.copy() for _ in range(steps)]

    with make(norm_reward=True) as manager, make(norm_reward=True) as other:
        run(manager, 5)
        other.load_state_dict(manager.state_dict())
        assert all((a == b).all() for a, b in zip(run(manager, 6), run(other, 6)))


def test_what_several_saw_is_joined_and_comes_back_to_each_of_them():
    rows = np.random.default_rng(0).normal(3, 2, (40, 4)).astype(np.float32)
    known, halves = Normalizer(), [Normalizer(), Normalizer()]
    assert [one.share() for one in halves] == [None, None]
    for part in (slice(0, 10), slice(10, 20)):
        for one, mine in zip(halves, (rows[:20], rows[20:])):
            one.observe(mine[part])
            known.learn(one.share())
            one.adopt(known.state_dict())
    assert known._stats[0].count == 40 and known._stats[0].mean == pytest.approx(rows.mean(0), rel=1e-5)
    assert known._stats[0].var == pytest.approx(rows.var(0), rel=1e-5)
    fresh = Normalizer()
    fresh.adopt(known.state_dict())
    assert fresh.observe(rows, count=False) == pytest.approx(halves[1].observe(rows, count=False))
    assert fresh.share() is None and fresh.share()['obs'] is None, 'what was adopted is no news'


def test_one_that_knows_less_is_not_adopted():
    more, less = Normalizer(), Normalizer()
    more.observe(np.ones((5, 2), np.float32))
    less.observe(np.zeros((3, 2), np.float32))
    more.adopt(less.state_dict())
    more.adopt(Normalizer().state_dict())
    assert more._stats[0].count == 5 and more._stats[0].mean == pytest.approx(1.0)


def test_statistics_that_were_loaded_are_saved_again_before_anything_was_seen():
    seen, loaded = Normalizer(), Normalizer()
    seen.observe(np.ones((5, 2), np.float32))
    loaded.load_state_dict(seen.state_dict())
    assert loaded.state_dict() == seen.state_dict()
    with pytest.raises(ValueError, match='do not fit'):
        loaded.observe(np.ones((5, 3), np.float32))


def test_an_action_mask_is_not_scaled():
    normalizer = Normalizer()
    mask = np.array([[1.0, 0.0], [1.0, 1.0]], np.float32)
    block = {'observation': np.array([[1.0], [3.0]], np.float32), 'action_mask': mask}
    for _ in range(3):
        scaled = normalizer.observe(block)
    assert np.array_equal(scaled['action_mask'], block['action_mask'])
    assert scaled['observation'].ravel() == pytest.approx([-1.0, 1.0], abs=1e-4)
    again = Normalizer()
    again.load_state_dict(json.loads(json.dumps(normalizer.state_dict())))
    assert np.array_equal(again.observe(block, count=False)['action_mask'], block['action_mask'])


def test_a_step_of_no_env_scales_nothing():
    """Asynchronous managers answer one while all envs are still busy."""
    none, flags = np.zeros(0), np.zeros(0, bool)
    nobody = StepBlock(none.astype(int), np.zeros((0, 2)), np.zeros((0, 1)), flags, flags, none, none)
    assert Normalizer(norm_reward=True).reward(nobody, np.zeros(3)).shape == (0, 1)


def test_a_reset_of_some_envs_leaves_the_statistics_of_the_others_alone():
    with make(norm_reward=True, norm_discount=0.5) as manager:
        manager.advance(manager.observe()[0], np.array([1, 1]))
        manager.reset({0: {}})
        manager.observe()
        assert manager.normalizer._stats[0].count == 5  # two first ones, two steps, and one first one more
        assert manager._live._returns.tolist() == [0.0, 1.0]
