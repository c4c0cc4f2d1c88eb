"""Other simulators under SMAC's interface, with a fake in their place; those that are installed, for real."""

import sys
import types

import numpy as np
import pytest

from app_zoo.smac.envs.adapters import StarCraftEnv
from nervex.envs import check_env
from nervex.policy.tests.learning import train
from nervex.worker.actor.env_manager import create_env_manager


class FakeStarCraft:
    """
    Two units against one enemy of three lives, under the names, arguments and answers of StarCraft2Env: the enemy is
    hit by action 6, and the second unit falls at step 3. An episode has 5 steps.
    """

    made = []
    breaks = False

    def __init__(self, map_name='8m', seed=None, continuing_episode=False, difficulty='7'):
        assert continuing_episode  # else the end by the limit is not told apart
        self.made_with = dict(map_name=map_name, seed=seed, difficulty=difficulty)
        self.rng, self.closed = np.random.default_rng(seed), 0
        self.made.append(self)

    def get_env_info(self):
        return dict(state_shape=3, obs_shape=2, n_actions=7, n_agents=2, episode_limit=5, agent_features=['health'])

    def reset(self):
        self.t, self.lives, self.luck = 0, 3, self.rng.random()
        return self.get_obs(), self.get_state()

    def get_obs(self):
        return [np.array([self.t, self.luck]), np.array([self.t, self.lives]) * (self.t < 3)]

    def get_state(self):
        return np.array([self.t, self.lives, self.luck])

    def get_avail_actions(self):
        return [[0, 1, 0, 0, 0, 0, 1], [0, 1, 0, 0, 0, 0, 1] if self.t < 3 else [1] + [0] * 6]

    def get_unit_by_id(self, unit):
        return types.SimpleNamespace(health=45.0 * (unit == 0 or self.t < 3))

    def step(self, actions):
        if self.breaks:
            return 0, True, {}
        self.t += 1
        hits = sum(int(action) == 6 for action in actions)
        self.lives = max(self.lives - hits, 0)
        info = {'battle_won': self.lives == 0, 'dead_allies': int(self.t >= 3), 'dead_enemies': int(self.lives == 0)}
        over = self.lives == 0
        if not over and self.t >= 5:
            over = info['episode_limit'] = True
        return float(hits), over, info

    def close(self):
        self.closed += 1


@pytest.fixture
def starcraft(monkeypatch):
    package = types.ModuleType('smac')
    package.env = types.ModuleType('smac.env')
    package.env.StarCraft2Env = FakeStarCraft
    monkeypatch.setitem(sys.modules, 'smac', package)
    monkeypatch.setitem(sys.modules, 'smac.env', package.env)
    monkeypatch.setattr(FakeStarCraft, 'made', [])
    return FakeStarCraft.made


def test_starcraft_is_a_sound_env(starcraft):
    assert check_env(StarCraftEnv()) == []


def test_what_starcraft_answers_is_in_the_form_of_a_team(starcraft):
    env = StarCraftEnv({'map_name': '2s3z', 'make_kwargs': {'difficulty': '3'}})
    env.seed(7)
    info, obs = env.info(), env.reset()
    assert len(starcraft) == 1 and starcraft[0].made_with == dict(map_name='2s3z', seed=7, difficulty='3')
    assert info.agent_num == 2 and info.act_space.value['n'] == (7, 7)
    assert info.obs_space.shape == {'agent_state': (2, 2), 'global_state': (3,), 'action_mask': (2, 7)}
    assert obs['agent_state'].dtype == np.float32 and obs['action_mask'][0].tolist() == [0, 1, 0, 0, 0, 0, 1]
    steps = [env.step([6, 1]), env.step([6, 6])]
    assert [float(step.reward[0]) for step in steps] == [1, 2] and [step.done for step in steps] == [False, True]
    ends = dict(final_eval_reward=3.0, truncated=False, battle_won=True, dead_allies=0, dead_enemies=1)
    assert steps[1].info == ends and env.battle_won
    with pytest.raises(RuntimeError, match=r'reset\(\)'):
        env.step([1, 1])


def test_a_limit_is_no_defeat_and_the_dead_may_only_do_nothing(starcraft):
    env = StarCraftEnv()
    env.reset()
    for _ in range(3):
        timestep = env.step([1, 1])
    assert timestep.obs['action_mask'][1].tolist() == [1] + [0] * 6 and not timestep.obs['agent_state'][1].any()
    with pytest.raises(ValueError, match=r'unit 1 may not take action 1; legal are \[0\]'):
        env.step([1, 1])
    env.step([1, 0])
    assert env.step([1, 0]).info['truncated'] is True and not env.battle_won


def test_who_still_stands_is_told_on_request(starcraft):
    env = StarCraftEnv({'observe_alive': True})
    assert check_env(env) == [] and env.info().obs_space.shape['agent_alive'] == (2,)
    told = [env.reset()['agent_alive'].tolist(), *(env.step([1, 1]).obs['agent_alive'].tolist() for _ in range(3))]
    assert told == [[1, 1], [1, 1], [1, 1], [1, 0]]


def test_another_seed_makes_another_game_and_a_fixed_one_the_same_again(starcraft):
    env = StarCraftEnv()
    env.seed(1)
    lucks = [env.reset()['agent_state'][0, 1] for _ in range(2)]
    assert len(starcraft) == 1 and lucks[0] != lucks[1]
    env.seed(1, dynamic_seed=False)
    assert [env.reset()['agent_state'][0, 1] for _ in range(2)] == [lucks[0]] * 2
    env.seed(2)
    assert env.reset()['agent_state'][0, 1] != lucks[0]
    env.close()
    env.close()
    assert [battle.closed for battle in starcraft] == [1] * len(starcraft)


def test_a_game_that_breaks_off_is_an_error_that_a_manager_bears(starcraft, monkeypatch):
    env = StarCraftEnv()
    env.reset()
    monkeypatch.setattr(FakeStarCraft, 'breaks', True)
    with pytest.raises(RuntimeError, match='broke off'):
        env.step([1, 1])
    monkeypatch.setattr(FakeStarCraft, 'breaks', False)
    with create_env_manager('base', StarCraftEnv, [{}] * 2) as manager:
        manager.launch()
        monkeypatch.setattr(FakeStarCraft, 'breaks', True)
        manager.advance(manager.all_ids, np.ones((2, 2), np.int64))
        monkeypatch.setattr(FakeStarCraft, 'breaks', False)
        assert manager.faults.total == 2 and len(manager.observe()[0]) == 2


def test_a_mask_without_a_legal_action_names_the_unit(starcraft, monkeypatch):
    monkeypatch.setattr(FakeStarCraft, 'get_avail_actions', lambda self: [[1] * 7, [0] * 7])
    with pytest.raises(ValueError, match=r'StarCraftEnv\(3m\): unit 1 has no legal action'):
        StarCraftEnv().reset()


def test_the_config_of_the_micro_battle_trains_on_starcraft(starcraft, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cfg = dict(
        policy=dict(learn=dict(batch_size=16, epochs=4), collect=dict(unroll_len=5, traj_len='inf')),
        actor=dict(n_episode=32),
        evaluator=dict(n_episode=20, eval_freq=20, stop_val=3.9),
        commander=dict(max_env_step=12000),
    )
    assert train('mappo', StarCraftEnv, cfg).solved  # both hit twice: 4 for the team


def test_without_starcraft_it_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, 'smac.env', None)
    with pytest.raises(ImportError, match=r'oxwhirl/smac.*StarCraft II.*env_type .smac. plays such battles'):
        StarCraftEnv().info()
    monkeypatch.setitem(sys.modules, 'smac', types.ModuleType('smac'))
    with pytest.raises(ImportError, match='another project'):
        StarCraftEnv().info()
