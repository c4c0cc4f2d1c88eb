"""Whole runs of teams: in parallel, saved, filmed, with scaled observations, with episodes of unequal length."""

import os
import sys
from collections import Counter

import numpy as np
import pytest
import torch

from nervex.data import TrajectoryDataset
from nervex.entry import collect, eval, serial_pipeline
from nervex.entry.cli import main
from nervex.entry.parallel_entry import parallel_pipeline
from nervex.envs.tests.fakes import FaultyTeam
from nervex.policy.mappo import MAPPOPolicy
from nervex.policy.qmix import QMIXPolicy
from nervex.policy.sequences import map_tensors
from nervex.utils import ConfigError

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_resume import TEAMS, team_config


def carriers():
    return [
        *((name, 'inline') for name in TEAMS),
        *(pytest.param(name, 'ray', marks=pytest.mark.slow) for name in TEAMS),
    ]


@pytest.mark.parametrize('name, carrier', carriers())
def test_a_team_learns_in_parallel(name, carrier, tmp_path):
    if carrier == 'ray':
        pytest.importorskip('ray', reason='pip install "nervex[parallel]"')
    how = (f'parallel.carrier={carrier}', 'parallel.actor_num=2')
    result = parallel_pipeline({**team_config(name, 'vector', 400), 'exp_name': str(tmp_path)}, 3, overrides=how)
    assert result.env_steps >= 400 and result.train_iters >= 8
    played = eval(None, load_path=str(tmp_path), n_episode=4)
    assert len(played.returns) == 4 and {result.win_rate is None, played.win_rate is None} == {name == 'atoc'}


@pytest.mark.parametrize('name', ['qmix_gru', 'mappo'])
@pytest.mark.parametrize('manager', ['vector', 'base', 'sync_subprocess'])
def test_episodes_of_teams_are_saved_as_the_env_gave_them(name, manager, tmp_path):
    """The policy sees them scaled; it plays the same episodes whoever steps the envs."""
    serial_pipeline({**team_config(name, 'vector', 200), 'exp_name': 'run'}, seed=1)
    played = eval(None, load_path='run', n_episode=5)
    how = dict(load_path='run', n_episode=5, overrides=(f'env.env_manager_type={manager}',))
    result, written = collect(None, **how, folder='demo')
    data = TrajectoryDataset('demo', strict=True)
    assert written == 5 and result.returns.tolist() == played.returns.tolist()
    for k in range(5):
        episode, steps = data.episode(k).to_numpy(), int(data.lengths[k])
        assert episode['obs']['agent_state'].shape == (steps, 3, 30) and episode['action'].shape == (steps, 3)
        assert np.abs(episode['obs']['agent_state']).max() <= 1  # as the env has them, not scaled
        legal = np.take_along_axis(episode['obs']['action_mask'], episode['action'][..., None].astype(int), -1)
        assert legal.all()


@pytest.mark.parametrize('config, folder', [('smac_3m_mappo', 'battle'), ('cooperative_navigation_qmix', 'points')])
def test_a_team_is_filmed(config, folder, capsys):
    imageio = pytest.importorskip('imageio.v2', reason='pip install "nervex[video]"')
    short = ('-o', 'commander.max_env_step=100', '-o', 'evaluator.n_episode=2', '-o', f'exp_name={folder}')
    main(['-m', 'serial', '-c', config, '-s', '0', *short])
    main(['-m', 'eval', '-c', config, '--load', folder, '--episodes', '2', '--gif'])
    assert ('win rate: 0.00' in capsys.readouterr().out) is (folder == 'battle')
    (path,) = [f'{folder}/video/{name}' for name in os.listdir(f'{folder}/video') if '-best-' in name]
    with imageio.get_reader(path) as reader:
        frames = [np.asarray(frame) for frame in reader]
    assert len(frames) > 5 and frames[0].std() > 0 and any((frame != frames[0]).any() for frame in frames[1:])


def test_the_first_evaluating_battle_is_filmed_while_a_run_trains(tmp_path):
    pytest.importorskip('imageio_ffmpeg', reason='pip install "nervex[video]"')
    cfg = team_config('mappo', 'vector', 100)
    cfg['env']['replay_path'] = str(tmp_path / 'films')
    serial_pipeline({**cfg, 'exp_name': 'run'}, seed=0)
    assert any(name.endswith('.mp4') for name in os.listdir(tmp_path / 'films'))


def watching(base):
    """The policy, which computes every loss a second time with other numbers in the padding."""

    class Watching(base):
        sizes: Counter = Counter()

        def _loss(self, data):
            loss, info = super()._loss(data)
            real = data['mask'].bool()
            self.sizes.update(real.sum(0).tolist())
            used = torch.cat([real[:1], real[1:] | real[:-1], real[-1:]])  # the step behind the last is looked at, too

            def spoiled(leaf):
                kept = real if len(leaf) == len(real) else used
                kept = kept.reshape(*kept.shape, *[1] * (leaf.dim() - 2))
                return torch.where(kept, leaf, torch.full_like(leaf, 1 if leaf.dtype == torch.bool else 2))

            names = [name for name in self._time_columns if name in data and name != 'mask']
            again = {**data, **{name: map_tensors(data[name], spoiled) for name in names}}
            assert torch.equal(super()._loss(again)[0], loss)
            assert not (~real[:-1] & real[1:]).any()  # padding lies behind
            return loss, info

    return Watching


@pytest.mark.parametrize('base, memory', [(QMIXPolicy, 'gru'), (MAPPOPolicy, 'gru'), (MAPPOPolicy, None)])
def test_episodes_of_unequal_length_count_by_their_real_steps_only(base, memory, tmp_path):
    """Battles end when a team has fallen, or at the limit: windows of ten steps are padded behind the end."""
    kind, policy = base.config['policy_type'], watching(base)
    cfg = team_config(f'{kind}_{memory}' if memory else kind, 'vector', 1500)
    cfg['env'].update(episode_limit=33, manager={})
    cfg['policy']['learn']['graph'] = 'off'
    serial_pipeline({**cfg, 'exp_name': str(tmp_path)}, seed=0, policy_fn=policy)
    assert len(policy.sizes) > 3 and max(policy.sizes) == 10 and min(policy.sizes) >= 1, policy.sizes


@pytest.mark.parametrize(
    'policy, env, words',
    [
        ('dqn', dict(env_type='smac'), r'got dqn, .*take one of .*mappo.*qmix'),
        ('qmix', dict(env_type='cartpole'), r'got qmix, .*take one of .*dqn'),
    ],
)
def test_policies_of_teams_and_of_one_agent_are_not_taken_for_each_other(policy, env, words):
    with pytest.raises(ConfigError, match=words):
        serial_pipeline(dict(env=env, policy=dict(policy_type=policy), actor=dict(n_episode=4)), seed=0)


def test_a_team_whose_description_does_not_fit_is_an_error_of_the_config():
    cfg = dict(env=dict(env_type=FaultyTeam, wrong='count'), policy=dict(policy_type='iql'), actor=dict(n_episode=4))
    with pytest.raises(ConfigError, match=r'agent_state has shape \(2, 3\); its first axis must be the 4 agents'):
        serial_pipeline(cfg, seed=0)
