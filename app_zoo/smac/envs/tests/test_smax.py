"""SMAX's battles under SMAC's interface, where JaxMARL is installed; what is missing where it is not."""

import sys

import numpy as np
import pytest

from app_zoo.smac.envs.smax import SMAXBattle, SMAXEnv, _compiled
from nervex.envs import check_env


def jax():
    return pytest.importorskip('jaxmarl', reason='pip install "nervex[smax]"')


def attack_or_go_east(obs):
    """Attack the first enemy in reach, else go east; the dead stop."""
    mask = obs['action_mask']
    moves = np.where(mask[:, 1] > 0, 1, 4)
    return np.where(mask[:, 5:].any(1), 5 + mask[:, 5:].argmax(1), moves)


def play(env, act):
    obs, done, steps = env.reset(), False, []
    while not done:
        timestep = env.step(act(obs))
        obs, done = timestep.obs, timestep.done
        steps.append(timestep)
    return steps


def test_it_is_a_sound_env_of_a_team():
    jax()
    env = SMAXEnv()
    assert check_env(env, steps=120) == []
    shapes = env.info().obs_space.shape
    assert shapes == {'agent_state': (3, 75), 'global_state': (72,), 'action_mask': (3, 8)}


def test_who_still_stands_is_told_on_request():
    jax()
    env = SMAXEnv(dict(observe_alive=True))
    env.seed(0)
    assert env.reset()['agent_alive'].tolist() == [1, 1, 1]
    *_, last = play(env, attack_or_go_east)
    assert int((last.obs['agent_alive'] == 0).sum()) == last.info['dead_allies']


def test_a_battle_goes_on_to_its_end_and_health_tells_who_has_won():
    jax()
    env, ends = SMAXEnv(), []
    env.seed(0)
    for _ in range(20):
        *before, last = play(env, attack_or_go_east)
        assert not any(step.done for step in before)
        said = last.info
        assert said['battle_won'] == (said['dead_enemies'] == 3 and said['dead_allies'] < 3)
        assert said['truncated'] == (said['dead_enemies'] < 3 and said['dead_allies'] < 3)
        if said['battle_won']:
            assert said['final_eval_reward'] == pytest.approx(20.0, abs=1e-3)
        ends.append(said['battle_won'])
    assert any(ends)


def test_a_limit_is_no_defeat():
    jax()
    env = SMAXEnv(dict(make_kwargs=dict(max_steps=3)))
    steps = play(env, lambda obs: np.full(3, 4))
    assert len(steps) == 4  # SMAX looks at its count before it counts the step
    assert steps[-1].info['truncated'] and not steps[-1].info['battle_won']


def test_the_same_seed_is_the_same_battle_and_nothing_is_compiled_twice():
    jax()
    functions = _compiled('3m', ())
    first, second, other = (SMAXBattle(functions, seed) for seed in (5, 5, 6))
    for battle in (first, second, other):
        battle.reset()
        battle.step([1, 1, 1])
    assert np.array_equal(first.get_obs(), second.get_obs()) and not np.array_equal(first.get_obs(), other.get_obs())
    env = SMAXEnv()
    env.seed(5)
    env.reset()
    assert env._battle._advance is functions[1] and functions[1]._cache_size() == 1


def test_an_unknown_map_names_the_nearest():
    jax()
    with pytest.raises(ValueError, match="'2s3z'"):
        SMAXEnv(dict(map_name='2s3zz')).info()


def test_without_jaxmarl_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, 'jaxmarl', None)
    _compiled.cache_clear()
    with pytest.raises(ImportError, match=r'pip install "nervex\[smax\]"'):
        SMAXEnv().info()
