"""The micro-battle under SMAC's interface and as an env of nerveX."""

import numpy as np
import pytest

from app_zoo.smac.envs import SMACEnv
from app_zoo.smac.envs.picture import ALLY, ENEMY
from app_zoo.smac.envs.scripted import nearest_actions
from nervex.envs import check_env

SIZES = {  # as SMAC has them: actions, agents, state, observation, steps
    '3m': (9, 3, 48, 30, 60),
    '8m': (14, 8, 168, 80, 120),
    '5m_vs_6m': (12, 5, 98, 55, 70),
    '2s3z': (11, 5, 120, 80, 120),
    '3s5z': (14, 8, 216, 128, 150),
    'MMM': (16, 10, 290, 160, 150),
}


@pytest.mark.parametrize('name', SIZES)
def test_sizes_are_those_of_smac(name):
    env = SMACEnv({'map_name': name})
    env.seed(0)
    obs = env.reset()
    info = env.get_env_info()
    keys = ('n_actions', 'n_agents', 'state_shape', 'obs_shape', 'episode_limit')
    assert tuple(info[key] for key in keys) == SIZES[name]
    assert obs['agent_state'].shape == (info['n_agents'], info['obs_shape'])
    assert obs['global_state'].shape == (info['state_shape'],)
    assert np.abs(obs['agent_state']).max() <= 1 and np.abs(obs['global_state']).max() <= 1
    assert check_env(env) == []


def play(env, steps=200):
    trace = [env.reset()]
    for _ in range(steps):
        timestep = env.step(nearest_actions(env.battles)[0])
        trace.append(timestep)
        if timestep.done:
            break
    return trace


def test_the_same_seed_plays_the_same_battle():
    runs = []
    for _ in range(2):
        env = SMACEnv({'map_name': '2s3z'})
        env.seed(3)
        runs.append(play(env))
    assert len(runs[0]) == len(runs[1])
    for a, b in zip(runs[0][1:], runs[1][1:]):
        assert all(np.array_equal(a.obs[key], b.obs[key]) for key in a.obs) and a.reward == b.reward


def test_a_won_battle_gives_twenty_unless_shields_recovered():
    env = SMACEnv({'map_name': '8m'})
    for seed in range(60):
        env.seed(seed)
        last = play(env)[-1]
        if last.info['battle_won']:
            assert last.info['final_eval_reward'] == pytest.approx(20.0, abs=1e-4)
            assert last.info['dead_enemies'] == 8 and not last.info['truncated']
            return
    raise AssertionError('no battle was won')


def test_the_dead_do_nothing_and_see_nothing():
    env = SMACEnv({'map_name': '3m'})
    env.seed(0)
    env.reset()
    env.battles.health[0, 1] = 0.0
    env._mask = env.battles.available()
    timestep = env.step([1, 0, 1])
    assert timestep.obs['action_mask'][1].tolist() == [1] + [0] * 8
    assert not timestep.obs['agent_state'][1].any()
    assert not timestep.obs['global_state'][4:8].any()
    with pytest.raises(ValueError, match=r'unit 1 may not take action 1; legal are \[0\]'):
        env.step([1, 1, 1])


def test_observations_name_who_is_where():
    env = SMACEnv({'map_name': '3m'})
    env.seed(0)
    env.reset()
    battles = env.battles
    battles.x[0], battles.y[0] = [10, 10, 10, 14.5, 25, 25], [16, 12, 20, 16, 16, 20]
    obs = env.seen()['agent_state'][0, 0]
    assert obs[:4].tolist() == [1, 1, 1, 1]
    assert obs[4:9].tolist() == pytest.approx([1, 0.5, 0.5, 0, 1])  # enemy 0: may be shot, 4.5 of 9 cells east
    assert not obs[9:19].any()  # enemies 1 and 2 are out of sight
    assert obs[19:24].tolist() == pytest.approx([1, 4 / 9, 0, -4 / 9, 1])  # comrade 1, south
    assert obs[29] == 1  # own health


@pytest.mark.parametrize('action', [[1, 1], [1, 1, 9], 3, [0.5, 1, 1]])
def test_a_wrong_action_is_refused_with_words(action):
    env = SMACEnv({'map_name': '3m'})
    env.reset()
    with pytest.raises(ValueError, match='3m'):
        env.step(action)


def test_an_unknown_map_names_the_nearest():
    with pytest.raises(ValueError, match="'2s3z'"):
        SMACEnv({'map_name': '2s3zz'})


def test_a_picture_shows_both_teams():
    env = SMACEnv({'map_name': 'MMM'})
    env.reset()
    image = env.render()
    assert image.shape == (512, 512, 3) and image.dtype == np.uint8
    assert (image == ALLY).all(2).sum() > 500 and (image == ENEMY).all(2).sum() > 500


def test_a_victory_among_many_battles_is_told_though_the_next_one_begins_in_the_same_step():
    engine = SMACEnv.create_vector_env([{'map_name': '3m'}] * 2)
    engine.start([0, 1])
    engine.env.battles.health[0, 3:] = [1.0, 0.0, 0.0]
    engine.env.battles.x[0, [0, 3]], engine.env.battles.y[0, [0, 3]] = 10.0, [10.0, 12.0]
    engine.env._mask = engine.env.battles.available()
    actions = np.where(engine.env._mask[:, :, 1], 1, 0)
    actions[0, 0] = 6
    answer = engine.exchange(actions)
    assert answer.terminated.tolist() == [True, False]
    assert answer.infos['win'].tolist() == answer.infos['battle_won'].tolist() == [True, False]


def test_who_still_stands_is_told_on_request():
    env = SMACEnv({'map_name': '2s3z', 'observe_alive': True})
    obs = env.reset()
    assert obs['agent_alive'].tolist() == [1] * 5 and env.info().obs_space.shape['agent_alive'] == (5,)
    assert check_env(SMACEnv({'observe_alive': True})) == [] and 'agent_alive' not in SMACEnv({}).reset()
    env.battles.health[0, [1, 7]] = 0.0
    obs = env.seen()
    assert obs['agent_alive'][0].tolist() == [1, 0, 1, 1, 1] and obs['action_mask'][0, 1].tolist() == [1] + [0] * 10


def test_what_a_unit_would_see_alone():
    env = SMACEnv({'map_name': '2s3z', 'observe_alone': True})
    obs, shapes = env.reset(), env.info().obs_space.shape
    assert {name: part.shape for name, part in obs.items()} == shapes
    full, alone, padded = (obs[name] for name in ('agent_state', 'agent_alone_state', 'agent_alone_padding_state'))
    mine = np.arange(full.shape[1])
    comrades = (mine >= 4 + 5 * 8) & (mine < 4 + 9 * 8)  # behind five enemies, four of them, 8 figures each
    assert full[:, comrades].any() and not padded[:, comrades].any()
    assert np.array_equal(full[:, ~comrades], alone) and np.array_equal(padded[:, ~comrades], alone)
