"""Hindsight relabelling: goals, rewards and ends by hand, and the settings that it refuses."""

import numpy as np
import pytest
import torch

from nervex.data import Batch
from nervex.utils import ConfigError
from nervex.worker.actor import BaseSerialActor
from nervex.worker.actor.transform import HindsightRelabel, SampleTransform, SampleTransforms

GOAL = 9.0


def episodes(*lengths, kind=np.asarray):
    """Episodes whose states count 0, 1, 2, ... (100, 101, ... in the second), all with the goal 9."""
    state = np.concatenate([100 * e + np.arange(length) for e, length in enumerate(lengths)]).astype(np.float32)
    done = np.concatenate([np.arange(length) == length - 1 for length in lengths])
    goal = np.full_like(state, GOAL)
    return Batch.of(
        dict(
            obs=kind(np.stack([state, goal], 1)),
            next_obs=kind(np.stack([state + 1, goal], 1)),
            action=kind(state.astype(np.int64)),
            reward=kind(np.zeros(len(state), np.float32)),
            done=kind(done),
            truncated=kind(done.copy()),
        )
    )


def test_final_goals_by_hand():
    out = HindsightRelabel(dict(strategy='final', k=1))(episodes(3, 2))
    assert len(out) == 10 and out[0:5] == episodes(3, 2)
    new = out[5:10]
    assert new['obs'].tolist() == [[0, 3], [1, 3], [2, 3], [100, 102], [101, 102]]
    assert new['next_obs'].tolist() == [[1, 3], [2, 3], [3, 3], [101, 102], [102, 102]]
    assert new['reward'].tolist() == [0, 0, 1, 0, 1]  # of the state that the step led to
    assert new['done'].tolist() == [False, False, True, False, True]
    assert not new['truncated'].any()  # reaching the goal is an end, not a time limit
    assert new['action'].tolist() == [0, 1, 2, 100, 101]


@pytest.mark.parametrize('strategy', ['future', 'episode'])
def test_goals_come_from_the_same_episode(strategy):
    out = HindsightRelabel(dict(strategy=strategy, k=50), seed=0)(episodes(4, 3))[7:]
    state, goal = out['obs'][:, 0], out['obs'][:, 1]
    first, last = np.where(state >= 100, 101, 1), np.where(state >= 100, 103, 4)
    earliest = state + 1 if strategy == 'future' else first
    assert ((goal >= earliest) & (goal <= last)).all()
    per_state = [set(goal[state == s].tolist()) for s in (0, 2, 101)]
    assert per_state == [{1, 2, 3, 4}, {3, 4} if strategy == 'future' else {1, 2, 3, 4},
                         {102, 103} if strategy == 'future' else {101, 102, 103}]  # fmt: skip
    assert (out['reward'] == (out['next_obs'][:, 0] == goal)).all()


def test_ends_stay_where_goals_end_nothing():
    out = HindsightRelabel(dict(strategy='final', k=1, ends_at_goal=False))(episodes(3))[3:]
    assert out['done'].tolist() == [False, False, True] and out['truncated'].tolist() == [False, False, True]


def test_goals_in_dict_observations_and_rewards_of_ones_own():
    plain = episodes(2)
    as_dict = Batch.of(
        {**dict(plain.items())}
        | {
            key: Batch.of(dict(achieved_goal=plain[key][:, :1], desired_goal=plain[key][:, 1:]))
            for key in ('obs', 'next_obs')
        }
    )
    out = HindsightRelabel(dict(strategy='final', k=1, reward=lambda achieved, goal: -(goal - achieved).abs()))(as_dict)
    assert out['obs']['desired_goal'][2:].tolist() == [[2], [2]] and out['reward'][2:].tolist() == [-1, 0]


def joined(steps):
    """An episode of joined observations: achieved goal (x, y), desired goal (8, 8), and a velocity."""
    x = np.arange(steps, dtype=np.float32)
    rows = [np.stack([x + t, 0 * x, 8 + 0 * x, 8 + 0 * x, -x - t], 1) for t in (0, 1)]
    reward, done = np.zeros(steps, np.float32), x == steps - 1
    return Batch.of(dict(obs=rows[0], next_obs=rows[1], action=x, reward=reward, done=done, truncated=done.copy()))


def test_goals_in_joined_observations_are_reached_within_a_distance():
    out = HindsightRelabel(dict(strategy='final', k=1, goal_dim=2, tolerance=1.0))(joined(3))[3:]
    assert out['obs'].tolist() == [[0, 0, 3, 0, 0], [1, 0, 3, 0, -1], [2, 0, 3, 0, -2]]
    assert out['next_obs'].tolist() == [[1, 0, 3, 0, -1], [2, 0, 3, 0, -2], [3, 0, 3, 0, -3]]
    assert out['reward'].tolist() == [0, 1, 1] and out['done'].tolist() == [False, True, True]  # from 2 it is 1 to 3
    assert not out['truncated'].any()


def test_joined_observations_must_hold_two_goals():
    with pytest.raises(ConfigError, match=r'goal_dim: got 3, so .* but they are 5 numbers; set env.flatten_obs'):
        HindsightRelabel(dict(goal_dim=3))(joined(2))
    with pytest.raises(ConfigError, match='goal_dim: got 1 beside split or merge'):
        HindsightRelabel(dict(goal_dim=1, merge=lambda state, goal: state))


def test_kinds_of_columns_are_kept():
    out = HindsightRelabel(dict(k=2), seed=0)(episodes(3, kind=torch.as_tensor))
    assert all(isinstance(column, torch.Tensor) for column in out.values())
    assert [str(out[k].dtype) for k in ('obs', 'action', 'done')] == ['torch.float32', 'torch.int64', 'torch.bool']


def test_what_cannot_be_relabelled_is_refused():
    her = HindsightRelabel()
    with pytest.raises(ValueError, match='whole episodes'):
        her(episodes(3)[0:2])
    nstep = episodes(2)
    nstep['reward'] = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match='nstep to 1'):
        her(nstep)


@pytest.mark.parametrize(
    'transform, text',
    [
        (dict(her=dict(strategi='final')), "did you mean 'strategy'"),
        (dict(her=dict(strategy='finale')), "did you mean 'final'"),
        (dict(her=dict(k=0)), 'her.k: got 0'),
        (dict(her=dict(reward='no_such_module:f')), 'module:function'),
        (dict(herr={}), "did you mean 'her'"),
    ],
)
def test_settings_are_checked(transform, text):
    with pytest.raises(ConfigError, match=text):
        SampleTransforms(dict(transform=transform, n_sample=None, n_episode=4))


def test_an_actor_that_cuts_episodes_is_refused(tmp_path):
    with pytest.raises(ConfigError, match='n_episode instead'):
        BaseSerialActor(dict(n_sample=8, transform=dict(her={})), exp_name=str(tmp_path))


def test_a_chain_of_ones_own_transforms_with_rows():
    class Double(SampleTransform):
        config = dict(times=2)

        def __call__(self, samples):
            return Batch.cat([samples] * self._cfg.times)

    chain = SampleTransforms(
        dict(transform=dict(a=dict(type=Double, times=3), b=dict(type=Double)), n_sample=1, n_episode=None)
    )
    rows = chain(Batch.from_rows([{'obs': torch.zeros(2), 'done': True}]))
    assert len(rows) == 6 and rows[0]['obs'].tolist() == [0, 0]


def test_the_random_sequence_goes_on_after_a_resume():
    first = HindsightRelabel(seed=0)
    first(episodes(6))
    second = HindsightRelabel(seed=1)
    second.load_state_dict(first.state_dict())
    assert first(episodes(6)) == second(episodes(6))
