"""Teams in every kind of env manager: dict observations, an action and a reward for each agent, legal actions."""

import numpy as np
import pytest

from app_zoo.multiagent_particle.envs import CooperativeNavigationEnv
from app_zoo.smac.envs import SMACEnv
from app_zoo.smac.envs.scripted import nearest_actions
from nervex.envs.tests.fakes import FaultyTeam
from nervex.utils import EnvError, tree
from nervex.worker.actor.env_manager import VectorEnvManager
from nervex.worker.actor.env_manager.tests.managers import KINDS, build

TEAMS = {
    'navigation': (CooperativeNavigationEnv, dict(team_reward='each', episode_limit=7)),
    'battle': (SMACEnv, dict(map_name='2s3z', episode_limit=12)),
}
SEED, EPISODES = 5, 2


def choose(mask, env_id, step):
    """A legal action of each agent, drawn anew for each env and step."""
    draw = np.random.default_rng([env_id, step]).random(mask.shape)
    return (draw * mask).argmax(-1)


def alone(cls, cfg, env_id):
    """What the env gives by itself: its first observation, then (observation, reward, done, truncated, info)."""
    env, rows, step = cls(cfg), [], 0
    env.seed(SEED + env_id)
    for _ in range(EPISODES):
        obs, done = env.reset(), False
        while not done:
            rows.append(('before', obs))
            obs, reward, done, info = env.step(choose(obs['action_mask'], env_id, step))
            rows.append(('after', obs, reward, done, info))
            step += 1
    return rows


def equal(one, other):
    return list(one) == list(other) and all(
        np.array_equal(one[k], other[k]) and one[k].dtype == other[k].dtype for k in one
    )


@pytest.mark.parametrize('name', TEAMS)
@pytest.mark.parametrize('kind', [kind for kind in KINDS if kind not in ('vector_same_step', 'vector_async')])
def test_a_manager_gives_what_the_single_envs_give(kind, name):
    cls, cfg = TEAMS[name]
    expected = [alone(cls, cfg, i) for i in range(3)]
    with build(kind, [cfg] * 3, env=cls, launch=False) as manager:
        manager.seed(SEED)
        manager.launch()
        assert manager.env_info().agent_num == cls(cfg).info().agent_num
        given = [[] for _ in range(3)]
        while any(len(rows) < len(wanted) for rows, wanted in zip(given, expected)):
            ids, obs = manager.observe()
            actions = [choose(obs['action_mask'][k], i, len(given[i]) // 2) for k, i in enumerate(ids.tolist())]
            for k, i in enumerate(ids.tolist()):
                given[i].append(('before', tree.map(np.copy, tree.index(obs, k))))
            block = manager.advance(ids, np.stack(actions))
            for k, i in enumerate(block.env_id.tolist()):
                obs, reward = tree.map(np.copy, tree.index((block.obs, block.reward), k))
                given[i].append(('after', obs, reward, bool(block.done[k]), block.info[k]))
                assert not block.done[k] or block.truncated[k] == block.info[k]['truncated']
        assert manager.faults.total == 0
    for rows, wanted in zip(given, expected):
        for row, other in zip(rows, wanted):
            assert row[0] == other[0] and equal(row[1], other[1])
            if row[0] == 'after':
                assert np.array_equal(np.reshape(row[2], -1), other[2]) and row[3] == other[3]
                assert not row[3] or {k: float(v) for k, v in row[4].items()} == other[4]


@pytest.mark.parametrize('name', TEAMS)
def test_a_vectorised_team_goes_on_from_its_saved_state(name):
    cls, cfg = TEAMS[name]

    def play(manager, first, count):
        seen = []
        for step in range(first, first + count):
            ids, obs = manager.observe()
            block = manager.advance(ids, np.stack([choose(obs['action_mask'][k], k, step) for k in range(3)]))
            seen.append(tree.map(np.copy, (block.obs, block.reward, block.done, block.episode_return)))
        return seen

    def manager():
        made = VectorEnvManager(cls, [cfg] * 3)
        made.seed(SEED)
        made.launch()
        return made

    with manager() as straight, manager() as resumed:
        play(straight, 0, 5)
        state = straight.state_dict()
        on = play(straight, 5, 30)
        resumed.load_state_dict(state)
        for one, other in zip(on, play(resumed, 5, 30)):
            assert all(np.array_equal(a, b) for a, b in zip(tree.leaves(one), tree.leaves(other)))


def test_who_won_is_told_for_each_of_many_battles():
    cfg, won = dict(map_name='3m'), []
    with build('vector', [cfg] * 8, env=SMACEnv, launch=False) as manager:
        manager.seed(SEED)
        manager.launch()
        battles = manager._live.backend.host._engine.env.battles
        while len(won) < 12:
            ids, _ = manager.observe()
            block = manager.advance(ids, nearest_actions(battles))
            won += [(block.info[k], block.episode_return[k]) for k in np.flatnonzero(block.done)]
    wins = [bool(info['win']) for info, _ in won]
    assert wins == [bool(total > 19.99) for _, total in won] and 0 < sum(wins) < len(wins)
    assert all((info['dead_enemies'] == 3) == info['battle_won'] == win for (info, _), win in zip(won, wins))


def test_teams_whose_episodes_are_over_wait_while_others_step():
    cls, cfg = TEAMS['battle']
    with build('vector', [cfg] * 3, env=cls, episode_num=2) as manager:
        steps = 0
        while not manager.done:
            ids, obs = manager.observe()
            manager.advance(
                ids, np.stack([choose(obs['action_mask'][k], i, steps) for k, i in enumerate(ids.tolist())])
            )
            steps += 1
        assert manager.faults.total == 0


@pytest.mark.parametrize('kind', ['base', 'vector'])
def test_an_illegal_action_names_agent_and_env(kind):
    cls, cfg = TEAMS['battle']
    with build(kind, [cfg] * 2, env=cls, max_retry=0) as manager:
        ids, obs = manager.observe()
        actions = np.stack([choose(obs['action_mask'][k], k, 0) for k in range(2)])
        actions[1, 3] = 0
        with pytest.raises(EnvError, match=r'unit 3( of env 1)? may not take action 0; legal are') as caught:
            manager.advance(ids, actions)
        assert 'env 1' in str(caught.value)


@pytest.mark.parametrize('kind', ['base', 'vector', 'async'])
def test_agents_are_scaled_alike_and_masks_are_left_alone(kind):
    cls, cfg = TEAMS['battle']
    with build(kind, [cfg] * 3, env=cls, norm_obs=True, wait_num=3, step_wait_timeout=10) as manager:
        seen, (ids, obs) = [], manager.observe()
        for step in range(4):
            seen.append(tree.map(np.copy, manager.raw_observed[1]))
            mask = seen[-1]['action_mask']
            assert np.array_equal(obs['action_mask'], mask)
            manager.advance(ids, np.stack([choose(mask[k], i, step) for k, i in enumerate(ids.tolist())]))
            ids, obs = manager.observe()
        seen.append(manager.raw_observed[1])
        rows = np.concatenate([one['agent_state'] for one in seen]).reshape(-1, 80)  # of all envs, agents and steps
        states = np.concatenate([one['global_state'] for one in seen])
        for name, all_of_it in (('agent_state', rows), ('global_state', states)):
            scaled = (seen[-1][name] - all_of_it.mean(0)) / np.sqrt(all_of_it.var(0) + 1e-8)
            assert np.allclose(obs[name], np.clip(scaled, -10, 10), atol=1e-4), name


@pytest.mark.parametrize('kind', ['base', 'sync', 'async', 'thread'])
def test_a_mask_without_a_legal_action_names_agent_and_env(kind):
    with (
        build(kind, [{}, dict(wrong='stuck')], env=FaultyTeam, max_retry=0) as manager,
        pytest.raises(
            EnvError, match=r'action_mask has no legal action for agent 1.* \(env 1, step 2 of the episode\)'
        ),
    ):
        for _ in range(9):
            ids, _ = manager.observe()
            manager.advance(ids, np.zeros((len(ids), 2), np.int64))


def test_a_battle_without_a_legal_action_is_named_among_many():
    class Stuck(SMACEnv):
        def seen(self):
            seen = super().seen()
            seen['action_mask'][1:2, 2] = 0
            return seen

    manager = VectorEnvManager(Stuck, [{}] * 3, manager_cfg=dict(max_retry=0))
    with manager, pytest.raises(EnvError, match=r'no legal action for agent 2.* \(env 1, step 0 of the episode\)'):
        manager.launch()


@pytest.mark.parametrize('kind', ['base', 'sync'])
def test_an_env_whose_agents_differ_is_named(kind):
    cfgs = [dict(agent_num=3), dict(agent_num=4)]
    manager = build(kind, cfgs, env=CooperativeNavigationEnv, launch=False, max_retry=0)
    with (
        manager,
        pytest.raises(EnvError, match=r'agent_state: the observation must have shape \(3, 18\), got \(4, 24\)') as e,
    ):
        manager.launch()
    assert 'env 1' in str(e.value)


@pytest.mark.parametrize('wrong', ['three', 'uneven'])
def test_a_team_of_another_size_than_it_says_is_told_at_the_launch(wrong):
    manager = build('base', [dict(wrong=wrong)], env=FaultyTeam, launch=False)
    with manager, pytest.raises(ValueError, match='agent_state of the observation'):
        manager.launch()
