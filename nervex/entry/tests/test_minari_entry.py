"""Data sets of Minari become trajectory files, and a policy learns from them."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from nervex.data import TrajectoryDataset
from nervex.data.trajectories import TrajectoryError
from nervex.entry import import_minari, offline_pipeline
from nervex.envs.spaces import ActionCodec
from nervex.utils import ExtraMissingError


class Episode:
    """What Minari's episodes have."""

    id = 0

    def __init__(self, observations, actions, rewards, terminations, truncations):
        self.observations, self.actions, self.rewards = observations, actions, rewards
        self.terminations, self.truncations = terminations, truncations


class Recorded:
    """What Minari's data sets have."""

    def __init__(self, observation_space, action_space, *episodes):
        self.observation_space, self.action_space, self._episodes = observation_space, action_space, episodes

    def iterate_episodes(self):
        return iter(self._episodes)


def goals(*episodes):
    parts = {name: spaces.Box(-9, 9, (1,), np.float64) for name in ('achieved_goal', 'desired_goal')}
    return Recorded(spaces.Dict(parts), spaces.Box(-2.0, 2.0, (1,), np.float32), *episodes)


def walk(steps=2, terminated=False, observations=None):
    obs = {'achieved_goal': np.arange(steps + 1.0)[:, None], 'desired_goal': np.full((steps + 1, 1), 5.0)}
    last = np.arange(steps) == steps - 1
    flags = (last & terminated, last & (not terminated))
    return Episode(observations or obs, np.linspace(-2, 2, steps)[:, None], np.ones(steps), *flags)


def test_columns_by_hand(tmp_path):
    folder = str(tmp_path / 'data')
    assert import_minari(goals(walk(), walk(3, True)), folder, flatten_obs=True, use_act_scale=True) == 2
    first, second = (TrajectoryDataset(folder).episode(k) for k in range(2))
    assert first['obs'].tolist() == [[0, 5], [1, 5]] and first['next_obs'].tolist() == [[1, 5], [2, 5]]
    assert first['action'].tolist() == [[-1], [1]] and first['reward'].tolist() == [[1], [1]]
    assert first['done'].tolist() == [False, True] == first['truncated'].tolist()
    assert second['done'].tolist() == [False, False, True] and not second['truncated'].any()
    assert first['obs'].dtype == first['action'].dtype == np.float32


def test_dicts_stay_dicts_and_a_recording_that_stops_is_cut(tmp_path):
    open_end = walk()
    open_end.truncations = np.zeros(2, bool)
    import_minari(goals(open_end), str(tmp_path / 'data'))
    episode = TrajectoryDataset(str(tmp_path / 'data')).episode(0)
    assert episode['next_obs']['achieved_goal'].tolist() == [[1], [2]]
    assert episode['action'].tolist() == [[-2], [2]]
    assert episode['done'].tolist() == [False, True] == episode['truncated'].tolist()


def test_an_episode_without_its_last_observation_is_refused(tmp_path):
    short = walk(observations={name: np.zeros((2, 1)) for name in ('achieved_goal', 'desired_goal')})
    with pytest.raises(TrajectoryError, match='2 steps need 3 observations'):
        import_minari(goals(short), str(tmp_path / 'data'))


@pytest.mark.parametrize(
    'space',
    [
        spaces.Box(np.array([-1.0, 0.0]), np.array([3.0, 5.0])),
        spaces.Discrete(4, start=2),
        spaces.MultiDiscrete([3, 2]),
        spaces.MultiBinary(3),
    ],
)
def test_actions_come_back_as_the_policy_gave_them(space):
    codec = ActionCodec(space, use_act_scale=isinstance(space, spaces.Box))
    space.seed(0)
    own = codec.from_env(np.stack([space.sample() for _ in range(20)]))
    again = codec.from_env(np.stack([codec.to_env(action) for action in own]))
    assert np.allclose(own, again, atol=1e-6) and len(np.unique(own, axis=0)) > 1
    assert own.min() >= -1 if isinstance(space, spaces.Box) else own.min() == 0


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__('sys').modules, 'minari', None)
    with pytest.raises(ExtraMissingError, match=r'pip install "minari\[hdf5\]"'):
        import_minari('D4RL/pointmaze/umaze-v2', str(tmp_path))


def test_a_policy_learns_from_a_data_set_that_minari_wrote(monkeypatch, tmp_path):
    minari = pytest.importorskip('minari')
    monkeypatch.setenv('MINARI_DATASETS_PATH', str(tmp_path / 'minari'))
    env, episodes, rng = gymnasium.make('CartPole-v1'), [], np.random.default_rng(0)
    for seed in range(8):
        obs, rows = [env.reset(seed=seed)[0]], []
        while not rows or not (rows[-1][2] or rows[-1][3]):
            angle = obs[-1][2] + 0.3 * obs[-1][3]
            action = int(angle > 0) ^ int(rng.random() < 0.1)
            following, reward, terminated, truncated, _ = env.step(action)
            obs.append(following)
            rows.append((action, float(reward), terminated, truncated))
        actions, rewards, ends, cuts = (list(column) for column in zip(*rows))
        episodes.append(minari.data_collector.EpisodeBuffer(seed, seed, None, obs, actions, rewards, ends, cuts))
    minari.create_dataset_from_buffers('nervex/cartpole-v0', episodes, env=env, eval_env=env)
    folder = str(tmp_path / 'data')
    assert import_minari('nervex/cartpole-v0', folder) == 8
    first = TrajectoryDataset(folder).episode(0)
    assert np.array_equal(first['obs'], np.array(episodes[0].observations[:-1]))
    assert np.array_equal(first['action'], episodes[0].actions)
    overrides = ('commander.max_train_iter=600', 'evaluator.stop_val=100', 'evaluator.eval_freq=200')
    assert offline_pipeline('cartpole_il', folder, overrides=overrides).final_return >= 100
