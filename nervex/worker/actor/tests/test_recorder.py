"""Episodes on disk while an actor collects: whole ones, as the envs gave them."""

import os

import numpy as np
import pytest

from nervex.data import TrajectoryDataset
from nervex.envs.tests import fakes
from nervex.worker.actor import BaseSerialActor
from nervex.worker.actor.env_manager import create_env_manager
from nervex.worker.actor.tests.counting import Hooks, check_rows

TWO = ({'tag': 0, 'length': 3}, {'tag': 1, 'length': 5})


@pytest.fixture
def actor(tmp_path):
    made = []

    def make(env=fakes.CounterEnv, cfgs=TWO, kind='base', manager=None):
        one = BaseSerialActor(dict(n_sample=20, collect_traj='trajs'), exp_name=str(tmp_path))
        made.append(one)
        one.env = create_env_manager(kind, env, list(cfgs), manager or {})
        one.env.launch()
        one.policy = Hooks().collect_mode()
        return one

    yield make
    for one in made:
        one.close()


def recorded(tmp_path):
    """(tag, episode) -> its steps."""
    data, found = TrajectoryDataset(str(tmp_path / 'trajs')), {}
    for k in range(len(data.lengths)):
        rows, done = check_rows(data.episode(k))
        assert done.tolist() == [False] * (len(rows) - 1) + [True]
        found[rows[0][:2]] = [step for _, _, step in rows]
    return found


@pytest.mark.parametrize('kind', ['base', 'sync_subprocess', 'async_subprocess', 'vector'])
def test_whole_episodes_and_no_others_are_written(actor, tmp_path, kind):
    if kind == 'vector':
        one = actor(lambda same: fakes.CounterEngine(list(TWO)), [{}] * 2, kind)
    else:
        one = actor(kind=kind)
    for iteration in range(2):
        one.generate_data(iteration)
    steps = dict.fromkeys(range(2), one.env.env_num * 20)
    one.close()
    found = recorded(tmp_path)
    assert all(steps == list(range(1, TWO[tag]['length'] + 1)) for (tag, _), steps in found.items())
    assert len(found) == one.total_episode and sum(map(len, found.values())) <= sum(steps.values())


def test_files_are_numbered_and_go_on(actor, tmp_path):
    for _ in range(2):
        one = actor()
        one.generate_data(0)
        one.close()
    assert sorted(os.listdir(tmp_path / 'trajs')) == ['trajectories_00000.npz', 'trajectories_00001.npz']


@pytest.mark.parametrize('fault', ['raise', 'abnormal'])
def test_an_episode_in_which_an_env_failed_is_left_out(actor, tmp_path, fault):
    cfgs = [{'tag': 0, 'length': 6, 'fault': fault, 'at': 4, 'episodes': [2]}, {'tag': 1, 'length': 6}]
    one = actor(fakes.FaultyEnv, cfgs, manager={'retry_waiting_time': 0.0})
    for iteration in range(3):
        one.generate_data(iteration)
    one.close()
    found = recorded(tmp_path)
    assert (0, 1) in found and (0, 2) not in found and (0, 3) in found and (1, 2) in found


def test_observations_and_rewards_are_the_envs_own_where_the_policy_sees_them_scaled(actor, tmp_path):
    class Blind(Hooks):
        def forward(self, data_id, data):
            return {'action': (data['obs'][:, 2] * 0).long()}

    one = actor(manager={'norm_obs': True, 'norm_reward': True})
    one.policy = Blind().collect_mode()
    data, _ = one.generate_data(0)
    one.close()
    episode = TrajectoryDataset(str(tmp_path / 'trajs')).episode(0)
    assert episode['reward'].tolist() == [1, 2, 3] and episode['next_obs'][:, 2].tolist() == [1, 2, 3]
    assert not np.isin(np.asarray(data['reward']), [1, 2, 3]).all()


def test_an_episode_that_had_begun_before_a_resume_is_not_half_recorded(actor, tmp_path):
    one = actor()
    one.generate_data(0)  # env 1 ends its second episode, env 0 is in the first step of its fourth
    state = one.state_dict()
    again = actor()
    again.policy.reset()
    again.load_state_dict(state)
    again.env.observe()
    again._env, one._env = one._env, again._env  # the envs go on where they were
    again.generate_data(1)
    again.close()
    found = recorded(tmp_path)
    assert (0, 4) not in found and (0, 5) in found and (1, 3) in found
