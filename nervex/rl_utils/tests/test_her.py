import pytest
import torch

from nervex.data.batch import Batch
from nervex.rl_utils import Adder

GOAL = [9.0, 9.0]


def episode(length=3, **extra):
    """States count 0, 1, 2, ...; the goal is never reached."""
    state = [torch.tensor([float(t), 0.0]) for t in range(length + 1)]
    goal = torch.tensor(GOAL)
    return [
        {
            'obs': torch.cat([state[t], goal]),
            'next_obs': torch.cat([state[t + 1], goal]),
            'action': t,
            'reward': torch.zeros(1),
            'done': t == length - 1,
            **extra,
        }
        for t in range(length)
    ]


def test_final_goal_by_hand():
    rows = episode()
    new = Adder(her_strategy='final').get_her(rows)
    # the episode led to state 3: that is the new goal of all rows, and the last one reaches it
    assert [r['obs'].tolist() for r in new] == [[float(t), 0.0, 3.0, 0.0] for t in range(3)]
    assert [r['next_obs'].tolist() for r in new] == [[t + 1.0, 0.0, 3.0, 0.0] for t in range(3)]
    assert [r['reward'].tolist() for r in new] == [[0.0], [0.0], [1.0]]
    assert [r['done'] for r in new] == [False, False, True]
    assert rows[0]['obs'].tolist() == [0.0, 0.0, *GOAL] and rows[2]['reward'].item() == 0.0


def test_future_goals_lie_ahead_and_reaching_one_is_the_end():
    for seed in range(5):
        new = Adder(her_strategy='future', her_replay_k=4, seed=seed).get_her(episode(6, truncated=True))
        assert len(new) == 24
        for i, row in enumerate(new):
            t, goal = i // 4, row['obs'][2].item()
            assert t + 1 <= goal <= 6
            assert row['reward'].item() == float(goal == t + 1) and row['done'] == (goal == t + 1)
            assert row['truncated'] is False


def test_episode_goals_may_lie_behind_and_the_seed_decides():
    goals = [
        [r['obs'][2].item() for r in Adder(her_strategy='episode', her_replay_k=4, seed=s).get_her(episode(6))]
        for s in (0, 0, 1)
    ]
    assert goals[0] == goals[1] != goals[2]
    assert set(goals[0]) <= {1.0, 2.0, 3.0, 4.0, 5.0, 6.0} and any(g < i // 4 + 1 for i, g in enumerate(goals[0]))


def test_own_layout_and_reward():
    rows = [
        {'obs': torch.tensor([5.0, 7.0]), 'next_obs': torch.tensor([5.0, 8.0]), 'reward': torch.zeros(1), 'done': True}
    ]
    new = Adder(her_strategy='final').get_her(
        rows,
        merge_func=lambda state, goal: torch.stack([goal, state]),
        split_func=lambda obs: (obs[1], obs[0], obs[1]),
        goal_reward_func=lambda achieved, desired: torch.tensor([-1.0]),
        ends_at_goal=False,
    )
    assert new[0]['obs'].tolist() == [8.0, 7.0] and new[0]['next_obs'].tolist() == [8.0, 8.0]
    assert new[0]['reward'].tolist() == [-1.0] and new[0]['done'] is True


def test_columns_equal_rows():
    rows = episode(5)
    batch = Batch.of({k: torch.stack([torch.as_tensor(r[k]) for r in rows]) for k in rows[0]})
    batch['reward'] = batch['reward'][:, 0]
    new_rows = Adder(her_replay_k=2, seed=3).get_her(rows)
    new = Adder(her_replay_k=2, seed=3).get_her(batch)
    assert new['reward'].shape == (10,) and new['done'].dtype is torch.bool
    for key in ('obs', 'next_obs', 'action', 'done'):
        assert new[key].tolist() == [torch.as_tensor(r[key]).tolist() for r in new_rows]
    assert new['reward'].tolist() == [r['reward'].item() for r in new_rows]


def test_unknown_strategy():
    with pytest.raises(ValueError, match='her_strategy'):
        Adder(her_strategy='past')
    assert Adder().get_her([]) == []
